"""NumPy rules of the ops that create tiles or change their shape."""

from __future__ import annotations

import numpy as np

from tilewright.interp import access_errors
from tilewright.interp.numpy_dtypes import Array, as_array
from tilewright.ir import reference
from tilewright.ir.types import shape_of
from tilewright.ops import (
    BroadcastOp,
    CatOp,
    ExpandDimsOp,
    GatherOp,
    HintOp,
    ItemOp,
    JoinOp,
    RangeOp,
    ReshapeOp,
    SplatOp,
    SplitOp,
    TransposeOp,
)


@reference(RangeOp)
def arange(op: RangeOp) -> Array:
    return np.arange(op.start, op.end, dtype=np.int32)


@reference(SplatOp)
def splat(op: SplatOp, x: Array) -> Array:
    return np.full(op.shape, x, x.dtype)


@reference(BroadcastOp)
def broadcast(op: BroadcastOp, x: Array) -> Array:
    """A read-only view."""
    return np.broadcast_to(x, op.shape)


@reference(ExpandDimsOp)
def expand_dims(op: ExpandDimsOp, x: Array) -> Array:
    return np.expand_dims(x, op.axis)


@reference(ReshapeOp)
def reshape(op: ReshapeOp, x: Array) -> Array:
    return x.reshape(op.shape)


@reference(TransposeOp)
def transpose(op: TransposeOp, x: Array) -> Array:
    return x.transpose(op.order)


@reference(JoinOp)
def join(op: JoinOp, x: Array, y: Array) -> Array:
    return np.stack([x, y], axis=-1)


@reference(SplitOp)
def split(op: SplitOp, x: Array) -> tuple[Array, Array]:
    return x[..., 0], x[..., 1]


@reference(CatOp)
def cat(op: CatOp, x: Array, y: Array) -> Array:
    return np.concatenate([x, y], axis=op.axis)


@reference(ItemOp)
def item(op: ItemOp, x: Array) -> Array:
    return x.reshape(())


@reference(HintOp)
def hint(op: HintOp, x: Array) -> Array:
    """The promises are not checked."""
    return x


@reference(GatherOp)
def gather(op: GatherOp, x: Array, index: Array) -> Array:
    """Errors: OutOfBounds for an index outside the extent."""
    extent = shape_of(op.x.type)[op.axis]
    wrong = (index < 0) | (index >= extent)
    if wrong.any():
        invalid = int(index[wrong].flat[0])
        raise access_errors.gather_outside(invalid, extent)
    return as_array(np.take_along_axis(x, index.astype(np.int64), op.axis))
