"""Loops over a range as `cf.for`, whose step is positive: bounds, and the index of each iteration.

Bounds are converted to the type of the index; between them the indices are exactly Python's, up to
the ends of that type. The sign of the step decides the form:

    positive             for i in [start, end) step s                   index = i
    a negative literal   for t in [0, start - end) step -s              index = start - t
    unknown              for t in [0, iterations), if s is not 0        index = start + t * s

t is unsigned, since a distance between two numbers may exceed the largest signed one. The last form
divides once before the loop. It is also used for inclusive limits, `i <= n`: n + 1 may wrap.

A step such as `tl.num_programs(0) * BLOCK` is positive unless it wraps. It keeps the first form, so
that grid-stride loops stay cheap to analyze; where it has wrapped to 0 or less, the loop is empty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from tilewright.frontend.dtype_promotion import common_dtype, fits, literal_dtype
from tilewright.frontend.semantics.dtype_casts import cast_value
from tilewright.frontend.semantics.literal_constants import constant, describe
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.ir import Op, Value
from tilewright.ir.types import DType, dtype_named, dtype_of, element_of, i32, i64
from tilewright.language import range, tensor, type_of, unwrap
from tilewright.ops import (
    AddOp,
    AssertOp,
    AssumeOp,
    CastOp,
    CompareOp,
    ConstantOp,
    MaxOp,
    MinOp,
    MulOp,
    NumProgramsOp,
)
from tilewright.support import errors
from tilewright.support.data_class import dataclass

Bound = tensor | int
"""An integer scalar, or a compile-time number."""

ZERO_STEP = "the step of range() is 0"
"""The message of the run-time assertion on a step that is not a literal."""

# Deep enough for `BLOCK * tl.num_programs(0) * 2`; a cap, as operands fan out exponentially.
_DEPTH = 8
"""How many ops the search for the sign of a step follows."""


@dataclass(frozen=True, slots=True)
class LoopBounds:
    """Operands of the loop. origin: the first index if the loop counts from 0, else None.

    scale: the increment of the index for each count; None if the counts are subtracted.
    """

    lower: Value
    upper: Value
    step: Value
    origin: Value | None = None
    scale: Value | None = None

    @property
    def first(self) -> Value:
        """The first index."""
        return self.lower if self.origin is None else self.origin

    def index(self, ctx: Context, counter: Value) -> tensor:
        """The value of the loop variable, emitted in the body."""
        if self.origin is None:
            return tensor(counter)
        count = cast_value(ctx, counter, dtype_of(self.origin.type))
        if self.scale is None:
            return tensor(ctx.sub(self.origin, count))
        # Modulo 2^n the product is also right for negative steps.
        return tensor(ctx.add(self.origin, ctx.mul(count, self.scale)))

    def is_empty(self, ctx: Context) -> Value:
        """Whether there is no iteration at all."""
        return ctx.ge(self.lower, self.upper)

    def advance(self, ctx: Context, counter: Value) -> tuple[Value, Value]:
        """The counter of the next iteration, and whether there is none.

        Not `counter + step < upper`: the sum may wrap past the end of the type.
        """
        left = distance(ctx, counter, self.upper)
        step = cast_value(ctx, self.step, dtype_of(left.type))
        return ctx.add(counter, self.step), ctx.le(left, step)


def integer_bounds(ctx: Context, loop: range) -> tuple[Bound, Bound, Bound]:
    """Start, end and step of a loop. Errors: InvalidValue unless they are integer scalars."""
    start, end, step = (
        _integer(ctx, label, unwrap(bound))
        for label, bound in (("start", loop.start), ("end", loop.end), ("step", loop.step))
    )
    return start, end, step


def _integer(ctx: Context, label: str, bound: object) -> Bound:
    if isinstance(bound, tensor):
        type_ = bound.handle.type
        if isinstance(type_, DType) and not type_.is_float:
            return bound
    elif isinstance(bound, int):
        return int(bound)
    ctx.fail(errors.InvalidValue, "range", label, "an integer scalar", describe(bound))


def index_dtype(ctx: Context, start: Bound, end: Bound, step: Bound) -> DType:
    """The type of a loop's index: the common dtype of the run-time bounds, i32 or wider.

    Literals are weak: they widen it only if it cannot hold them, to i64, or without run-time bounds
    to the first of i32, u32, i64 and u64 that holds them all. The size of a step counts.
    Errors: LiteralOutOfRange.
    """
    numbers = [part for part in (start, end) if isinstance(part, int)]
    # The form of the loop contains the sign of a literal step; only its size must fit.
    numbers += [abs(step)] if isinstance(step, int) else []
    tensors = [part for part in (start, end, step) if isinstance(part, tensor)]
    promoted = i64 if ctx.options.int64_offsets else i32
    for part in tensors:
        promoted = common_dtype(promoted, dtype_of(part.handle.type))
    narrow = promoted.bits < 64
    # A literal beyond the type of the run-time bounds widens the index once, to i64.
    candidates = (promoted, i64) if narrow and tensors else (promoted,)
    if not tensors:
        # With literals alone each one's own dtype is tried, in order, then i64.
        first = [] if ctx.options.int64_offsets else [literal_dtype(n) for n in numbers]
        candidates = [*filter(None, first), i64]
    for candidate in candidates:
        if all(fits(number, candidate) for number in numbers):
            return candidate
    misfit = next(number for number in numbers if not fits(number, candidates[-1]))
    ctx.fail(errors.LiteralOutOfRange, misfit, type_of(candidates[-1]))


def range_bounds(ctx: Context, start: Bound, end: Bound, step: Bound) -> LoopBounds:
    """Emit the bounds of `range(start, end, step)`. Errors: InvalidValue, LiteralOutOfRange."""
    check_step(ctx, step)
    dtype = index_dtype(ctx, start, end, step)
    if isinstance(step, int):
        if step < 0:
            return descending_bounds(ctx, dtype, start, end, -step)
        return ascending_bounds(ctx, dtype, start, end, step)
    # An unsigned step that is not 0 goes up; 0 itself is stopped by `check_step`.
    if not _is_unsigned(step) and not is_positive_step(step.handle):
        return _bounds_of_unknown_step(ctx, dtype, start, end, step.handle)
    return ascending_bounds(ctx, dtype, start, end, step)


def check_step(ctx: Context, step: Bound) -> None:
    """A step of 0 is an error: at compile time if it is a literal, else when the loop runs."""
    if isinstance(step, int):
        if step == 0:
            ctx.fail(errors.InvalidValue, "range", "step", "a number other than 0", 0)
    elif not is_positive_step(step.handle):
        zero = constant(ctx, 0, step.handle.type)
        ctx.emitter.emit(AssertOp(ctx.ne(step.handle, zero), ZERO_STEP))


def ascending_bounds(
    ctx: Context, dtype: DType, start: Bound, end: Bound, step: Bound
) -> LoopBounds:
    """start, start + step, ... below end; step > 0. Empty if the step has wrapped."""
    first, last, size = (in_dtype(ctx, part, dtype) for part in (start, end, step))
    if isinstance(step, tensor) and _may_wrap(step.handle):
        # The end is replaced, not the step: the alignment of the index follows from start and step.
        goes_up = ctx.gt(step.handle, 0)
        last = ctx.select(goes_up, last, first)
    return LoopBounds(first, last, size)


def descending_bounds(
    ctx: Context, dtype: DType, start: Bound, end: Bound, step: Bound
) -> LoopBounds:
    """start, start - step, ... above end; step > 0."""
    unsigned = dtype_named(f"u{dtype.bits}")
    origin = in_dtype(ctx, start, dtype)
    if isinstance(start, int) and isinstance(end, int):
        # The distance may exceed the largest signed number, never the largest unsigned one.
        span = constant(ctx, max(start - end, 0), unsigned)
    else:
        last = in_dtype(ctx, end, dtype)
        # Max: a range that is empty from the start has the distance 0, not a wrapped one.
        span = distance(ctx, last, ctx.max(origin, last))
    return LoopBounds(constant(ctx, 0, unsigned), span, in_dtype(ctx, step, unsigned), origin)


def inclusive_bounds(
    ctx: Context, dtype: DType, start: Bound, last: Bound, step: Bound, down: bool
) -> LoopBounds:
    """start, start + step, ... up to and with last, or down to it; step > 0."""
    origin, end, size = (in_dtype(ctx, part, dtype) for part in (start, last, step))
    low, high = (end, origin) if down else (origin, end)
    span = distance(ctx, low, ctx.max(low, high))
    one = constant(ctx, 1, span.type)
    steps = ctx.expr(span) // _magnitude(ctx, size)
    # 1 or 0: an inclusive loop runs once where low equals high, never where it is above.
    runs = cast_value(ctx, ctx.le(low, high), dtype_of(span.type))
    count = ((steps + one) * runs).value
    if down:
        # The index is always origin + count * scale here, so that a descent has a negative scale.
        size = ctx.sub(0, size)
    return LoopBounds(constant(ctx, 0, span.type), count, one, origin, size)


def _bounds_of_unknown_step(
    ctx: Context, dtype: DType, start: Bound, end: Bound, step: Value
) -> LoopBounds:
    """start, start + step, ... before end is reached, in the direction of the step."""
    first, last = in_dtype(ctx, start, dtype), in_dtype(ctx, end, dtype)
    # The step is cut to the index's type, as start and end are.
    size = cast_value(ctx, step, dtype)
    backward = ctx.lt(step, 0)
    low = ctx.select(backward, last, first)
    high = ctx.select(backward, first, last)
    # The smallest integer negates to itself, whose unsigned reading is its magnitude.
    negated = ctx.sub(0, size)
    amount = _magnitude(ctx, ctx.select(backward, negated, size))
    span = distance(ctx, low, ctx.max(low, high))
    one = constant(ctx, 1, span.type)
    # ceil(span / amount) as (span - some) / amount + some, which cannot overflow.
    some = ctx.min(span, one)
    count = ((ctx.expr(span) - some) // amount + some).value
    return LoopBounds(constant(ctx, 0, span.type), count, one, first, size)


def distance(ctx: Context, low: Value, high: Value) -> Value:
    """high - low as an unsigned number, where low <= high."""
    unsigned = dtype_named(f"u{dtype_of(low.type).bits}")
    return cast_value(ctx, ctx.sub(high, low), unsigned)


def _magnitude(ctx: Context, size: Value) -> Value:
    """A positive step as an unsigned number; 1 for 0, so that dividing by it is defined."""
    unsigned = dtype_named(f"u{dtype_of(size.type).bits}")
    return ctx.max(cast_value(ctx, size, unsigned), 1)


def in_dtype(ctx: Context, part: Bound, dtype: DType) -> Value:
    """A bound in the type of the index."""
    if isinstance(part, int):
        return constant(ctx, part, dtype)
    return cast_value(ctx, part.handle, dtype)


# --- the sign of a step ---------------------------------------------------------------------------


def _is_unsigned(part: tensor) -> bool:
    return not dtype_of(part.handle.type).is_signed


class _Positive(NamedTuple):
    """The range of a positive number. may_wrap: it is positive unless its computation wraps."""

    largest: int
    may_wrap: bool


def is_positive_step(value: Value) -> bool:
    """Whether a step is positive if sums and products of positive numbers do not wrap.

    Unlike `analysis.integer_range`, for which a sum that may overflow is any number.
    `tl.assume(value > 0)` in the block that computes it has the same effect.
    """
    return _positive(value, _DEPTH) is not None


def _may_wrap(value: Value) -> bool:
    """Whether a number is positive only if its computation does not wrap."""
    positive = _positive(value, _DEPTH)
    return positive is not None and positive.may_wrap


def _positive(value: Value, depth: int) -> _Positive | None:
    """The bounds of a positive number; None for others."""
    largest = dtype_of(value.type).max_int
    if _is_assumed(value):
        return _Positive(largest, False)
    op = value.op
    if op is None or depth == 0:
        return None
    if isinstance(op, ConstantOp):
        return _Positive(int(op.value), False) if op.value > 0 else None
    # The grid has at least one program along every axis.
    if isinstance(op, NumProgramsOp):
        return _Positive(largest, False)
    if isinstance(op, CastOp):
        return _positive(op.x, depth - 1) if _keeps_sign(op) else None
    if not isinstance(op, AddOp | MulOp | MinOp | MaxOp):
        return None
    positives = [p for operand in op.operands if (p := _positive(operand, depth - 1)) is not None]
    if isinstance(op, MaxOp):
        return _Positive(largest, all(p.may_wrap for p in positives)) if positives else None
    return _combined(op, positives, largest) if len(positives) == len(op.operands) else None


def _combined(op: Op, operands: Sequence[_Positive], largest: int) -> _Positive:
    """The bounds of a sum, product or minimum. largest: of its type."""
    bounds = [operand.largest for operand in operands]
    may_wrap = any(operand.may_wrap for operand in operands)
    if isinstance(op, MinOp):
        return _Positive(min(bounds), may_wrap)
    exact = sum(bounds) if isinstance(op, AddOp) else math.prod(bounds)
    return _Positive(min(exact, largest), may_wrap or exact > largest)


def _keeps_sign(op: CastOp) -> bool:
    source, target = element_of(op.x.type), dtype_of(op.result.type)
    if not isinstance(source, DType) or source.is_float:
        return False
    signs = source.is_signed or not target.is_signed
    # Zero extension keeps the value; an unsigned number of equal width may turn negative.
    return target.bits > source.bits or (target.bits == source.bits and signs)


def _is_assumed(value: Value) -> bool:
    # Assumptions count only in the block of the value: elsewhere they may not be reached.
    block = value.block
    for compare in value.uses:
        if isinstance(compare, CompareOp) and _compares_above_zero(compare, value):
            users = list(compare.result.uses)
            if any(isinstance(user, AssumeOp) and user.parent is block for user in users):
                return True
    return False


def _compares_above_zero(compare: CompareOp, value: Value) -> bool:
    """value > c with c >= 0, value >= c with c >= 1, or the same with operands swapped."""
    left = compare.lhs is value
    other = compare.rhs.op if left else compare.lhs.op
    if not isinstance(other, ConstantOp):
        return False
    predicates = ("gt", "ge") if left else ("lt", "le")
    # "gt"/"lt" need c >= 0 and "ge"/"le" c >= 1: the position in the tuple is that bound.
    return compare.predicate in predicates and other.value >= predicates.index(compare.predicate)
