"""Finds loops of dots that can be computed as one matmul of matrices in memory.

    for k in 0..K step 64 { acc = dot (load a + k), (load b + 64 k), acc }

Each iteration would copy both tiles to scratch memory, and read and write acc once. Where addresses
are linear in rows, columns and iterations, and masks hold, the loop is replaced by

    matmul(acc, a, b, strides, K, rows, columns)       panels of b are copied, a is read in place
    for k in K..K step 64 { ... }                      the rest, if any

Linearity is decided here, from the IR; strides, the ends of masks, and whether tiles wrap are
evaluated by the program (`emit_memory_matmul.py`). As elsewhere in this back end, index arithmetic
on signed integers is assumed not to wrap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import gcd

from tilewright.analysis import affine
from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering
from tilewright.backends.cpu.lower.dot_operands import element_of_dot, is_zero
from tilewright.backends.cpu.lower.loop_clipping import IndexedValue
from tilewright.backends.cpu.lower.memory_order import reads_columns
from tilewright.backends.cpu.lower.wrapped_tiles import RunRemainder, run_remainders
from tilewright.backends.cpu.microkernel import DotSpec, memory_depth, memory_step
from tilewright.ir import Op, Trait, Value
from tilewright.ir.types import DType, TileType, dtype_of, element_of, f16, f32, shape_of
from tilewright.ops import (
    BitcastOp,
    CastOp,
    CompareOp,
    ConstantOp,
    DotOp,
    ForOp,
    LoadOp,
    SplatOp,
)
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class Operand:
    """A load of A or B.

    along: its dimension of K; conditions: those whose conjunction is its mask
    """

    load: LoadOp
    along: int
    in_columns: bool
    conditions: tuple[IndexedValue, ...]

    @property
    def masks_zeros(self) -> bool:
        """Whether masked-off elements are zero; without `other`, they may be."""
        other = self.load.other
        if other is None:
            return True
        while isinstance(other.op, SplatOp):
            other = other.op.operands[0]
        return isinstance(other.op, ConstantOp) and other.op.value == 0


@dataclass(frozen=True, slots=True)
class MemoryMatmul:
    """A loop of dots that may be computed as one matmul.

    depth: of an iteration along K; together: iterations of one step of the micro-kernel
    steps: of the carried scalars, the increment of an iteration (None: none)
    remainders: tiles that must not wrap
    """

    loop: ForOp
    spec: DotSpec
    a: Operand
    b: Operand
    depth: int
    together: int
    steps: tuple[Value | None, ...]
    remainders: tuple[RunRemainder, ...]

    @property
    def result(self) -> Value:
        """The accumulators after the loop."""
        return next(v for v in self.loop.results if isinstance(v.type, TileType))


def memory_matmul(state: CpuLowering, loop: ForOp) -> MemoryMatmul | None:
    """The matmul that a loop is equivalent to; None if the IR does not prove it."""
    found = _matmul_or_obstacle(state, loop)
    if isinstance(found, MemoryMatmul):
        return found
    if state.record is not None:
        dots = [op for op in loop.body if isinstance(op, DotOp)]
        state.record.refused.update(dict.fromkeys(dots, found))
    return None


def _matmul_or_obstacle(state: CpuLowering, loop: ForOp) -> MemoryMatmul | str:
    """The matmul that a loop is equivalent to, or why it is none."""
    dot = _only_dot(loop)
    if dot is None:
        return "its loop does more than accumulate one dot of loaded tiles"
    if not _counts_up(loop):
        return "its loop does not count up by a constant step"
    element = _element(state, dot)
    a, b = (_loaded(v, element == "half") for v in (dot.a, dot.b))
    iterations = affine.Linear(loop)
    steps = [_step(iterations, loop, n) for n in range(len(loop.inits))]
    if a is None or b is None:
        return _not_loaded(dot.a if a is None else dot.b)
    if "none" in steps:
        return "a loop-carried pointer or number does not grow by the same amount in each iteration"
    spec, depth = _spec(state, loop, dot, element, a, b), shape_of(dot.a.type)[1]
    left = Operand(a, 1, spec.a_columns, _conditions(a))
    right = Operand(b, 0, spec.b_columns, _conditions(b))
    conditions = [*left.conditions, *right.conditions]
    step = memory_step(spec)
    linear = [a.pointer, b.pointer]
    linear += [v for c in conditions if c.value.op for v in c.value.op.operands]
    together = max(step // depth, 1) if step else 1
    fits = step and gcd(depth * together, spec.k) % step == 0 and all(map(_is_order, conditions))
    if not fits:
        return "no micro-kernel has this step along K, or a mask is no comparison of indices"
    if not all(affine.of(v).is_linear_in(iterations) for v in linear):
        return "an address or a mask is not linear in rows, columns and iterations"
    known = tuple(s for s in steps if not isinstance(s, str))
    remainders = run_remainders(state, [a.pointer, b.pointer])
    wraps = {op.result for op in iterations.remainders if isinstance(op.result.type, TileType)}
    if wraps - {tile.op.result for tile in remainders}:
        return "rows or columns wrap around by a % that is not provably outside of the tile"
    remainders = tuple(tile for tile in remainders if tile.op.result in wraps)
    return MemoryMatmul(loop, spec, left, right, depth, together, known, remainders)


def _not_loaded(operand: Value) -> str:
    """Why an operand is not read from memory."""
    op = operand.op
    if isinstance(op, CastOp):
        return (
            f"operands are converted from {dtype_of(op.x.type)} to {dtype_of(operand.type)} first"
        )
    return "an operand is computed, not loaded"


def _conditions(load: LoadOp) -> tuple[IndexedValue, ...]:
    return () if load.mask is None else tuple(_conjuncts(IndexedValue(load.mask, (0, 1))))


def _only_dot(loop: ForOp) -> DotOp | None:
    """The dot that a loop accumulates, if it does nothing else with tiles or memory."""
    *ops, end = loop.body
    dots = [op for op in ops if isinstance(op, DotOp)]
    quiet = all(Trait.PURE in op.traits or _plain_load(op) for op in ops)
    tiles = [v for v in end.operands if isinstance(v.type, TileType)]
    if len(dots) != 1 or not quiet or tiles != [dots[0].result] or len(shape_of(tiles[0].type)) > 2:
        return None
    arg = loop.carried[end.operands.index(tiles[0])]
    return dots[0] if dots[0].acc is arg and list(arg.uses) == [dots[0]] else None


def _plain_load(op: Op) -> bool:
    return isinstance(op, LoadOp) and not op.volatile


def _counts_up(loop: ForOp) -> bool:
    step = loop.step.op
    signed = dtype_of(loop.index.type).is_signed
    return signed and isinstance(step, ConstantOp) and step.value > 0


def _element(state: CpuLowering, dot: DotOp) -> str:
    """The element type that the micro-kernel multiplies: the type before widening, if it is
    fp16."""
    casts = [v.op for v in (dot.a, dot.b)]
    halves = all(isinstance(op, CastOp) and dtype_of(op.x.type) is f16 for op in casts)
    summed = dtype_of(dot.result.type) is f32
    return "half" if halves and summed and "half" in state.unit.tiles else element_of_dot(dot)


def _loaded(operand: Value, widened: bool) -> LoadOp | None:
    op = operand.op
    if isinstance(op, CastOp if widened else BitcastOp):
        op = op.x.op
    return op if isinstance(op, LoadOp) and op.parent is not None else None


def _step(iterations: affine.Linear, loop: ForOp, number: int) -> Value | None | str:
    """The increment of a carried value in an iteration; "none" if it is no increment."""
    arg, yielded = loop.carried[number], loop.body.terminator.operands[number]
    if yielded is arg or isinstance(arg.type, TileType):
        return None
    step = affine.of(yielded).addend(arg)
    return step if step is not None and affine.of(step).is_invariant_in(iterations) else "none"


def _initial(loop: ForOp) -> Value:
    """The initial value of the accumulator."""
    return next(v for v in loop.inits if isinstance(v.type, TileType))


def _spec(
    state: CpuLowering, loop: ForOp, dot: DotOp, element: str, a: LoadOp, b: LoadOp
) -> DotSpec:
    m, n = shape_of(dot.result.type)
    a_columns, b_columns = (reads_columns(load.result, state.alignments) for load in (a, b))
    sizes = DotSpec(m, n, shape_of(dot.a.type)[1], element, state.unit)
    return replace(
        sizes, k=memory_depth(sizes), ldc=n, a_columns=a_columns, b_columns=b_columns,
        from_memory=True, accumulate=not is_zero(_initial(loop)),
    )  # fmt: skip


def _conjuncts(mask: IndexedValue) -> Iterator[IndexedValue]:
    """The conditions whose conjunction is a mask."""
    op, parts = mask.value.op, mask.conjuncts()
    if isinstance(op, SplatOp):
        parts = (IndexedValue(op.operands[0], ()),)
    for part in parts:
        yield from _conjuncts(part)
    if not parts and not (isinstance(op, ConstantOp) and op.value):
        yield mask


def _is_order(condition: IndexedValue) -> bool:
    """A comparison of linear values, which holds between two points where it holds."""
    op = condition.value.op
    kind = element_of(op.operands[0].type) if isinstance(op, CompareOp) else None
    signed = isinstance(kind, DType) and kind.is_integer and kind.is_signed
    return signed and isinstance(op, CompareOp) and op.predicate in ("lt", "le", "gt", "ge")
