"""Tests and parts of floats: sign, exponent, neighbours."""

from __future__ import annotations

from tilewright import language as tl
from tilewright.language.library_functions import Operands, library_function
from tilewright.language.tensors import tensor

INFINITY, NAN = float("inf"), float("nan")


def bits_of_float(x: tensor) -> tensor:
    """The bits of a float as a signed integer."""
    return tl.cast(x, tl.get_int_dtype(x.dtype.primitive_bitwidth, True), bitcast=True)


def neighbour(x: tensor, up: tensor) -> tensor:
    """The next float above x, where `up`, else the next below; those of 0 have a sign."""
    integer = tl.get_int_dtype(x.dtype.primitive_bitwidth, True)
    bits = bits_of_float(x)
    # Bits of floats of one sign are ordered as their sizes are.
    away = (x > 0.0) == up
    moved = bits + tl.where(away, 1, -1).to(integer)
    least = tl.where(up, 1, integer.get_int_min_value() + 1).to(integer)
    return tl.cast(tl.where(x == 0.0, least, moved), x.dtype, bitcast=True)


@library_function(Operands.FLOATS_UNROUNDED)
def isnan(x: tensor) -> tensor:
    """int1: x is a NaN."""
    return x != x


@library_function(Operands.FLOATS_UNROUNDED)
def isinf(x: tensor) -> tensor:
    """int1: x is infinite."""
    return tl.abs(x) == INFINITY


@library_function(Operands.FLOATS_UNROUNDED)
def isfinite(x: tensor) -> tensor:
    """int1: x is neither infinite nor a NaN."""
    return tl.abs(x) < INFINITY


@library_function(Operands.COMMON_DTYPE)
def signbit(x: tensor) -> tensor:
    """int1: the sign bit of x is set."""
    # By the bits: -0.0 and negative NaNs have a sign too.
    return bits_of_float(x) < 0


@library_function(Operands.COMMON_DTYPE)
def copysign(x: tensor, y: tensor) -> tensor:
    """abs(x) with the sign of y."""
    size, sign = bits_of_float(x), bits_of_float(y)
    # The smallest integer is the sign bit alone; -1 minus it is all the other bits.
    low = size.dtype.get_int_min_value()
    return tl.cast((size & (-1 - low)) | (sign & low), x.dtype, bitcast=True)


@library_function(Operands.COMMON_DTYPE)
def nextafter(x: tensor, y: tensor) -> tensor:
    """The float next to x on the side of y."""
    found = tl.where(x == y, y, neighbour(x, y > x))
    return tl.where((x != x) | (y != y), x + y, found)


@library_function(Operands.FLOATS)
def fdim(x: tensor, y: tensor) -> tensor:
    """x - y where that is positive, else 0."""
    return tl.where(x > y, x - y, tl.where((x != x) | (y != y), x + y, 0.0))


@library_function((tl.float32,))
def saturatef(x: tensor) -> tensor:
    """x within [0, 1] as fp32; 0 for a NaN."""
    return tl.where(x >= 1.0, 1.0, tl.where(x > 0.0, x, 0.0))


@library_function(Operands.FP64)
def logb(x: tensor) -> tensor:
    """The exponent of x as a float: floor(log2(abs(x))); -infinity of 0."""
    size = tl.abs(x)
    # Subnormal numbers are made normal: their exponent is where the highest bit is.
    is_small = size < 2.2250738585072014e-308
    bits = tl.cast(tl.where(is_small, size * 2.0**54, size), tl.int64, bitcast=True)
    exponent = (bits >> 52) - tl.where(is_small, 1077, 1023)
    found = tl.where(size == 0.0, -INFINITY, exponent.to(tl.float64))
    return tl.where(size < INFINITY, found, size)


@library_function(Operands.FP64_UNROUNDED)
def ilogb(x: tensor) -> tensor:
    """The exponent of x as int32; the least int32 of 0 and of a NaN, the largest of an infinity."""
    exponent = logb(x)
    finite = tl.where(tl.abs(exponent) < INFINITY, exponent, 0.0).to(tl.int32)
    least, most = -(2**31), 2**31 - 1
    return tl.where((x == 0.0) | (x != x), least, tl.where(tl.abs(x) == INFINITY, most, finite))


@library_function(Operands.FP64_AND_INTEGER)
def ldexp(x: tensor, y: tensor) -> tensor:
    """x times 2 to the power of the integer y, rounded once."""
    # The last of three factors alone may leave the normal numbers.
    n = tl.maximum(tl.minimum(y.to(tl.int64), 3000), -3000)
    for _ in range(2):
        up, down = n > 1023, n < -1022
        # 2^-969 is 2^-1022 times 2^53: the rest keeps all bits.
        x = x * tl.where(up, 2.0**1023, tl.where(down, 2.0**-969, 1.0)).to(tl.float64)
        n = n - tl.where(up, 1023, tl.where(down, -969, 0))
    n = tl.maximum(tl.minimum(n, 1023), -1022)
    return x * tl.cast((n + 1023) << 52, tl.float64, bitcast=True)


finitef = isfinited = isfinite
scalbn = ldexp
