"""Rounding by definition: the nearest of all values of a small float type, in exact arithmetic."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from functools import cache

import numpy as np

from tilewright.interp import NUMPY_DTYPES
from tilewright.ir.types import DType


@cache
def finite_values(dtype: DType) -> list[Fraction]:
    """Every finite value of an 8- or 16-bit type, in order, zero once; even positions are even."""
    bits = np.arange(1 << (dtype.bits - 1), dtype=f"u{dtype.bytes}")
    with np.errstate(all="ignore"):
        values = bits.view(NUMPY_DTYPES[dtype]).astype(np.float64)
    positive = [Fraction(float(v)) for v in values if np.isfinite(v)]
    assert positive == sorted(positive)
    return positive


def nearest(x: Fraction, dtype: DType) -> float:
    """`x` rounded to nearest, ties to even; fp8 saturates, others overflow to infinity."""
    magnitude, sign = abs(x), -1.0 if x < 0 else 1.0
    values = finite_values(dtype)
    index = bisect_right(values, magnitude) - 1
    below = values[index]
    if index + 1 < len(values):
        above = values[index + 1]
    elif dtype.is_fp8:
        return sign * float(below)
    else:
        above = below + (below - values[index - 1])
    low, high = magnitude - below, above - magnitude
    up = high < low or (high == low and index % 2 == 1)
    if up and index + 1 == len(values):
        return sign * float("inf")
    return sign * float(above if up else below)


def toward_zero(x: Fraction, dtype: DType) -> float:
    """`x` truncated to the type."""
    values = finite_values(dtype)
    below = float(values[bisect_right(values, abs(x)) - 1])
    return -below if x < 0 else below
