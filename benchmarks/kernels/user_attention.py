"""Attention as a textbook has it: what users write who have not seen `tilewright.kernels`.

Queries, keys, values, results and their gradients have the same strides. `triton_twins.twin` makes
Triton's kernels of the same text.
"""

# ruff: noqa: N803 -- names of the tutorials

import tilewright.language as tl
from tilewright import jit


@jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, stride_h, stride_l, length, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """One block of queries of one head.

    Running maximum and sum per row, as in Milakov and Gimelshein, "Online normalizer calculation
    for softmax" (2018), and Dao et al., "FlashAttention" (2022).
    """
    start = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1) * stride_h
    rows = start + tl.arange(0, BLOCK_M)
    inner = tl.arange(0, HEAD)
    q = tl.load(
        q_ptr + head + rows[:, None] * stride_l + inner[None, :],
        mask=rows[:, None] < length, other=0.0,
    )  # fmt: skip
    factor = scale * 1.4426950408889634
    top = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    end = min(start + BLOCK_M, length) if CAUSAL else length
    for j in range(0, end, BLOCK_N):
        columns = j + tl.arange(0, BLOCK_N)
        there = columns[:, None] < length
        offsets = head + columns[:, None] * stride_l + inner[None, :]
        k = tl.load(k_ptr + offsets, mask=there, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * factor
        visible = columns[None, :] < length
        if CAUSAL:
            visible = visible & (columns[None, :] <= rows[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, axis=1))
        shrink = tl.exp2(top - higher)
        weights = tl.exp2(scores - higher[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        v = tl.load(v_ptr + offsets, mask=there, other=0.0)
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
        top = higher
    tl.store(
        out_ptr + head + rows[:, None] * stride_l + inner[None, :],
        (acc / total[:, None]).to(out_ptr.dtype.element_ty), mask=rows[:, None] < length,
    )  # fmt: skip


@jit
def row_products_kernel(out_ptr, grad_ptr, products_ptr, BLOCK: tl.constexpr, HEAD: tl.constexpr):
    """The sum of out * grad of each row; rows follow each other."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    offsets = rows[:, None] * HEAD + tl.arange(0, HEAD)[None, :]
    out, grad = tl.load(out_ptr + offsets), tl.load(grad_ptr + offsets)
    tl.store(products_ptr + rows, tl.sum(out.to(tl.float32) * grad.to(tl.float32), axis=1))


@jit
def keys_gradient_kernel(
    q_ptr, k_ptr, v_ptr, grad_ptr, lse_ptr, products_ptr, dk_ptr, dv_ptr, stride_h, stride_l,
    length, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """The gradients of one block of keys and values of one head, of whole blocks of queries."""
    start = tl.program_id(0) * BLOCK_N
    head, rest = tl.program_id(1) * stride_h, tl.program_id(1) * length
    columns, inner = start + tl.arange(0, BLOCK_N), tl.arange(0, HEAD)
    mine = head + columns[:, None] * stride_l + inner[None, :]
    k, v = tl.load(k_ptr + mine), tl.load(v_ptr + mine)
    factor = scale * 1.4426950408889634
    dk = tl.zeros((BLOCK_N, HEAD), dtype=tl.float32)
    dv = tl.zeros((BLOCK_N, HEAD), dtype=tl.float32)
    begin = start // BLOCK_M * BLOCK_M if CAUSAL else 0
    for i in range(begin, length, BLOCK_M):
        rows = i + tl.arange(0, BLOCK_M)
        offsets = head + rows[:, None] * stride_l + inner[None, :]
        q = tl.load(q_ptr + offsets)
        lse = tl.load(lse_ptr + rest + rows)
        weights = tl.exp2(tl.dot(k, tl.trans(q)) * factor - lse[None, :] * 1.4426950408889634)
        if CAUSAL:
            weights = tl.where(columns[:, None] <= rows[None, :], weights, 0.0)
        grad = tl.load(grad_ptr + offsets)
        dv = tl.dot(weights.to(grad.dtype), grad, dv)
        products = tl.load(products_ptr + rest + rows)
        change = weights * (tl.dot(v, tl.trans(grad)) - products[None, :])
        dk = tl.dot(change.to(q.dtype), q, dk)
    tl.store(dk_ptr + mine, (dk * scale).to(dk_ptr.dtype.element_ty))
    tl.store(dv_ptr + mine, dv.to(dv_ptr.dtype.element_ty))


@jit
def queries_gradient_kernel(
    q_ptr, k_ptr, v_ptr, grad_ptr, lse_ptr, products_ptr, dq_ptr, stride_h, stride_l, length, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """The gradient of one block of queries of one head, of whole blocks of keys."""
    start = tl.program_id(0) * BLOCK_M
    head, rest = tl.program_id(1) * stride_h, tl.program_id(1) * length
    rows, inner = start + tl.arange(0, BLOCK_M), tl.arange(0, HEAD)
    mine = head + rows[:, None] * stride_l + inner[None, :]
    q, grad = tl.load(q_ptr + mine), tl.load(grad_ptr + mine)
    lse = tl.load(lse_ptr + rest + rows) * 1.4426950408889634
    products = tl.load(products_ptr + rest + rows)
    factor = scale * 1.4426950408889634
    dq = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    end = start + BLOCK_M if CAUSAL else length
    for j in range(0, end, BLOCK_N):
        columns = j + tl.arange(0, BLOCK_N)
        offsets = head + columns[:, None] * stride_l + inner[None, :]
        k = tl.load(k_ptr + offsets)
        weights = tl.exp2(tl.dot(q, tl.trans(k)) * factor - lse[:, None])
        if CAUSAL:
            weights = tl.where(columns[None, :] <= rows[:, None], weights, 0.0)
        v = tl.load(v_ptr + offsets)
        change = weights * (tl.dot(grad, tl.trans(v)) - products[:, None])
        dq = tl.dot(change.to(k.dtype), k, dq)
    tl.store(dq_ptr + mine, (dq * scale).to(dq_ptr.dtype.element_ty))


CPU_BLOCKS = {"BLOCK_M": 64, "BLOCK_N": 64}
