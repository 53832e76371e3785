"""NumPy rule of the dot."""

from __future__ import annotations

import numpy as np

from tilewright.interp.numpy_dtypes import Array, as_array
from tilewright.interp.rounding import convert, round_float
from tilewright.ir import reference
from tilewright.ir.types import DType, dtype_of, f64
from tilewright.ops import DotOp

_EXACT_BITS = 53
"""Bound below which integers are exact in float64."""


@reference(DotOp)
def dot(op: DotOp, a: Array, b: Array, acc: Array) -> Array:
    """Floats are accumulated in float64 and rounded once, whatever roundings the op allows.

    Integers are exact and wrap: in float64, which has a fast matmul, if no sum can exceed 2**53,
    otherwise in 64-bit integers.
    """
    left, right, target = dtype_of(op.a.type), dtype_of(op.b.type), dtype_of(op.type)
    if target.is_float:
        matmul = convert(a, left, f64) @ convert(b, right, f64)
        return round_float(as_array(matmul + acc.astype(np.float64)), target)
    return as_array(_integer_matmul(left, right, a, b) + acc.astype(np.int64)).astype(acc.dtype)


def _integer_matmul(left: DType, right: DType, a: Array, b: Array) -> Array:
    # bits + bits + log2(depth) bounds the bits of the sum.
    if left.bits + right.bits + a.shape[-1].bit_length() <= _EXACT_BITS:
        # float64 matmuls use BLAS, integer matmuls of NumPy do not
        return as_array(a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64)
    return as_array(a.astype(np.int64) @ b.astype(np.int64))
