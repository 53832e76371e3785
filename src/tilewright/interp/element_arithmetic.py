"""Arithmetic on arrays of one tile IR element type, shared by the ops of `arith` and atomics.

Integers wrap and nothing raises; an integer divisor of zero counts as one. Results that the ops
leave undefined are defined here: a shift by the width or more gives 0 (or the sign).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.interp.fused_multiply_add import fma64, fma_exact_product
from tilewright.interp.numpy_dtypes import Array, as_array, bits_dtype, bits_of, wide
from tilewright.interp.rounding import round_float
from tilewright.ir.types import DType, f64

Ufunc = Callable[..., object]


def compute(dtype: DType, function: Ufunc, *arrays: Array) -> Array:
    """`function` of arrays of a number type, computed in its compute dtype and converted back.

    i1 computes in uint8 and keeps the last bit, so that its `+` is exclusive or.
    """
    # NumPy's bool_ has no wrapping arithmetic: True + True is True, and subtraction fails.
    if dtype.is_bool:
        result = as_array(function(*[x.astype(np.uint8) for x in arrays]))
        return (result & np.uint8(1)).astype(np.bool_)
    if not dtype.is_float:
        return as_array(function(*arrays))
    return round_float(as_array(function(*[wide(x) for x in arrays])), dtype)


def divide(dtype: DType, x: Array, y: Array) -> Array:
    """Quotient, for integers rounded towards zero."""
    if dtype.is_float:
        return compute(dtype, np.divide, x, y)
    return compute(dtype, _truncated_quotient, x, y)


def remainder(dtype: DType, x: Array, y: Array) -> Array:
    """Remainder of `divide`, with the sign of `x`."""
    return compute(dtype, np.fmod, x, y)


def minimum(dtype: DType, x: Array, y: Array, nan: bool = False) -> Array:
    """The smaller; of a NaN and a number the number, or the NaN if `nan`."""
    # np.minimum propagates NaN, as `nan` requires; integers have none
    return compute(dtype, np.minimum if nan or not dtype.is_float else _lesser_number, x, y)


def maximum(dtype: DType, x: Array, y: Array, nan: bool = False) -> Array:
    """The larger; of a NaN and a number the number, or the NaN if `nan`."""
    return compute(dtype, np.maximum if nan or not dtype.is_float else _greater_number, x, y)


def _lesser_number(x: Array, y: Array) -> Array:
    """`numpy.fmin`, except that a signaling NaN does not win over a number."""
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, np.minimum(x, y)))


def _greater_number(x: Array, y: Array) -> Array:
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, np.maximum(x, y)))


def negate(dtype: DType, x: Array) -> Array:
    """-x; for floats with the sign bit flipped, also of a NaN."""
    if not dtype.is_float:
        return compute(dtype, np.negative, x)
    # on the bits, since arithmetic does not define the sign of a NaN
    sign = _sign_bit(x)
    return as_array(bits_of(x) ^ sign).view(x.dtype)


def absolute(dtype: DType, x: Array) -> Array:
    """|x|; for floats with the sign bit cleared, also of a NaN."""
    if not dtype.is_float:
        return compute(dtype, np.absolute, x)
    return as_array(bits_of(x) & ~_sign_bit(x)).view(x.dtype)


def fused_multiply_add(dtype: DType, a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once."""
    if dtype is f64:
        return fma64(a, b, c)
    return round_float(fma_exact_product(a, b, c), dtype)


def multiply_high(dtype: DType, x: Array, y: Array) -> Array:
    """The upper half of the product of twice the width."""
    if dtype.is_bool:
        return np.zeros(np.broadcast_shapes(x.shape, y.shape), np.bool_)
    # Twice the width fits int64 for everything below 64 bits.
    if dtype.bits < 64:
        product = x.astype(np.int64 if dtype.is_signed else np.uint64) * y
        return as_array(product >> product.dtype.type(dtype.bits)).astype(x.dtype)
    high = _multiply_high_u64(x.astype(np.uint64), y.astype(np.uint64))
    if dtype.is_signed:
        high = high - np.where(x < 0, y, 0).astype(np.uint64)
        high = high - np.where(y < 0, x, 0).astype(np.uint64)
    return as_array(high).astype(x.dtype)


def _multiply_high_u64(x: Array, y: Array) -> Array:
    # Schoolbook product of 32-bit halves; no intermediate sum exceeds 64 bits.
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    x_low, x_high, y_low, y_high = x & mask, x >> half, y & mask, y >> half
    middle = x_high * y_low + ((x_low * y_low) >> half)
    other = x_low * y_high + (middle & mask)
    return as_array(x_high * y_high + (middle >> half) + (other >> half))


def _truncated_quotient(x: Array, y: Array) -> object:
    # Exactly divisible: floor_divide, which rounds down, then equals truncation.
    divisible = x - np.fmod(x, y)
    return np.where(y == 0, x, np.floor_divide(divisible, y))


def _sign_bit(x: Array) -> Array:
    bits = x.dtype.itemsize * 8
    return np.array(1 << (bits - 1), bits_dtype(bits))
