"""Conversions between number types, with exact rounding.

NumPy and ml_dtypes round correctly from float32; from wider sources some of their paths use float32
in between and round twice. Here a wider value first becomes float32 by *rounding to odd* (an
inexact result gets an odd last bit), so that the final rounding to 11 or fewer significant bits is
correct.

A float out of range becomes the nearest integer of the type, and NaN that of `nan_as_integer`.
"""

from __future__ import annotations

import numpy as np

from tilewright.interp.numpy_dtypes import (
    E4B15,
    E4B15_MAGNITUDES,
    NUMPY_DTYPES,
    Array,
    as_array,
    bits_of,
    wide,
)
from tilewright.ir.types import DType, f8e4b15, f16, f32, f64, nan_as_integer

_DROPPED_BITS = 11
"""Low bits of a 64-bit integer that float64, with its 53, cannot hold."""


def convert(x: Array, source: DType, target: DType, rounding: str = "rtne") -> Array:
    """`x` of type `source` as type `target`; the rule of `arith.cast` between numbers."""
    if target is source:
        return x
    if source is f8e4b15:
        x = wide(x)
    if target.is_bool:
        return as_array(x != 0)
    if not target.is_float:
        return (
            _float_to_int(x, source, target) if source.is_float else x.astype(NUMPY_DTYPES[target])
        )
    if not source.is_float:
        return _int_to_float(x, source, target)
    return round_float(x, target, rounding)


def round_float(x: Array, target: DType, rounding: str = "rtne") -> Array:
    """A float array of any type rounded to the float type `target`; fp8 saturates."""
    # Truncation has no path in NumPy: one step back from rounding to nearest.
    if rounding == "rtz":
        return _round_toward_zero(x, target)
    # float64 to float32 is one rounding, which NumPy does correctly
    if target in (f32, f64) or x.dtype == NUMPY_DTYPES[target]:
        return x.astype(NUMPY_DTYPES[target])
    if target is f16:
        return x.astype(np.float16)  # NumPy rounds float64 to float16 once
    narrow = to_float32_odd(x) if x.dtype == np.float64 else x.astype(np.float32)
    if target is f8e4b15:
        return _to_e4b15(narrow)
    if target.is_fp8:
        # NaN passes through clip, as it does through the cast on GPUs.
        narrow = np.clip(narrow, -target.largest, target.largest)
    return narrow.astype(NUMPY_DTYPES[target])


def to_float32_odd(x: Array) -> Array:
    """float64 to float32, rounded to odd: exact, or the neighbour whose last bit is 1."""
    near = as_array(x.astype(np.float32))
    back = near.astype(np.float64)
    even = (bits_of(near) & np.uint32(1)) == 0
    # The other neighbour of x: of two adjacent floats exactly one is odd.
    toward = np.where(back < x, np.float32(np.inf), np.float32(-np.inf))
    inexact = (back != x) & ~np.isnan(x)
    # Rounding to odd never overflows: values beyond the largest float stay there.
    finite = np.where(np.isinf(near) & inexact, np.copysign(_FLOAT32_MAX, near), near)
    odd = np.where(np.isinf(near), finite, np.nextafter(near, toward))
    return as_array(np.where(inexact & (even | np.isinf(near)), odd, near))


_FLOAT32_MAX = np.finfo(np.float32).max  # all fraction bits are 1, so it is odd


def _to_e4b15(x: Array) -> Array:
    """float32 as codes of f8e4b15, ties away from zero; NaN is its largest number."""
    numbers = E4B15_MAGNITUDES[: f8e4b15.largest_bits + 1]
    code = np.searchsorted((numbers[:-1] + numbers[1:]) / 2, np.abs(x), side="right")
    return as_array(np.where(np.signbit(x), code | 0x80, code).astype(np.uint8)).view(E4B15)


def _round_toward_zero(x: Array, target: DType) -> Array:
    near = round_float(x, target)
    bits = bits_of(near)
    # Sign and magnitude: subtracting 1 from the bits is one step towards zero for either sign.
    too_far = np.abs(wide(near).astype(np.float64)) > np.abs(x.astype(np.float64))
    nearer = bits - bits.dtype.type(1)
    if not target.has_negative_zero:
        nearer = np.where(nearer == 0x80, np.uint8(0), nearer)
    return as_array(np.where(too_far, nearer, bits)).view(near.dtype)


def _float_to_int(x: Array, source: DType, target: DType) -> Array:
    dtype = NUMPY_DTYPES[target]
    whole = np.trunc(x.astype(np.float64))
    # max_int itself may not be a float64; max_int + 1 is a power of two and always is one.
    low, high = float(target.min_int), float(target.max_int + 1)
    inside = (whole >= low) & (whole < high)
    # NumPy leaves the cast of values outside the type undefined, so only those inside are cast.
    clamped = np.where(inside, whole, 0.0).astype(dtype)
    clamped = np.where(whole >= high, dtype.type(target.max_int), clamped)
    clamped = np.where(whole < low, dtype.type(target.min_int), clamped)
    number = dtype.type(nan_as_integer(source, target))
    return as_array(np.where(np.isnan(whole), number, clamped))


def _int_to_float(x: Array, source: DType, target: DType) -> Array:
    if target in (f32, f64):
        return x.astype(NUMPY_DTYPES[target])
    # Integers of up to 32 bits are exact in float64, so the second rounding is the only one.
    if source.bits < 64:
        return round_float(x.astype(np.float64), target)
    return round_float(_int64_to_float64_odd(x), target)


def _int64_to_float64_odd(x: Array) -> Array:
    """A 64-bit integer in float64, its lowest bits merged so that a later rounding is right."""
    one, dropped = x.dtype.type(1), x.dtype.type(_DROPPED_BITS)
    rest = x & ((one << dropped) - one)
    # Sticky bit: whether any lower bit was not 0.
    merged = ((x >> dropped) | (rest != 0)) << dropped
    # Below 2^53 float64 holds x exactly, and merging would lose its lowest bits.
    large = (x >> x.dtype.type(53)) != 0
    if x.dtype.kind == "i":
        large &= (x >> x.dtype.type(53)) != x.dtype.type(-1)
    return as_array(np.where(large, merged, x)).astype(np.float64)
