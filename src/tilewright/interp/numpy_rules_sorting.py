"""NumPy rules of the ops that sort and count."""

from __future__ import annotations

import numpy as np

from tilewright.interp.numpy_dtypes import Array, as_array
from tilewright.ir import reference
from tilewright.ops import HistogramOp, SortOp


@reference(SortOp)
def sort(op: SortOp, x: Array) -> Array:
    """Any network sorts integers like a stable sort, since equal integers are identical."""
    if op.bitonic:
        return _merged(x, op.axis, op.descending)
    ordered = np.sort(x, op.axis)
    if op.descending:
        ordered = np.flip(ordered, op.axis)
    return as_array(np.take(ordered, np.arange(op.count), op.axis))


def _merged(x: Array, axis: int, descending: bool) -> Array:
    """The network of back ends, so that an input that is not bitonic has their result."""
    moved = np.moveaxis(x, axis, -1)
    distance = moved.shape[-1] // 2
    while distance:
        pairs = moved.reshape(*moved.shape[:-1], -1, 2, distance)
        low = np.minimum(pairs[..., 0, :], pairs[..., 1, :])
        high = np.maximum(pairs[..., 0, :], pairs[..., 1, :])
        both = [high, low] if descending else [low, high]
        moved = np.stack(both, axis=-2).reshape(moved.shape)
        distance //= 2
    return np.moveaxis(moved, -1, axis)


@reference(HistogramOp)
def histogram(op: HistogramOp, x: Array, mask: Array | None = None) -> Array:
    counted = (x >= 0) & (x < op.bins)
    if mask is not None:
        counted &= mask
    found = np.bincount(x[counted].astype(np.int64), minlength=op.bins)
    return as_array(found).astype(np.int32)
