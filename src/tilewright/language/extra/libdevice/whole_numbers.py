"""Rounding to integers, and remainders."""

from __future__ import annotations

from tilewright import language as tl
from tilewright.language.extra.libdevice.float_parts import INFINITY, NAN, copysign, signbit
from tilewright.language.library_functions import Operands, library_function
from tilewright.language.tensors import tensor


@library_function(Operands.FLOATS, op="round_even")
def rint(x: tensor) -> tensor:
    """x rounded to an integer, halves to even."""
    ...


@library_function(Operands.FLOATS, op="trunc")
def trunc(x: tensor) -> tensor:
    """x rounded to an integer, toward zero."""
    ...


@library_function(Operands.FLOATS)
def round(x: tensor) -> tensor:
    """x rounded to an integer, halves away from zero."""
    whole = trunc(x)
    return tl.where(tl.abs(x - whole) >= 0.5, whole + copysign(1.0, x), whole)


@library_function(Operands.FLOATS_UNROUNDED)
def llrint(x: tensor) -> tensor:
    """As `rint`, as int64; the nearest of these beyond them."""
    return rint(x).to(tl.int64)


@library_function(Operands.FLOATS_UNROUNDED)
def llround(x: tensor) -> tensor:
    """As `round`, as int64."""
    return round(x).to(tl.int64)


@library_function(Operands.FLOATS)
def fmod(x: tensor, y: tensor) -> tensor:
    """Remainder of x / y with the sign of x."""
    return x % y


@library_function(Operands.FP64, ulp=(0, 0))
def remainder(x: tensor, y: tensor) -> tensor:
    """x less the multiple of y that is nearest to it, the even one of two."""
    # fmod by 2 y, less y once or twice
    divisor = tl.abs(y)
    size = tl.abs(x)
    rest = tl.where(divisor < 8e307, fmod(size, 2.0 * divisor), size)
    # Halves of tiny divisors would be rounded, doubles of large ones would overflow.
    is_tiny, half = divisor < 1e-290, 0.5 * divisor
    above = tl.where(is_tiny, rest + rest > divisor, rest > half)
    rest = tl.where(above, rest - divisor, rest)
    again = above & tl.where(is_tiny, rest + rest >= divisor, rest >= half)
    rest = tl.where(again, rest - divisor, rest)
    found = tl.where(signbit(x), -rest, rest)
    undefined = (size == INFINITY) | (divisor == 0.0) | (x != x) | (y != y)
    return tl.where(undefined, NAN, tl.where(divisor == INFINITY, x, found))


nearbyint = rint
