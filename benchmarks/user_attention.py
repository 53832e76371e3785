"""Attention as a textbook has it: what users write who have not seen `tilewright.kernels`."""

# ruff: noqa: N803 -- names of the tutorials

import tilewright.language as tl
from tilewright import jit


@jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, stride_h, stride_l, length, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """One block of queries of one head; q, k, v and out have the same strides.

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


CPU_BLOCKS = {"BLOCK_M": 64, "BLOCK_N": 64}
