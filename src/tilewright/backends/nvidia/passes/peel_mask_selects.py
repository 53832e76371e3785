"""Branch around selects in iterations where the mask is true for the whole tile.

    %m = arith.compare %columns, %n {"lt"}       %full = %j + 63 < %n (in 64 bits)
    %y = arith.select %m, %x, %c           ->    %y = cf.if %full {
                                                   cf.yield %x
                                                 } {
                                                   %m = arith.compare %columns, %n {"lt"}
                                                   %z = arith.select %m, %x, %c
                                                   cf.yield %z
                                                 }

Masks of row ends and triangles concern the last of many iterations. In a loop of dots, threads
compute the selects while the tensor cores wait, or work on other warps' dots. Where the true side
is a constant, the branch is around masks that are false for the whole tile. A select of two
constants stays: its branch would hold the tile in registers.
"""

from __future__ import annotations

from tilewright.analysis import affine
from tilewright.analysis.affine import Span
from tilewright.backends.nvidia.buffer_ops import WgmmaOp
from tilewright.ir import Block, Builder, Function, Op, Pass, Rewriter, Value, is_pure
from tilewright.ir.types import TileType, dtype_of, i32, i64
from tilewright.ops import (
    AndOp,
    BroadcastOp,
    CompareOp,
    ConstantOp,
    DotOp,
    ExpandDimsOp,
    ForOp,
    IfOp,
    SelectOp,
    SplatOp,
    YieldOp,
)
from tilewright.support.data_class import dataclass
from tilewright.transforms import remove_dead

_LEAST_ELEMENTS = 4
"""Elements per thread: below this, a branch costs more than it saves."""


@dataclass(frozen=True)
class PeelMaskSelects(Pass, name="nvidia-peel-mask-selects"):
    """Branch around masks that are often true for the whole tile. warps: of a program."""

    warps: int = 4

    def run(self, function: Function) -> bool:
        chosen: list[tuple[SelectOp, ForOp]] = []
        for loop in function.walk():
            if isinstance(loop, ForOp) and any(isinstance(op, DotOp | WgmmaOp) for op in loop.body):
                chosen += [
                    (op, loop) for op in loop.body if isinstance(op, SelectOp) and self._pays(op)
                ]
        changed = any([_skip(op, loop) for op, loop in chosen])
        if changed:
            remove_dead(function)  # masks that only branches compute
        return changed

    def _pays(self, op: SelectOp) -> bool:
        """Whether a branch saves more than it costs."""
        type_ = op.condition.type
        if _is_constant(op.x) and _is_constant(op.y):
            return False
        return isinstance(type_, TileType) and type_.numel >= _LEAST_ELEMENTS * 32 * self.warps


def _skip(op: SelectOp, loop: ForOp) -> bool:
    """Branch around one mask if scalars decide whether it is true everywhere; whether they do."""
    compares = _compares(op.condition)
    pairs = [pair for pair in map(_ordered, compares) if pair is not None]
    if not compares or len(pairs) < len(compares):
        return False
    kept = op.x
    if _is_constant(op.x):
        if len(pairs) > 1:
            return False  # the complement of a conjunction is none
        ((below, above, is_strict),) = pairs
        kept, pairs = op.y, [(above, below, not is_strict)]
    builder = Builder.at(op)
    full: Value | None = None
    for below, above, is_strict in pairs:
        for test in _tests(builder, below, above, is_strict):
            full = test if full is None else builder.bit_and(full, test)
    if full is None:
        return False
    plain, masked = Block(), Block()
    Builder(plain, None, op.loc).emit(YieldOp((kept,)))
    inner = Builder(masked, None, op.loc)
    mapping: dict[Value, Value] = {}
    for needed in _mask_ops(op, loop):
        inner.emit(needed.clone(mapping))
    inner.emit(YieldOp((mapping[op.result],)))
    Rewriter.replace(op, builder.value(IfOp(full, plain, masked, result_types=(op.type,))))
    return True


def _is_constant(value: Value) -> bool:
    return isinstance(value.op, ConstantOp | SplatOp)


def _compares(mask: Value) -> list[CompareOp]:
    """The comparisons whose conjunction is a mask; none for other masks."""
    op = mask.op
    if isinstance(op, BroadcastOp | ExpandDimsOp):
        return _compares(op.x)
    if isinstance(op, AndOp):
        left, right = _compares(op.lhs), _compares(op.rhs)
        return [*left, *right] if left and right else []
    return [op] if isinstance(op, CompareOp) else []


def _ordered(op: CompareOp) -> tuple[Span, Span, bool] | None:
    """The lower and the upper side of a comparison, and whether it is strict."""
    if dtype_of(op.lhs.type) is not i32 or op.predicate not in ("lt", "le", "gt", "ge"):
        return None
    sides = (op.lhs, op.rhs) if op.predicate in ("lt", "le") else (op.rhs, op.lhs)
    below, above = (affine.of(side).span() for side in sides)
    return None if below is None or above is None else (below, above, op.predicate in ("lt", "gt"))


def _tests(builder: Builder, below: Span, above: Span, is_strict: bool) -> list[Value]:
    """Conditions, in 64 bits, under which all elements of one tile are below all of another."""
    highest, lowest = _sum(builder, below, below.high), _sum(builder, above, above.low)
    tests = [builder.compare(highest, lowest, "lt" if is_strict else "le")]
    if above.high and above.scalar is not None:
        # In 32 bits its largest elements would wrap to negative numbers.
        tests.append(builder.le(_sum(builder, above, above.high), i32.max_int))
    return tests


def _sum(builder: Builder, span: Span, more: int) -> Value:
    if span.scalar is None:
        return builder.constant(more, i64)
    return builder.add(builder.cast(span.scalar, i64), more)


def _mask_ops(op: SelectOp, loop: ForOp) -> list[Op]:
    """The ops of the body that compute a mask from scalars, and its use."""
    needed, stack = set[Op]((op,)), [op.condition]
    while stack:
        source = stack.pop().op
        if source is None or source.parent is not loop.body or source in needed:
            continue
        if (
            source.regions
            or not is_pure(source)
            or not isinstance(source.results[0].type, TileType)
        ):
            continue
        needed.add(source)
        stack += source.operands
    return [each for each in loop.body if each in needed]
