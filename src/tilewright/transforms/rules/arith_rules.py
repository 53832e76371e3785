"""Identities and constant folding of element-wise arithmetic, on scalars and tiles alike.

Float identities hold for every input, signed zeros and NaN included. Identities on integers hold
modulo 2**bits.
"""

from __future__ import annotations

from math import frexp, isfinite
from typing import cast

from tilewright.analysis import IntegerRange, integer_range
from tilewright.ir import Rule, RuleContext, RuleSet, Value, rule
from tilewright.ir.types import DType, dtype_of, element_of, f64, i1, shape_of, with_element
from tilewright.ops import (
    AbsOp,
    AddOp,
    AndOp,
    BinaryOp,
    BitcastOp,
    BroadcastOp,
    CastOp,
    CompareOp,
    DivOp,
    ExpandDimsOp,
    MathOp,
    MaxOp,
    MinOp,
    MulHighOp,
    MulOp,
    NegOp,
    OrOp,
    RangeOp,
    RemOp,
    ReshapeOp,
    SelectOp,
    ShlOp,
    ShrOp,
    SplatOp,
    SubOp,
    XorOp,
)
from tilewright.transforms.rules.exact_arithmetic import (
    constant_of,
    fold_binary,
    fold_cast,
    fold_compare,
    fold_rounding,
    in_type,
    is_constant,
    is_lossless,
)
from tilewright.transforms.rules.rebuilt_ops import scalar_of, with_operands

_SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _is_float(value: Value) -> bool:
    element = element_of(value.type)
    return isinstance(element, DType) and element.is_float


def _is_all_ones(value: Value) -> bool:
    number = constant_of(value)
    if number is None or isinstance(number, float):
        return False
    dtype = dtype_of(value.type)
    return number == (1 if dtype.is_bool else (-1 if dtype.is_signed else dtype.max_int))


# ---- constants -----------------------------------------------------------------------------------


@rule(
    AddOp, SubOp, MulOp, DivOp, RemOp, AndOp, OrOp, XorOp, ShlOp, ShrOp, MinOp, MaxOp, MulHighOp
)  # fmt: skip
def fold_constants(op: BinaryOp, ctx: RuleContext) -> Value | None:
    """c1 <op> c2 -> c"""
    a, b = constant_of(op.lhs), constant_of(op.rhs)
    if a is None or b is None:
        return None
    result = fold_binary(op.opcode, a, b, dtype_of(op.type))
    return None if result is None else ctx.constant(result, op.type)


@rule(NegOp)
def fold_neg(op: NegOp, ctx: RuleContext) -> Value | None:
    """-c1 -> c2"""
    number = constant_of(op.x)
    if number is None or number != number:
        return None
    result = -number if _is_float(op.x) else in_type(-int(number), dtype_of(op.type))
    return None if result is None else ctx.constant(result, op.type)


@rule(AbsOp)
def fold_abs(op: AbsOp, ctx: RuleContext) -> Value | None:
    """|c1| -> c2"""
    number = constant_of(op.x)
    if number is None or number != number:
        return None
    result = in_type(abs(number), dtype_of(op.type))
    return None if result is None else ctx.constant(result, op.type)


@rule(MathOp)
def fold_math(op: MathOp, ctx: RuleContext) -> Value | None:
    """floor(c1), ceil(c1), trunc(c1), round_even(c1) -> c2"""
    number = constant_of(op.x)
    result = None if number is None else fold_rounding(op.function, float(number))
    return None if result is None else ctx.constant(result, op.type)


@rule(CompareOp)
def fold_comparison(op: CompareOp, ctx: RuleContext) -> Value | None:
    """c1 <predicate> c2 -> true or false"""
    a, b = constant_of(op.lhs), constant_of(op.rhs)
    if a is None or b is None:
        return None
    return ctx.constant(fold_compare(op.predicate, a, b), op.type)


