"""Move widening conversions of integers after the operator, or remove them.

C promotes shorter integers to `int`, so its kernels are full of conversions. Each rule leaves one
where there were two, or computes in the narrower type; `ext` is a conversion to a wider
integer type that keeps every value. Results that are narrowed again: see narrow_integers.py.
"""

from __future__ import annotations

from tilewright.ir import Rule, RuleContext, RuleSet, Value, rule
from tilewright.ir.types import (
    DType,
    dtype_of,
    element_of,
    f32,
    i8,
    i16,
    i32,
    shape_of,
    u8,
    u16,
    u32,
    with_element,
)
from tilewright.ops import (
    AbsOp,
    AndOp,
    BinaryOp,
    CastOp,
    CompareOp,
    DivOp,
    MaxOp,
    MinOp,
    OrOp,
    RemOp,
    SelectOp,
    ShrOp,
    XorOp,
)
from tilewright.transforms.rules.exact_arithmetic import constant_of, is_lossless
from tilewright.transforms.rules.rebuilt_ops import with_operands

_UNSIGNED = {i8: u8, i16: u16, i32: u32}


def _widened(value: Value) -> Value | None:
    """The operand of an `ext`; None for other values."""
    op = value.op
    if not isinstance(op, CastOp):
        return None
    source, target = element_of(op.x.type), element_of(value.type)
    if not (isinstance(source, DType) and isinstance(target, DType)):
        return None
    if source.is_float or target.is_float or target.is_bool or source is target:
        return None
    return op.x if is_lossless(source, target) else None


def _only_use(value: Value) -> bool:
    return len(value.uses) == 1


def _pair(op: BinaryOp | CompareOp, ctx: RuleContext) -> tuple[Value, Value] | None:
    """Both operands in the narrower type that they come from; a constant has to fit it."""
    x, y = _widened(op.lhs), _widened(op.rhs)
    if x is None:
        return None
    if y is not None:
        return (x, y) if x.type is y.type else None
    number, narrow = constant_of(op.rhs), dtype_of(x.type)
    if number is None or not narrow.min_int <= number <= narrow.max_int:
        return None
    return x, ctx.constant(bool(number) if narrow.is_bool else number, x.type)


def _saves_a_conversion(op: BinaryOp) -> bool:
    # with another use the wide value stays, and the rule would only add a conversion
    return _only_use(op.lhs) and (constant_of(op.rhs) is not None or _only_use(op.rhs))


def _narrow_binary(op: BinaryOp, ctx: RuleContext) -> Value | None:
    """Apply the operator before the widening."""
    pair = _pair(op, ctx) if _saves_a_conversion(op) else None
    if pair is None:
        return None
    return ctx.cast(ctx.value(with_operands(op, list(pair))), op.type)


@rule(AndOp, OrOp, XorOp)
def widen_after_bits(op: BinaryOp, ctx: RuleContext) -> Value | None:
    """ext(x) & ext(y) -> ext(x & y), also | and ^, also with a constant that fits"""
    return _narrow_binary(op, ctx)


@rule(MinOp, MaxOp)
def widen_after_extremum(op: BinaryOp, ctx: RuleContext) -> Value | None:
    """min(ext(x), ext(y)) -> ext(min(x, y)), also max, also with a constant that fits; no bools"""
    x = _widened(op.lhs)
    return None if x is None or dtype_of(x.type).is_bool else _narrow_binary(op, ctx)


@rule(ShrOp)
def widen_after_shift(op: ShrOp, ctx: RuleContext) -> Value | None:
    """ext(x) >> c -> ext(x >> c), for 0 <= c < width of x"""
    x, amount = _widened(op.lhs), constant_of(op.rhs)
    if x is None or amount is None or dtype_of(x.type).is_bool or not _only_use(op.lhs):
        return None
    if not 0 <= amount < dtype_of(x.type).bits:
        return None
    shifted = ctx.shr(x, amount)
    return ctx.cast(shifted, op.type)


@rule(DivOp, RemOp)
def widen_after_division(op: BinaryOp, ctx: RuleContext) -> Value | None:
    """ext(x) / ext(y) -> ext(x / y), also %; signed ones only by a constant that is not -1 or 0"""
    x, divisor = _widened(op.lhs), constant_of(op.rhs)
    if x is None or dtype_of(x.type).is_bool or divisor in (0, -1):
        return None
    # -128 / -1 fits the wide type alone
    if dtype_of(x.type).is_signed and divisor is None:
        return None
    return _narrow_binary(op, ctx)


@rule(DivOp, RemOp)
def divide_short_integers(op: BinaryOp, ctx: RuleContext) -> Value | None:
    """ext(x) / ext(y) -> cast(f32(x) / f32(y')), also %, for signed tiles of at most 16 bits

    y' is y, but 1 where y is 0. The quotient of two numbers below 2**24 is never rounded up to the
    next integer: that is more than 2**-24 of it away. No machine here divides tiles of integers.
    """
    x, y = _widened(op.lhs), _widened(op.rhs)
    if x is None or y is None or not shape_of(x.type) or not (_is_short(x) and _is_short(y)):
        return None
    zero, one = (ctx.constant(number, y.type) for number in (0, 1))
    is_zero = ctx.eq(y, zero)
    y = ctx.select(is_zero, one, y)
    floats = [ctx.cast(v, f32) for v in (x, y)]
    exact = ctx.div(*floats, rounding="nearest")
    quotient = ctx.cast(exact, op.type, in_range=True)
    if isinstance(op, DivOp):
        return quotient
    divisor = ctx.cast(y, op.type)
    return ctx.sub(op.lhs, ctx.mul(quotient, divisor))


def _is_short(value: Value) -> bool:
    dtype = dtype_of(value.type)
    return dtype.is_signed and dtype.bits <= f32.mantissa


@rule(CompareOp)
def compare_narrow(op: CompareOp, ctx: RuleContext) -> Value | None:
    """ext(x) < ext(y) -> x < y, any predicate, also with a constant that fits; no bools"""
    x = _widened(op.lhs)
    pair = None if x is None or dtype_of(x.type).is_bool else _pair(op, ctx)
    return None if pair is None else ctx.compare(*pair, op.predicate)


@rule(SelectOp)
def widen_after_select(op: SelectOp, ctx: RuleContext) -> Value | None:
    """select(c, ext(x), ext(y)) -> ext(select(c, x, y))"""
    x, y = _widened(op.x), _widened(op.y)
    if x is None or y is None or x.type is not y.type or not (_only_use(op.x) and _only_use(op.y)):
        return None
    return ctx.cast(ctx.select(op.condition, x, y), op.type)


@rule(AbsOp)
def widen_after_absolute_value(op: AbsOp, ctx: RuleContext) -> Value | None:
    """|ext(x)| -> ext(x) for an unsigned x, else ext(|x|), |x| taken as unsigned"""
    x = _widened(op.x)
    if x is None or not dtype_of(x.type).is_signed:
        return None if x is None else op.x
    if not _only_use(op.x):
        return None
    # unsigned: the size of the least number, 2^(bits - 1), does not fit the signed type
    size = ctx.cast(ctx.abs(x), with_element(x.type, _UNSIGNED[dtype_of(x.type)]))
    return ctx.cast(size, op.type)


RULES: tuple[Rule, ...] = tuple(item for item in globals().values() if isinstance(item, Rule))
WIDTHS = RuleSet(RULES)
"""All of the above, in this order."""
