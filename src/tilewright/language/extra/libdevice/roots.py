"""Cube roots, and roots of sums of squares."""

from __future__ import annotations

from typing import Any

from tilewright import language as tl
from tilewright.language.extra.libdevice.fast_functions import fast_log2f
from tilewright.language.extra.libdevice.float_parts import INFINITY, copysign
from tilewright.language.extra.libdevice.fp32_notation import (
    LEAST_NORMAL,
    bits_of,
    float_of,
    reciprocal,
    with_sign,
)
from tilewright.language.library_functions import Operands, fp32_form, library_function
from tilewright.language.tensors import tensor

EXPONENT, LEAST_EXPONENT, GREATEST_EXPONENT = 0x7F800000, 0x00800000, 0x7E800000
SMALL_CUBE = 2.0**-100
"""Below it the difference of a cube and the cube of its root would be subnormal."""
SUM_OF_INVERSES = 0x7F000000
"""The sum of the bits of 2^n and of 2^-n."""


# ---- cube roots ----------------------------------------------------------------------------------


@library_function(Operands.FLOATS, ulp=(1, 1))
def cbrt(x: tensor) -> tensor:
    """Cube root."""
    # Newton's steps y - (y - a / y^2) / 3
    size = tl.abs(x)
    y = tl.exp2(tl.log2(size) / 3.0)
    for _ in range(2):
        y = y - (y - size / (y * y)) * (1.0 / 3.0)
    special = (size == 0.0) | (size == INFINITY)
    return copysign(tl.where(special, size, y), x)


@fp32_form(cbrt)
def cbrt_fp32(x: tensor) -> tensor:
    """2^(log2(a) / 3), a little too large, and Newton's step y - max((y^3 - a) / y^2, 0) / 3.

    y^2 is a sum of two numbers, so that y^3 - a is exact to its own last bits. The maximum is 0
    where a is 0 or infinite, and the quotient NaN.
    """
    size = tl.abs(x)
    is_small = size < SMALL_CUBE
    size = tl.where(is_small, size * 2.0**24, size)
    y = tl.exp2(tl.fma(fast_log2f(size), 1.0 / 3.0, 2.0**-15))
    square = y * y
    rest = tl.fma(y, y, -square)
    excess = tl.fma(rest, y, tl.fma(square, y, -size))
    y = tl.fma(tl.maximum(excess * reciprocal(square), 0.0), -1.0 / 3.0, y)
    return with_sign(tl.where(is_small, y * 2.0**-8, y), x)


@library_function(Operands.FLOATS, ulp=(1, 3))
def rcbrt(x: tensor) -> tensor:
    """1 / cbrt(x)."""
    return 1.0 / cbrt(x)


@fp32_form(rcbrt)
def rcbrt_fp32(x: tensor) -> tensor:
    """Newton's step y + y (1 - a y^3) / 3."""
    size = tl.abs(x)
    is_small = size < LEAST_NORMAL
    size = tl.where(is_small, size * 2.0**24, size)
    y = tl.exp2(fast_log2f(size) * (-1.0 / 3.0))
    lack = tl.fma(-(size * y), y * y, 1.0)
    # For 0 and infinity the lack is a NaN.
    y = tl.where(tl.abs(lack) < 1.0, tl.fma(y * (1.0 / 3.0), lack, y), y)
    return with_sign(tl.where(is_small, y * 2.0**8, y), x)


rsqrt_rn = tl.rsqrt


# ---- norms: no square overflows, and one infinite operand makes them infinite --------------------


def _scaled_root(*x: tensor) -> tuple[tensor, tensor]:
    """The largest size, and the root of the sum of squares divided by it."""
    sizes = [tl.abs(value) for value in x]
    most = sizes[0]
    for size in sizes[1:]:
        most = tl.maximum(most, size)
    scale = tl.where((most == 0.0) | (most == INFINITY), 1.0, most)
    total: Any = 0.0
    for size in sizes:
        total = total + (size / scale) * (size / scale)
    return tl.where(most == INFINITY, INFINITY, scale), tl.sqrt(total)


def _norm(*x: tensor) -> tensor:
    most, root = _scaled_root(*x)
    return tl.where(most == INFINITY, INFINITY, most * root)


def _reciprocal_norm(*x: tensor) -> tensor:
    most, root = _scaled_root(*x)
    return tl.where(most == INFINITY, 0.0, 1.0 / root / most)


def _scaled_squares(*x: tensor) -> tuple[tensor, tensor, tensor]:
    """The largest size, the sum of squares times 4^-n, and the bits of 2^n, of about that size."""
    sizes = [tl.abs(value) for value in x]
    most = sizes[0]
    for size in sizes[1:]:
        most = tl.maximum(most, size)
    exponent = tl.minimum(bits_of(most) & EXPONENT, GREATEST_EXPONENT)
    exponent = tl.maximum(exponent, LEAST_EXPONENT)
    down = float_of(SUM_OF_INVERSES - exponent)
    total: Any = None
    for value in x:
        part = value * down
        total = part * part if total is None else tl.fma(part, part, total)
    return most, total, exponent


def _norm_fp32(*x: tensor) -> tensor:
    most, total, exponent = _scaled_squares(*x)
    return tl.where(most == INFINITY, INFINITY, tl.sqrt(total) * float_of(exponent))


def _reciprocal_norm_fp32(*x: tensor) -> tensor:
    most, total, exponent = _scaled_squares(*x)
    found = tl.rsqrt(total) * float_of(SUM_OF_INVERSES - exponent)
    return tl.where(most == INFINITY, 0.0, found)


@library_function(Operands.FLOATS, ulp=(3, 3))
def hypot(x: tensor, y: tensor) -> tensor:
    """sqrt(x^2 + y^2) without overflow on the way."""
    return _norm(x, y)


@library_function(Operands.FLOATS, ulp=(3, 3))
def norm3d(x: tensor, y: tensor, z: tensor) -> tensor:
    """sqrt(x^2 + y^2 + z^2)."""
    return _norm(x, y, z)


@library_function(Operands.FLOATS, ulp=(3, 3))
def norm4d(x: tensor, y: tensor, z: tensor, w: tensor) -> tensor:
    """sqrt(x^2 + y^2 + z^2 + w^2)."""
    return _norm(x, y, z, w)


@library_function(Operands.FLOATS, ulp=(2, 3))
def rhypot(x: tensor, y: tensor) -> tensor:
    """1 / hypot(x, y)."""
    return _reciprocal_norm(x, y)


@library_function(Operands.FLOATS, ulp=(2, 3))
def rnorm3d(x: tensor, y: tensor, z: tensor) -> tensor:
    """1 / norm3d(x, y, z)."""
    return _reciprocal_norm(x, y, z)


@library_function(Operands.FLOATS, ulp=(2, 3))
def rnorm4d(x: tensor, y: tensor, z: tensor, w: tensor) -> tensor:
    """1 / norm4d(x, y, z, w)."""
    return _reciprocal_norm(x, y, z, w)


for _stub in (hypot, norm3d, norm4d):
    fp32_form(_stub)(_norm_fp32)
for _stub in (rhypot, rnorm3d, rnorm4d):
    fp32_form(_stub)(_reciprocal_norm_fp32)