@rule(CastOp)
def fold_cast_of_constant(op: CastOp, ctx: RuleContext) -> Value | None:
    """cast(c1) -> c2, where the number fits"""
    number, target = constant_of(op.x), element_of(op.result_type)
    if number is None or not isinstance(target, DType):
        return None
    result = fold_cast(number, dtype_of(op.x.type), target)
    return None if result is None else ctx.constant(result, op.type)


@rule(SelectOp)
def select_constant(op: SelectOp, ctx: RuleContext) -> Value | None:
    """select(true, x, y) -> x; select(false, x, y) -> y"""
    condition = constant_of(op.condition)
    return None if condition is None else (op.x if condition else op.y)


@rule(AddOp, MulOp, AndOp, OrOp, XorOp, MinOp, MaxOp, MulHighOp)
def constant_right(op: BinaryOp, ctx: RuleContext) -> Value | None:
    """c <op> x -> x <op> c, for commutative ops"""
    if constant_of(op.lhs) is None or constant_of(op.rhs) is not None:
        return None
    return ctx.value(with_operands(op, [op.rhs, op.lhs]))


@rule(CompareOp)
def constant_right_compare(op: CompareOp, ctx: RuleContext) -> Value | None:
    """c < x -> x > c, and so on"""
    if constant_of(op.lhs) is None or constant_of(op.rhs) is not None:
        return None
    return ctx.compare(op.rhs, op.lhs, _SWAPPED[op.predicate])


@rule(AddOp, MulOp, AndOp, OrOp, XorOp)
def join_constants(op: BinaryOp, ctx: RuleContext) -> Value | None:
    """(x <op> c1) <op> c2 -> x <op> (c1 <op> c2), integers only"""
    inner = op.lhs.op
    if not isinstance(inner, BinaryOp) or inner.opcode != op.opcode or _is_float(op.lhs):
        return None
    a, b = constant_of(inner.rhs), constant_of(op.rhs)
    if a is None or b is None:
        return None
    joined = fold_binary(op.opcode, a, b, dtype_of(op.type))
    # on integers these ops are defined for all operands, so they always fold
    assert joined is not None
    right = ctx.constant(joined, op.type)
    return ctx.value(with_operands(op, [inner.lhs, right]))


# ---- neutral and absorbing elements --------------------------------------------------------------


@rule(AddOp)
def add_zero(op: AddOp, ctx: RuleContext) -> Value | None:
    """x + 0 -> x (for floats only x + -0.0: -0.0 + 0.0 is 0.0)"""
    return op.lhs if is_constant(op.rhs, -0.0 if _is_float(op.lhs) else 0) else None


@rule(SubOp, ShlOp, ShrOp)
def subtract_or_shift_zero(op: BinaryOp, ctx: RuleContext) -> Value | None:
    """x - 0 -> x; x << 0 -> x; x >> 0 -> x"""
    return op.lhs if is_constant(op.rhs, 0) else None


@rule(MulOp, DivOp)
def times_one(op: BinaryOp, ctx: RuleContext) -> Value | None:
    """x * 1 -> x; x / 1 -> x"""
    return op.lhs if is_constant(op.rhs, 1) else None


@rule(DivOp)
def divide_by_power_of_two(op: DivOp, ctx: RuleContext) -> Value | None:
    """x / 2**k -> x * 2**-k, floats only, for normal 2**k and 2**-k: both are rounded alike"""
    divisor = constant_of(op.rhs)
    if not divisor or not _is_float(op.rhs) or not isfinite(divisor):
        return None
    mantissa, exponent = frexp(divisor)
    # frexp's exponent is one above that of the number
    if abs(mantissa) != 0.5 or abs(exponent - 1) >= dtype_of(op.type).bias:
        return None
    return ctx.mul(op.lhs, 1 / divisor)


