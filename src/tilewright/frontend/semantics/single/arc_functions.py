"""asin, acos, atan and atan2 of fp32."""

from __future__ import annotations

from tilewright import language as tl
from tilewright.frontend.semantics.single import single_coefficients as fits
from tilewright.frontend.semantics.single.single_notation import (
    INFINITY,
    bits_of,
    polynomial,
    reciprocal,
    with_sign,
)
from tilewright.language import tensor

PI = 3.1415927410125732
LEAST = 1e-30
"""Makes a reciprocal of 0 finite."""
HALF_PI_FACTORS = (0.9331894516944885, 1.6832555532455444)
"""Numbers of fp32 whose product is pi / 2 to 46 bits, as a fused product and sum takes it."""


def _half_pi_less(x: tensor) -> tensor:
    """pi / 2 - x, rounded once."""
    return tl.fma(*HALF_PI_FACTORS, -x)


def _arc(x: tensor) -> tuple[tensor, tensor, tensor]:
    """Whether |x| > 1/2; asin(|x|), or where it is asin(y), y = sqrt((1 - |x|) / 2), half of acos;
    and what y, as computed, lacks of the root, twice."""
    size = tl.abs(x)
    is_large = size > 0.5
    square = tl.where(is_large, tl.fma(size, -0.5, 0.5), x * x)
    y = tl.where(is_large, tl.sqrt(square), size)
    lack = tl.fma(-y, y, square) * reciprocal(y + LEAST)
    return is_large, tl.fma(square * polynomial(fits.ASIN, square), y, y), lack


def asin(x: tensor) -> tensor:
    """asin(a) = pi / 2 - 2 asin(sqrt((1 - a) / 2)) for a > 1/2."""
    is_large, arc, lack = _arc(x)
    return with_sign(tl.where(is_large, _half_pi_less(tl.fma(arc, 2.0, lack)), arc), x)


def acos(x: tensor) -> tensor:
    """2 asin(sqrt((1 - a) / 2)) for a = |x| > 1/2, from pi if x < 0, else pi / 2 - asin(x)."""
    is_large, arc, _ = _arc(x)
    signed = with_sign(arc, x)
    far = tl.fma(signed, 2.0, tl.where(x < 0.0, PI, 0.0))
    return tl.where(is_large, far, _half_pi_less(signed))


def _atan_to_one(x: tensor) -> tensor:
    """atan of 0 to 1."""
    square = x * x
    return tl.fma(square * polynomial(fits.ATAN, square), x, x)


def atan(x: tensor) -> tensor:
    """atan(a) = pi / 2 - atan(1 / a) for a = |x| > 1."""
    size = tl.abs(x)
    is_large = size > 1.0
    angle = _atan_to_one(tl.where(is_large, reciprocal(size), size))
    return with_sign(tl.where(is_large, _half_pi_less(angle), angle), x)


def atan2(x: tensor, y: tensor) -> tensor:
    """atan of the smaller over the larger side, moved to its octant and quadrant."""
    ordinate, abscissa = tl.abs(x), tl.abs(y)
    low, high = tl.minimum(ordinate, abscissa), tl.maximum(ordinate, abscissa)
    # C defines atan2(0, 0) and atan2(inf, inf); the quotients there would be NaN.
    ratio = tl.where(high == 0.0, 0.0, tl.where(low == INFINITY, 1.0, low / high))
    angle = _atan_to_one(ratio)
    angle = tl.where(ordinate > abscissa, _half_pi_less(angle), angle)
    # By the sign bit, not `y < 0`: C distinguishes atan2(0, -0.0) = pi from atan2(0, 0.0) = 0.
    angle = tl.where(bits_of(y) < 0, PI - angle, angle)
    return tl.where((x != x) | (y != y), x + y, with_sign(angle, x))
