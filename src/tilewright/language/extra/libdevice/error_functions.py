"""erfc, erfcx, the normal distribution, and their inverses.

In fp64, erfcx is a Chebyshev series, and inverses are refined by Halley's steps. In fp32,
erfc(a) = e^(-a^2) erfcx(a), and (1 + 2 a) erfcx(a) is a polynomial in (a - 3) / (a + 3), as
M. Shepherd and J. Laframboise proposed ("Chebyshev approximation of (1 + 2 x) exp(x^2) erfc x",
Mathematics of Computation 36, 1981). The inverses are series in -log2(1 - x^2) and its root, as
M. Giles's ("Approximating the erfinv function", GPU Computing Gems, 2011).
"""

from __future__ import annotations

from typing import Any

from tilewright import language as tl
from tilewright.language.extra.libdevice import chebyshev_coefficients as series
from tilewright.language.extra.libdevice import fp32_coefficients as fits
from tilewright.language.extra.libdevice.chebyshev_series import chebyshev
from tilewright.language.extra.libdevice.fast_functions import fast_log2f
from tilewright.language.extra.libdevice.float_parts import copysign
from tilewright.language.extra.libdevice.fp32_notation import (
    INFINITY,
    LEAST_NORMAL,
    LOG2_E,
    LOG2_E_LOW,
    NAN,
    at_most,
    polynomial,
    power_in_parts,
    reciprocal,
    rounded_product,
    with_sign,
)
from tilewright.language.library_functions import (
    Operands,
    fp32_form,
    library_function,
    rarely,
)
from tilewright.language.tensors import tensor

PI = 3.141592653589793
SQRT_2 = 1.4142135623730951
SQRT_HALF, SQRT_HALF_LOW = 0.7071067811865476, -4.833646656726457e-17
"""sqrt(1/2) to 106 bits."""
TWO_OVER_SQRT_PI = 1.1283791670955126
WINITZKI = 0.147
"""From S. Winitzki's approximation of erfinv ("A handy approximation for the error function ...",
2008)."""

# fp32
ZERO_FROM, INFINITE_FROM = 10.25, 10.5
"""From here on erfc rounds to 0, and erfcx of negative numbers to infinity."""
SQRT_HALF_FP32, SQRT_HALF_FP32_LOW = 0.7071067690849304, 1.2101617485882343e-08
SQRT_INVERSE_PI = 0.5641895835477563
NORMAL_BOUND = 14.75
"""The normal distribution is 0 or 1 from here on."""
LARGE = 2.0**120
NEAR_ZERO = 0.46875
"""Below it, erfc is 1 less a series of erf."""
SERIES_END = 5.0
"""Up to it, -log2(1 - x^2) is the argument of the series of erfinv, beyond it its root."""
SQRT_LN_2 = 0.8325546383857727


# ---- complements ---------------------------------------------------------------------------------


def erfcx_of_positive(x: tensor) -> tensor:
    """exp(x^2) erfc(x) for x >= 0."""
    far = tl.minimum(x, 1e150)
    t = (far - 4.0) / (far + 4.0)
    return chebyshev(series.ERFCX, t) / (1.0 + 2.0 * x)


def exp_of_minus_square(x: tensor) -> tensor:
    """exp(-x^2), the square in two parts, as its error would be multiplied by x^2."""
    high = x * x
    low = tl.fma(x, x, -high)
    size = tl.exp(-tl.minimum(high, 1000.0))
    return size - size * low


def _of_sign(x: tensor, positive: tensor, negative: tensor) -> tensor:
    """One of two by the sign of x; NaN for a NaN."""
    return tl.where(x != x, x, tl.where(x < 0.0, negative, positive))


@library_function(Operands.FLOATS, ulp=(4, 4))
def erfc(x: tensor) -> tensor:
    """1 - erf(x), exact where it is small."""
    # 1 - erf(x) near 0, else by erfcx, so that small values keep their digits
    size = tl.minimum(tl.abs(x), 30.0)
    tail = erfcx_of_positive(size) * exp_of_minus_square(size)
    return tl.where(tl.abs(x) < 0.5, 1.0 - tl.erf(x), _of_sign(x, tail, 2.0 - tail))


