"""The gamma function and its logarithm.

In fp32, from 1 to 6, log(gamma(x)) / ((x - 1) (x - 2)) is a polynomial in (x - c) / (x + c),
c = sqrt(6); below, x + 1 and log(x); above, Stirling's series. All but the first is behind a
branch: most arguments are of one kind.
"""

from __future__ import annotations

from typing import Any

from tilewright import language as tl
from tilewright.language.extra.libdevice import chebyshev_coefficients as series
from tilewright.language.extra.libdevice import fp32_coefficients as fits
from tilewright.language.extra.libdevice.chebyshev_series import chebyshev
from tilewright.language.extra.libdevice.fp32_notation import (
    INFINITY,
    NAN,
    polynomial,
    reciprocal,
    rounded_product,
)
from tilewright.language.extra.libdevice.trigonometric_functions import sinpi_fp32
from tilewright.language.extra.libdevice.whole_numbers import fmod, rint, trunc
from tilewright.language.library_functions import (
    Operands,
    fp32_form,
    library_function,
    rarely,
)
from tilewright.language.tensors import tensor

PI = 3.141592653589793
LOG_SQRT_2_PI = 0.9189385332046727
LOG_PI = 1.1447298858494002
STIRLING = (
    0.08333333333333333, -0.002777777777777778, 0.0007936507936507937, -0.0005952380952380953,
    0.0008417508417508417, -0.0019175269175269176, 0.00641025641025641, -0.029550653594771242,
)  # fmt: skip
"""B(2k) / (2k (2k - 1)), k = 1, 2, ...; see `_stirling`."""

# fp32
SERIES_END = 6.0
CENTER = 2.4494898319244385
"""sqrt(SERIES_END)"""
TINY = 2.0**-30
POLE = 2.0**23
"""Negative numbers beyond it are integers."""


def _stirling(x: tensor) -> tensor:
    """The correction to (x - 1/2) log x - x + log sqrt(2 pi), for x >= 8."""
    inverse = 1.0 / x
    square = inverse * inverse
    total: Any = STIRLING[-1]
    for c in STIRLING[-2::-1]:
        total = total * square + c
    return total * inverse


def _sin_pi_size(x: tensor) -> tensor:
    """|sin(pi x)|, by the exact distance to the nearest integer."""
    return tl.abs(tl.sin(PI * (x - rint(x))))


def _lgamma_of_positive(x: tensor) -> tensor:
    """From [1, 3] by products of x - 1, x - 2 ... up to 9, and by Stirling's series."""
    far = tl.maximum(x, 8.0)
    log_far = tl.log(far)
    large = (far - 0.5) * (log_far - 1.0) + (LOG_SQRT_2_PI - 0.5 + _stirling(far))
    product = x * 0.0 + 1.0
    z = tl.where(x < 1.0, x + 1.0, tl.minimum(x, 9.0))
    for _ in range(6):
        down = z > 3.0
        z = tl.where(down, z - 1.0, z)
        product = tl.where(down, product * z, product)
    small = (z - 1.0) * (z - 2.0) * chebyshev(series.LGAMMA, z - 2.0)
    small = small + tl.log(product) - tl.where(x < 1.0, tl.log(tl.maximum(x, 5e-324)), 0.0)
    return tl.where(x < 9.0, small, tl.where(x < INFINITY, large, x))


@library_function(Operands.FLOATS, ulp=(6, 4))
def lgamma(x: tensor) -> tensor:
    """log(abs(gamma(x))); infinite at 0, -1, -2 ..."""
    size = tl.abs(x)
    positive = _lgamma_of_positive(size)
    # Reflection: gamma(x) gamma(-x) = -pi / (x sin(pi x))
    tiny = tl.maximum(_sin_pi_size(x) * size, 5e-324)
    negative = tl.log(PI / tiny) - positive
    negative = tl.where(size < 1e-20, -tl.log(tl.maximum(size, 5e-324)), negative)
    is_pole = (x <= 0.0) & ((trunc(x) == x) | (size == INFINITY))
    found = tl.where(x < 0.0, negative, positive)
    return tl.where(x != x, x, tl.where(is_pole, INFINITY, found))


