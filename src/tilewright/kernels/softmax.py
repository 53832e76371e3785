"""Row-wise softmax in one pass over memory: each program keeps a row in registers."""

from __future__ import annotations

import tilewright.language as tl
from tilewright.kernels.arrays import Array, address, dtype_name, empty, is_on_cpu, strides
from tilewright.kernels.matmul_arrays import fits
from tilewright.kernels.matmul_plan import HOPPER, Gpu, current_gpu
from tilewright.runtime import jit, next_power_of_2


@jit
def softmax_kernel(out_ptr, x_ptr, out_row_stride, x_row_stride, columns, BLOCK: tl.constexpr):
    """One row: out = exp(x - max x) / sum exp(x - max x); BLOCK >= columns."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * x_row_stride + offsets, mask=mask, other=-float("inf"))
    tl.store(out_ptr + row * out_row_stride + offsets, softmax_of_row(x), mask=mask)


@jit
def softmax_ahead_kernel(
    out_ptr, x_ptr, out_row_stride, x_row_stride, rows, columns, BLOCK: tl.constexpr
):
    """As `softmax_kernel`, every num_programs(0)-th row: the next one is loaded before this one is
    computed. No more programs than rows."""
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    first, step = tl.program_id(0), tl.num_programs(0)
    following = tl.load(x_ptr + first * x_row_stride + offsets, mask=mask, other=-float("inf"))
    for row in range(first, rows, step):
        x = following
        # The last row is loaded again: a mask would need more registers.
        after = tl.where(row + step < rows, row + step, row)
        following = tl.load(x_ptr + after * x_row_stride + offsets, mask=mask, other=-float("inf"))
        tl.store(out_ptr + row * out_row_stride + offsets, softmax_of_row(x), mask=mask)


@jit
def softmax_of_row(x):
    """exp(x - max x) / sum exp(x - max x) of a tile of rank 1, as fp32"""
    numerator = tl.exp((x - tl.max(x, axis=0)).to(tl.float32))
    return numerator / tl.sum(numerator, axis=0)


def row_options(columns: int, item_bytes: int) -> dict[str, int | None]:
    """Launch options of a kernel that keeps a row in registers.

    A lane has 32 elements, which hides the latency of memory best; more where only one program of
    32 warps would fit on a multiprocessor, except for fp32 (ADR 0066). 32 elements take 64
    registers per thread: two programs of 16 warps are resident, of which one computes while the
    other loads.
    """
    elements = next_power_of_2(max(columns, 1))
    warps = min(32 if item_bytes == 4 else 16, max(2, elements // 1024))
    is_full = 16 <= warps == elements // 1024 and item_bytes <= 4
    return {"num_warps": warps, "maxnreg": 64 if is_full else None}


def programs_of(x: Array, out: Array, gpu: Gpu) -> int:
    """The number of programs that compute the rows of a matrix on a GPU.

    One per multiprocessor where no second one is resident, but the next row also fits into
    registers, so that it can be loaded ahead. Rows of fp32 and bf16 do not fit, nor do addresses of
    elements that are loaded singly.
    """
    rows, columns = (int(n) for n in x.shape)
    fits_twice = dtype_name(x) == "float16" and next_power_of_2(max(columns, 1)) == 1 << 15
    whole = fits(x, along_rows=True) and fits(out, along_rows=True)
    in_place = address(x) == address(out)  # a store must not follow a load of the next row
    if gpu.capability == HOPPER and fits_twice and whole and not in_place:
        return min(rows, gpu.multiprocessors)
    return rows


def softmax(x: Array, out: Array | None = None) -> Array:
    """Softmax along the last dimension of a matrix with contiguous rows; into `out` if given."""
    rows, columns = (int(n) for n in x.shape)
    result = empty(x, (rows, columns)) if out is None else out
    arrays = result, x, strides(result)[0], strides(x)[0]
    options = {"BLOCK": next_power_of_2(max(columns, 1)), **row_options(columns, int(x.itemsize))}
    programs = rows if is_on_cpu(x) else programs_of(x, result, current_gpu())
    if programs < rows:
        softmax_ahead_kernel[(programs,)](*arrays, rows, columns, **options)
    else:
        softmax_kernel[(rows,)](*arrays, columns, **options)
    return result
