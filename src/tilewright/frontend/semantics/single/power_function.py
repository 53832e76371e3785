"""Powers of fp32: x^y by a logarithm of two numbers, and by products for small whole y.

log2(x) = n + log2(m), sqrt(1/2) <= m < sqrt(2), by the series of atanh in q = f / (2 + f), for
f = m - 1, as a sum of two numbers; y times it, also in two, is split in an integer and the argument
of a polynomial of 2^r (as W. J. Cody and W. Waite, "Software Manual for the Elementary Functions",
1980).
"""

from __future__ import annotations

from tilewright import language as tl
from tilewright.frontend.semantics.single import single_coefficients as fits
from tilewright.frontend.semantics.single.single_notation import (
    INFINITY,
    LEAST_NORMAL,
    NAN,
    bits_of,
    float_of,
    polynomial,
    power_of_two,
    reciprocal,
    rounded_product,
)
from tilewright.language import tensor

# Formulas name functions as a kernel would, so that nested ones dispatch to the semantics.
lib = tl.extra.libdevice

BITS_OF_SQRT_HALF, FRACTION = 0x3F3504F3, 0x7FFFFF
TWO_LOG2_E, TWO_LOG2_E_LOW = 2.885390043258667, 3.85192598225e-08
LARGEST = 1e30
"""An exponent that is as good as infinity: log2 of a number that is not 1 is above 2^-24."""


def _log2(size: tensor) -> tuple[tensor, tensor]:
    """log2 of a positive finite number as a sum, the first rounded."""
    is_small = size < LEAST_NORMAL
    bits = bits_of(tl.where(is_small, size * 2.0**23, size))
    exponent = (bits - BITS_OF_SQRT_HALF) & ~FRACTION
    f = float_of(bits - exponent) - 1.0
    n = tl.fma(exponent.to(tl.float32), 2.0**-23, tl.where(is_small, -23.0, 0.0))
    inverse = reciprocal(f + 2.0)
    q = f * inverse
    # f - q (2 + f), each product and sum exact but for the last
    q_low = inverse * tl.fma(-q, f, tl.fma(q, -2.0, f))
    square = q * q
    high = rounded_product(q, TWO_LOG2_E)
    low = tl.fma(q, TWO_LOG2_E, -high) + tl.fma(q, TWO_LOG2_E_LOW, q_low * TWO_LOG2_E)
    low = tl.fma(q * square, polynomial(fits.LOG2_OF_QUOTIENT, square), low)
    total, rest = _sum(n, high)
    return _sum(total, rest + low)


def _sum(x: tensor, y: tensor) -> tuple[tensor, tensor]:
    """x + y, for |x| >= |y| or x = 0, and what its rounding lost (T. J. Dekker)."""
    total = x + y
    return total, (x - total) + y


def _exp2(x: tensor, low: tensor) -> tensor:
    """2^(x + low), rounded once; 0 and infinity beyond the range."""
    inside = tl.maximum(tl.minimum(x, 130.0), -160.0)
    n = lib.rint(inside)
    r = (inside - n) + tl.where(inside == x, low, 0.0)
    power = tl.fma(polynomial(fits.EXP2, r), r, 1.0)
    # n / 2 may be rounded in any way: the rest of n is computed from it.
    half = lib.rint(n * 0.5)
    return (power * power_of_two(half)) * power_of_two(n - half)


def _size_of_power(size: tensor, y: tensor, y_low: tensor | float) -> tensor:
    """size^(y + y_low), of numbers that are not negative, for finite y."""
    high, low = _log2(size)
    product = y * high
    rest = tl.fma(y, high, -product) + tl.fma(y, low, y_low * high)
    found = _exp2(product, rest)
    limit = tl.where((size == 0.0) == (y < 0.0), INFINITY, 0.0)
    return tl.where((size == 0.0) | (size == INFINITY), limit, found)


def pow(x: tensor, y: tensor) -> tensor:
    """|x|^y, with C's rules for signs, zeros, infinities and whole exponents."""
    size = tl.abs(x)
    power = _size_of_power(size, tl.maximum(tl.minimum(y, LARGEST), -LARGEST), 0.0)
    half = y * 0.5
    # Large numbers are even.
    odd = (lib.rint(y) == y) & (lib.rint(half) != half)
    power = tl.where((bits_of(x) < 0) & odd, -power, power)
    # Not for x = -inf, whose powers C defines.
    undefined = (x < 0.0) & (size < INFINITY) & (lib.rint(y) != y)
    power = tl.where(undefined | (x != x) | (y != y), NAN, power)
    # Last, as x^0 and 1^y are 1 in C, of NaNs too.
    return tl.where((y == 0.0) | (x == 1.0), 1.0, power)


def within_int32(n: tensor) -> tensor:
    """An exponent as int32: of a larger size 2^30, and a last bit that is its own."""
    if n.dtype.primitive_bitwidth < 32 or n.dtype == tl.int32:
        return n.to(tl.int32)
    bound = 2**30
    above, below = n > bound, (n < -bound) if n.dtype.is_int_signed() else n < 0
    inside = tl.where(above | below, n & 1, n).to(tl.int32)
    return inside + tl.where(above, bound, tl.where(below, -bound, 0))


def integer_power(x: tensor, n: tensor) -> tensor:
    """x^n of a tensor of int32, which may have more bits than a number of fp32."""
    high = n.to(tl.float32)
    # 2^31 as a float is no int32.
    low = tl.where(high < 2.0**31, n - high.to(tl.int32), -1).to(tl.float32)
    size = tl.abs(x)
    power = _size_of_power(size, high, low)
    power = tl.where((bits_of(x) < 0) & ((n & 1) == 1), -power, power)
    power = tl.where(x != x, NAN, power)
    return tl.where(n == 0, 1.0, power)


def repeated_product(x: tensor, n: int) -> tensor:
    """x^n by squares, for a known n other than 0; of negative n the reciprocal."""
    power, square, rest = None, x, abs(n)
    while rest:
        if rest & 1:
            power = square if power is None else power * square
        rest >>= 1
        if rest:
            square = square * square
    assert power is not None
    return power if n > 0 else 1.0 / power
