"""Matrix transposition: both sides of memory are read and written in order."""

from __future__ import annotations

from math import prod

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


@jit
def transpose_heads_kernel(
    x_ptr, out_ptr, x_batch, x_head, x_row, heads, rows, columns, out_row,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """out[head, j, i] = x[batch, head, i, j] for one block of each head of each batch."""
    pair = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    j = tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N)
    start = x_ptr + pair // heads * x_batch + pair % heads * x_head
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    x = tl.load(start + i[:, None] * x_row + j[None, :], mask=inside)
    start = out_ptr + pair * columns * out_row
    inside = (j[:, None] < columns) & (i[None, :] < rows)
    tl.store(start + j[:, None] * out_row + i[None, :], tl.trans(x), mask=inside)


def transposed_heads(x: Array) -> Array:
    """A copy of an array ([batch,] heads, rows, columns) in which elements of a column follow each
    other, and columns begin at multiples of 16 bytes; itself if it is one."""
    *outer, rows, columns = (int(n) for n in x.shape)
    *steps, row, last = strides(x)
    aligned = 16 // int(x.itemsize)
    if row == 1 and last % aligned == 0 and columns > 1:
        return x
    out = empty(x, (*outer, columns, cdiv(rows, aligned) * aligned))
    batch, head = steps if len(steps) == 2 else (0, *steps)
    block = 128 if is_on_cpu(x) else 64
    grid = prod(outer), cdiv(rows, block), cdiv(columns, block)
    if all(grid):
        transpose_heads_kernel[grid](
            x, out, batch, head, row, outer[-1], rows, columns, strides(out)[-2],
            BLOCK_M=block, BLOCK_N=block,
        )  # fmt: skip
    return out.swapaxes(-1, -2)[..., :rows, :]


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