def _series(x: tensor, less_1: tensor, less_2: tensor) -> tensor:
    """log(gamma(x)) on [1, SERIES_END], by x - 1 and x - 2, which may be exact where x is not."""
    t = (x - CENTER) * reciprocal(x + CENTER)
    # At 1 and 2 it is 0, not -0.
    return rounded_product(less_1 * less_2, polynomial(fits.LGAMMA, t))


def _elsewhere(x: tensor) -> tensor:
    """log |gamma(x)| below 1, where it is that of x + 1 less log(x), beyond SERIES_END, and of
    negative numbers by reflection: gamma(x) gamma(-x) = -pi / (x sin(pi x))."""
    size = tl.abs(x)
    is_small, is_large = size < 1.0, size > SERIES_END
    logarithm = tl.log(size)
    near = _series(size + 1.0, size, size - 1.0)
    inverse = reciprocal(size)
    rest = inverse * polynomial(fits.STIRLING, inverse * inverse) + (LOG_SQRT_2_PI - 0.5)
    far = tl.fma(size - 0.5, logarithm - 1.0, rest)
    middle = _series(size, size - 1.0, size - 2.0)
    positive = tl.where(is_large, far, tl.where(is_small, near - logarithm, middle))
    sine = tl.abs(sinpi_fp32(x))
    negative = LOG_PI - logarithm - tl.log(sine) - positive
    # There sin(pi x) may be subnormal, and gamma(x) is 1 / x.
    negative = tl.where(size < TINY, -logarithm, negative)
    found = tl.where(x < 0.0, negative, positive)
    found = tl.where((x <= 0.0) & ((sine == 0.0) | (size >= POLE)), INFINITY, found)
    return tl.where(x != x, x, tl.where(size == INFINITY, INFINITY, found))


@fp32_form(lgamma)
def lgamma_fp32(x: tensor) -> tensor:
    """The series, or `_elsewhere`."""
    other = (x >= 1.0) & (x <= SERIES_END)
    common = _series(x, x - 1.0, x - 2.0)
    return rarely(other == False, common, _elsewhere, x)  # noqa: E712 -- a tensor


def _gamma_of_positive(x: tensor) -> tensor:
    """From [2, 3] by products up to 12; beyond by Stirling's formula, its power in two halves."""
    product = x * 0.0 + 1.0
    z = tl.where(x < 1.0, x + 2.0, tl.where(x < 2.0, x + 1.0, tl.minimum(x, 12.0)))
    for _ in range(10):
        down = z > 3.0
        z = tl.where(down, z - 1.0, z)
        product = tl.where(down, product * z, product)
    below = tl.where(x < 1.0, x * (x + 1.0), tl.where(x < 2.0, x, 1.0))
    small = chebyshev(series.GAMMA, 2.0 * z - 5.0) * product / below
    far = tl.maximum(tl.minimum(x, 180.0), 12.0)
    half_power = tl.exp(0.5 * (far - 0.5) * tl.log(far))
    large = half_power * tl.exp(LOG_SQRT_2_PI - far + _stirling(far)) * half_power
    return tl.where(x < 12.0, small, tl.where(x < 171.7, large, INFINITY))


@library_function(Operands.FP64, ulp=(1, 300))
def tgamma(x: tensor) -> tensor:
    """gamma(x); NaN at -1, -2 ..., infinite at 0 with its sign."""
    size = tl.abs(x)
    positive = _gamma_of_positive(size)
    # gamma(x) gamma(-x) = -pi / (x sin(pi x)), whose sign alternates between integers.
    below = trunc(size)
    sign = tl.where(fmod(below, 2.0) == 0.0, -1.0, 1.0)
    sine = tl.maximum(_sin_pi_size(x), 5e-324)
    negative = sign * (PI / (size * sine)) / positive
    found = tl.where(x < 0.0, negative, positive)
    found = tl.where(size < 1e-300, 1.0 / x, found)
    is_pole = (x < 0.0) & (below == size)
    return tl.where(x != x, x, tl.where(is_pole, NAN, found))