@rule(MulOp, AndOp)
def times_zero(op: BinaryOp, ctx: RuleContext) -> Value | None:
    """x * 0 -> 0; x & 0 -> 0, integers only"""
    return op.rhs if not _is_float(op.lhs) and is_constant(op.rhs, 0) else None


@rule(RemOp)
def remainder_of_one(op: RemOp, ctx: RuleContext) -> Value | None:
    """x % 1 -> 0, integers only"""
    if _is_float(op.lhs) or not is_constant(op.rhs, 1):
        return None
    return ctx.constant(0, op.type)


@rule(SubOp, XorOp)
def same_cancels(op: BinaryOp, ctx: RuleContext) -> Value | None:
    """x - x -> 0; x ^ x -> 0, integers only"""
    if op.lhs is not op.rhs or _is_float(op.lhs):
        return None
    return ctx.constant(0, op.type)


@rule(AndOp, OrOp, MinOp, MaxOp)
def same_stays(op: BinaryOp, ctx: RuleContext) -> Value | None:
    """x & x, x | x, min(x, x), max(x, x) -> x"""
    return op.lhs if op.lhs is op.rhs else None


@rule(AndOp)
def and_all_ones(op: AndOp, ctx: RuleContext) -> Value | None:
    """x & ~0 -> x"""
    return op.lhs if _is_all_ones(op.rhs) else None


@rule(OrOp)
def or_all_ones(op: OrOp, ctx: RuleContext) -> Value | None:
    """x | ~0 -> ~0"""
    return op.rhs if _is_all_ones(op.rhs) else None


@rule(OrOp, XorOp)
def or_zero(op: BinaryOp, ctx: RuleContext) -> Value | None:
    """x | 0 -> x; x ^ 0 -> x"""
    return op.lhs if is_constant(op.rhs, 0) else None


@rule(NegOp)
def negate_twice(op: NegOp, ctx: RuleContext) -> Value | None:
    """-(-x) -> x"""
    inner = op.x.op
    return inner.x if isinstance(inner, NegOp) else None


@rule(CompareOp)
def compare_with_itself(op: CompareOp, ctx: RuleContext) -> Value | None:
    """x == x, x <= x, x >= x -> true; x != x, x < x, x > x -> false; not for floats"""
    if op.lhs is not op.rhs or _is_float(op.lhs):
        return None
    return ctx.constant(op.predicate in ("eq", "le", "ge"), op.type)


@rule(CompareOp)
def compare_ranges(op: CompareOp, ctx: RuleContext) -> Value | None:
    """x < y -> true or false, if no number that x may be is on the other side of one of y's

    Masks of the elements of a block that lies within a row of known length.
    """
    x = None if _is_float(op.lhs) else integer_range(op.lhs)
    y = None if x is None else integer_range(op.rhs)
    if x is None or y is None:
        return None
    answer = _answer(op.predicate, x, y)
    return None if answer is None else ctx.constant(answer, op.type)


@rule(CompareOp)
def uniform_comparison(op: CompareOp, ctx: RuleContext) -> Value | None:
    """splat(x * c) + i < c2 -> splat(x * c < c2), where i is below 2**n, which divides c and c2

    Masks of rows that end where a block ends; also of >=.
    """
    bound = constant_of(op.rhs)
    if op.predicate not in ("lt", "ge") or bound is None or not isinstance(op.lhs.op, AddOp):
        return None
    for start, place in (op.lhs.op.operands, op.lhs.op.operands[::-1]):
        extent = _extent_of_range(place)
        if extent and bound % extent == 0 and _is_multiple(start, extent):
            first = cast("Value", scalar_of(ctx, start))
            return ctx.splat(ctx.compare(first, bound, op.predicate), shape_of(op.type))
    return None


def _extent_of_range(value: Value) -> int:
    """The power of two above all elements of a range that starts at 0; 0 for other values."""
    op = value.op
    while isinstance(op, ExpandDimsOp | BroadcastOp | ReshapeOp):
        op = op.x.op
    if not isinstance(op, RangeOp) or op.start:
        return 0
    return 1 << (op.end - 1).bit_length()


