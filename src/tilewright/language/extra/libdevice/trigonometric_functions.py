"""tan, the arc functions, and sin and cos of multiples of pi."""

from __future__ import annotations

from typing import Any

from tilewright import language as tl
from tilewright.language.extra.libdevice import fp32_coefficients as fits
from tilewright.language.extra.libdevice.float_parts import copysign, signbit
from tilewright.language.extra.libdevice.fp32_notation import (
    INFINITY,
    SHIFTER,
    bits_of,
    float_of,
    polynomial,
    reciprocal,
    with_sign,
)
from tilewright.language.extra.libdevice.whole_numbers import fmod, rint
from tilewright.language.library_functions import Operands, fp32_form, library_function
from tilewright.language.tensors import tensor

PI, PI_LOW = 3.141592653589793, 1.2246467991473532e-16
"""pi to 106 bits."""
TAN_PI_8 = 0.41421356237309503
TAN_3PI_8 = 2.414213562373095
PI_FP32, PI_FP32_LOW = 3.1415927410125732, -8.742277657347586e-08
HALF_PI_FACTORS = (0.9331894516944885, 1.6832555532455444)
"""Numbers of fp32 whose product is pi / 2 to 46 bits, which a fused product and sum keeps."""
LEAST = 1e-30
"""Makes a reciprocal of 0 finite."""

ATAN_COEFFICIENTS = (
    -0.33333333333333326, 0.19999999999997015, -0.1428571428532971, 0.11111111085322109,
    -0.09090908059031191, 0.07692281099937744, -0.06666205259976526, 0.05876834004614161,
    -0.05217312574061591, 0.04499500728984032, -0.03338782450121195, 0.015113765096600925,
)  # fmt: skip
"""atan(t) = t + t z (c0 + c1 z + ...), z = t^2, |t| <= tan(pi/8): relative error below 2^-64.

Interpolation of atan(sqrt(z)) / sqrt(z) at 13 Chebyshev nodes of [0, tan(pi/8)^2] with 50 digits.
"""


@library_function(Operands.FLOATS, op="tan", ulp=(4, 3))
def tan(x: tensor) -> tensor:
    """Tangent of x radians."""
    ...


# ---- arc functions -------------------------------------------------------------------------------


@library_function(Operands.FLOATS, ulp=(2, 2))
def atan(x: tensor) -> tensor:
    """Arc tangent."""
    # Reduced to tan(pi/8) by atan(x) = pi/4 + atan((x - 1) / (x + 1)) = pi/2 - atan(1 / x).
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
    return copysign(angle, x)


@library_function(Operands.FLOATS, ulp=(3, 3))
def atan2(x: tensor, y: tensor) -> tensor:
    """C's atan2(x, y): the angle of the point whose ordinate is x and whose abscissa is y."""
    # atan of the smaller over the larger side, moved to its octant and quadrant
    ordinate, abscissa = tl.abs(x), tl.abs(y)
    # Smaller over larger: the quotient stays in [0, 1] and cannot overflow.
    low, high = tl.minimum(ordinate, abscissa), tl.maximum(ordinate, abscissa)
    # C defines atan2(0, 0) and atan2(inf, inf); the quotients there would be NaN.
    ratio = tl.where(high == 0.0, 0.0, tl.where(low == INFINITY, 1.0, low / high))
    angle = atan(ratio)
    angle = tl.where(ordinate > abscissa, PI / 2 - angle, angle)
    # By the sign bit, not `y < 0`: C distinguishes atan2(0, -0.0) = pi from atan2(0, 0.0) = 0.
    angle = tl.where(signbit(y), PI - angle, angle)
    unordered = (x != x) | (y != y)
    return tl.where(unordered, x + y, copysign(angle, x))


@library_function(Operands.FLOATS, ulp=(2, 3))
def asin(x: tensor) -> tensor:
    """Arc sine; NaN outside [-1, 1]."""
    # The angle of (x, sqrt(1 - x^2)): (1 - x)(1 + x), as 1 - x^2 cancels near |x| = 1.
    return atan2(x, tl.sqrt((1.0 - x) * (1.0 + x)))


@library_function(Operands.FLOATS, ulp=(2, 4))
def acos(x: tensor) -> tensor:
    """Arc cosine; NaN outside [-1, 1]."""
    # Twice the angle of (sqrt(1 - x), sqrt(1 + x))
    return 2.0 * atan2(tl.sqrt(1.0 - x), tl.sqrt(1.0 + x))


def _half_pi_less(x: tensor) -> tensor:
    """pi / 2 - x, rounded once."""
    return tl.fma(*HALF_PI_FACTORS, -x)


def _arc(x: tensor) -> tuple[tensor, tensor, tensor]:
    """Whether |x| > 1/2; asin(|x|), or where it is asin(y), y = sqrt((1 - |x|) / 2), half of acos;
    and the rounding error of y as that root, twice."""
    size = tl.abs(x)
    is_large = size > 0.5
    square = tl.where(is_large, tl.fma(size, -0.5, 0.5), x * x)
    y = tl.where(is_large, tl.sqrt(square), size)
    lack = tl.fma(-y, y, square) * reciprocal(y + LEAST)
    return is_large, tl.fma(square * polynomial(fits.ASIN, square), y, y), lack


