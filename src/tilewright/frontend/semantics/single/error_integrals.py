"""erfc, erfcx, the normal distribution, and their inverses, of fp32.

erfc(a) = e^(-a^2) erfcx(a), and (1 + 2 a) erfcx(a) is a polynomial in (a - 3) / (a + 3), as
M. Shepherd and J. Laframboise proposed ("Chebyshev approximation of (1 + 2 x) exp(x^2) erfc x",
Mathematics of Computation 36, 1981). The inverses are series in -log2(1 - x^2) and its root, as
M. Giles's
("Approximating the erfinv function", GPU Computing Gems, 2011).
"""

from __future__ import annotations

from typing import Any

from tilewright import language as tl
from tilewright.frontend.semantics.composed_functions import rarely
from tilewright.frontend.semantics.single import single_coefficients as fits
from tilewright.frontend.semantics.single.single_notation import (
    LEAST_NORMAL,
    LOG2_E,
    LOG2_E_LOW,
    at_most,
    polynomial,
    power_in_parts,
    reciprocal,
    rounded_product,
    with_sign,
)
from tilewright.language import tensor

# Formulas name functions as a kernel would, so that nested ones dispatch to the semantics.
lib = tl.extra.libdevice

ZERO_FROM, INFINITE_FROM = 10.25, 10.5
"""erfc rounds to 0, and erfcx of negative numbers to infinity."""
SQRT_HALF, SQRT_HALF_LOW = 0.7071067690849304, 1.2101617485882343e-08
SQRT_2, SQRT_INVERSE_PI = 1.4142135623730951, 0.5641895835477563
NORMAL_BOUND = 14.75
"""The normal distribution is 0 or 1 from here on."""
LARGE = 2.0**120
NEAR_ZERO = 0.46875
"""Below it, erfc is 1 less a series of erf."""
SERIES_END = 5.0
"""Up to it, -log2(1 - x^2) is the argument of the series of erfinv, beyond it its root."""
SQRT_LN_2 = 0.8325546383857727


def _quotient(numerator: tensor, divisor: tensor) -> tensor:
    """Within an ulp: a fast quotient and its remainder."""
    inverse = reciprocal(divisor)
    found = numerator * inverse
    return tl.fma(tl.fma(-divisor, found, numerator), inverse, found)


def _scaled(size: tensor) -> tensor:
    """erfcx of NEAR_ZERO to LARGE."""
    t = tl.fma(reciprocal(size + 3.0), -6.0, 1.0)
    return _quotient(polynomial(fits.ERFCX, t), tl.fma(size, 2.0, 1.0))


def _near_zero(x: tensor) -> tensor:
    """erfc of -NEAR_ZERO to NEAR_ZERO."""
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


def erfc(x: tensor) -> tensor:
    """1 - erf(x), with all digits where that is small."""
    return _complement(x, 0.0, 1.0)


def normcdf(x: tensor) -> tensor:
    """erfc(-x / sqrt(2)) / 2; what the rounded product lacks goes to the exponent."""
    inside = tl.maximum(at_most(x, NORMAL_BOUND), -NORMAL_BOUND, tl.PropagateNan.ALL)
    z = inside * -SQRT_HALF
    rest = tl.fma(inside, -SQRT_HALF_LOW, tl.fma(inside, -SQRT_HALF, -z))
    return _complement(z, tl.where(z < 0.0, -rest, rest), 0.5)


def erfcx(x: tensor) -> tensor:
    """e^(x^2) erfc(x); of negative numbers 2 e^(x^2) - erfcx(-x)."""
    size = tl.abs(x)
    # From LARGE on it is 1 / (x sqrt(pi)), which may be subnormal.
    far = reciprocal(size * 2.0**-8) * (SQRT_INVERSE_PI * 2.0**-8)
    scaled = tl.where(size < LARGE, _scaled(at_most(size, LARGE)), far)
    is_near = size < NEAR_ZERO
    weight = tl.where(is_near, _near_zero(x), 2.0)
    growth = _times_exp_of_square(weight, at_most(size, INFINITE_FROM), 0.0, 1.0)
    found = tl.where(x < 0.0, growth - scaled, scaled)
    return tl.where(is_near, growth, found)


def _inverse(x: tensor, product: tensor) -> tensor:
    """erfinv(x), where `product` is 1 - x^2; only its sign counts of an x near 1."""
    w = -lib.fast_log2f(product)
    near = polynomial(fits.ERFINV, w) * x

    def far(x: tensor, product: tensor) -> tensor:
        # Scaled, as subnormal numbers are 0 to a fast logarithm.
        is_small = product < LEAST_NORMAL
        normal = tl.where(is_small, product * 2.0**24, product)
        w = tl.where(is_small, 24.0, 0.0) - lib.fast_log2f(normal)
        root = tl.sqrt(w)
        rest = root * polynomial(fits.ERFINV_FAR, reciprocal(root) - 0.25)
        return with_sign(tl.fma(root, SQRT_LN_2, rest), x)

    return rarely((w < SERIES_END) == False, near, far, x, product)  # noqa: E712 -- a tensor


def erfinv(x: tensor) -> tensor:
    """The y with erf(y) = x."""
    return _inverse(x, tl.fma(-x, x, 1.0))


def erfcinv(y: tensor) -> tensor:
    """The x with erfc(x) = y."""
    return _inverse(1.0 - y, y * (2.0 - y))


def normcdfinv(y: tensor) -> tensor:
    """-sqrt(2) erfcinv(2 y)"""
    return erfcinv(y + y) * -SQRT_2
