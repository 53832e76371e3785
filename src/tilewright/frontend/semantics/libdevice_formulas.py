"""Elementary functions of the wider library, as formulas over those that every backend has.

Formulas run in fp64 and are rounded to the dtype of the operands once; those of fp32 are in
`single`.
"""

from __future__ import annotations

from typing import Any

from tilewright import language as tl
from tilewright.frontend.semantics.directed_rounding import neighbour
from tilewright.language import tensor

# Formulas name functions as a kernel would, so that nested ones dispatch to the semantics.
lib = tl.extra.libdevice

INFINITY = float("inf")
PI = 3.141592653589793
PI_LOW = 1.2246467991473532e-16
"""pi = PI + PI_LOW to 106 bits."""
LN_2 = 0.6931471805599453
LOG_10 = 2.302585092994046
LOG_10_LOW = -2.1707562233822494e-16
"""log(10) = LOG_10 + LOG_10_LOW to 106 bits."""
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


def power(x: tensor, y: tensor) -> tensor:
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


def exp10(x: tensor) -> tensor:
    """10^x = e^t (1 + r), where r is what the rounding of t = x log(10) lost."""
    t = x * LOG_10
    lost = tl.fma(x, LOG_10, -t) + x * LOG_10_LOW
    power = tl.exp(t)
    return tl.where((power < INFINITY) & (power > 0.0), power + power * lost, power)


def asinh(x: tensor) -> tensor:
    """log(a + sqrt(a^2 + 1)), of a = |x|, as log1p; a^2 overflows where log(2 a) is as good."""
    size = tl.abs(x)
    inside = tl.minimum(size, 1e150)
    near = log1p(inside + inside * (inside / (1.0 + tl.sqrt(inside * inside + 1.0))))
    return lib.copysign(tl.where(size < 1e150, near, tl.log(size) + LN_2), x)


def acosh(x: tensor) -> tensor:
    """log(x + sqrt(x^2 - 1)) as log1p of t = x - 1."""
    t = tl.minimum(x, 1e150) - 1.0
    near = log1p(t + tl.sqrt(t * (t + 2.0)))
    return tl.where(x >= 1.0, tl.where(x > 1e150, tl.log(x) + LN_2, near), float("nan"))


def atanh(x: tensor) -> tensor:
    """log1p(2 a / (1 - a)) / 2, of a = |x|."""
    size = tl.abs(x)
    return lib.copysign(0.5 * log1p(2.0 * size / (1.0 - size)), x)


def _of_pi(x: tensor) -> tuple[tensor, tensor, tensor]:
    """sin and cos of pi times the distance to the nearest half, and the number of that half."""
    # 2 is a period, and the remainder is exact.
    rest = lib.fmod(x, 2.0)
    halves = lib.rint(2.0 * rest)
    angle = PI * (rest - 0.5 * halves)
    quarter = halves.to(tl.int32) & 3
    return tl.sin(angle), tl.cos(angle), tl.where(tl.abs(x) < INFINITY, quarter, 0)


def sinpi(x: tensor) -> tensor:
    """sin(pi x), 0 at all integers."""
    sine, cosine, quarter = _of_pi(x)
    size = tl.where((quarter & 1) == 0, sine, cosine)
    return tl.where(quarter < 2, size, -size)


def cospi(x: tensor) -> tensor:
    """cos(pi x)."""
    sine, cosine, quarter = _of_pi(x)
    size = tl.where((quarter & 1) == 0, cosine, sine)
    return tl.where((quarter == 1) | (quarter == 2), -size, size)


def cbrt(x: tensor) -> tensor:
    """The cube root, by Newton's steps y - (y - a / y^2) / 3."""
    size = tl.abs(x)
    y = tl.exp2(tl.log2(size) / 3.0)
    for _ in range(2):
        y = y - (y - size / (y * y)) * (1.0 / 3.0)
    special = (size == 0.0) | (size == INFINITY)
    return lib.copysign(tl.where(special, size, y), x)


def rcbrt(x: tensor) -> tensor:
    """1 / cbrt(x)."""
    return 1.0 / cbrt(x)


def _norm(*x: tensor) -> tuple[tensor, tensor]:
    """The largest size, and the root of the sum of squares of all over it."""
    sizes = [tl.abs(value) for value in x]
    most = sizes[0]
    for size in sizes[1:]:
        most = tl.maximum(most, size)
    scale = tl.where((most == 0.0) | (most == INFINITY), 1.0, most)
    total: Any = 0.0
    for size in sizes:
        total = total + (size / scale) * (size / scale)
    return tl.where(most == INFINITY, INFINITY, scale), tl.sqrt(total)


def norm(*x: tensor) -> tensor:
    """sqrt(x^2 + y^2 + ...): no square overflows; infinite with an infinite operand."""
    most, root = _norm(*x)
    return tl.where(most == INFINITY, INFINITY, most * root)


