"""Insert barriers that separate shared-memory hazards between threads.

    nvidia.write %a, %s            nvidia.write %a, %s        bytes 0-8191
                                   mem.barrier
    %x = nvidia.read %s      ->    %x = nvidia.read %s
                                   mem.barrier
    nvidia.write %b, %t            nvidia.write %b, %t        the same bytes

The walk tracks the bytes that threads have read or written since the last barrier, and inserts one
before an op that writes bytes which others may still read, or reads bytes that they have written.
Exchanges within one op are ops on buffers by now (lower_exchanges.py): no lowered op has a barrier
inside, except assertions, which are barriers. Where each warp reads only its own writes, warp
barriers suffice.

A copy into a buffer is in flight from `nvidia.async_copy` on. `nvidia.wait` turns copies that may
have arrived into writes of the waiting thread, which others see after a barrier. In one iteration
the slots that are filled and read differ, so these do not conflict; but a slot is filled again
after an earlier iteration has read it. Wgmma may read until it is waited for; then its reads are
those of the waiting threads.

TMA loads are visible to all threads after `nvidia.mbarrier_wait`, without a barrier; only refilling
a slot needs one. TMA writes through the asynchronous proxy: writes of threads to the same bytes
precede it only if each of them has fenced its own, and a barrier follows (PTX ISA, "Async proxy").

    nvidia.write %a, %s                       nvidia.write %a, %s        bytes 0-8191
    mem.barrier                               mem.barrier
    %x = nvidia.read %s                 ->    %x = nvidia.read %s
                                              nvidia.proxy_fence {shared = true}
                                              mem.barrier
    nvidia.bulk_copy %b, %t, ...              nvidia.bulk_copy %b, %t, ...       bytes 4096-8191

A loop is walked to a fixpoint of the uses that are pending at its start. If only code before the
loop makes a barrier in it necessary, the barrier is before the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum

from tilewright.backends.nvidia.arch import Arch, row_for
from tilewright.backends.nvidia.buffer_ops import (
    AllocOp,
    AsyncCopyOp,
    WaitOp,
    WgmmaOp,
    WgmmaWaitOp,
    alloc_of,
    buffer_type,
)
from tilewright.backends.nvidia.bulk_ops import BulkCopyOp, ProxyFenceOp
from tilewright.backends.nvidia.ops import WarpBarrierOp
from tilewright.backends.nvidia.role_ops import RolesOp
from tilewright.backends.nvidia.shared_memory.allocate_shared import allocate_shared
from tilewright.backends.nvidia.shared_memory.shared_usage import (
    buffers_used,
    fences_shared,
    panel_used,
)
from tilewright.ir import Block, Builder, Function, Op, Pass
from tilewright.ir.types import BufferType
from tilewright.ops import AssertOp, BarrierOp, ForOp, IfOp, WhileOp
from tilewright.support.data_class import dataclass
from tilewright.support.fresh_stack import nested


class Kind(Enum):
    """Kinds of uses of shared memory."""

    READ = "read"
    WRITTEN = "written"
    IN_FLIGHT = "being written by a copy"
    BEING_READ = "being read by a dot"
    UNFENCED = "written, and not fenced for the asynchronous proxy"
    FENCED = "written and fenced"


_ASYNCHRONOUS = (Kind.IN_FLIGHT, Kind.BEING_READ)
"""A barrier waits for threads, not for these."""

_ORDERING = (BarrierOp, WarpBarrierOp, ProxyFenceOp, AssertOp, WaitOp, WgmmaWaitOp)
"""Ops that use no bytes, and order those that do."""

_OF_PROXIES = (Kind.UNFENCED, Kind.FENCED)
"""For TMA only: no barrier ends the first, which threads must fence."""


@dataclass(frozen=True, slots=True)
class Use:
    """Bytes [first, end) that some thread has used since the last barrier.

    buffer: with the slots; earlier: in an earlier iteration of a loop; in_lanes: by lanes that have
    not waited for others of their warp since, within whose bytes no other warp accesses
    """

    kind: Kind
    first: int
    end: int
    buffer: Op | None = None
    earlier: bool = False
    in_lanes: bool = False

    def overlaps(self, other: Use) -> bool:
        """Whether both share a byte."""
        return self.first < other.end and other.first < self.end

    def forbids(self, following: Use) -> bool:
        """Whether a following use needs a barrier after this one."""
        if not self.overlaps(following) or {self.kind, following.kind} & {*_OF_PROXIES}:
            return False
        if self.buffer is following.buffer and _in_warps(self.buffer):
            return False  # each warp accesses its own bytes
        if following.kind in (Kind.READ, Kind.BEING_READ):
            return self.kind is Kind.WRITTEN
        if following.kind is Kind.WRITTEN and self.kind is Kind.BEING_READ:
            # The other one of two slots is read (`computed_operands`).
            assert self.earlier and self.buffer is following.buffer, "a dot still reads this"
            return False
        if following.kind is Kind.IN_FLIGHT and self.buffer is following.buffer:
            # In one iteration a buffer is filled and read at different slots.
            assert not (self.earlier and self.kind is Kind.BEING_READ), "a dot still reads this"
            return self.earlier and self.kind is not Kind.IN_FLIGHT
        assert self.kind not in _ASYNCHRONOUS, "bytes are written that are still in use"
        return True

    def forbids_lanes(self, following: Use) -> bool:
        """Whether a following use needs a warp barrier."""
        return self.in_lanes and self.buffer is following.buffer and self.kind != following.kind


Pending = frozenset[Use]


@dataclass(frozen=True)
class InsertSharedBarriers(Pass, name="nvidia-insert-shared-barriers"):
    """Insert barriers between conflicting uses of shared memory.

    capability: of the architecture
    """

    capability: int = 90

    def run(self, function: Function) -> bool:
        arch = row_for(self.capability)
        offsets, _ = allocate_shared(function, arch)
        ordering = _Ordering(arch, offsets, function)
        barriers = ordering.block(function.body, frozenset()).barriers
        fences = {ordering.fence_for(copy, barriers) for copy in ordering.unfenced_copies}
        barriers |= {op for op in fences if not isinstance(op, BarrierOp)}
        for op in fences:
            Builder.at(op).emit(ProxyFenceOp(shared=True))
        for op in barriers:
            Builder.at(op).emit(BarrierOp())
        for op in ordering.of_warps - barriers:
            Builder.at(op).emit(WarpBarrierOp())
        return bool(barriers or ordering.of_warps)


def unordered_uses(function: Function, arch: Arch) -> list[str]:
    """The ops that access bytes which other threads may still use, without a barrier before them.

    For a function after all passes, whose barriers are placed.
    """
    offsets, _ = allocate_shared(function, arch)
    ordering = _Ordering(arch, offsets, function)
    try:
        found = ordering.block(function.body, frozenset()).barriers
    except AssertionError as error:
        return [str(error)]
    # Warp roles need a barrier before them, whatever is pending.
    unordered: frozenset[Op] = found | ordering.of_warps | ordering.unfenced_copies
    hazards = (op for op in unordered if not _follows_barrier(op))
    return sorted(f"{op.opcode} at {op.loc}" for op in hazards)


def _follows_barrier(op: Op) -> bool:
    return isinstance(op, RolesOp) and isinstance(op.prev, BarrierOp)


@dataclass(frozen=True, slots=True)
class _Walked:
    """The result of a walk. barriers: ops with a barrier before them; pending: uses after the last
    op; needed: the barriers that earlier ones do not make redundant.
    """

    barriers: frozenset[Op]
    pending: Pending
    needed: frozenset[Op] = frozenset()


class _Ordering:
    """The walk through a function whose ops have offsets in shared memory.

    of_warps: ops before which lanes wait for others of their warp; unfenced_copies: ops before
    which threads fence their writes, and wait for each other
    """

    def __init__(self, arch: Arch, offsets: Mapping[Op, int], function: Function) -> None:
        self._arch, self._offsets = arch, offsets
        self._relevant: dict[Block, list[Op]] = {}
        self._walked: dict[tuple[Op, Pending, frozenset[Op]], _Walked] = {}
        # Ops with a barrier before them in any case.
        self._placed = frozenset[Op]()
        self.of_warps = set[Op]()
        self.unfenced_copies = set[BulkCopyOp]()
        copies = (op for op in function.walk() if isinstance(op, BulkCopyOp))
        filled = [self._of_buffer(op, alloc_of(op.target), True) for op in copies]
        self._filled = {use.buffer: use for use in filled}
        """The bytes that TMA writes, by buffer."""

    @nested
    def block(self, block: Block, pending: Pending) -> _Walked:
        """Walk the ops of a block."""
        barriers, needed = frozenset[Op](), frozenset[Op]()
        for op in self._ops(block):
            walked = self._op(op, pending)
            barriers, needed = barriers | walked.barriers, needed | walked.needed
            pending = walked.pending
        return _Walked(barriers, pending, needed)

    def _op(self, op: Op, pending: Pending) -> _Walked:
        if isinstance(op, ForOp | WhileOp):
            return self._loop(op, pending)
        if isinstance(op, RolesOp):
            # All threads wait for each other first; then mbarriers order the producer's loads.
            walked, before = self.block(op.consumers, _after_barrier(pending)), frozenset((op,))
            return replace(walked, barriers=walked.barriers | before, needed=walked.needed | before)
        if isinstance(op, IfOp):
            one, other = (self.block(inner, pending) for inner in op.regions)
            return _Walked(
                one.barriers | other.barriers,
                one.pending | other.pending,
                one.needed | other.needed,
            )
        if isinstance(op, BarrierOp | AssertOp):  # threads vote whether an assertion fails
            return _Walked(frozenset(), _after_barrier(pending))
        if isinstance(op, WarpBarrierOp):
            return _Walked(frozenset(), _after_warp_barrier(pending))
        if isinstance(op, WaitOp):
            pending = _after_wait(op, pending)
            return _Walked(frozenset(), _after_fence(op, pending.union(self._unfenced(pending))))
        walked = self._use(op, pending)
        if isinstance(op, WgmmaOp | WgmmaWaitOp):
            ended = _ended(op) if isinstance(op, WgmmaWaitOp) else set[Op]()
            return replace(walked, pending=_after_dots(op.pending, walked.pending, ended))
        return walked

    def _use(self, op: Op, pending: Pending) -> _Walked:
        uses = self._uses(op)
        barriers, needed = frozenset[Op](), frozenset[Op]()
        # Each pair is checked, whatever the order of the set: `forbids` asserts as well.
        if any([earlier.forbids(use) for earlier in pending for use in uses]):
            needed = frozenset((op,))
        if isinstance(op, BulkCopyOp):
            met = {u.kind for u in pending for use in uses if u.overlaps(use)}
            if Kind.UNFENCED in met:
                self.unfenced_copies.add(op)
                pending = frozenset(use for use in pending if use.kind not in _OF_PROXIES)
            elif Kind.FENCED in met:
                needed = frozenset((op,))
        if needed or op in self._placed:
            barriers, pending = frozenset((op,)), _after_barrier(pending)
        if any(earlier.forbids_lanes(use) for earlier in pending for use in uses):
            self.of_warps.add(op)
            pending = _after_warp_barrier(pending)
        pending = _after_fence(op, pending.union(uses, self._unfenced(uses)))
        return _Walked(barriers, pending, needed)

    def fence_for(self, copy: BulkCopyOp, barriers: frozenset[Op]) -> Op:
        """The op before which threads fence their writes for a copy: the last one with a barrier,
        or a barrier, after all these writes; otherwise the copy, which then needs a barrier as
        well."""
        op: Op | None = copy
        while op is not None and not op.regions:
            if op in barriers or isinstance(op, BarrierOp):
                return op
            op = op.prev
            if op is not None and any(use.kind is Kind.WRITTEN for use in self._uses(op)):
                break
        return copy

    def _unfenced(self, uses: Iterable[Use]) -> Iterator[Use]:
        """The uses by threads of bytes that TMA writes as well."""
        for use in uses:
            is_met = any(use.overlaps(other) for other in self._filled.values())
            if use.kind is Kind.WRITTEN and is_met and use.buffer not in self._filled:
                yield Use(Kind.UNFENCED, use.first, use.end)

    def _uses(self, op: Op) -> list[Use]:
        panel = panel_used(op, self._arch)
        if panel is not None:
            # TMA reads the bytes of its stores: waits for it, with barriers, precede writes to them
            # (insert_tma_store_waits.py, lower_exchanges.py).
            first, end, writes = panel
            kind, start = Kind.WRITTEN if writes else Kind.READ, self._offsets[op]
            return [Use(kind, start + first, start + end)]
        return [self._of_buffer(op, buffer, writes) for buffer, writes in buffers_used(op)]

    def _of_buffer(self, op: Op, buffer: Op, writes: bool) -> Use:
        first = self._offsets[buffer]
        kind = Kind.WRITTEN if writes else Kind.READ
        if writes and isinstance(op, AsyncCopyOp | BulkCopyOp):
            kind = Kind.IN_FLIGHT
        elif isinstance(op, WgmmaOp):
            kind = Kind.BEING_READ
        end = first + buffer_type(buffer.results[0]).bytes
        return Use(kind, first, end, buffer, in_lanes=_in_warps(buffer))

    # -- loops ----------------------------------------------------------------------------------

    def _loop(self, loop: ForOp | WhileOp, pending: Pending) -> _Walked:
        walked = self._walk_loop(loop, pending)
        # a barrier before the loop is cheaper than one in each iteration
        in_flight = _after_barrier(pending)
        if in_flight != pending:
            alone = self._walk_loop(loop, in_flight)
            if len(alone.barriers) < len(walked.barriers):
                return replace(alone, barriers=alone.barriers.union((loop,)))
        return walked

    def _walk_loop(self, loop: ForOp | WhileOp, pending: Pending) -> _Walked:
        """Walk the loop with the uses that earlier iterations leave pending, once for each
        start."""
        # Outer loops walk inner ones in each round: without this, visits multiply with depth.
        key = (loop, pending, self._placed)
        walked = self._walked.get(key)
        if walked is None:
            walked = self._walked[key] = self._place_in_loop(loop, pending)
        return walked

    def _place_in_loop(self, loop: ForOp | WhileOp, pending: Pending) -> _Walked:
        """Walk the loop with the barriers in it.

        A barrier that a later iteration needs is in the first one as well, where it may make others
        redundant: so the loop is walked again with those that were found, then without each of
        those that the others may replace.
        """
        around = self._placed
        walked = self._walk_to_fixpoint(loop, pending)
        while not walked.barriers <= self._placed:
            self._placed |= walked.barriers
            walked = self._walk_to_fixpoint(loop, pending)
        # A barrier that is needed after all others is needed after fewer of them.
        for op in [op for op in loop.walk() if op in self._placed - around - walked.needed]:
            all_placed = self._placed
            self._placed -= {op}
            without = self._walk_to_fixpoint(loop, pending)
            if without.barriers <= self._placed:
                walked = without
            else:
                self._placed = all_placed
        self._placed = around
        return walked

    def _walk_to_fixpoint(self, loop: ForOp | WhileOp, pending: Pending) -> _Walked:
        start = pending
        while True:
            barriers, needed, end, exits = frozenset[Op](), frozenset[Op](), start, start
            for region in loop.regions:
                walked = self.block(region, end)
                barriers, needed = barriers | walked.barriers, needed | walked.needed
                end = walked.pending
                exits = end if region is loop.regions[0] else exits
            # grows in each round, within the uses of the loop and before it: so it terminates
            following = start | {replace(use, earlier=True) for use in end}
            if following == start:
                # A while loop exits after its condition, a for loop before or after iterations.
                exits = exits if isinstance(loop, WhileOp) else start | end
                return _Walked(barriers, exits, needed)
            start = following

    @nested
    def _ops(self, block: Block) -> list[Op]:
        """The ops that use shared memory, or order it, or contain such ops."""
        ops = self._relevant.get(block)
        if ops is None:
            # Fixpoints walk blocks many times: most ops have nothing to do with shared memory.
            ops = [op for op in block if self._matters(op)]
            self._relevant[block] = ops
        return ops

    def _matters(self, op: Op) -> bool:
        if isinstance(op, ForOp | WhileOp | IfOp | RolesOp):
            return any([self._ops(region) for region in op.regions])
        if isinstance(op, _ORDERING):
            return True
        return panel_used(op, self._arch) is not None or bool(buffers_used(op))


def _in_warps(buffer: Op | None) -> bool:
    """Whether each warp reads only its own writes."""
    return isinstance(buffer, AllocOp) and buffer.in_warps


def _after_barrier(pending: Pending) -> Pending:
    kept = (*_ASYNCHRONOUS, Kind.UNFENCED)
    return frozenset(use for use in pending if use.kind in kept)


def _after_fence(op: Op, pending: Pending) -> Pending:
    return _fenced(pending) if fences_shared(op) else pending


def _fenced(pending: Pending) -> Pending:
    """The uses after each thread has fenced its writes; others see that after a barrier."""
    return frozenset(
        replace(use, kind=Kind.FENCED) if use.kind is Kind.UNFENCED else use for use in pending
    )


def _after_warp_barrier(pending: Pending) -> Pending:
    return frozenset(replace(use, in_lanes=False) for use in pending)


def _after_wait(wait: WaitOp, pending: Pending) -> Pending:
    """Copies that have arrived are writes; the latest ones may still be in flight."""
    arrived = {replace(use, kind=Kind.WRITTEN) for use in pending if use.kind is Kind.IN_FLIGHT}
    # With `pending` > 0 it is unknown which copies have arrived: they count as both.
    kept = pending if wait.pending else (u for u in pending if u.kind is not Kind.IN_FLIGHT)
    return frozenset(arrived.union(kept))


def _ended(wait: WgmmaWaitOp) -> set[Op]:
    """The buffers that a waited dot read, except those of later dots."""
    of_later, op = set[Op](), wait.prev
    while op is not None and op is not wait.x.op:
        of_later |= _read_by(op)
        op = op.prev
    return set[Op]() if op is None else _read_by(op) - of_later


def _read_by(op: Op) -> set[Op]:
    """The buffers that dots in an op read."""
    dots = (inner for inner in op.walk() if isinstance(inner, WgmmaOp))
    return {alloc_of(x) for op in dots for x in op.operands if isinstance(x.type, BufferType)}


def _after_dots(left: int | None, pending: Pending, ended: set[Op]) -> Pending:
    """The uses after a wait for all dots but the `left` latest groups, or an unknown number.

    ended: buffers that no dot reads any more in either case
    """
    if left is None:
        return pending
    # With deferred waits, the dots in flight are those of this iteration (deferred_waits.py).
    return frozenset(
        replace(use, kind=Kind.READ)
        if use.kind is Kind.BEING_READ and (use.earlier or not left or use.buffer in ended)
        else use
        for use in pending
    )
