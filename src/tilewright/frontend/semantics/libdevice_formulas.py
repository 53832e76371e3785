"""The wider mathematical library as formulas over the functions that every backend has.

Formulas run in fp64 and are rounded to the dtype of the operands once; that of exp runs in fp32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import language as tl
from tilewright.frontend.semantics.broadcasting import broadcast_pair
from tilewright.frontend.semantics.composed_functions import evaluate
from tilewright.frontend.semantics.dtype_casts import cast_to, cast_value
from tilewright.frontend.semantics.literal_constants import describe, materialize
from tilewright.frontend.semantics.math_functions import (
    float_argument,
    in_accumulator,
    math_function,
)
from tilewright.frontend.semantics.selection import common_dtype
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import implements
from tilewright.ir.types import DType, dtype_of, f64
from tilewright.language import tensor
from tilewright.support import errors

# Formulas name functions as a kernel would, so that nested ones dispatch to the semantics.
lib = tl.extra.libdevice

PI = 3.141592653589793
PI_LOW = 1.2246467991473532e-16
"""pi = PI + PI_LOW to 106 bits."""
LOG2_E = 1.44269502162933349609375
"""log2(e) as fp32."""
LOG2_E_LOW = 1.925963033500116e-08
"""log2(e) = LOG2_E + LOG2_E_LOW to 50 bits."""
LN_2 = 0.6931471805599453
LOG10_OF_2 = 0.3010299956639812
TAN_PI_8 = 0.41421356237309503
TAN_3PI_8 = 2.414213562373095

ATAN_COEFFICIENTS = (
    -0.33333333333333326, 0.19999999999997015, -0.1428571428532971, 0.11111111085322109,
    -0.09090908059031191, 0.07692281099937744, -0.06666205259976526, 0.05876834004614161,
    -0.05217312574061591, 0.04499500728984032, -0.03338782450121195, 0.015113765096600925,
)  # fmt: skip
"""atan(t) = t + t z (c0 + c1 z + ...), z = t^2, |t| <= tan(pi/8): relative error below 2^-64.

