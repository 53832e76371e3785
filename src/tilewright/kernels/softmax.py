"""Row-wise softmax in one pass over memory: each program keeps a row on the chip."""

from __future__ import annotations

import tilewright.language as tl
from tilewright.kernels.arrays import Array, empty, strides
from tilewright.runtime import jit, next_power_of_2


@jit
def softmax_kernel(out_ptr, x_ptr, out_row_stride, x_row_stride, columns, BLOCK: tl.constexpr):
    """One row: out = exp(x - max x) / sum exp(x - max x); BLOCK >= columns."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * x_row_stride + offsets, mask=mask, other=-float("inf"))
    numerator = tl.exp((x - tl.max(x, axis=0)).to(tl.float32))
    result = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * out_row_stride + offsets, result, mask=mask)


def softmax_warps(columns: int) -> int:
    """Warps of a program on a GPU: 32 elements a lane, which hides the latency of memory best."""
    return min(16, max(2, next_power_of_2(columns) // 1024))


def row_options(columns: int) -> dict[str, int | None]:
    """Launch options of a kernel that keeps a row on the chip.

    Two programs of 16 warps share a multiprocessor, one computing while the other loads, if a
    thread has 64 registers at most: enough for 32 elements.
    """
    warps = softmax_warps(columns)
    pairs = warps == 16 and next_power_of_2(columns) <= 32 * 32 * warps
    return {"num_warps": warps, "maxnreg": 64 if pairs else None}


def softmax(x: Array, out: Array | None = None) -> Array:
    """Softmax along the last dimension of a matrix with contiguous rows; into `out` if given."""
    rows, columns = (int(n) for n in x.shape)
    result = empty(x, (rows, columns)) if out is None else out
    softmax_kernel[(rows,)](
        result,
        x,
        strides(result)[0],
        strides(x)[0],
        columns,
        BLOCK=next_power_of_2(columns),
        **row_options(columns),
    )
    return result
