"""Vector addition: the smallest kernel, bound by memory bandwidth."""

from __future__ import annotations

import tilewright.language as tl
from tilewright.kernels.arrays import Array, empty
from tilewright.runtime import cdiv, jit


@jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out[i] = x[i] + y[i] for BLOCK elements of each program."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x: Array, y: Array, out: Array | None = None) -> Array:
    """x + y of two contiguous arrays of one shape and element type; into `out` if given."""
    if x.shape != y.shape:
        raise ValueError(f"shapes differ: {tuple(x.shape)} and {tuple(y.shape)}")
    result = empty(x, tuple(x.shape)) if out is None else out
    n = 1
    for extent in x.shape:
        n *= int(extent)
    add_kernel[(cdiv(n, 1024),)](x, y, result, n, BLOCK=1024)
    return result