Interpolation of atan(sqrt(z)) / sqrt(z) at 13 Chebyshev nodes of [0, tan(pi/8)^2] with 50 digits.
"""

# --- formulas: tensors of fp32 --------------------------------------------------------------------


def exp(x: tensor) -> tensor:
    """e^x = 2^t (1 + r ln 2), where r is what the rounding of t = x log2(e) lost.

    Without r, as `tl.exp` may be, the error is up to 1.25 |x| ulp. r is infinite or a NaN where 2^t
    is 0 or infinite; any positive factor will do there.
    """
    t = x * LOG2_E
    lost = tl.fma(x, LOG2_E_LOW, tl.fma(x, LOG2_E, -t))
    # The clamp also turns a NaN into a bound: maximum and minimum return the operand that is none.
    return tl.exp2(t) * tl.minimum(tl.maximum(tl.fma(lost, LN_2, 1.0), 0.5), 2.0)


# --- formulas: tensors of fp64 --------------------------------------------------------------------


def log1p(x: tensor) -> tensor:
    """log(u) corrected for what rounding u = 1 + x has lost."""
    u = 1.0 + x
    # For u = 1 the quotient below is 0 / 0, for infinity inf / inf; the answer is x in both cases.
    exact = (u == 1.0) | (u == float("inf"))
    return tl.where(exact, x, tl.log(u) * (x / (u - 1.0)))


def expm1(x: tensor) -> tensor:
    """u - 1 for u = exp(x), corrected by x / log(u)."""
    u = tl.exp(x)
    # In fp64 the cancellation of u - 1 is undone by log(u), which sees the same rounded u.
    corrected = (u - 1.0) * (x / tl.log(u))
    # There log(u) is infinite, or u is so small that u - 1 is -1 exactly; no correction applies.
    extreme = (u == float("inf")) | (u < 1e-16)
    return tl.where(u == 1.0, x, tl.where(extreme, u - 1.0, corrected))


def log10(x: tensor) -> tensor:
    """log2(x) in another base."""
    return tl.log2(x) * LOG10_OF_2


def tan(x: tensor) -> tensor:
    """sin / cos."""
    return tl.sin(x) / tl.cos(x)


def sinh(x: tensor) -> tensor:
    """(e + e / (e + 1)) / 2 for e = expm1(|x|), with the sign of x."""
    e = expm1(tl.abs(x))
    # Keeps the digits of small x, which (e^x - e^-x) / 2 would cancel.
    size = tl.where(e == float("inf"), e, 0.5 * (e + e / (e + 1.0)))
    return lib.copysign(size, x)


def cosh(x: tensor) -> tensor:
    """(e + 1 / e) / 2 for e = exp(|x|)."""
    e = tl.exp(tl.abs(x))
    # Halved before the sum, so that it overflows only where the result does.
    return 0.5 * e + 0.5 / e


def atan(x: tensor) -> tensor:
    """Reduced to tan(pi/8) by atan(x) = pi/4 + atan((x - 1) / (x + 1)) = pi/2 - atan(1 / x)."""
    size = tl.abs(x)
    middle, far = size > TAN_PI_8, size > TAN_3PI_8
    # Each interval folds onto |t| <= tan(pi/8), for which the series is fitted.
    t = tl.where(far, -1.0 / size, tl.where(middle, (size - 1.0) / (size + 1.0), size))
    quarters = tl.where(far, 2.0, tl.where(middle, 1.0, 0.0)).to(tl.float64)
    z = t * t
    series: Any = ATAN_COEFFICIENTS[-1]
    for coefficient in ATAN_COEFFICIENTS[-2::-1]:
        series = series * z + coefficient
    # The low part joins the small term first: added to pi itself it would be rounded away.
    angle = quarters * (PI / 4) + (t + (t * z * series + quarters * (PI_LOW / 4)))
    # Restores the sign, also of -0.0, which `size` has lost.
    return lib.copysign(angle, x)


def atan2(x: tensor, y: tensor) -> tensor:
    """atan of the smaller over the larger side, moved to its octant and quadrant."""
    ordinate, abscissa = tl.abs(x), tl.abs(y)
    # Smaller over larger: the quotient stays in [0, 1] and cannot overflow.
    low, high = tl.minimum(ordinate, abscissa), tl.maximum(ordinate, abscissa)
    # C defines atan2(0, 0) and atan2(inf, inf); the quotients there would be NaN.
    ratio = tl.where(high == 0.0, 0.0, tl.where(low == float("inf"), 1.0, low / high))
    angle = atan(ratio)
    angle = tl.where(ordinate > abscissa, PI / 2 - angle, angle)
    # By the sign bit, not `y < 0`: C distinguishes atan2(0, -0.0) = pi from atan2(0, 0.0) = 0.
    angle = tl.where(lib.signbit(y), PI - angle, angle)
    unordered = (x != x) | (y != y)
    return tl.where(unordered, x + y, lib.copysign(angle, x))


def asin(x: tensor) -> tensor:
    """The angle of (x, sqrt(1 - x^2))."""
    # (1 - x)(1 + x) rather than 1 - x^2, whose square cancels near |x| = 1.
    return atan2(x, tl.sqrt((1.0 - x) * (1.0 + x)))


def acos(x: tensor) -> tensor:
    """Twice the angle of (sqrt(1 - x), sqrt(1 + x))."""
    return 2.0 * atan2(tl.sqrt(1.0 - x), tl.sqrt(1.0 + x))


def pow(x: tensor, y: tensor) -> tensor:
    """2^(y log2 |x|), with C's rules for signs, zeros, infinities and whole exponents."""
    infinity = float("inf")
    size = tl.abs(x)
    # C: 1^y is 1 even where y is a NaN or infinite, which 2^(y * 0) is not.
    power = tl.where(size == 1.0, 1.0, tl.exp2(y * tl.log2(size)))
    whole = lib.trunc(y) == y
    # Infinite y counts as even, as in C; fmod(inf, 2) would be a NaN.
    odd = whole & (tl.abs(y) < infinity) & (lib.fmod(y, 2.0) != 0.0)
    # By the sign bit: (-0.0)^3 is -0.0.
    power = tl.where(lib.signbit(x) & odd, -power, power)
    # Not for x = -inf, whose powers C defines.
    undefined = (x < 0.0) & (size < infinity) & (whole == False)  # noqa: E712 -- a tensor
    # Last, as x^0 is 1 in C for every x, a NaN included.
    return tl.where(y == 0.0, 1.0, tl.where(undefined, float("nan"), power))


# --- registration ---------------------------------------------------------------------------------


def _float_dtype(ctx: Context, function: str, operands: tuple[object, ...]) -> DType:
    """The float dtype of one operand, or the common one of two. Errors: InvalidOperation."""
    if len(operands) == 1:
        return dtype_of(float_argument(ctx, function, operands[0]).type)
    # Literals weigh nothing beside a tensor; with none they count by their own dtype.
    if not any(isinstance(operand, tensor) for operand in operands):
        operands = tuple(materialize(ctx, operand) for operand in operands)
    dtype = common_dtype(ctx, function, operands)
    if not dtype.is_float:
        ctx.fail(
            errors.InvalidOperation,
            f"compute {function} of {' and '.join(describe(operand) for operand in operands)}",
            "it is defined for floats",
            "convert one of them: x.to(tl.float32)",
        )
    return dtype