def _is_multiple(value: Value, extent: int) -> bool:
    """Whether a splat is a product with a multiple of a power of two; such a product may wrap."""
    inner = value.op.x.op if isinstance(value.op, SplatOp) else None
    factor = constant_of(inner.rhs) if isinstance(inner, MulOp) else None
    return factor is not None and not _is_float(value) and int(factor) % extent == 0


def _answer(predicate: str, x: IntegerRange, y: IntegerRange) -> bool | None:
    """The result of comparing any number in x with any in y; None if it depends on them."""
    if predicate in ("gt", "ge"):
        return _answer(_SWAPPED[predicate], y, x)
    if predicate == "lt":
        return True if x.high < y.low else False if x.low >= y.high else None
    if predicate == "le":
        return True if x.high <= y.low else False if x.low > y.high else None
    apart = x.high < y.low or y.high < x.low
    return predicate == "ne" if apart else None


# ---- select --------------------------------------------------------------------------------------


@rule(SelectOp)
def select_same(op: SelectOp, ctx: RuleContext) -> Value | None:
    """select(c, x, x) -> x"""
    return op.x if op.x is op.y else None


@rule(SelectOp)
def select_condition(op: SelectOp, ctx: RuleContext) -> Value | None:
    """select(c, true, false) -> c"""
    if element_of(op.type) is not i1 or not is_constant(op.x, 1) or not is_constant(op.y, 0):
        return None
    return op.condition


# ---- casts ---------------------------------------------------------------------------------------


@rule(CastOp, BitcastOp)
def cast_to_same(op: CastOp | BitcastOp, ctx: RuleContext) -> Value | None:
    """cast(x) -> x, to the type it has"""
    return op.x if op.x.type is op.result_type else None


@rule(CastOp)
def cast_of_cast(op: CastOp, ctx: RuleContext) -> Value | None:
    """cast(cast(x)) -> cast(x), if the inner cast loses nothing, or the outer one keeps low bits

    But not f64 -> integer of a narrower float: a NaN of f64 gives another integer.
    """
    inner = op.x.op
    if not isinstance(inner, CastOp) or op.rounding != "rtne":
        return None
    source, middle = element_of(inner.x.type), element_of(inner.result_type)
    target = element_of(op.result_type)
    if not (isinstance(source, DType) and isinstance(middle, DType) and isinstance(target, DType)):
        return None
    if source is target and source.is_fp8 and source.specials in ("ieee", "none"):
        return None  # the cast saturates what the source has beyond its largest number
    if source is not middle is f64 and target.is_integer and not op.in_range:
        return None
    low_bits = not source.is_float and middle.is_integer and target.is_integer
    if not is_lossless(source, middle) and not (low_bits and target.bits <= middle.bits):
        return None
    return ctx.cast(inner.x, op.result_type, in_range=op.in_range)


@rule(BitcastOp)
def bitcast_of_bitcast(op: BitcastOp, ctx: RuleContext) -> Value | None:
    """bitcast(bitcast(x)) -> bitcast(x)"""
    inner = op.x.op
    return ctx.bitcast(inner.x, op.result_type) if isinstance(inner, BitcastOp) else None


@rule(CompareOp)
def compare_bool_as_int(op: CompareOp, ctx: RuleContext) -> Value | None:
    """cast(b) != 0 -> b, for a bool b"""
    inner = op.lhs.op
    if op.predicate != "ne" or not isinstance(inner, CastOp) or not is_constant(op.rhs, 0):
        return None
    return inner.x if inner.x.type is with_element(op.lhs.type, i1) else None


RULES: tuple[Rule, ...] = tuple(item for item in globals().values() if isinstance(item, Rule))
ARITH = RuleSet(RULES)
"""All of the above, in this order."""
