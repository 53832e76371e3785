"""Element-wise ops with branches, lowered one vector of elements after the other.

    load x0..x31                          load x0..x31
    y0..y31 = sin(x0..x31)          ->    y0 = sin(x0); ... y3 = sin(x3); store y0..y3
    store y0..y31                         ...
                                          y28 = sin(x28); ... y31 = sin(x31); store y28..y31

Lowered op by op, the common forms of all elements and their arguments are live across the branch of
each rare form (`arith.rare`), since no scheduler moves code over branches. Loads stay ahead of the
group, all in flight; what they depend on is lowered before them. Straight code is left in
the order of the ops: ptxas schedules it for the occupancy that it chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from tilewright.backends.nvidia.branching_ops import RARE, has_branch
from tilewright.backends.nvidia.layouts.access_vectors import vector_length
from tilewright.backends.nvidia.layouts.tile_layout import register_count
from tilewright.backends.nvidia.lower.gpu_lowering import (
    GpuLowering,
    VectorGroup,
    lowering,
    memory_bits,
)
from tilewright.ir import Block, Op, Trait
from tilewright.ir.types import element_of
from tilewright.llvm import Val
from tilewright.ops import BitcastOp, CastOp, HintOp, LoadOp, OffsetOp, RemOp, StoreOp

_SLICED = (BitcastOp, CastOp, HintOp, OffsetOp, RemOp)
"""Ops with handlers of their own that lower any part of the registers."""

_LEAST = 4
"""Elements of a vector: fp8 and bytes are converted in fours."""

LowerOne = Callable[[GpuLowering, Op], None]


def lower_in_groups(state: GpuLowering, block: Block, lower: LowerOne) -> None:
    """Lower the ops of a block; lower: lowers one op, for the registers that its operands have."""
    for run in _runs(block):
        if any(map(has_branch, run)):
            _Groups(state, lower).lower(run)
        else:
            _lower_all(state, run, lower)


def _lower_all(state: GpuLowering, ops: Iterable[Op], lower: LowerOne) -> None:
    for op in ops:
        lower(state, op)


def _runs(block: Block) -> Iterator[list[Op]]:
    """The ops of a block in runs of loads, stores and pure ops; each other op is a run."""
    run: list[Op] = []
    for op in block:
        if isinstance(op, LoadOp | StoreOp) or _is_plain(op):
            run.append(op)
        else:
            yield run
            yield [op]
            run = []
    yield run


def _is_plain(op: Op) -> bool:
    """Whether an op only computes, without a region but that of a rare form."""
    return Trait.PURE in op.traits and (not op.regions or op.opcode == RARE)


class _Groups:
    """Lowers the ops of a run at once, or keeps them for the open group.

    The ops of a group work on tiles of as many registers, so that registers of one number meet.
    """

    def __init__(self, state: GpuLowering, lower: LowerOne) -> None:
        self._state, self._lower = state, lower
        self._pending: dict[Op, None] = {}
        self._count = 0
        self._has_loaded = False

    def lower(self, run: Iterable[Op]) -> None:
        """Lower a run of loads, stores and pure ops."""
        for op in run:
            self._add(op)
        self._flush()

    def _add(self, op: Op) -> None:
        count = _sliced_count(op)
        if count > _LEAST and (not self._pending or count == self._count):
            self._count = count
            self._pending[op] = None
        elif isinstance(op, LoadOp) and not self._has_store():
            self._lower_needed(op)
            self._lower(self._state, op)
            self._has_loaded = True
        elif _is_plain(op) and not self._needs(op):
            self._lower(self._state, op)
        else:
            self._flush()
            if count > _LEAST:
                self._add(op)
            else:
                self._lower(self._state, op)

    def _has_store(self) -> bool:
        return any(isinstance(op, StoreOp) for op in self._pending)

    def _needs(self, op: Op) -> bool:
        return any(value.op in self._pending for value in op.operands)

    def _lower_needed(self, op: Op) -> None:
        """Lower the pending ops that an op depends on, for all registers."""
        needed = _closure([op], self._pending)
        for each in needed:
            del self._pending[each]
            self._lower(self._state, each)

    def _flush(self) -> None:
        """Lower the open group."""
        ops, self._pending = list(self._pending), {}
        if not ops:
            return
        size = max(_LEAST, *(_vector(self._state, op) for op in ops))
        if size < self._count and any(map(has_branch, ops)):
            self._keep_loads_ahead()
            _lower_by_vectors(self._state, ops, self._count, size, self._lower)
        else:
            _lower_all(self._state, ops, self._lower)

    def _keep_loads_ahead(self) -> None:
        """Have ptxas issue all loads before the group. It would sink each to its vector, to save
        registers, and a thread would wait for memory once a vector. It moves no load over
        `bar.warp.sync`, which is no instruction where the warp is together."""
        if self._has_loaded and not self._state.is_producer:
            self._state.asm("bar.warp.sync -1;", "~{memory}", "void")
        self._has_loaded = False


def _sliced_count(op: Op) -> int:
    """Registers of the tile that an op of a group works on; 0 for other ops."""
    if isinstance(op, StoreOp):
        return register_count(op.pointer)
    if isinstance(op, _SLICED) or (Trait.ELEMENTWISE in op.traits and not lowering.has(op)):
        return register_count(op.results[0])
    return 0


def _vector(state: GpuLowering, op: Op) -> int:
    """Registers that an op takes together."""
    if isinstance(op, StoreOp):
        return vector_length(state.alignments, op.pointer, op.mask, state.arch.access_bytes)
    return 1


def _lower_by_vectors(
    state: GpuLowering, ops: Sequence[Op], count: int, size: int, lower: LowerOne
) -> None:
    """Lower a group for `size` registers of all of its ops, then for the next ones."""
    made = {value for op in ops for value in op.results}
    inputs = {value for op in ops for value in op.operands} - made
    state.vectors = VectorGroup({value: state.registers_of(value) for value in inputs})
    first = _closure([op for op in ops if has_branch(op)], dict.fromkeys(ops))
    rest = [op for op in ops if op not in first]
    unit = min(size, max(map(_unit, first), default=size))

    def vector() -> None:
        _lower_parts(state, first, size, unit, lambda: _lower_all(state, first, lower))
        _lower_all(state, rest, lower)

    _lower_parts(state, ops, count, size, vector)
    state.vectors = None


def _closure(roots: Iterable[Op], ops: Collection[Op]) -> dict[Op, None]:
    """The ops that are roots or that roots depend on, in order."""
    found, left = set(roots), list(roots)
    while left:
        makers = (value.op for value in left.pop().operands)
        new = [op for op in makers if op is not None and op in ops and op not in found]
        found.update(new)
        left += new
    return dict.fromkeys(op for op in ops if op in found)


def _unit(op: Op) -> int:
    """Elements that one instruction computes: pairs of 16 bits, four of a byte."""
    bits = [memory_bits(element_of(v.type)) for v in (*op.operands, *op.results)]
    if isinstance(op, CastOp):
        return 4 if 8 in bits else 1
    return 2 if set(bits) == {16} else 1


def _lower_parts(
    state: GpuLowering, ops: Iterable[Op], count: int, size: int, part: Callable[[], object]
) -> None:
    """Call `part` for each `size` of `count` registers: it lowers the ops for those."""
    made = {value: list[Val]() for op in ops for value in op.results}
    inputs = {v: state.registers_of(v) for op in ops for v in op.operands if v not in made}
    group = state.vectors
    assert group is not None
    whole = group.start
    for start in range(0, count, size):
        group.start = whole + start
        for value, registers in inputs.items():
            state.set_registers(value, registers[start : start + size])
        part()
        for value, registers in made.items():
            registers += state.registers_of(value)
    group.start = whole
    for value, registers in (*inputs.items(), *made.items()):
        state.set_registers(value, registers)
