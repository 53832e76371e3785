"""Allocation of shared memory: offsets of exchanges and buffers, by liveness.

An exchange needs its bytes while it runs, a buffer until its last use completes, including dots and
copies with a later wait; bytes are shared by uses at different times (`analysis.pack`). Time is
counted in half steps: an exchange at position p of the program writes at 2 p and reads at 2 p + 1,
its barrier between; the exchange of a conversion is the ops on its buffer.

Small exchanges, as between the warps of a reduction, keep their bytes from the previous one to the
next one, whose barrier proves that all have read: so none has to wait before it writes. The last
one of a loop keeps its bytes during the whole loop, since the first one follows it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from tilewright.analysis import LiveRange, Request, pack
from tilewright.backends.nvidia.arch import Arch
from tilewright.backends.nvidia.buffer_ops import (
    AllocOp,
    ShareOp,
    WaitOp,
    WgmmaOp,
    WgmmaWaitOp,
    WriteOp,
    buffer_type,
    users_of,
)
from tilewright.backends.nvidia.bulk_ops import MbarriersOp
from tilewright.backends.nvidia.exchange_ops import (
    CountOp,
    ReadAtOp,
    ReadPartnerOp,
    SharedFmaDotOp,
    WriteLastOp,
    is_scratch,
)
from tilewright.backends.nvidia.layouts.access_vectors import MAX_VECTOR_BYTES
from tilewright.backends.nvidia.role_ops import RolesOp
from tilewright.backends.nvidia.shared_memory.shared_usage import (
    bulk_store_bytes,
    exchange_bytes,
    is_converted_inside_warps,
)
from tilewright.ir import Function, Op, Value
from tilewright.ir.types import BufferType, TileType
from tilewright.ops import ForOp, ancestor_in, loops_around
from tilewright.support.data_class import dataclass

SMALL_BYTES = 512
"""The most bytes of a small exchange: two results of 8 bytes for each of 32 warps."""

_ALIGNMENT = 128
"""Bytes: all banks, which swizzles of exchanges assume; smaller exchanges have fewer."""

_BUFFER_ALIGNMENT = 1024
"""Bytes: eight rows of the widest swizzle, which is a function of the address itself (PTX ISA,
"Matrix-descriptor-format": base offset)."""

_BARRIER_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class _Exchange:
    """An exchange. bytes: needed from `first` to `last`; read: its first read, after its barrier;
    waits: whether the barrier is one of all warps."""

    op: Op
    bytes: int
    first: int
    read: int
    last: int
    waits: bool


class _Program:
    """Positions of the ops of a function, and the exchanges among them."""

    def __init__(self, function: Function, arch: Arch, without: Collection[Op]) -> None:
        self.position: dict[Op, int] = {}
        self.exchanges: list[_Exchange] = []
        self.buffers: list[AllocOp | ShareOp | MbarriersOp] = []
        self.stores: dict[Op, int] = {}
        for op in function.walk():
            self.position[op] = len(self.position)
            size = 0 if op in without else exchange_bytes(op, arch)
            if size:
                time = 2 * self.position[op]
                waits = not is_converted_inside_warps(op, arch)
                self.exchanges.append(_Exchange(op, size, time, time + 1, time + 1, waits))
            if isinstance(op, AllocOp | ShareOp | MbarriersOp) and op not in without:
                self.buffers.append(op)
            stored = bulk_store_bytes(op, arch)
            if stored:
                self.stores[op] = stored
        scratch = [op for op in self.buffers if isinstance(op, AllocOp) and is_scratch(op)]
        self.buffers = [op for op in self.buffers if op not in scratch]
        self.exchanges += map(self._through, scratch)
        self.exchanges.sort(key=lambda exchange: exchange.first)

    def _through(self, buffer: AllocOp) -> _Exchange:
        """The exchange through a buffer."""
        users = [op for op in buffer.result.uses if not isinstance(op, WriteOp | WriteLastOp)]
        reads = [2 * self.position[op] for op in users]
        first, size = 2 * self.position[buffer], buffer_type(buffer.result).bytes
        return _Exchange(buffer, size, first, min(reads), max(reads) + 1, not buffer.in_warps)

    def during(self, loop: Op) -> LiveRange:
        """The live range of a loop."""
        last = loop
        # Positions are in pre-order: the last op of the innermost last block has the largest one.
        while last.regions and last.regions[-1].last is not None:
            last = last.regions[-1].last
        return LiveRange(2 * self.position[loop], 2 * self.position[last] + 1)

    def always(self) -> LiveRange:
        """The live range of the program."""
        return LiveRange(0, 2 * len(self.position))

    def requests(self) -> dict[Op, Request]:
        """Bytes and live range of each exchange and buffer."""
        requests: dict[Op, Request] = {buffer: self._of_buffer(buffer) for buffer in self.buffers}
        last_of = self._last_of_loops()
        for exchange in self.exchanges:
            live = self._of_exchange(exchange)
            if exchange.op in last_of:
                live = _joined(live, self.during(last_of[exchange.op]))
            alignment = min(_ALIGNMENT, max(MAX_VECTOR_BYTES, exchange.bytes))
            requests[exchange.op] = Request(exchange.bytes, live, alignment)
        if self.stores:
            requests[next(iter(self.stores))] = self._of_stores()
        return requests

    def _of_stores(self) -> Request:
        """The bytes of all TMA stores, which TMA may read until the program exits."""
        first = next(iter(self.stores))
        outermost = [first, *loops_around(first)][-1]
        live = LiveRange(2 * self.position[outermost], 2 * len(self.position))
        return Request(max(self.stores.values()), live, _BUFFER_ALIGNMENT)

    def _of_buffer(self, buffer: AllocOp | ShareOp | MbarriersOp) -> Request:
        size = buffer_type(buffer.result).bytes
        if isinstance(buffer, MbarriersOp):
            # To the end: other data in their bytes would be mistaken for barriers.
            live = LiveRange(2 * self.position[buffer], 2 * len(self.position))
            return Request(size, live, _BARRIER_ALIGNMENT)
        live = LiveRange(2 * self.position[buffer], 2 * self._end_of(buffer) + 1)
        return Request(size, live, _BUFFER_ALIGNMENT)

    def _end_of(self, buffer: AllocOp | ShareOp) -> int:
        """Position of the last op that may use a buffer: the wait after its last user."""
        block, last = buffer.parent, 0
        assert block is not None
        for user in _users(buffer.result):
            outer = ancestor_in(block, user)
            after = outer.next
            # Copies may write until the wait after the loop, dots may read until theirs.
            while isinstance(after, WaitOp | WgmmaWaitOp):
                outer, after = after, after.next
            last = max(last, self.during(outer).last // 2)
        return last

    def _of_exchange(self, own: _Exchange) -> LiveRange:
        first, last = own.first, own.last
        if own.bytes <= SMALL_BYTES:
            before = [e.read for e in self.exchanges if e.waits and e.last < own.first]
            after = [e.read for e in self.exchanges if e.waits and e.first > own.last]
            if before:
                # From the reads of the previous exchange: its barrier is then complete.
                first = min(first, max(before))
            if after:
                # Until the next exchange reads.
                last = max(last, min(after) - 1)
        return LiveRange(first, last)

    def _last_of_loops(self) -> Mapping[Op, Op]:
        """The outermost loop, by small exchange, of which it is the last but not only exchange, or
        one of several last ones."""
        inside: dict[Op, list[_Exchange]] = {}
        for exchange in self.exchanges:
            for loop in loops_around(exchange.op):
                inside.setdefault(loop, []).append(exchange)
        last: dict[Op, Op] = {}
        for loop, exchanges in inside.items():
            together = [e for e in exchanges if e.last >= exchanges[-1].first]
            # A sole exchange conflicts with its next iteration, whatever else shares its bytes.
            if len(together) == len(exchanges):
                continue
            for exchange in (e for e in together if e.bytes <= SMALL_BYTES):
                outer = last.get(exchange.op)
                # Of nested loops the outermost: it has the smallest position.
                if outer is None or self.position[loop] < self.position[outer]:
                    last[exchange.op] = loop
        return last


def allocate_shared(function: Function, arch: Arch) -> tuple[dict[Op, int], int]:
    """Offset of each op that needs shared memory, and the bytes of the whole.

    For an op of roles with several groups of consumers, the distance between their bytes.
    """
    program = _Program(function, arch, ())
    requests = program.requests()
    roles = next((op for op in function.body if isinstance(op, RolesOp)), None)
    groups = 1 if roles is None else roles.groups
    # Exchanges within groups of consumers have bytes for each group, after the rings.
    rings = {op: r for op, r in requests.items() if groups > 1 and op.parent is function.body}
    offsets, start = _packed(rings, 0)
    start += -start % _BUFFER_ALIGNMENT
    own, end = _packed({op: r for op, r in requests.items() if op not in rings}, start)
    offsets |= own
    for store in program.stores:
        offsets[store] = offsets[next(iter(program.stores))]
    if roles is None or groups == 1:
        return offsets, end
    each = end - start
    offsets[roles] = each + -each % _BUFFER_ALIGNMENT
    return offsets, end + (groups - 1) * offsets[roles]


def _packed(requests: Mapping[Op, Request], start: int) -> tuple[dict[Op, int], int]:
    """Offsets from `start` on, and their end."""
    packing = pack(list(requests.values()))
    moved = (start + offset for offset in packing.offsets)
    return dict(zip(requests, moved, strict=True)), start + packing.total


_NOTED = 4
"""The number of tiles that an error lists."""


def largest_uses(function: Function, arch: Arch) -> tuple[str, ...]:
    """Descriptions of the largest uses of shared memory."""
    requests = _Program(function, arch, ()).requests()
    largest = sorted(requests.items(), key=lambda item: -item[1].bytes)[:_NOTED]
    return tuple(f"{request.bytes} bytes: {_described(op)}" for op, request in largest)


def _described(op: Op) -> str:
    """The tile or buffer of an op, and its line."""
    values = (*op.results, *op.operands)
    type_ = next(v.type for v in values if isinstance(v.type, BufferType | TileType))
    extents = "x".join(map(str, type_.shape))
    slots = f"{type_.slots} slots of " if isinstance(type_, BufferType) and type_.slots > 1 else ""
    line = "" if op.loc is None else f", line {op.loc.outermost.line}"
    return f"{slots}{extents}x{type_.element} for {_purpose(op)}{line}"


_PURPOSES: Mapping[type[Op], str] = {
    ReadAtOp: "tile.gather",
    CountOp: "tile.histogram",
    WriteLastOp: "tile.scan",
    ReadPartnerOp: "tile.sort",
    SharedFmaDotOp: "nvidia.dot_fma",
}


def _purpose(op: Op) -> str:
    """The op before its expansion to an exchange."""
    users = (_PURPOSES.get(type(u)) for u in op.results[0].uses) if isinstance(op, AllocOp) else ()
    return next(filter(None, users), op.opcode)


class BufferRoom:
    """The check whether buffers of a loop fit together with all other uses of shared memory.

    loop: None for buffers that live as long as the program; without: exchanges and buffers that
    they replace
    """

    def __init__(
        self, function: Function, arch: Arch, loop: ForOp | None, without: Collection[Op]
    ) -> None:
        program = _Program(function, arch, without)
        self._others = list(program.requests().values())
        self._live = program.always() if loop is None else program.during(loop)

    def bytes_with(self, buffers: Collection[BufferType], groups: int = 1) -> int:
        """Shared memory of the function if the loop had these buffers; groups: see RolesOp."""
        if groups > 1:
            each = pack(self._others).total
            rings = sum(type_.bytes + -type_.bytes % _BUFFER_ALIGNMENT for type_ in buffers)
            return rings + groups * (each + -each % _BUFFER_ALIGNMENT)
        # Live during the loop only: the copies before it start right at it.
        new = [Request(type_.bytes, self._live, _BUFFER_ALIGNMENT) for type_ in buffers]
        return pack([*new, *self._others]).total


def _joined(one: LiveRange, other: LiveRange) -> LiveRange:
    return LiveRange(min(one.first, other.first), max(one.last, other.last))


def _users(buffer: Value) -> Iterator[Op]:
    """The ops that use a buffer or a view of it, and the waits for them."""
    for user in users_of(buffer):
        yield user
        if isinstance(user, WgmmaOp):
            # It may read until its wait.
            yield from (w for w in user.result.uses if isinstance(w, WgmmaWaitOp))
