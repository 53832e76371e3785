"""The logarithm of the gamma function of fp32.

From 1 to 6, log(gamma(x)) / ((x - 1) (x - 2)) is a polynomial in (x - c) / (x + c), c = sqrt(6);
below, x + 1 and log(x); above, Stirling's series. All but the
first is a rare form: most arguments are of one kind.
"""

from __future__ import annotations

from tilewright import language as tl
from tilewright.frontend.semantics.composed_functions import rarely
from tilewright.frontend.semantics.single import single_coefficients as fits
from tilewright.frontend.semantics.single.half_turns import sinpi
from tilewright.frontend.semantics.single.single_notation import (
    INFINITY,
    polynomial,
    reciprocal,
    rounded_product,
)
from tilewright.language import tensor

SERIES_END = 6.0
CENTER = 2.4494898319244385
"""sqrt(SERIES_END)"""
HALF_LOG_2_PI = 0.9189385332046727
LOG_PI = 1.1447298858494002
TINY = 2.0**-30
POLE = 2.0**23
"""Negative numbers beyond it are integers."""


def _series(x: tensor, less_1: tensor, less_2: tensor) -> tensor:
    """log(gamma(x)) of 1 to SERIES_END, by x - 1 and x - 2, which may be exact where x is not."""
    t = (x - CENTER) * reciprocal(x + CENTER)
    # Of 1 and 2 it is 0, not -0.
    return rounded_product(less_1 * less_2, polynomial(fits.LGAMMA, t))


def _elsewhere(x: tensor) -> tensor:
    """log |gamma(x)| below 1, where it is that of x + 1 less log(x), beyond SERIES_END, and of
    negative numbers by reflection: gamma(x) gamma(-x) = -pi / (x sin(pi x))."""
    size = tl.abs(x)
    is_small, is_large = size < 1.0, size > SERIES_END
    logarithm = tl.log(size)
    near = _series(size + 1.0, size, size - 1.0)
    inverse = reciprocal(size)
    rest = inverse * polynomial(fits.STIRLING, inverse * inverse) + (HALF_LOG_2_PI - 0.5)
    far = tl.fma(size - 0.5, logarithm - 1.0, rest)
    middle = _series(size, size - 1.0, size - 2.0)
    positive = tl.where(is_large, far, tl.where(is_small, near - logarithm, middle))
    sine = tl.abs(sinpi(x))
    negative = LOG_PI - logarithm - tl.log(sine) - positive
    # There sin(pi x) may be subnormal, and gamma(x) is 1 / x.
    negative = tl.where(size < TINY, -logarithm, negative)
    found = tl.where(x < 0.0, negative, positive)
    found = tl.where((x <= 0.0) & ((sine == 0.0) | (size >= POLE)), INFINITY, found)
    return tl.where(x != x, x, tl.where(size == INFINITY, INFINITY, found))


def lgamma(x: tensor) -> tensor:
    """log |gamma(x)|; infinite at 0, -1, -2 ..."""
    other = (x >= 1.0) & (x <= SERIES_END)
    common = _series(x, x - 1.0, x - 2.0)
    return rarely(other == False, common, _elsewhere, x)  # noqa: E712 -- a tensor