def reciprocal_norm(*x: tensor) -> tensor:
    """1 / norm."""
    most, root = _norm(*x)
    return tl.where(most == INFINITY, 0.0, 1.0 / root / most)


def remainder(x: tensor, y: tensor) -> tensor:
    """x - n y for the integer n nearest to x / y, even of two: what fmod leaves, less y or not."""
    divisor = tl.abs(y)
    size = tl.abs(x)
    rest = tl.where(divisor < 8e307, lib.fmod(size, 2.0 * divisor), size)
    # Halves of tiny divisors would be rounded, doubles of large ones would overflow.
    is_tiny, half = divisor < 1e-290, 0.5 * divisor
    above = tl.where(is_tiny, rest + rest > divisor, rest > half)
    rest = tl.where(above, rest - divisor, rest)
    again = above & tl.where(is_tiny, rest + rest >= divisor, rest >= half)
    rest = tl.where(again, rest - divisor, rest)
    found = tl.where(lib.signbit(x), -rest, rest)
    undefined = (size == INFINITY) | (divisor == 0.0) | (x != x) | (y != y)
    return tl.where(undefined, float("nan"), tl.where(divisor == INFINITY, x, found))


def logb(x: tensor) -> tensor:
    """The exponent: floor(log2 |x|); -infinity of 0."""
    size = tl.abs(x)
    # Subnormal numbers are made normal: their exponent is where the highest bit is.
    is_small = size < 2.2250738585072014e-308
    bits = tl.cast(tl.where(is_small, size * 2.0**54, size), tl.int64, bitcast=True)
    exponent = (bits >> 52) - tl.where(is_small, 1077, 1023)
    found = tl.where(size == 0.0, -INFINITY, exponent.to(tl.float64))
    return tl.where(size < INFINITY, found, size)


def scaled(x: tensor, exponent: tensor) -> tensor:
    """x 2^exponent, rounded once: the last of three factors alone may leave the normal numbers."""
    n = tl.maximum(tl.minimum(exponent.to(tl.int64), 3000), -3000)
    for _ in range(2):
        up, down = n > 1023, n < -1022
        # 2^-969 is 2^-1022 times 2^53: what is left keeps all bits.
        x = x * tl.where(up, 2.0**1023, tl.where(down, 2.0**-969, 1.0)).to(tl.float64)
        n = n - tl.where(up, 1023, tl.where(down, -969, 0))
    n = tl.maximum(tl.minimum(n, 1023), -1022)
    return x * tl.cast((n + 1023) << 52, tl.float64, bitcast=True)


# --- formulas: tensors of the dtype of the operands -----------------------------------------------


def nextafter(x: tensor, y: tensor) -> tensor:
    """The neighbour of x on the side of y."""
    found = tl.where(x == y, y, neighbour(x, y > x))
    return tl.where((x != x) | (y != y), x + y, found)


def fdim(x: tensor, y: tensor) -> tensor:
    """x - y where that is positive, else 0."""
    return tl.where(x > y, x - y, tl.where((x != x) | (y != y), x + y, 0.0))


def saturate(x: tensor) -> tensor:
    """x within [0, 1]; 0 for a NaN."""
    return tl.where(x >= 1.0, 1.0, tl.where(x > 0.0, x, 0.0))


def round_away(x: tensor) -> tensor:
    """Half away from zero, as C's round; `rint` rounds half to even."""
    whole = lib.trunc(x)
    return tl.where(tl.abs(x - whole) >= 0.5, whole + lib.copysign(1.0, x), whole)


def isnan(x: tensor) -> tensor:
    """A NaN alone differs from itself."""
    return x != x


def isinf(x: tensor) -> tensor:
    return tl.abs(x) == INFINITY


def isfinite(x: tensor) -> tensor:
    return tl.abs(x) < INFINITY


def bits_of(x: tensor) -> tensor:
    """The bits of a float as a signed integer."""
    return tl.cast(x, tl.get_int_dtype(x.dtype.primitive_bitwidth, True), bitcast=True)


def signbit(x: tensor) -> tensor:
    """Of the bits, since -0.0 and negative NaNs have a sign too."""
    return bits_of(x) < 0


def copysign(x: tensor, y: tensor) -> tensor:
    """The bits of x but the sign, and the sign of y."""
    size, sign = bits_of(x), bits_of(y)
    # The smallest integer is the sign bit alone; -1 minus it is all the other bits.
    low = size.dtype.get_int_min_value()
    return tl.cast((size & (-1 - low)) | (sign & low), x.dtype, bitcast=True)


def fmod(x: tensor, y: tensor) -> tensor:
    """The remainder with the sign of x."""
    return x % y
