"""sinh, cosh and the inverse hyperbolic functions of fp32."""

from __future__ import annotations

from tilewright import language as tl
from tilewright.frontend.semantics.single import single_coefficients as fits
from tilewright.frontend.semantics.single.log_and_exp import finite_log1p
from tilewright.frontend.semantics.single.single_notation import (
    INFINITY,
    LN_2,
    NAN,
    at_most,
    half_exponential,
    polynomial,
    reciprocal,
    with_sign,
)
from tilewright.language import tensor

LARGE = 2.0**20
"""sqrt(x^2 + 1) and sqrt(x^2 - 1) round to x from here on."""


def sinh(x: tensor) -> tensor:
    """Near 0 an odd polynomial, from 1 on e / 2 - 1 / (2 e) for e = e^|x|, with the sign of x."""
    square = x * x
    near = tl.fma(square * polynomial(fits.SINH, square), x, x)
    half = half_exponential(tl.abs(x))
    far = with_sign(tl.fma(reciprocal(half), -0.25, half), x)
    return tl.where(tl.abs(x) < 1.0, near, far)


def cosh(x: tensor) -> tensor:
    """e / 2 + 1 / (2 e) for e = e^|x|."""
    half = half_exponential(tl.abs(x))
    return tl.fma(reciprocal(half), 0.25, half)


def asinh(x: tensor) -> tensor:
    """log(a + sqrt(a^2 + 1)) of a = |x|, as log1p(a + a^2 / (1 + sqrt(a^2 + 1))); of large ones
    log(a) + log(2)."""
    size = tl.abs(x)
    inside = at_most(size, LARGE)
    root = tl.sqrt(tl.fma(inside, inside, 1.0))
    near = tl.fma(inside * reciprocal(1.0 + root), inside, inside)
    return with_sign(_log_of_twice(size, near), x)


def acosh(x: tensor) -> tensor:
    """log(x + sqrt(x^2 - 1)) as log1p(t + sqrt(t (t + 2))) of t = x - 1."""
    t = at_most(x, LARGE) - 1.0
    found = _log_of_twice(x, t + tl.sqrt(tl.fma(t, t, t + t)))
    return tl.where(x >= 1.0, found, NAN)


def _log_of_twice(x: tensor, near: tensor) -> tensor:
    """log1p(near), or log(2 x) where x is large."""
    is_large = x >= LARGE
    found = finite_log1p(tl.where(is_large, x, near)) + tl.where(is_large, LN_2, 0.0)
    return tl.where(x < INFINITY, found, x)


def atanh(x: tensor) -> tensor:
    """log1p(2 a / (1 - a)) / 2, of a = |x|."""
    size = tl.abs(x)
    twice = size + size
    ratio = tl.fma(size * reciprocal(1.0 - size), twice, twice)
    found = tl.where(size < 1.0, 0.5 * finite_log1p(ratio), NAN)
    return with_sign(tl.where(size == 1.0, INFINITY, found), x)