@fp32_form(asin)
def asin_fp32(x: tensor) -> tensor:
    """asin(a) = pi / 2 - 2 asin(sqrt((1 - a) / 2)) for a > 1/2."""
    is_large, arc, lack = _arc(x)
    return with_sign(tl.where(is_large, _half_pi_less(tl.fma(arc, 2.0, lack)), arc), x)


@fp32_form(acos)
def acos_fp32(x: tensor) -> tensor:
    """2 asin(sqrt((1 - a) / 2)) for a = |x| > 1/2, from pi if x < 0, else pi / 2 - asin(x)."""
    is_large, arc, _ = _arc(x)
    signed = with_sign(arc, x)
    far = tl.fma(signed, 2.0, tl.where(x < 0.0, PI_FP32, 0.0))
    return tl.where(is_large, far, _half_pi_less(signed))


def _atan_to_one(x: tensor) -> tensor:
    """atan on [0, 1]."""
    square = x * x
    return tl.fma(square * polynomial(fits.ATAN, square), x, x)


@fp32_form(atan)
def atan_fp32(x: tensor) -> tensor:
    """atan(a) = pi / 2 - atan(1 / a) for a = |x| > 1."""
    size = tl.abs(x)
    is_large = size > 1.0
    angle = _atan_to_one(tl.where(is_large, reciprocal(size), size))
    return with_sign(tl.where(is_large, _half_pi_less(angle), angle), x)


@fp32_form(atan2)
def atan2_fp32(x: tensor, y: tensor) -> tensor:
    """As in fp64; pi / 2 - angle is rounded once."""
    ordinate, abscissa = tl.abs(x), tl.abs(y)
    low, high = tl.minimum(ordinate, abscissa), tl.maximum(ordinate, abscissa)
    ratio = tl.where(high == 0.0, 0.0, tl.where(low == INFINITY, 1.0, low / high))
    angle = _atan_to_one(ratio)
    angle = tl.where(ordinate > abscissa, _half_pi_less(angle), angle)
    angle = tl.where(bits_of(y) < 0, PI_FP32 - angle, angle)
    return tl.where((x != x) | (y != y), x + y, with_sign(angle, x))


# ---- multiples of pi -----------------------------------------------------------------------------


def _halves(x: tensor) -> tuple[tensor, tensor, tensor]:
    """sin and cos of pi times the distance to the nearest half, and the number of that half."""
    # 2 is a period, and the remainder is exact.
    rest = fmod(x, 2.0)
    halves = rint(2.0 * rest)
    angle = PI * (rest - 0.5 * halves)
    quarter = halves.to(tl.int32) & 3
    return tl.sin(angle), tl.cos(angle), tl.where(tl.abs(x) < INFINITY, quarter, 0)


@library_function(Operands.FLOATS, ulp=(1, 2))
def sinpi(x: tensor) -> tensor:
    """sin(pi x), 0 at all integers."""
    sine, cosine, quarter = _halves(x)
    size = tl.where((quarter & 1) == 0, sine, cosine)
    return tl.where(quarter < 2, size, -size)


@library_function(Operands.FLOATS, ulp=(1, 2))
def cospi(x: tensor) -> tensor:
    """cos(pi x)."""
    sine, cosine, quarter = _halves(x)
    size = tl.where((quarter & 1) == 0, cosine, sine)
    return tl.where((quarter == 1) | (quarter == 2), -size, size)


def _halves_fp32(x: tensor) -> tuple[tensor, tensor, tensor]:
    """As `_halves`; the number of the half is in the low bits."""
    # 2 is a period, and the remainder is exact; for infinities it is a NaN.
    inside = tl.fma(rint(x * 0.5), -2.0, x)
    shifted = tl.fma(inside, 2.0, SHIFTER)
    halves = shifted - SHIFTER
    rest = tl.fma(halves, -0.5, inside)
    square = rest * rest
    sine = tl.fma(square * polynomial(fits.SINPI, square), rest, rest * PI_FP32_LOW)
    cosine = tl.fma(polynomial(fits.COSPI, square), square, 1.0)
    return tl.fma(rest, PI_FP32, sine), cosine, bits_of(shifted)


def _flipped(x: tensor, half: tensor) -> tensor:
    """-x where bit 1 of a number of halves is set."""
    return float_of(bits_of(x) ^ ((half & 2) << 30))


@fp32_form(sinpi)
def sinpi_fp32(x: tensor) -> tensor:
    """A zero has the sign of x."""
    sine, cosine, half = _halves_fp32(x)
    return tl.where((half & 1) == 0, _flipped(sine, half), _flipped(cosine, half))


@fp32_form(cospi)
def cospi_fp32(x: tensor) -> tensor:
    """cos(pi x)"""
    sine, cosine, half = _halves_fp32(x)
    return _flipped(tl.where((half & 1) == 0, cosine, sine), half + (half & 1))
