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


def row_options(columns: int, item_bytes: int) -> dict[str, int | None]:
    """Launch options of a kernel that keeps a row on the chip.

    A lane has 32 elements, which hides the latency of memory best; more where only one program of
    32 warps would fit on a multiprocessor, unless it moves as many bytes as fp32 rows have (H200).
    32 elements are in 64 registers of a thread: then programs of 16 warps go in pairs, one of which
    computes while the other loads.
    """
    elements = next_power_of_2(columns)
    warps = min(32 if item_bytes == 4 else 16, max(2, elements // 1024))
    is_full = 16 <= warps == elements // 1024 and item_bytes <= 4
    return {"num_warps": warps, "maxnreg": 64 if is_full else None}


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
        **row_options(columns, int(x.itemsize)),
    )
    return result
