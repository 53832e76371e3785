"""Cube roots, and roots of sums of squares, of fp32."""

from __future__ import annotations

from typing import Any

from tilewright import language as tl
from tilewright.frontend.semantics.single.single_notation import (
    INFINITY,
    LEAST_NORMAL,
    bits_of,
    float_of,
    reciprocal,
    with_sign,
)
from tilewright.language import tensor

# Formulas name functions as a kernel would, so that nested ones dispatch to the semantics.
lib = tl.extra.libdevice

EXPONENT, LEAST_EXPONENT, GREATEST_EXPONENT = 0x7F800000, 0x00800000, 0x7E800000
SMALL_CUBE = 2.0**-100
"""Below it the difference of a cube and its root's would be subnormal."""
SUM_OF_INVERSES = 0x7F000000
"""Of the bits of 2^n and 2^-n."""


def cbrt(x: tensor) -> tensor:
    """2^(log2(a) / 3), a little too large, and Newton's step y - max((y^3 - a) / y^2, 0) / 3.

    y^2 is a sum of two numbers, so that y^3 - a is exact to its own last bits. The maximum is 0
    where a is 0 or infinite, and the quotient NaN.
    """
    size = tl.abs(x)
    is_small = size < SMALL_CUBE
    size = tl.where(is_small, size * 2.0**24, size)
    y = tl.exp2(tl.fma(lib.fast_log2f(size), 1.0 / 3.0, 2.0**-15))
    square = y * y
    rest = tl.fma(y, y, -square)
    excess = tl.fma(rest, y, tl.fma(square, y, -size))
    y = tl.fma(tl.maximum(excess * reciprocal(square), 0.0), -1.0 / 3.0, y)
    return with_sign(tl.where(is_small, y * 2.0**-8, y), x)


def rcbrt(x: tensor) -> tensor:
    """1 / cbrt(x), by Newton's step y + y (1 - a y^3) / 3."""
    size = tl.abs(x)
    is_small = size < LEAST_NORMAL
    size = tl.where(is_small, size * 2.0**24, size)
    y = tl.exp2(lib.fast_log2f(size) * (-1.0 / 3.0))
    lack = tl.fma(-(size * y), y * y, 1.0)
    # Of 0 and infinity the lack is a NaN.
    y = tl.where(tl.abs(lack) < 1.0, tl.fma(y * (1.0 / 3.0), lack, y), y)
    return with_sign(tl.where(is_small, y * 2.0**8, y), x)


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


def norm(*x: tensor) -> tensor:
    """sqrt(x^2 + y^2 + ...): no square overflows; infinite with an infinite operand."""
    most, total, exponent = _scaled_squares(*x)
    return tl.where(most == INFINITY, INFINITY, tl.sqrt(total) * float_of(exponent))


def reciprocal_norm(*x: tensor) -> tensor:
    """1 / norm."""
    most, total, exponent = _scaled_squares(*x)
    found = tl.rsqrt(total) * float_of(SUM_OF_INVERSES - exponent)
    return tl.where(most == INFINITY, 0.0, found)