def in_fp64(
    ctx: Context, function: str, formula: Callable[..., tensor], operands: tuple[object, ...]
) -> tensor:
    """A formula of fp64 tensors applied to floats, rounded to their dtype."""
    dtype = _float_dtype(ctx, function, operands)
    wide = [cast_to(ctx, operand, tl.float64) for operand in operands]
    result = evaluate(ctx, lambda: formula(*wide))
    return tensor(cast_value(ctx, result.handle, dtype))


def _register_unary(name: str, formula: Callable[..., tensor]) -> None:
    @implements(getattr(lib, name))
    def function(ctx: Context, x: object) -> tensor:  # pyright: ignore[reportUnusedFunction]
        return in_fp64(ctx, name, formula, (x,))


def _register_binary(name: str, formula: Callable[..., tensor]) -> None:
    @implements(getattr(lib, name))
    def function(ctx: Context, x: object, y: object) -> tensor:  # pyright: ignore[reportUnusedFunction]
        return in_fp64(ctx, name, formula, (x, y))


for _formula in (log1p, expm1, log10, tan, sinh, cosh, atan, asin, acos):
    _register_unary(_formula.__name__, _formula)
for _formula in (atan2, pow):
    _register_binary(_formula.__name__, _formula)


@implements(lib.exp)
def exp_semantics(ctx: Context, x: object) -> tensor:
    value = float_argument(ctx, "exp", x)
    # The correction and its constants are for fp32; fp64 takes the exp of the backend.
    if dtype_of(value.type) is f64:
        return math_function(ctx, "exp", tensor(value))
    return in_accumulator(ctx, value, lambda wide: evaluate(ctx, lambda: exp(tensor(wide))).handle)


@implements(lib.rint)
def rint(ctx: Context, x: object) -> tensor:
    return math_function(ctx, "round_even", x)


@implements(lib.trunc)
def trunc(ctx: Context, x: object) -> tensor:
    return math_function(ctx, "trunc", x)


@implements(lib.round)
def round(ctx: Context, x: object) -> tensor:
    def formula(value: tensor) -> tensor:
        whole = lib.trunc(value)
        one = lib.copysign(1.0, value)
        # Half away from zero, as C's round; `rint` rounds half to even.
        return tl.where(tl.abs(value - whole) >= 0.5, whole + one, whole)

    return in_fp64(ctx, "round", formula, (x,))


@implements(lib.isnan)
def isnan(ctx: Context, x: object) -> tensor:
    value = tensor(float_argument(ctx, "isnan", x))
    # NaN alone differs from itself; no backend needs an op for it.
    return evaluate(ctx, lambda: value != value)


@implements(lib.isinf)
def isinf(ctx: Context, x: object) -> tensor:
    value = tensor(float_argument(ctx, "isinf", x))
    return evaluate(ctx, lambda: tl.abs(value) == float("inf"))


@implements(lib.isfinite)
def isfinite(ctx: Context, x: object) -> tensor:
    value = tensor(float_argument(ctx, "isfinite", x))
    return evaluate(ctx, lambda: tl.abs(value) < float("inf"))


def _bits(ctx: Context, function: str, x: object) -> tensor:
    """The bits of a float as a signed integer."""
    value = tensor(float_argument(ctx, function, x))
    integer = tl.get_int_dtype(value.dtype.primitive_bitwidth, True)
    return evaluate(ctx, lambda: tl.cast(value, integer, bitcast=True))


@implements(lib.signbit)
def signbit(ctx: Context, x: object) -> tensor:
    bits = _bits(ctx, "signbit", x)
    # Of the bits, since -0.0 and negative NaNs have a sign too.
    return evaluate(ctx, lambda: bits < 0)


@implements(lib.copysign)
def copysign(ctx: Context, x: object, y: object) -> tensor:
    dtype = tl.dtype.of(_float_dtype(ctx, "copysign", (x, y)))
    size, sign = (_bits(ctx, "copysign", cast_to(ctx, value, dtype)) for value in (x, y))
    # The smallest integer is the sign bit alone; -1 minus it is all the other bits.
    low = size.dtype.get_int_min_value()
    merged = evaluate(ctx, lambda: (size & (-1 - low)) | (sign & low))
    return evaluate(ctx, lambda: tl.cast(merged, dtype, bitcast=True))


@implements(lib.fmod)
def fmod(ctx: Context, x: object, y: object) -> tensor:
    dtype = tl.dtype.of(_float_dtype(ctx, "fmod", (x, y)))
    left, right = broadcast_pair(
        ctx, "fmod", cast_to(ctx, x, dtype).handle, cast_to(ctx, y, dtype).handle
    )
    return cast_to(ctx, evaluate(ctx, lambda: tensor(left) % tensor(right)), dtype)


@implements(lib.int2float_rn)
def int2float_rn(ctx: Context, x: object) -> tensor:
    number = materialize(ctx, x)
    if not number.dtype.is_int():
        ctx.fail(errors.InvalidValue, "int2float_rn", "x", "an integer", number.type)
    return cast_to(ctx, number, tl.float32)
