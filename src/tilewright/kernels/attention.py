"""Attention forward with an online softmax over blocks of keys and values."""

# ruff: noqa: B008, N803 -- constants of kernels

from __future__ import annotations

from typing import Any

import tilewright.language as tl
from tilewright.kernels.arrays import Array, empty, is_on_cpu
from tilewright.kernels.attention_arrays import (
    row_strides,
    sizes_of,
    total_strides,
    variant_of,
)
from tilewright.kernels.attention_blocks import (
    LOG2_E,
    batch_and_head,
    block_and_head,
    dropout_mask,
    in_rounds,
    is_visible,
    keys_seen,
    lift_of,
    load_rows,
    log_of_sum,
    scales_of,
    sequence,
    softmax_step,
    store_rows,
    values_read,
)
from tilewright.kernels.attention_plan import planned_launch
from tilewright.kernels.attention_values import values_of
from tilewright.runtime import jit


@jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, q_starts, k_starts,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, v_inner,
    out_batch, out_head, out_row, lse_batch, lse_head,
    heads, q_length, k_length, scale, scales, seed, score_args,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr, VALUE: tl.constexpr,
    SHARED: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, AT_END: tl.constexpr,
    SCORE: tl.constexpr, DROPOUT: tl.constexpr, GROUP: tl.constexpr, ROUND: tl.constexpr,
    PARTS: tl.constexpr = tl.constexpr(1),
):  # fmt: skip
    """Compute one block of queries of one head over all keys that it sees; longest blocks first.

    scale: positive; v_inner, ROUND: of `values_of`; PARTS: of `added_rows`.
    After Dao et al., "FlashAttention" (2022)."""
    block, pair = block_and_head(GROUP, RIGHT >= 0)
    batch, head = batch_and_head(pair, heads)
    q_first, q_length = sequence(q_starts, batch, q_length)
    k_first, k_length = sequence(k_starts, batch, k_length)
    if q_starts is not None:
        if block * BLOCK_M >= q_length:
            return
    shift = k_length - q_length if AT_END else 0
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    places = (rows + shift if AT_END else rows)[:, None]
    q_base = q_ptr + batch * q_batch + head * q_head + q_first * q_row
    k_base = k_ptr + batch * k_batch + head // SHARED * k_head + k_first * k_row
    v_first, v_length = values_read(k_first, k_length, v_inner, k_starts, batch, ROUND)
    v_base = v_ptr + batch * v_batch + head // SHARED * v_head + v_first * v_row
    out_base = out_ptr + batch * out_batch + head * out_head + q_first * out_row
    q = load_rows(q_base, rows, q_row, q_length, HEAD)
    scale, of_values = scales_of(scale, scales, pair // SHARED)
    factor, lift = (scale if SCORE is None else 1.0) * LOG2_E, lift_of(v_ptr.dtype.element_ty)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,) if PARTS == 1 else (BLOCK_M, PARTS), tl.float32)
    acc = tl.zeros((BLOCK_M, VALUE), tl.float32)
    begin, end = keys_seen(block * BLOCK_M + shift, BLOCK_M, k_length, BLOCK_N, LEFT, RIGHT)
    for j in range(begin, end, BLOCK_N):
        columns = j + tl.arange(0, BLOCK_N)
        k = load_rows(k_base, columns, k_row, k_length, HEAD)
        scores = tl.dot(q, tl.trans(k))
        if SCORE is not None:
            scores = SCORE(scores * scale, batch, head, places, columns[None, :], score_args)
        seen = is_visible(places, columns[None, :], k_length, LEFT, RIGHT)
        scores = tl.where(seen, scores, -float("inf"))
        weights, shrink, top, total = softmax_step(scores, top, total, factor, lift)
        if DROPOUT > 0:
            kept = dropout_mask(seed, pair, rows[:, None], columns[None, :], DROPOUT)
            weights = tl.where(kept, weights, 0.0)
        weights = in_rounds(weights) if ROUND > 1 else weights
        v = load_rows(v_base, columns, v_row, v_length, VALUE, v_inner)
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
    total = total if PARTS == 1 else tl.sum(total, axis=1)
    share = of_values / (tl.where(total == 0, 1.0, total) * (1 - DROPOUT))
    store_rows(out_base, rows, out_row, q_length, acc * share[:, None])
    if lse_ptr is not None:
        lse_ptr += batch * lse_batch + head * lse_head + q_first
        lse = log_of_sum(top, total, factor, lift)
        tl.store(lse_ptr + rows, lse, mask=rows < q_length)


def attention(
    q: Array,
    k: Array,
    v: Array,
    causal: bool = False,
    scale: float = 0.0,
    *,
    lse: Array | None = None,
    out: Array | None = None,
    **words: Any,
) -> Array:
    """softmax(q @ k^T * scale) @ v, as an array like q with rows of v's size, of fp16 for fp8.

    q, k, v: arrays ([batch,] heads, length, head size), with any strides but 1 along rows; several
    heads of queries in a row may share one of keys. scale: 1 / sqrt(head size) unless given.

    lse: an fp32 array ([batch,] heads, length), or (heads, rows), for the logarithms of the sums of
    the exponentials, which `attention_backward` needs; contiguous along rows.
    out: an array for the result, of any element type.

    causal: a window whose right is 0.
    window: (left, right): a query does not see keys further than `left` before or `right` after
    its position; -1: without limit.
    at_end: the last query is aligned with the last key; else the first with the first.
    score: a @jit function (scores, batch, head, positions of queries, positions of keys,
    score_args) -> scores, as `soft_cap` and `linear_bias` of attention_blocks; slope: its
    derivative.
    starts: (first rows of the sequences of queries, and the end of the last; the same of keys; most
    rows of a sequence of queries; of keys), of sequences that are packed in arrays (rows, heads,
    head size).
    dropout: the probability of dropping a weight, by Philox with `seed`, an int, or an array that
    holds one.
    scales: factors of q, k and v: numbers, or fp32 arrays (batch, heads of keys), for fp8 arrays;
    weights are rounded to v's type. Hopper's fp8 MMAs read K-major operands only, so values are
    copied transposed, unless they are passed so.

    A query that sees no key gets zeros, and -inf. Raises ValueError: arrays of mismatched
    shapes, a window below -1, a dropout outside [0, 1).
    """
    variant = variant_of("attention", causal, scale, words)
    sizes, packed = sizes_of(q, k, v, variant), variant.starts is not None
    if out is None:
        out = empty(q, (*q.shape[:-1], sizes.value), "float16" if int(q.itemsize) == 1 else None)
    on_cpu = is_on_cpu(q)
    v, of_v, round_of_values = values_of(v, variant.first_rows[1], sizes.k_length, on_cpu)
    grid, options = planned_launch(sizes, int(q.itemsize), on_cpu, variant)
    steps = [*row_strides(q, packed), *row_strides(k, packed), *of_v]
    if all(grid):
        attention_kernel[grid](
            q, k, v, out, lse, *variant.first_rows, *steps, *row_strides(out, packed),
            *total_strides(lse), sizes.heads, sizes.q_length, sizes.k_length,
            variant.scale_of(sizes), variant.scales, variant.seed, tuple(variant.score_args),
            ROUND=round_of_values, **options, **variant.constants(sizes),
        )  # fmt: skip
    return out
