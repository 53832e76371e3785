"""Values of attention as products of bytes read them: along columns, in the order of weights."""

# ruff: noqa: N803 -- constants of kernels

from __future__ import annotations

from math import prod

import tilewright.language as tl
from tilewright.kernels.arrays import Array, empty
from tilewright.kernels.attention_arrays import row_strides, value_strides
from tilewright.kernels.matmul_plan import HOPPER, current_gpu
from tilewright.runtime import cdiv, jit

ROUND = 16
"""Rows of values whose order is that of `in_rounds`."""


@jit
def transpose_values_kernel(
    v_ptr, out_ptr, v_batch, v_head, v_row, heads, rows, columns, out_row,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """out[pair, j, place of i] = v[batch, head, i, j] for one block of each pair; 0 behind rows."""
    pair = tl.program_id(0).to(tl.int64)
    place = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    # bits 3 2 1 0 of a place are bits 2 1 3 0 of a row
    i = place // 16 * 16 + place % 2 + place // 4 % 4 * 2 + place // 2 % 2 * 8
    j = tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N)
    start = v_ptr + pair // heads * v_batch + pair % heads * v_head
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    v = tl.load(start + i[:, None] * v_row + j[None, :], mask=inside, other=0.0)
    start = out_ptr + pair * columns * out_row
    inside = (j[:, None] < columns) & (place[None, :] < out_row)
    tl.store(start + j[:, None] * out_row + place[None, :], tl.trans(v), mask=inside)


def transposed_values(v: Array) -> Array:
    """A copy of an fp8 array ([batch,] heads, rows, columns) in which elements of a column follow
    each other, rows of each `ROUND` in an order of theirs, zeros behind the last."""
    *outer, rows, columns = (int(n) for n in v.shape)
    padded = cdiv(rows, ROUND) * ROUND
    out = empty(v, (*outer, columns, padded))
    grid = prod(outer), cdiv(padded, 128), cdiv(columns, 128)
    if all(grid):
        transpose_values_kernel[grid](
            v, out, *row_strides(v), outer[-1], rows, columns, padded,
            BLOCK_M=128, BLOCK_N=128, num_warps=8,
        )  # fmt: skip
    return out.swapaxes(-1, -2)


def values_of(v: Array, packed: bool, on_cpu: bool) -> tuple[Array, tuple[int, ...], int]:
    """Values as `attention_kernel` reads them: the array or a copy, its strides, and how many rows
    have an order of theirs (1: none). packed: as of `row_strides`."""
    steps = value_strides(v, packed)
    is_turned = steps[-1] != 1 and steps[2] == 1
    if packed or on_cpu or is_turned or int(v.itemsize) > 1 or not reads_columns():
        return v, steps, 1
    copy = transposed_values(v)
    return copy, value_strides(copy), ROUND


def reads_columns() -> bool:
    """Whether products of fp8 read values along columns alone, on the current GPU."""
    return current_gpu().capability == HOPPER
