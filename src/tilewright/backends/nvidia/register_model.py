"""Registers per thread, estimated before ptxas assigns them, and the programs that they leave.

Two estimates. A loop of dots alone holds its accumulators; the epilogue, addresses and temporaries
come on top (`held_registers`). Where threads compute between dots, the tiles that are live at one
point of the body decide whether ptxas spills (`live_registers`). What is no tile is an `Overhead`.
`tests/corpus/test_register_model.py` compares the estimates with the tables of the corpus.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import cast

from tilewright.backends.nvidia.arch import Arch
from tilewright.backends.nvidia.buffer_ops import ShareOp, WgmmaOp
from tilewright.ir import Block, Function, Op, Trait, Value
from tilewright.ir.types import DType, TileType, dtype_of, element_of
from tilewright.layout import REGISTER, LinearLayout
from tilewright.ops import (
    AsmOp,
    BroadcastOp,
    CastOp,
    DotOp,
    ExpandDimsOp,
    ForOp,
    OffsetOp,
    RangeOp,
    SplatOp,
    TransposeOp,
    VolatileAsmOp,
    WhileOp,
    YieldOp,
)
from tilewright.support.data_class import dataclass
from tilewright.support.fresh_stack import nested

_REGISTER_BYTES = 4
_THREADS = 32


class Overhead(IntEnum):
    """Registers per thread next to those of tiles."""

    DOTS = 60
    """Next to accumulators: a loop of dots, whose copies may be issued by the same threads, and the
    epilogue."""

    CONSUMER = 48
    """Next to accumulators: a consumer without deferred waits, which issues no copies, while no dot
    is in flight when the next iteration starts."""

    CONSUMER_LIVE = 16
    """Next to all live tiles of a consumer."""

    ROLE_ENTRY = 26
    """The entry of a function with roles, next to the accumulators of one instruction."""

    LEAST = 40
    """The fewest that ptxas needs next to live tiles: below, it spills."""


def register_count(value: Value, warps: int = 1) -> int:
    """32-bit registers per thread that a tile takes. One without a layout is spread over all
    threads of a program with so many warps."""
    type_ = value.type
    assert isinstance(type_, TileType), type_
    layout = cast("LinearLayout | None", type_.layout)
    spread = -(-type_.numel // (_THREADS * warps))
    elements = spread if layout is None else layout.in_size(REGISTER)
    return -(-elements * element_of(type_).bytes // _REGISTER_BYTES)


def held_registers(loop: ForOp, warps: int) -> int:
    """Registers per thread for the accumulators of a loop's warpgroup dots, and for tiles that it
    carries next to these: operands computed for the next iteration, and sums of threads."""
    dots = [op for op in loop.walk() if isinstance(op, WgmmaOp)]
    accumulators = {value for op in dots for value in (op.result, op.acc)}
    # Without those to which another dot adds in the same registers.
    distinct = [op.result for op in dots if op.result not in {op.acc for op in dots}]
    yielded = zip(loop.carried, loop.body.terminator.operands, strict=True)
    others = [v for v, y in yielded if not accumulators & {v, y} and _is_carried(v)]
    return sum(register_count(value, warps) for value in [*distinct, *others])


def _is_carried(value: Value) -> bool:
    """Whether threads hold a tile of floating-point numbers: no addresses, which may go, and no
    operand that dots read from shared memory."""
    type_ = value.type
    if not isinstance(type_, TileType) or all(isinstance(u, ShareOp) for u in value.uses):
        return False
    return isinstance(type_.element, DType) and type_.element.is_float


@dataclass(slots=True)
class Pressure:
    """The point with the most registers per thread in tiles. op: where; tiles: those live there."""

    registers: int = 0
    op: Op | None = None
    tiles: frozenset[Value] = frozenset()


def live_registers(loop: ForOp, warps: int) -> int:
    """The most registers per thread that tiles take at one point of a loop's body."""
    return _Liveness(warps).in_loop(loop).registers


def register_pressure(function: Function) -> Pressure:
    """The point of a function with layouts where tiles take the most registers."""
    return _Liveness(1).in_block(function.body)