@library_function(Operands.FLOATS, ulp=(4, 4))
def erfcx(x: tensor) -> tensor:
    """exp(x^2) erfc(x)."""
    # For negative x it is 2 exp(x^2) - erfcx(-x).
    scaled = erfcx_of_positive(tl.abs(x))
    square = x * x
    growth = tl.exp(square)
    growth = tl.where(growth < INFINITY, growth + growth * tl.fma(x, x, -square), growth)
    return _of_sign(x, scaled, 2.0 * growth - scaled)


@library_function(Operands.FLOATS, ulp=(5, 5))
def normcdf(x: tensor) -> tensor:
    """The normal distribution up to x."""
    # erfc(-x / sqrt(2)) / 2; the rounding error of the product counts by the slope of erfc.
    z = -x * SQRT_HALF
    lost = tl.fma(-x, SQRT_HALF, -z) - x * SQRT_HALF_LOW
    slope = TWO_OVER_SQRT_PI * exp_of_minus_square(tl.minimum(tl.abs(z), 30.0))
    exact = 0.5 * (erfc(z) - tl.where(tl.abs(z) < 30.0, lost * slope, 0.0))
    return tl.where(x != x, x, exact)


def _quotient(numerator: tensor, divisor: tensor) -> tensor:
    """Within an ulp: a fast quotient and its remainder."""
    inverse = reciprocal(divisor)
    found = numerator * inverse
    return tl.fma(tl.fma(-divisor, found, numerator), inverse, found)


def _scaled(size: tensor) -> tensor:
    """erfcx on [NEAR_ZERO, LARGE]."""
    t = tl.fma(reciprocal(size + 3.0), -6.0, 1.0)
    return _quotient(polynomial(fits.ERFCX, t), tl.fma(size, 2.0, 1.0))


def _near_zero(x: tensor) -> tensor:
    """erfc on [-NEAR_ZERO, NEAR_ZERO]."""
    return tl.fma(-x, polynomial(fits.ERF, x * x), 1.0)


def _times_exp_of_square(x: tensor, size: tensor, rest: Any, sign: float) -> tensor:
    """x e^(sign (size + rest)^2), for a small rest; the last product alone may be subnormal."""
    square = size * size
    lost = tl.fma(size + size, rest, tl.fma(size, size, -square))
    factor, power = power_in_parts(square, sign * LOG2_E, sign * LOG2_E_LOW)
    found = rounded_product(x, factor)
    return (found + tl.fma(found, lost * sign, tl.fma(x, factor, -found))) * power


def _complement(x: tensor, rest: Any, scale: float) -> tensor:
    """scale erfc(x + rest), for a small rest, with the sign that it has next to |x|."""
    size = at_most(tl.abs(x), ZERO_FROM)
    tail = _times_exp_of_square(scale * _scaled(size), size, rest, -1.0)
    far = tl.where(x < 0.0, 2.0 * scale - tail, tail)
    return tl.where(size < NEAR_ZERO, scale * _near_zero(x), far)


@fp32_form(erfc)
def erfc_fp32(x: tensor) -> tensor:
    """1 - erf(x), with all digits where that is small."""
    return _complement(x, 0.0, 1.0)


@fp32_form(normcdf)
def normcdf_fp32(x: tensor) -> tensor:
    """erfc(-x / sqrt(2)) / 2; the rounding error of the product goes to the exponent."""
    inside = tl.maximum(at_most(x, NORMAL_BOUND), -NORMAL_BOUND, tl.PropagateNan.ALL)
    z = inside * -SQRT_HALF_FP32
    rest = tl.fma(inside, -SQRT_HALF_FP32_LOW, tl.fma(inside, -SQRT_HALF_FP32, -z))
    return _complement(z, tl.where(z < 0.0, -rest, rest), 0.5)


@fp32_form(erfcx)
def erfcx_fp32(x: tensor) -> tensor:
    """e^(x^2) erfc(x); for negative numbers 2 e^(x^2) - erfcx(-x)."""
    size = tl.abs(x)
    # From LARGE on it is 1 / (x sqrt(pi)), which may be subnormal.
    far = reciprocal(size * 2.0**-8) * (SQRT_INVERSE_PI * 2.0**-8)
    scaled = tl.where(size < LARGE, _scaled(at_most(size, LARGE)), far)
    is_near = size < NEAR_ZERO
    weight = tl.where(is_near, _near_zero(x), 2.0)
    growth = _times_exp_of_square(weight, at_most(size, INFINITE_FROM), 0.0, 1.0)
    found = tl.where(x < 0.0, growth - scaled, scaled)
    return tl.where(is_near, growth, found)


