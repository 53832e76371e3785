"""Values of attention as 8-bit MMAs read them: along columns, in the order of weights."""

# ruff: noqa: N803 -- constants of kernels

from __future__ import annotations

from math import prod

import tilewright.language as tl
from tilewright.kernels.arrays import Array, empty
from tilewright.kernels.attention_arrays import row_strides, value_strides
from tilewright.kernels.attention_blocks import batch_and_head, first_value, sequence
from tilewright.kernels.matmul_plan import HOPPER, current_gpu
from tilewright.runtime import cdiv, jit, next_power_of_2

ROUND = 16
"""Rows of values in the order of `in_rounds`."""

BLOCK_BYTES = 1 << 14
"""Bytes of values that a program transposes."""


@jit
def transpose_values_kernel(
    v_ptr, out_ptr, starts, v_batch, v_head, v_row, out_batch, out_head, out_row,
    heads, rows, columns, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, ROUND: tl.constexpr,
):  # fmt: skip
    """out[batch, head, j, place of i] = v[batch, head, i, j] for one block, in 8 bits; zeros after
    the last row up to a whole `ROUND`. starts: as for `sequence`.

    Threads pack the bytes of four rows into words, so that threads exchange words, not bytes."""
    blocks, of_columns = tl.cdiv(rows, BLOCK_M), tl.cdiv(columns, BLOCK_N)
    program = tl.program_id(0)
    pair, block = program // (blocks * of_columns), program // of_columns % blocks
    batch, head = batch_and_head(pair, heads)
    first, rows = sequence(starts, batch, rows)
    if starts is not None:
        if block * BLOCK_M >= rows:
            return
    j = program % of_columns * BLOCK_N + tl.arange(0, BLOCK_N)
    word = block * (BLOCK_M // 4) + tl.arange(0, BLOCK_M // 4)
    start = v_ptr + batch * v_batch + head * v_head + first * v_row
    words = tl.zeros((BLOCK_M // 4, BLOCK_N), tl.uint32)
    for byte in tl.static_range(4):
        # bits 3 2 1 0 of a place are bits 2 1 3 0 of a row
        i = (word // 4 * ROUND + word % 4 * 2 + byte % 2 + byte // 2 * 8)[:, None]
        inside = (i < rows) & (j[None, :] < columns)
        v = tl.load(start + i * v_row + j[None, :], mask=inside, other=0.0)
        words += v.to(tl.uint8, bitcast=True).to(tl.uint32) << (8 * byte)
    out = out_ptr + batch * out_batch + head * out_head + first_value(first, starts, batch, ROUND)
    where = out.to(tl.pointer_type(tl.uint32)) + j[:, None] * (out_row // ROUND * 4) + word[None, :]
    inside = (j[:, None] < columns) & (word[None, :] < tl.cdiv(rows, ROUND) * 4)
    tl.store(where, tl.trans(words), mask=inside)


def transposed_values(v: Array, starts: Array | None = None, longest: int = 0) -> Array:
    """A column-major copy of an fp8 array ([batch,] heads, rows, columns), with the rows of each
    `ROUND` permuted and zeros after the last.

    starts: first rows of sequences, and the end of the last, of an array (rows, heads, columns):
    each begins at `first_value`; longest: rows of the longest one.
    """
    *outer, heads, rows, columns = (int(n) for n in v.shape)
    batch, padded = prod(outer), cdiv(rows, ROUND) * ROUND
    if starts is not None:
        batch, heads, rows = len(starts) - 1, rows, longest
        padded = (cdiv(int(v.shape[0]), ROUND) + batch) * ROUND
    shape = (*(outer if starts is None else ()), heads, columns, padded)
    out = empty(v, shape)
    block_n = min(128, next_power_of_2(columns))
    block_m = BLOCK_BYTES // block_n
    of_out = (0 if starts is not None else heads * columns * padded, columns * padded, padded)
    if count := batch * heads * cdiv(rows, block_m) * cdiv(columns, block_n):
        transpose_values_kernel[(count,)](
            v, out, starts, *row_strides(v, starts is not None), *of_out, heads, rows, columns,
            BLOCK_M=block_m, BLOCK_N=block_n, ROUND=ROUND, num_warps=8,
        )  # fmt: skip
    return out.swapaxes(-1, -2)


def values_of(
    v: Array, starts: Array | None, longest: int, on_cpu: bool
) -> tuple[Array, tuple[int, ...], int]:
    """Values as `attention_kernel` reads them: the array or a copy, its strides, and the number of
    permuted rows (1: none). starts, longest: as for `transposed_values`."""
    packed = starts is not None
    steps = value_strides(v, packed)
    is_transposed = steps[-1] != 1 and steps[2] == 1
    if on_cpu or is_transposed or int(v.itemsize) > 1 or not reads_columns():
        return v, steps, 1
    copy = transposed_values(v, starts, longest)
    return copy, value_strides(copy), ROUND


def reads_columns() -> bool:
    """Whether fp8 MMAs need values along columns on the current GPU."""
    return current_gpu().capability == HOPPER
