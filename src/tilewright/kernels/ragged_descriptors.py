"""Ragged arrays: subarrays of different lengths, read and written in blocks by descriptors.

`triton.tools.ragged_tma` has these names.

Rows [start, start + count) of an array are a subarray, as the tokens of one expert or sequence are.
Accesses beyond a subarray's last row read 0 and write nothing, although another's rows follow.

The bounds of a descriptor are those of the whole array. So this one declares LIMIT rows, and a
subarray occupies the last of them: its row r has coordinate LIMIT - count + r. Two more dimensions,
in front, compensate in the address: at coordinates LIMIT and start + count they contribute
LIMIT * (2**34 - stride) + (start + count) * stride elements. LIMIT * 2**34 is 2**64, which is 0 in
64-bit addresses, so (start + r) * stride remains.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import language as tl
from tilewright.runtime import jit
from tilewright.support import errors

__all__ = [
    "atomic_add_ragged",
    "create_ragged_descriptor",
    "load_ragged",
    "store_ragged",
    "to_ragged_indices",
]

LIMIT = tl.constexpr(1 << 30)
"""Rows that an array may have."""
FIRST = tl.constexpr(0)
_WRAP = 1 << 34
"""Elements: LIMIT times as many are all that a 64-bit address can reach."""
_ANY_EXTENT = 0x7FFF0000
"""The extent of a dimension whose coordinates are always within it."""
_MAX_RANK = 3


def create_ragged_descriptor(
    T: Any, block_shape: Sequence[int], ragged_dim: int = 0
) -> tl.TensorDescriptor:
    """The descriptor of an array whose subarrays are ranges of dimension `ragged_dim`.

    T: of rank 2 or 3; block_shape: of the blocks that are accessed. Errors: InvalidDescriptor.
    """
    plain = tl.TensorDescriptor.from_tensor(T, block_shape)
    shape, strides = list(plain.shape), list(plain.strides)
    rank = len(shape)
    if not 2 <= rank <= _MAX_RANK:
        raise errors.InvalidDescriptor("shape", f"2 to {_MAX_RANK} extents", rank)
    if not -rank <= ragged_dim < rank or ragged_dim % rank == rank - 1:
        raise errors.InvalidDescriptor("ragged_dim", "a dimension but the last", ragged_dim)
    ragged_dim %= rank
    if shape[ragged_dim] > LIMIT.value:
        raise errors.InvalidDescriptor("shape", f"at most {LIMIT} rows", shape[ragged_dim])
    shape[ragged_dim] = LIMIT.value
    stride = strides[ragged_dim]
    return tl.TensorDescriptor(
        T,
        [_ANY_EXTENT, _ANY_EXTENT, *shape],
        [_WRAP - stride, stride, *strides],
        [1, 1, *block_shape],
    )


@jit
def to_ragged_indices(batch_offset, batch_size, row):
    """The coordinates in the dimensions before the array's own, and in the ragged one."""
    return LIMIT, batch_offset + batch_size, LIMIT - batch_size + row


@jit
def load_ragged(TMA, batch_offset, batch_size, coords, ragged_dim: tl.constexpr = FIRST):
    """The block at `coords` of the subarray of `batch_size` rows from `batch_offset` on; 0 beyond
    its last row."""
    tl.static_assert(len(TMA.shape) == len(coords) + 2, "not a ragged descriptor of this rank")
    c0, c1, c2 = to_ragged_indices(batch_offset, batch_size, coords[ragged_dim])
    block = TMA.load([c0, c1] + coords[:ragged_dim] + [c2] + coords[ragged_dim + 1 :])
    return tl.reshape(block, block.shape[2:])


@jit
def store_ragged(TMA, batch_offset, batch_size, coords, data, ragged_dim: tl.constexpr = FIRST):
    """Store a block at `coords` of a subarray; nothing beyond its last row."""
    c0, c1, c2 = to_ragged_indices(batch_offset, batch_size, coords[ragged_dim])
    block = tl.reshape(data, [1, 1] + data.shape)
    TMA.store([c0, c1] + coords[:ragged_dim] + [c2] + coords[ragged_dim + 1 :], block)


@jit
def atomic_add_ragged(
    TMA, batch_offset, batch_size, coords, data, ragged_dim: tl.constexpr = FIRST
):
    """Add a block atomically to that at `coords` of a subarray; nothing beyond its last row."""
    c0, c1, c2 = to_ragged_indices(batch_offset, batch_size, coords[ragged_dim])
    block = tl.reshape(data, [1, 1] + data.shape)
    TMA.atomic_add([c0, c1] + coords[:ragged_dim] + [c2] + coords[ragged_dim + 1 :], block)
