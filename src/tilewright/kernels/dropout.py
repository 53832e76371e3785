"""Dropout without a stored mask: the same seed drops the same elements again."""

from __future__ import annotations

import tilewright.language as tl
from tilewright.kernels.arrays import Array, empty
from tilewright.runtime import cdiv, jit


@jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    """out[i] = x[i] / (1 - p) with probability 1 - p, else 0.

    Philox gives four numbers per counter, which four adjacent elements share: ten rounds per
    element would take longer than its load and store.
    """
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counters = tl.program_id(0) * (BLOCK // 4) + tl.arange(0, BLOCK // 4)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    a, b, c, d = tl.rand4x(seed, counters)
    numbers = tl.interleave(tl.interleave(a, c), tl.interleave(b, d))
    tl.store(out_ptr + offsets, tl.where(numbers > p, x / (1 - p), 0.0), mask=mask)


def dropout(x: Array, p: float, seed: int) -> Array:
    """Zero each element with probability p, scale the others by 1 / (1 - p)."""
    result = empty(x, tuple(x.shape))
    n = 1
    for extent in x.shape:
        n *= int(extent)
    dropout_kernel[(cdiv(n, 1024),)](x, result, n, p, seed, BLOCK=1024)
    return result
