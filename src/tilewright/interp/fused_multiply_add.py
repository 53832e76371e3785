"""a * b + c rounded once, from error-free transformations of float64 arithmetic."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import numpy as np

from tilewright.interp.numpy_dtypes import Array, as_array, bits_of

_SPLITTER = 134217729.0
"""2**27 + 1: splits a float64 into two halves of 26 bits (Dekker)."""
_SAFE_LOW, _SAFE_HIGH = 1e-120, 1e140
"""Magnitudes for which products, their errors and the sums neither overflow nor underflow."""


def fma_exact_product(a: Array, b: Array, c: Array) -> Array:
    """The float64 sum rounded to odd, for inputs of at most 24 significant bits.

    The product of two such numbers is exact in float64, and the odd rounding of the sum keeps the
    rounding to the final type single.
    """
    product = a.astype(np.float64) * b.astype(np.float64)
    return _add_odd(product, c.astype(np.float64))


def fma64(a: Array, b: Array, c: Array) -> Array:
    """Correctly rounded for float64: Boldo and Melquiond's sum of three, exact where unsafe."""
    a, b, c = (as_array(x) for x in np.broadcast_arrays(a, b, c))
    result = as_array(_fast64(a, b, c)).copy()
    plain = a * b + c
    # Error-free transformations hold only where no intermediate result over- or underflows.
    usual = _safe(a) & _safe(b) & (_safe(c) | (c == 0))
    # Infinities, NaN and zero products need no second rounding: the plain formula is right.
    special = ~(np.isfinite(a) & np.isfinite(b) & np.isfinite(c)) | (a == 0) | (b == 0)
    rare = ~(usual | special)
    result[special] = plain[special]
    if rare.any():
        rows = zip(a[rare], b[rare], c[rare], strict=True)
        result[rare] = [_fma_by_fractions(*map(float, row)) for row in rows]
    return result


def _fast64(a: Array, b: Array, c: Array) -> Array:
    high, low = _two_product(a, b)
    t_high, t_low = _two_sum(c, low)
    v_high, v_low = _two_sum(high, t_high)
    # Boldo and Melquiond: the two errors are added with odd rounding, so the last sum rounds once.
    return as_array(v_high + _add_odd(t_low, v_low))


def _safe(x: Array) -> Array:
    return as_array((np.abs(x) > _SAFE_LOW) & (np.abs(x) < _SAFE_HIGH))


def _two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """The rounded sum and its error (Knuth)."""
    total = as_array(x + y)
    shadow = total - x
    return total, as_array((x - (total - shadow)) + (y - shadow))


def _two_product(x: Array, y: Array) -> tuple[Array, Array]:
    """The rounded product and its error (Dekker)."""
    product = as_array(x * y)
    x_high, x_low = _split(x)
    y_high, y_low = _split(y)
    rest = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, as_array(rest)


def _split(x: Array) -> tuple[Array, Array]:
    scaled = _SPLITTER * x
    # Dekker's split: the multiplication pushes the low 26 bits out of the sum.
    high = scaled - (scaled - x)
    return as_array(high), as_array(x - high)


def _add_odd(x: Array, y: Array) -> Array:
    """The float64 sum, rounded to odd."""
    # Odd rounding keeps a trace of the lost bits, which a later rounding to nearest needs.
    total, error = _two_sum(x, y)
    even = (bits_of(total) & np.uint64(1)) == 0
    # Towards the exact sum; of two neighbours one is odd.
    toward = np.where(error > 0, np.inf, -np.inf)
    inexact = np.isfinite(total) & (error != 0) & ~np.isnan(error)
    return as_array(np.where(inexact & even, np.nextafter(total, toward), total))


def _fma_by_fractions(a: float, b: float, c: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c  # both are exact, and give the zero its sign
    try:
        # float() of a Fraction rounds once, to nearest even.
        return float(exact)
    except OverflowError:
        return inf if exact > 0 else -inf
