"""Attention forward as `attention`, by tensor descriptors: no tiles of pointers, one mask."""

# ruff: noqa: B008, N803 -- constants of kernels

from __future__ import annotations

from typing import Any

import tilewright.language as tl
from tilewright.kernels.arrays import Array, empty, is_on_cpu
from tilewright.kernels.attention_arrays import row_strides, sizes_of, total_strides, variant_of
from tilewright.kernels.attention_blocks import (
    LOG2_E,
    batch_and_head,
    block_and_head,
    dropout_mask,
    is_visible,
    keys_seen,
    log_of_sum,
    softmax_step,
)
from tilewright.kernels.attention_plan import planned_launch
from tilewright.runtime import jit


@jit
def rows_of(base, batch, head, of_batch, of_head, of_row, length, BLOCK: tl.constexpr,
            SIZE: tl.constexpr):  # fmt: skip
    """The rows of one head, in blocks of BLOCK."""
    first = base + batch * of_batch + head * of_head
    return tl.make_tensor_descriptor(first, [length, SIZE], [of_row, 1], [BLOCK, SIZE])


@jit
def descriptor_attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row,
    out_batch, out_head, out_row, lse_batch, lse_head,
    heads, q_length, k_length, scale, seed, score_args,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr, VALUE: tl.constexpr,
    SHARED: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, AT_END: tl.constexpr,
    SCORE: tl.constexpr, DROPOUT: tl.constexpr, GROUP: tl.constexpr,
    PARTS: tl.constexpr = tl.constexpr(1),
):  # fmt: skip
    """As `attention_kernel`: one block of queries of one head over all keys that it sees."""
    block, pair = block_and_head(GROUP, RIGHT >= 0)
    batch, head = batch_and_head(pair, heads)
    start, of_k = block * BLOCK_M, head // SHARED
    queries = rows_of(q_ptr, batch, head, q_batch, q_head, q_row, q_length, BLOCK_M, HEAD)
    keys = rows_of(k_ptr, batch, of_k, k_batch, k_head, k_row, k_length, BLOCK_N, HEAD)
    values = rows_of(v_ptr, batch, of_k, v_batch, v_head, v_row, k_length, BLOCK_N, VALUE)
    out = rows_of(out_ptr, batch, head, out_batch, out_head, out_row, q_length, BLOCK_M, VALUE)
    shift = k_length - q_length if AT_END else 0
    rows = (start + tl.arange(0, BLOCK_M))[:, None]
    places = rows + shift if AT_END else rows
    q = queries.load([start, 0])
    factor = (scale if SCORE is None else 1.0) * LOG2_E
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,) if PARTS == 1 else (BLOCK_M, PARTS), tl.float32)
    acc = tl.zeros((BLOCK_M, VALUE), tl.float32)
    begin, end = keys_seen(start + shift, BLOCK_M, k_length, BLOCK_N, LEFT, RIGHT)
    for j in range(begin, end, BLOCK_N):
        columns = (j + tl.arange(0, BLOCK_N))[None, :]
        scores = tl.dot(q, tl.trans(keys.load([j, 0])))
        if SCORE is not None:
            scores = SCORE(scores * scale, batch, head, places, columns, score_args)
        seen = is_visible(places, columns, k_length, LEFT, RIGHT)
        scores = tl.where(seen, scores, -float("inf"))
        weights, shrink, top, total = softmax_step(scores, top, total, factor)
        if DROPOUT > 0:
            weights = tl.where(dropout_mask(seed, pair, rows, columns, DROPOUT), weights, 0.0)
        v = values.load([j, 0])
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
    total = total if PARTS == 1 else tl.sum(total, axis=1)
    share = 1.0 / (tl.where(total == 0, 1.0, total) * (1 - DROPOUT))
    out.store([start, 0], (acc * share[:, None]).to(out.dtype))
    if lse_ptr is not None:
        first = lse_ptr + batch * lse_batch + head * lse_head
        sums = tl.make_tensor_descriptor(first, [q_length], [1], [BLOCK_M])
        sums.store([start], log_of_sum(top, total, factor))


def attention_by_descriptors(
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
    """`attention`, with its arguments and errors, by a kernel that reads and writes by tensor
    descriptors: a starting point for user kernels.

    Raises ValueError for what only `attention` has: `starts`, `scales`, and fp8.
    """
    variant = variant_of("attention_by_descriptors", causal, scale, words)
    if variant.starts is not None or variant.scales is not None or int(q.itemsize) == 1:
        raise ValueError("attention by descriptors has no starts, no scales, and no fp8")
    sizes = sizes_of(q, k, v, variant)
    if out is None:
        out = empty(q, (*q.shape[:-1], sizes.value))
    grid, options = planned_launch(sizes, int(q.itemsize), is_on_cpu(q), variant)
    steps = [step for array in (q, k, v, out) for step in row_strides(array)]
    if all(grid):
        descriptor_attention_kernel[grid](
            q, k, v, out, lse, *steps, *total_strides(lse), sizes.heads, sizes.q_length,
            sizes.k_length, variant.scale_of(sizes), variant.seed, tuple(variant.score_args),
            **options, **variant.constants(sizes),
        )  # fmt: skip
    return out
