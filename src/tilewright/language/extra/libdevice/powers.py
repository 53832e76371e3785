"""Powers: x^y by a logarithm of two numbers, and by products for small whole exponents.

In fp32 log2(x) = n + log2(m), sqrt(1/2) <= m < sqrt(2), by the series of atanh in q = f / (2 + f),
for f = m - 1, as a sum of two numbers; y times it, also in two, is split in an integer and the
argument of a polynomial of 2^r (as W. J. Cody and W. Waite, "Software Manual for the Elementary
Functions", 1980).
"""

from __future__ import annotations

from tilewright import language as tl
from tilewright.language.core import Operand
from tilewright.language.extra.libdevice import fp32_coefficients as fits
from tilewright.language.extra.libdevice.float_parts import signbit
from tilewright.language.extra.libdevice.fp32_notation import (
    INFINITY,
    NAN,
    bits_of,
    exponent_and_fraction,
    polynomial,
    power_of_two,
    reciprocal,
    rounded_product,
)
from tilewright.language.extra.libdevice.whole_numbers import fmod, rint, trunc
from tilewright.language.library_functions import (
    Form,
    Operands,
    form,
    fp32_form,
    library_function,
    rarely,
)
from tilewright.language.tensors import tensor

TWO_LOG2_E, TWO_LOG2_E_LOW = 2.885390043258667, 3.85192598225e-08
MOST_FACTORS = 7
"""The largest exponent that is not a literal for which a power is a product: it is within 4 ulp."""
LARGEST = 1e30
"""An exponent that is as good as infinity: log2 of a number that is not 1 is above 2^-24."""


@library_function(Operands.POWER, ulp=(2.5, 40))
def pow(x: tensor, y: tensor) -> tensor:
    """x to the power of y, as C's pow: NaN for x < 0 unless y is an integer."""
    # 2^(y log2 |x|), with C's rules for signs, zeros, infinities and whole exponents.
    size = tl.abs(x)
    # C: 1^y is 1 even where y is a NaN or infinite, which 2^(y * 0) is not.
    power = tl.where(size == 1.0, 1.0, tl.exp2(y * tl.log2(size)))
    whole = trunc(y) == y
    # Infinite y counts as even, as in C; fmod(inf, 2) would be a NaN.
    odd = whole & (tl.abs(y) < INFINITY) & (fmod(y, 2.0) != 0.0)
    # By the sign bit: (-0.0)^3 is -0.0.
    power = tl.where(signbit(x) & odd, -power, power)
    # Not for x = -inf, whose powers C defines.
    undefined = (x < 0.0) & (size < INFINITY) & (whole == False)  # noqa: E712 -- a tensor
    # Last, as x^0 is 1 in C for every x, a NaN included.
    return tl.where(y == 0.0, 1.0, tl.where(undefined, NAN, power))


@form(pow, Form.LITERAL_EXPONENT)
def repeated_product(x: tensor, n: int) -> tensor:
    """x^n by squares, for a literal n other than 0; for negative n the reciprocal."""
    power, square, rest = None, x, abs(n)
    while rest:
        if rest & 1:
            power = square if power is None else power * square
        rest >>= 1
        if rest:
            square = square * square
    assert power is not None
    return power if n > 0 else 1.0 / power


@fp32_form(pow)
def pow_fp32(x: tensor, y: tensor) -> tensor:
    """|x|^y, with C's rules for signs, zeros, infinities and whole exponents."""
    size = tl.abs(x)
    power = _size_of_power(size, tl.maximum(tl.minimum(y, LARGEST), -LARGEST), 0.0)
    half = y * 0.5
    # Large numbers are even.
    odd = (rint(y) == y) & (rint(half) != half)
    power = tl.where((bits_of(x) < 0) & odd, -power, power)
    # Not for x = -inf, whose powers C defines.
    undefined = (x < 0.0) & (size < INFINITY) & (rint(y) != y)
    power = tl.where(undefined | (x != x) | (y != y), NAN, power)
    # Last, as x^0 and 1^y are 1 in C, for NaNs too.
    return tl.where((y == 0.0) | (x == 1.0), 1.0, power)


@form(pow, Form.INTEGER_EXPONENT)
def integer_power(base: Operand, exponent: tensor) -> tensor:
    """x^n for a tensor of integers, which may have more bits than a number of fp32."""
    n = _within_int32(exponent)
    x, n = tl.broadcast(tl.cast(base, tl.float32), n)
    beyond = (n > MOST_FACTORS) | (n < -MOST_FACTORS)
    return rarely(beyond, _selected_product(x, n), _by_logarithm, x, n)


def _selected_product(x: tensor, n: tensor) -> tensor:
    """x^n for |n| <= MOST_FACTORS: the product of those of x, x^2 and x^4 that n contains."""
    count, square = tl.abs(n), x * x
    power = tl.where((count & 1) == 1, x, 1.0) * tl.where((count & 2) == 2, square, 1.0)
    power = power * tl.where((count & 4) == 4, square * square, 1.0)
    return tl.where(n < 0, 1.0 / power, power)


def _by_logarithm(x: tensor, n: tensor) -> tensor:
    """x^n for any int32."""
    high = n.to(tl.float32)
    # 2^31 as a float is no int32.
    low = tl.where(high < 2.0**31, n - high.to(tl.int32), -1).to(tl.float32)
    size = tl.abs(x)
    power = _size_of_power(size, high, low)
    power = tl.where((bits_of(x) < 0) & ((n & 1) == 1), -power, power)
    power = tl.where(x != x, NAN, power)
    return tl.where(n == 0, 1.0, power)


def _within_int32(n: tensor) -> tensor:
    """An exponent as int32; a larger one becomes one of size 2^30 with the same last bit."""
    if n.dtype.primitive_bitwidth < 32 or n.dtype == tl.int32:
        return n.to(tl.int32)
    bound = 2**30
    above, below = n > bound, (n < -bound) if n.dtype.is_int_signed() else n < 0
    inside = tl.where(above | below, n & 1, n).to(tl.int32)
    return inside + tl.where(above, bound, tl.where(below, -bound, 0))


def _size_of_power(size: tensor, y: tensor, y_low: tensor | float) -> tensor:
    """size^(y + y_low), of numbers that are not negative, for finite y."""
    high, low = _log2(size)
    product = y * high
    rest = tl.fma(y, high, -product) + tl.fma(y, low, y_low * high)
    found = _exp2(product, rest)
    limit = tl.where((size == 0.0) == (y < 0.0), INFINITY, 0.0)
    return tl.where((size == 0.0) | (size == INFINITY), limit, found)


def _log2(size: tensor) -> tuple[tensor, tensor]:
    """log2 of a positive finite number as a sum, the first rounded."""
    n, f = exponent_and_fraction(size)
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
    """x + y, for |x| >= |y| or x = 0, and its rounding error (T. J. Dekker)."""
    total = x + y
    return total, (x - total) + y


def _exp2(x: tensor, low: tensor) -> tensor:
    """2^(x + low), rounded once; 0 and infinity beyond the range."""
    inside = tl.maximum(tl.minimum(x, 130.0), -160.0)
    n = rint(inside)
    r = (inside - n) + tl.where(inside == x, low, 0.0)
    power = tl.fma(polynomial(fits.EXP2, r), r, 1.0)
    # n / 2 may be rounded in any way: the rest of n is computed from it.
    half = rint(n * 0.5)
    return (power * power_of_two(half)) * power_of_two(n - half)