# ---- inverses ------------------------------------------------------------------------------------


def _erfcinv_of_small(y: tensor) -> tensor:
    """erfcinv on (0, 1/2]: Winitzki's approximation, and three of Halley's steps, each of which
    triples the digits."""
    logarithm = tl.log(y) + tl.log(2.0 - y)
    first = 2.0 / (PI * WINITZKI) + 0.5 * logarithm
    x = tl.sqrt(tl.sqrt(first * first - logarithm / WINITZKI) - first)
    for _ in range(3):
        # (erfc(x) - y) / erfc'(x), scaled by exp(x^2), as both are tiny in the tail.
        square = x * x
        growth = tl.exp(square)
        growth = growth + growth * tl.fma(x, x, -square)
        step = (y * growth - erfcx_of_positive(x)) * (1.0 / TWO_OVER_SQRT_PI)
        x = x - step / (1.0 + x * step)
    return x


def _inverse(x: tensor, complement: tensor) -> tensor:
    """erfinv of |x| <= 1, whose 1 - |x| is `complement`; near 0 by steps with erf."""
    near = tl.minimum(tl.abs(x), 0.5)
    y = near * (1.0 / TWO_OVER_SQRT_PI)
    for _ in range(4):
        step = (tl.erf(y) - near) * (1.0 / TWO_OVER_SQRT_PI) * tl.exp(y * y)
        y = y - step / (1.0 + y * step)
    tail = _erfcinv_of_small(tl.minimum(tl.maximum(complement, 5e-324), 0.5))
    tail = tl.where(complement == 0.0, INFINITY, tail)
    found = copysign(tl.where(complement > 0.5, y, tail), x)
    return tl.where(complement >= 0.0, found, NAN)


@library_function(Operands.FLOATS, ulp=(2.5, 4))
def erfinv(x: tensor) -> tensor:
    """The y with erf(y) = x."""
    # 1 - |x| is exact from 1/2 on.
    return _inverse(x, 1.0 - tl.abs(x))


@library_function(Operands.FLOATS, ulp=(4, 5))
def erfcinv(x: tensor) -> tensor:
    """The y with erfc(y) = x."""
    # erfinv(1 - x), by the smaller of x and 2 - x, which are exact where that counts
    return _inverse(1.0 - x, tl.minimum(x, 2.0 - x, tl.PropagateNan.ALL))


@library_function(Operands.FLOATS, ulp=(5, 6))
def normcdfinv(x: tensor) -> tensor:
    """The y with normcdf(y) = x."""
    return -SQRT_2 * erfcinv(2.0 * x)


def _inverse_fp32(x: tensor, product: tensor) -> tensor:
    """erfinv(x), where `product` is 1 - x^2; only its sign counts of an x near 1."""
    w = -fast_log2f(product)
    near = polynomial(fits.ERFINV, w) * x

    def far(x: tensor, product: tensor) -> tensor:
        # Scaled, as subnormal numbers are 0 to a fast logarithm.
        is_small = product < LEAST_NORMAL
        normal = tl.where(is_small, product * 2.0**24, product)
        w = tl.where(is_small, 24.0, 0.0) - fast_log2f(normal)
        root = tl.sqrt(w)
        rest = root * polynomial(fits.ERFINV_FAR, reciprocal(root) - 0.25)
        return with_sign(tl.fma(root, SQRT_LN_2, rest), x)

    return rarely((w < SERIES_END) == False, near, far, x, product)  # noqa: E712 -- a tensor


@fp32_form(erfinv)
def erfinv_fp32(x: tensor) -> tensor:
    """The y with erf(y) = x."""
    return _inverse_fp32(x, tl.fma(-x, x, 1.0))


@fp32_form(erfcinv)
def erfcinv_fp32(x: tensor) -> tensor:
    """The y with erfc(y) = x."""
    return _inverse_fp32(1.0 - x, x * (2.0 - x))


@fp32_form(normcdfinv)
def normcdfinv_fp32(x: tensor) -> tensor:
    """-sqrt(2) erfcinv(2 x)"""
    return erfcinv_fp32(x + x) * -SQRT_2
