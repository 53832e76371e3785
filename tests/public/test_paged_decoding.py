"""Attention of one query to a paged cache, in splits whose results a second kernel joins.

After sgl-project/sglang, `python/sglang/srt/layers/attention/triton_ops/decode_attention.py`: pages
looked up by a mask, heads that share keys as rows of a product, a second product for the part of
keys with positions, a cap by `tanh`, dynamic loops between bounds of a split that may be empty,
offsets of one block used for two tensors, and strides in the order of the original.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportPossiblyUnboundVariable=false

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.triton_alias.alias_fixture import triton_alias

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

with triton_alias():
    import triton
    import triton.language as tl


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def masked(x, rows, columns):
    return tl.load(x, mask=rows & columns, other=0.0)


@triton.jit
def split_kernel(
    Q, K, V, scale, starts, pages, Out, Lse,
    q_batch, q_head, k_page, k_head, v_page, v_head, out_batch, out_head, out_split,
    SHARED: tl.constexpr, HEADS: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_P: tl.constexpr,
    BLOCK_V: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_H: tl.constexpr, SPLITS: tl.constexpr,
    cap: tl.constexpr, D: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    batch, block, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    key_head = block // tl.cdiv(SHARED, BLOCK_H)
    if BLOCK_H < SHARED:
        VALID: tl.constexpr = BLOCK_H
    else:
        VALID: tl.constexpr = SHARED
    head = block * VALID + tl.arange(0, BLOCK_H)
    real = (head < (block + 1) * VALID) & (head < HEADS)
    d = tl.arange(0, BLOCK_D)
    v_lane = tl.arange(0, BLOCK_V)
    start = tl.load(starts + batch)
    length = tl.load(starts + batch + 1) - start
    q_at = batch * q_batch + head[:, None] * q_head
    q = masked(Q + q_at + d[None, :], real[:, None], (d < D)[None, :])
    if BLOCK_P > 0:
        p = BLOCK_D + tl.arange(0, BLOCK_P)
        q_position = masked(Q + q_at + p[None, :], real[:, None], (p < D)[None, :])
    in_split = tl.cdiv(length, SPLITS)
    first = in_split * split
    last = tl.minimum(first + in_split, length)
    top = tl.zeros([BLOCK_H], dtype=tl.float32) - float("inf")
    total = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, BLOCK_V], dtype=tl.float32)
    if last > first:
        for begin in range(first, last, BLOCK_N):
            n = begin + tl.arange(0, BLOCK_N)
            page = tl.load(pages + start + n, mask=n < last, other=0)
            k_at = page[None, :] * k_page + key_head * k_head
            k = masked(K + k_at + d[:, None], n[None, :] < last, d[:, None] < D)
            scores = tl.dot(q, k.to(q.dtype))
            if BLOCK_P > 0:
                k_position = masked(K + k_at + p[:, None], n[None, :] < last, p[:, None] < D)
                scores += tl.dot(q_position, k_position.to(q_position.dtype))
            scores *= scale
            if cap > 0:
                scores = cap * tanh(scores / cap)
            scores = tl.where(real[:, None] & (n[None, :] < last), scores, float("-inf"))
            v_at = page[:, None] * v_page + key_head * v_head + v_lane[None, :]
            v = masked(V + v_at, n[:, None] < last, v_lane[None, :] < WIDTH)
            higher = tl.maximum(tl.max(scores, 1), top)
            shrink = tl.exp(top - higher)
            weights = tl.exp(scores - higher[:, None])
            acc *= shrink[:, None]
            acc += tl.dot(weights.to(v.dtype), v)
            total = total * shrink + tl.sum(weights, 1)
            top = higher
        out_at = batch * out_batch + head[:, None] * out_head + split * out_split + v_lane[None, :]
        tl.store(Out + out_at, acc / total[:, None], mask=real[:, None] & (v_lane[None, :] < WIDTH))
        lse_at = (batch * out_batch + head * out_head + split * out_split) // WIDTH
        tl.store(Lse + lse_at, top + tl.log(total), mask=real)


@triton.jit
def join_kernel(
    Mid, Lse, Out, starts, mid_batch, mid_head, mid_split, o_batch, o_head,
    SPLITS: tl.constexpr, BLOCK_V: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    batch, head = tl.program_id(0), tl.program_id(1)
    length = tl.load(starts + batch + 1) - tl.load(starts + batch)
    lane = tl.arange(0, BLOCK_V)
    total = 0.0
    top = -float("inf")
    acc = tl.zeros([BLOCK_V], dtype=tl.float32)
    at = batch * mid_batch + head * mid_head + lane
    at_lse = (batch * mid_batch + head * mid_head) // WIDTH
    in_split = tl.cdiv(length, SPLITS)
    for split in range(0, SPLITS):
        first = in_split * split
        last = tl.minimum(first + in_split, length)
        if last > first:
            mid = tl.load(Mid + at + split * mid_split, mask=lane < WIDTH, other=0.0)
            lse = tl.load(Lse + at_lse + split * mid_split // WIDTH)
            higher = tl.maximum(lse, top)
            shrink = tl.exp(top - higher)
            acc *= shrink
            weight = tl.exp(lse - higher)
            acc += weight * mid
            total = total * shrink + weight
            top = higher
    tl.store(Out + batch * o_batch + head * o_head + lane, acc / total, mask=lane < WIDTH)


def decode(q: Any, k: Any, v: Any, starts: Any, pages: Any, splits: int, cap: float) -> Any:
    (batch, heads, d), (_, key_heads, width) = q.shape, v.shape
    main = 1 << (d.bit_length() - 1)
    rest = 0 if main == d else triton.next_power_of_2(d - main)
    mid = torch.empty((batch, heads, splits, width), device=q.device)
    lse = torch.empty((batch, heads, splits), device=q.device)
    shared, block = heads // key_heads, 16
    grid = lambda meta: (
        batch, triton.cdiv(heads, min(block, shared)), meta["SPLITS"],
    )  # fmt: skip
    split_kernel[grid](
        q, k, v, d**-0.5, starts, pages, mid, lse,
        q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0), v.stride(1),
        mid.stride(0), mid.stride(1), mid.stride(2),
        SHARED=shared, HEADS=heads, BLOCK_D=main, BLOCK_P=rest,
        BLOCK_V=triton.next_power_of_2(width), BLOCK_N=16, BLOCK_H=block, SPLITS=splits, cap=cap,
        D=d, WIDTH=width, num_warps=4, num_stages=2,
    )  # fmt: skip
    out = torch.empty(batch, heads, width, device=q.device)
    join_kernel[(batch, heads)](
        mid, lse, out, starts, mid.stride(0), mid.stride(1), mid.stride(2),
        out.stride(0), out.stride(1), SPLITS=splits, BLOCK_V=triton.next_power_of_2(width),
        WIDTH=width, num_warps=4, num_stages=2,
    )  # fmt: skip
    return out


def reference(q: Any, k: Any, v: Any, lengths: Any, pages: Any, cap: float) -> Any:
    results, start, shared = [], 0, q.shape[1] // k.shape[1]
    for row, length in enumerate(lengths):
        chosen = pages[start : start + length]
        keys = k[chosen].double().repeat_interleave(shared, 1)
        values = v[chosen].double().repeat_interleave(shared, 1)
        scores = torch.einsum("hd,nhd->hn", q[row].double(), keys) * q.shape[2] ** -0.5
        scores = cap * torch.tanh(scores / cap) if cap else scores
        results.append(torch.einsum("hn,nhv->hv", scores.softmax(-1), values))
        start += length
    return torch.stack(results)


@pytest.mark.parametrize(("d", "cap"), [(32, 0.0), (48, 5.0)])
def test_queries_attend_to_their_pages(device: str, d: int, cap: float) -> None:
    lengths, width = [37, 1, 20], 24
    starts = torch.tensor([0, 37, 38, 58], device=device, dtype=torch.int32)
    pages = torch.randperm(70, device=device)[:58]
    q = torch.randn(3, 6, d, device=device).half()
    k = torch.randn(70, 2, d, device=device).half()
    v = torch.randn(70, 2, width, device=device).half()
    found = decode(q, k, v, starts, pages, 4, cap)
    expected = reference(q, k, v, lengths, pages, cap)
    torch.testing.assert_close(found.double(), expected, rtol=2e-3, atol=2e-3)
