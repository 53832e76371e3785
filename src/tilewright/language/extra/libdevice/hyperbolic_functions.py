"""Hyperbolic functions and their inverses."""

from __future__ import annotations

from tilewright import language as tl
from tilewright.language.extra.libdevice import fp32_coefficients as fits
from tilewright.language.extra.libdevice.float_parts import copysign
from tilewright.language.extra.libdevice.fp32_notation import (
    INFINITY,
    LN_2,
    NAN,
    at_most,
    half_exponential,
    polynomial,
    reciprocal,
    with_sign,
)
from tilewright.language.extra.libdevice.logarithms_and_exponentials import (
    expm1,
    finite_log1p,
    log1p,
)
from tilewright.language.library_functions import Operands, fp32_form, library_function
from tilewright.language.tensors import tensor

LOG_2 = 0.6931471805599453
SQUARE_OVERFLOWS = 1e150
LARGE = 2.0**20
"""In fp32 sqrt(x^2 + 1) and sqrt(x^2 - 1) round to x from here on."""


@library_function(Operands.FLOATS, ulp=(3, 3))
def sinh(x: tensor) -> tensor:
    """Hyperbolic sine."""
    # (e + e / (e + 1)) / 2 for e = expm1(|x|) keeps the digits of small x, which (e^x - e^-x) / 2
    # would cancel.
    e = expm1(tl.abs(x))
    size = tl.where(e == INFINITY, e, 0.5 * (e + e / (e + 1.0)))
    return copysign(size, x)


@fp32_form(sinh)
def sinh_fp32(x: tensor) -> tensor:
    """Near 0 an odd polynomial, from 1 on e / 2 - 1 / (2 e) for e = e^|x|, with the sign of x."""
    square = x * x
    near = tl.fma(square * polynomial(fits.SINH, square), x, x)
    half = half_exponential(tl.abs(x))
    far = with_sign(tl.fma(reciprocal(half), -0.25, half), x)
    return tl.where(tl.abs(x) < 1.0, near, far)


@library_function(Operands.FLOATS, ulp=(2.5, 2))
def cosh(x: tensor) -> tensor:
    """Hyperbolic cosine."""
    e = tl.exp(tl.abs(x))
    # Halved before the sum, so that it overflows only where the result does.
    return 0.5 * e + 0.5 / e


@fp32_form(cosh)
def cosh_fp32(x: tensor) -> tensor:
    """e / 2 + 1 / (2 e) for e = e^|x|."""
    half = half_exponential(tl.abs(x))
    return tl.fma(reciprocal(half), 0.25, half)


@library_function(Operands.FLOATS, ulp=(3, 3))
def asinh(x: tensor) -> tensor:
    """Inverse hyperbolic sine."""
    # log(a + sqrt(a^2 + 1)) for a = |x|, as log1p; a^2 overflows where log(2 a) is as good.
    size = tl.abs(x)
    inside = tl.minimum(size, SQUARE_OVERFLOWS)
    near = log1p(inside + inside * (inside / (1.0 + tl.sqrt(inside * inside + 1.0))))
    return copysign(tl.where(size < SQUARE_OVERFLOWS, near, tl.log(size) + LOG_2), x)


@fp32_form(asinh)
def asinh_fp32(x: tensor) -> tensor:
    """log(a + sqrt(a^2 + 1)) for a = |x|, as log1p(a + a^2 / (1 + sqrt(a^2 + 1))); for large ones
    log(a) + log(2)."""
    size = tl.abs(x)
    inside = at_most(size, LARGE)
    root = tl.sqrt(tl.fma(inside, inside, 1.0))
    near = tl.fma(inside * reciprocal(1.0 + root), inside, inside)
    return with_sign(_log_of_twice(size, near), x)


@library_function(Operands.FLOATS, ulp=(4, 3))
def acosh(x: tensor) -> tensor:
    """Inverse hyperbolic cosine; NaN below 1."""
    # log(x + sqrt(x^2 - 1)) as log1p of t = x - 1
    t = tl.minimum(x, SQUARE_OVERFLOWS) - 1.0
    near = log1p(t + tl.sqrt(t * (t + 2.0)))
    return tl.where(x >= 1.0, tl.where(x > SQUARE_OVERFLOWS, tl.log(x) + LOG_2, near), NAN)


@fp32_form(acosh)
def acosh_fp32(x: tensor) -> tensor:
    """log(x + sqrt(x^2 - 1)) as log1p(t + sqrt(t (t + 2))) of t = x - 1."""
    t = at_most(x, LARGE) - 1.0
    found = _log_of_twice(x, t + tl.sqrt(tl.fma(t, t, t + t)))
    return tl.where(x >= 1.0, found, NAN)


def _log_of_twice(x: tensor, near: tensor) -> tensor:
    """log1p(near), or log(2 x) where x is large."""
    is_large = x >= LARGE
    found = finite_log1p(tl.where(is_large, x, near)) + tl.where(is_large, LN_2, 0.0)
    return tl.where(x < INFINITY, found, x)


@library_function(Operands.FLOATS, ulp=(3, 4))
def atanh(x: tensor) -> tensor:
    """Inverse hyperbolic tangent; NaN outside [-1, 1]."""
    # log1p(2 a / (1 - a)) / 2 for a = |x|
    size = tl.abs(x)
    return copysign(0.5 * log1p(2.0 * size / (1.0 - size)), x)


@fp32_form(atanh)
def atanh_fp32(x: tensor) -> tensor:
    """log1p(2 a / (1 - a)) / 2 for a = |x|."""
    size = tl.abs(x)
    twice = size + size
    ratio = tl.fma(size * reciprocal(1.0 - size), twice, twice)
    found = tl.where(size < 1.0, 0.5 * finite_log1p(ratio), NAN)
    return with_sign(tl.where(size == 1.0, INFINITY, found), x)