class _Liveness:
    """A walk over blocks from their ends, with the tiles that are live.

    Threads hold no views, nothing that only element-wise ops use, since these are computed element
    by element, and nothing that is computed from indices and constants alone: the tiles of which
    it is computed stay live instead. Operands of wgmma in registers are live until its result is
    used.
    """

    def __init__(self, warps: int) -> None:
        self.warps = warps
        self.sources: dict[Value, frozenset[Value]] = {}
        self.most = Pressure()

    def in_loop(self, loop: ForOp) -> Pressure:
        self._loop(loop, frozenset())
        return self.most

    def in_block(self, block: Block) -> Pressure:
        self._block(block, frozenset())
        return self.most

    def _loop(self, loop: ForOp | WhileOp, after: frozenset[Value]) -> frozenset[Value]:
        ops = [op for op in loop.walk() if op is not loop]
        inside = {block for op in (loop, *ops) for block in op.regions}
        used = self._held(value for op in ops for value in op.operands)
        through = after | {value for value in used if value.block not in inside}
        for block in loop.regions:
            self._block(block, through)
        return through

    def _block(self, block: Block, live: frozenset[Value]) -> frozenset[Value]:
        ops = list(block)
        running = _operands_in_flight(ops)
        for op in reversed(ops):
            live = (live - set(op.results)) | self._held(running.get(op, ()))
            if isinstance(op, ForOp | WhileOp):
                live = self._loop(op, live)
            elif op.regions:
                live = live.union(*(self._block(inner, live) for inner in op.regions))
            live |= self._held(op.operands)
            registers = sum(register_count(v, self.warps) for v in live)
            if registers > self.most.registers:
                self.most = Pressure(registers, op, live)
        return live

    def _held(self, values: Iterable[Value]) -> frozenset[Value]:
        """The tiles that threads hold to compute some values."""
        return frozenset[Value]().union(*map(self._sources, values))

    @nested
    def _sources(self, value: Value) -> frozenset[Value]:
        if value not in self.sources:
            self.sources[value] = self._found_sources(value)
        return self.sources[value]

    def _found_sources(self, value: Value) -> frozenset[Value]:
        op = value.op
        if not isinstance(value.type, TileType) or _is_shared(value):
            return frozenset()
        if op is None or not (Trait.ELEMENTWISE in op.traits or isinstance(op, _FREE)):
            return frozenset((value,))
        found = self._held(op.operands)
        is_free = isinstance(op, _FREE) or _is_widening(op) or _is_fused(value)
        return frozenset((value,)) if found and not is_free else found


def _operands_in_flight(ops: Sequence[Op]) -> dict[Op, list[Value]]:
    """The operands of wgmma in registers by the first op that uses the result."""
    found: dict[Op, list[Value]] = {}
    place = {op: index for index, op in enumerate(ops)}
    for dot in ops:
        if isinstance(dot, WgmmaOp) and isinstance(dot.a.type, TileType):
            users = [user for user in dot.result.uses if user in place]
            if users:
                found.setdefault(min(users, key=place.__getitem__), []).append(dot.a)
    return found


_VIEWS = (BroadcastOp, ExpandDimsOp, TransposeOp)
_FREE = (*_VIEWS, RangeOp, SplatOp, OffsetOp)


def _is_fused(value: Value) -> bool:
    """Whether only element-wise ops of the same block use a value."""
    assert value.op is not None
    return all(
        user.parent is value.op.parent
        and (Trait.ELEMENTWISE in user.traits or isinstance(user, _VIEWS))
        for user in value.uses
    )


def _is_widening(op: Op) -> bool:
    return isinstance(op, CastOp) and dtype_of(op.x.type).bits < dtype_of(op.type).bits


def _is_shared(value: Value) -> bool:
    """Whether only dots read a tile, from shared memory, also in the next iteration."""
    return all(_shares(user, value) for user in value.uses)


def _shares(user: Op, value: Value) -> bool:
    if isinstance(user, TransposeOp):
        return _is_shared(user.result)
    loop = user.parent.owner if user.parent is not None else None
    if not isinstance(user, YieldOp) or not isinstance(loop, ForOp):
        return isinstance(user, ShareOp)
    later = [c for c, y in zip(loop.carried, user.operands, strict=True) if y is value]
    return all(isinstance(next_user, ShareOp) for tile in later for next_user in tile.uses)


def instruction_estimate(ops: Iterable[Op]) -> int:
    """Instructions per thread of ops with layouts: one for each register of each result."""
    return sum(
        result.type.layout.in_size(REGISTER)
        for op in ops
        for inner in op.walk()
        for result in inner.results
        if isinstance(result.type, TileType) and isinstance(result.type.layout, LinearLayout)
    )


def estimated_registers(tiles: int, overhead: Overhead, arch: Arch) -> int:
    """Registers per thread: those of tiles, and an overhead."""
    return min(tiles + overhead, arch.registers_thread)


def resident_programs(arch: Arch, shared: int, registers: int, threads: int) -> int:
    """Programs on a multiprocessor, each with so many bytes of shared memory, and so many threads
    with so many registers; at least one."""
    by_memory = arch.shared_sm // (shared + arch.shared_reserved)
    return max(1, min(by_memory, arch.registers_sm // (registers * threads)))


_MOST_ACCUMULATORS = 224
"""Registers per thread for accumulators: with more, no instruction keeps them, and they spill."""


def needed_warps(function: Function, warps: int, arch: Arch) -> int:
    """The number of warps with which threads can hold the accumulators of dots: `warps`, or a
    multiple of it. Inline assembly may count the threads of a program: it keeps `warps`."""
    if any(isinstance(op, AsmOp | VolatileAsmOp) for op in function.walk()):
        return warps
    words = max((_accumulator_words(op) for op in function.walk()), default=0)
    needed = warps
    while words > _MOST_ACCUMULATORS * _THREADS * needed:
        needed *= 2
    spare = Overhead.LEAST * _THREADS * needed
    return needed if words + spare <= arch.registers_sm else warps


def _accumulator_words(op: Op) -> int:
    """32-bit words of the result of a dot, or of the accumulators that a loop of dots carries."""
    if not isinstance(op, DotOp | ForOp | WhileOp):
        return 0
    if not any(isinstance(each, DotOp) for each in op.walk()):
        return 0
    types = (value.type for value in op.results if isinstance(value.type, TileType))
    numbers = [(t.numel, t.element) for t in types if isinstance(t.element, DType)]
    return sum(n * dtype.bits for n, dtype in numbers if dtype.is_float) // (8 * _REGISTER_BYTES)
