"""Attention backward: weights are recomputed from the logarithms of their sums.

One kernel holds a block of keys and values and reduces over queries, the other a block of queries
and reduces over keys: without atomics, so that gradients are deterministic. As in Dao,
"FlashAttention-2" (2023), section 3.1. If memory permits, the first stores the gradients of
scores, and the second becomes a matmul (attention_score_gradients.py).
"""

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
    exponent_of,
    is_visible,
    keys_seen,
    load_rows,
    queries_seeing,
    sequence,
    store_rows,
)
from tilewright.kernels.attention_plan import backward_options, common_group, grid_of
from tilewright.kernels.attention_score_gradients import (
    allocate_gradients,
    multiply_gradients,
    store_gradients,
    stored_gradients,
)
from tilewright.runtime import cdiv, jit


@jit
def row_products_kernel(
    out_ptr, grad_ptr, result_ptr, out_batch, out_head, out_row, grad_batch, grad_head, grad_row,
    result_batch, result_head, heads, length, BLOCK: tl.constexpr, VALUE: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    """The sum of out * grad of each row, which the gradient of softmax subtracts."""
    block, pair = block_and_head(GROUP, False)
    rows = block * BLOCK + tl.arange(0, BLOCK)
    batch, head = batch_and_head(pair, heads)
    out_base = out_ptr + batch * out_batch + head * out_head
    grad_base = grad_ptr + batch * grad_batch + head * grad_head
    out = load_rows(out_base, rows, out_row, length, VALUE).to(tl.float32)
    grad = load_rows(grad_base, rows, grad_row, length, VALUE).to(tl.float32)
    result_base = result_ptr + batch * result_batch + head * result_head
    tl.store(result_base + rows, tl.sum(out * grad, axis=1), mask=rows < length)


@jit
def negated(lse_ptr, rows, length):
    """The negated logarithms of rows' sums, with rows along columns."""
    lse = tl.load(lse_ptr + rows, mask=rows < length, other=0.0)
    return (-exponent_of(lse))[None, :]


@jit
def dropped_out(seed, pair, rows, columns, weights, change, DROPOUT: tl.constexpr):
    """Weights and gradients of scores, zeroed where dropout drops them."""
    kept = dropout_mask(seed, pair.to(tl.int32), rows[None, :], columns[:, None], DROPOUT)
    share = 1 - DROPOUT
    return tl.where(kept, weights / share, 0.0), tl.where(kept, change / share, 0.0)


@jit
def keys_gradient_kernel(
    q_ptr, k_ptr, v_ptr, grad_ptr, lse_ptr, products_ptr, dk_ptr, dv_ptr, q_starts, k_starts,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row,
    grad_batch, grad_head, grad_row, dk_batch, dk_head, dk_row, dv_batch, dv_head, dv_row,
    lse_batch, lse_head, heads, q_length, k_length, scale, seed, score_args, changes_ptr,
    of_change, of_key, first, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr,
    VALUE: tl.constexpr, SHARED: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    AT_END: tl.constexpr, SCORE: tl.constexpr, SLOPE: tl.constexpr, DROPOUT: tl.constexpr,
    GROUP: tl.constexpr, ROUND: tl.constexpr,
):  # fmt: skip
    """The gradients of one block of keys and values of one head, over all queries that see them."""
    block, pair = block_and_head(GROUP, False)
    changes = stored_gradients(changes_ptr, of_change, of_key, pair, block * BLOCK_N, SHARED)
    pair += first
    start, batch = block * BLOCK_N, (pair // (heads // SHARED)).to(tl.int64)
    group, factor = pair % (heads // SHARED), (scale if SCORE is None else 1.0) * LOG2_E
    q_first, q_length = sequence(q_starts, batch, q_length)
    k_first, k_length = sequence(k_starts, batch, k_length)
    if q_starts is not None:
        if start >= k_length:
            return
    shift, columns = k_length - q_length if AT_END else 0, start + tl.arange(0, BLOCK_N)
    k = load_rows(k_ptr + batch * k_batch + group * k_head + k_first * k_row,
                  columns, k_row, k_length, HEAD)  # fmt: skip
    v = load_rows(v_ptr + batch * v_batch + group * v_head + k_first * v_row,
                  columns, v_row, k_length, VALUE)  # fmt: skip
    dk, dv = tl.zeros((BLOCK_N, HEAD), tl.float32), tl.zeros((BLOCK_N, VALUE), tl.float32)
    begin, end = queries_seeing(start - shift, BLOCK_N, q_length, ROUND, LEFT, RIGHT)
    for shared in range(SHARED):
        head = group * SHARED + shared
        q_base = q_ptr + batch * q_batch + head * q_head + q_first * q_row
        grad_base = grad_ptr + batch * grad_batch + head * grad_head + q_first * grad_row
        of_rows = batch * lse_batch + head * lse_head + q_first
        for i in range(begin, end, BLOCK_M):
            rows = i + tl.arange(0, BLOCK_M)
            places = (rows + shift if AT_END else rows)[None, :]
            q = load_rows(q_base, rows, q_row, q_length, HEAD)
            grad = load_rows(grad_base, rows, grad_row, q_length, VALUE)
            scores = raw = tl.dot(k, tl.trans(q))
            change = tl.dot(v, tl.trans(grad))
            if SCORE is not None:
                raw *= scale
                scores = SCORE(raw, batch, head, places, columns[:, None], score_args)
            weights = tl.exp2(scores * factor + negated(lse_ptr + of_rows, rows, q_length))
            seen = is_visible(places, columns[:, None], k_length, LEFT, RIGHT)
            used = weights = tl.where(seen, weights, 0.0)
            if DROPOUT > 0:
                number = batch * heads + head
                used, change = dropped_out(seed, number, rows, columns, weights, change, DROPOUT)
            dv = tl.dot(used.to(grad.dtype), grad, dv)
            products = tl.load(products_ptr + of_rows + rows, mask=rows < q_length, other=0.0)
            change = weights * (change - products[None, :])
            if SLOPE is not None:
                change *= SLOPE(raw, batch, head, places, columns[:, None], score_args)
            change = store_gradients(changes, change.to(q.dtype), rows, shared, of_change, of_key)
            dk = tl.dot(change, q, dk)
    dk_base = dk_ptr + batch * dk_batch + group * dk_head + k_first * dk_row
    store_rows(dk_base, columns, dk_row, k_length, dk * scale)
    dv_base = dv_ptr + batch * dv_batch + group * dv_head + k_first * dv_row
    store_rows(dv_base, columns, dv_row, k_length, dv)


@jit
def queries_gradient_kernel(
    q_ptr, k_ptr, v_ptr, grad_ptr, lse_ptr, products_ptr, dq_ptr, q_starts, k_starts,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row,
    grad_batch, grad_head, grad_row, dq_batch, dq_head, dq_row,
    lse_batch, lse_head, heads, q_length, k_length, scale, seed, score_args,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr, VALUE: tl.constexpr,
    SHARED: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, AT_END: tl.constexpr,
    SCORE: tl.constexpr, SLOPE: tl.constexpr, DROPOUT: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """The gradient of one block of queries of one head, over all keys that they see."""
    block, pair = block_and_head(GROUP, True)
    start = block * BLOCK_M
    batch, head = batch_and_head(pair, heads)
    q_first, q_length = sequence(q_starts, batch, q_length)
    k_first, k_length = sequence(k_starts, batch, k_length)
    if q_starts is not None:
        if start >= q_length:
            return
    shift = k_length - q_length if AT_END else 0
    rows = start + tl.arange(0, BLOCK_M)
    places = (rows + shift if AT_END else rows)[:, None]
    k_base = k_ptr + batch * k_batch + head // SHARED * k_head + k_first * k_row
    v_base = v_ptr + batch * v_batch + head // SHARED * v_head + k_first * v_row
    q = load_rows(q_ptr + batch * q_batch + head * q_head + q_first * q_row,
                  rows, q_row, q_length, HEAD)  # fmt: skip
    grad = load_rows(grad_ptr + batch * grad_batch + head * grad_head + q_first * grad_row,
                     rows, grad_row, q_length, VALUE)  # fmt: skip
    of_rows = batch * lse_batch + head * lse_head + q_first + rows
    lse = exponent_of(tl.load(lse_ptr + of_rows, mask=rows < q_length, other=0.0))
    products = tl.load(products_ptr + of_rows, mask=rows < q_length, other=0.0)
    factor = (scale if SCORE is None else 1.0) * LOG2_E
    dq = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    begin, end = keys_seen(start + shift, BLOCK_M, k_length, BLOCK_N, LEFT, RIGHT)
    for j in range(begin, end, BLOCK_N):
        columns = j + tl.arange(0, BLOCK_N)
        k = load_rows(k_base, columns, k_row, k_length, HEAD)
        v = load_rows(v_base, columns, v_row, k_length, VALUE)
        scores = raw = tl.dot(q, tl.trans(k))
        change = tl.dot(grad, tl.trans(v))
        if SCORE is not None:
            raw *= scale
            scores = SCORE(raw, batch, head, places, columns[None, :], score_args)
        weights = tl.exp2(scores * factor - lse[:, None])
        seen = is_visible(places, columns[None, :], k_length, LEFT, RIGHT)
        weights = tl.where(seen, weights, 0.0)
        if DROPOUT > 0:
            kept = dropout_mask(seed, pair, rows[:, None], columns[None, :], DROPOUT)
            change = tl.where(kept, change / (1 - DROPOUT), 0.0)
        change = weights * (change - products[:, None])
        if SLOPE is not None:
            change *= SLOPE(raw, batch, head, places, columns[None, :], score_args)
        dq = tl.dot(change.to(k.dtype), k, dq)
    dq_base = dq_ptr + batch * dq_batch + head * dq_head + q_first * dq_row
    store_rows(dq_base, rows, dq_row, q_length, dq * scale)


def attention_backward(
    grad: Array,
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    lse: Array,
    causal: bool = False,
    scale: float = 0.0,
    **words: Any,
) -> tuple[Array, Array, Array]:
    """The gradients of q, k and v, for that of `attention`'s result.

    grad: of out; out, lse: what `attention` computed of the same arguments. All gradients
    are deterministic. Heads of 128 in 16 bits use up to 1 GiB of temporary memory on Hopper, if it
    is available. Raises ValueError as `attention` does, and for fp8 or scales, of which there are
    no gradients.
    """
    variant = variant_of("attention_backward", causal, scale, words)
    if variant.scales is not None or int(q.itemsize) == 1:
        raise ValueError("attention has no gradients for fp8 arrays or with scales")
    sizes, packed = sizes_of(q, k, v, variant), variant.starts is not None
    scale = variant.scale_of(sizes)
    dq, dk, dv = (empty(x, tuple(x.shape)) for x in (q, k, v))
    row_dots = empty(lse, tuple(lse.shape))
    of_q, of_k, of_v, of_grad, of_out = (row_strides(x, packed) for x in (q, k, v, grad, out))
    constants = variant.constants(sizes) | {"SLOPE": variant.slope}
    of_keys, of_queries = backward_options(sizes, int(q.itemsize), is_on_cpu(q), variant.right >= 0)
    pairs, rows = sizes.batch * sizes.heads, int(lse.shape[-1])
    grid, of_group = grid_of(cdiv(rows, 64), pairs if not packed else sizes.heads)
    row_products_kernel[grid](
        out, grad, row_dots, *of_out, *of_grad, *total_strides(row_dots), sizes.heads, rows,
        BLOCK=64, VALUE=sizes.value, GROUP=of_group,
    )  # fmt: skip
    shared = q, k, v, grad, lse, row_dots
    steps = *of_q, *of_k, *of_v, *of_grad
    last = (*total_strides(lse), sizes.heads, sizes.q_length, sizes.k_length, scale, variant.seed,
            tuple(variant.score_args))  # fmt: skip
    found = None if packed else allocate_gradients(q, sizes, of_keys["BLOCK_N"], variant.right >= 0)
    kept, changes = found or (None, None)
    for first, count in kept.parts if kept else [(0, pairs // sizes.shared)]:
        blocks = cdiv(sizes.k_length, of_keys["BLOCK_N"])
        grid, group = grid_of(blocks, count, common_group(of_keys["GROUP"], count))
        keys_gradient_kernel[grid](
            *shared, dk, dv, *variant.first_rows, *steps, *row_strides(dk, packed),
            *row_strides(dv, packed), *last, changes, *(kept.steps if kept else (0, 0)), first,
            ROUND=kept.tile[0] if kept else of_keys["BLOCK_M"], **of_keys | {"GROUP": group},
            **constants,
        )  # fmt: skip
        if kept is not None:
            multiply_gradients(kept, changes, k, dq, (first, count), sizes, scale,
                               of_queries["GROUP"], constants)  # fmt: skip
    if kept is None:
        blocks = cdiv(sizes.q_length, of_queries["BLOCK_M"])
        grid, of_queries["GROUP"] = grid_of(blocks, pairs, of_queries["GROUP"])
        queries_gradient_kernel[grid](
            *shared, dq, *variant.first_rows, *steps, *row_strides(dq, packed), *last,
            **of_queries, **constants,
        )  # fmt: skip
    return dq, dk, dv
