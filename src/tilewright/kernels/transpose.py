"""Matrix transposition: both sides of memory are read and written in order."""

from __future__ import annotations

import tilewright.language as tl
from tilewright.kernels.arrays import Array, empty, is_on_cpu, strides
from tilewright.runtime import cdiv, jit


@jit
def transpose_kernel(
    x_ptr, out_ptr, rows, columns, x_stride, out_stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """out[j, i] = x[i, j] for one block."""
    i = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    j = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(
        x_ptr + i[:, None] * x_stride + j[None, :],
        mask=(i[:, None] < rows) & (j[None, :] < columns),
    )
    tl.store(
        out_ptr + j[:, None] * out_stride + i[None, :],
        tl.trans(x),
        mask=(j[:, None] < columns) & (i[None, :] < rows),
    )


def transpose(x: Array, out: Array | None = None) -> Array:
    """The transpose of a matrix with contiguous rows, as a new matrix; into `out` if given."""
    rows, columns = (int(n) for n in x.shape)
    result = empty(x, (columns, rows)) if out is None else out
    block_m, block_n = (128, 128) if is_on_cpu(x) else (64, 64)
    grid = (cdiv(rows, block_m), cdiv(columns, block_n))
    transpose_kernel[grid](
        x,
        result,
        rows,
        columns,
        strides(x)[0],
        strides(result)[0],
        BLOCK_M=block_m,
        BLOCK_N=block_n,
    )
    return result
