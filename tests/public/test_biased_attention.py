"""Attention with a bias for each key or pair, forward and backward.

After Dao-AILab/flash-attention, `flash_attn/flash_attn_triton.py`: heuristics that are the only
difference between variants, a bias named by a constexpr string, `trans_b`'s successor `tl.trans`,
loops whose start a constexpr decides, statistics stored and loaded again by the same program,
gradients of queries added up by atomics, pointers of all of a block's rows advanced in a loop.
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


EVEN = triton.heuristics(
    {
        "EVEN_M": lambda args: args["seqlen_q"] % args["BLOCK_M"] == 0,
        "EVEN_N": lambda args: args["seqlen_k"] % args["BLOCK_N"] == 0,
        "EVEN_D": lambda args: args["width"] == args["BLOCK_D"],
    }
)


@triton.jit
def rows_of(ptrs, rows, length, lanes, width, EVEN_ROWS: tl.constexpr, EVEN_D: tl.constexpr):
    if EVEN_ROWS:
        if EVEN_D:
            tile = tl.load(ptrs)
        else:
            tile = tl.load(ptrs, mask=lanes[None, :] < width, other=0.0)
    else:
        if EVEN_D:
            tile = tl.load(ptrs, mask=rows[:, None] < length, other=0.0)
        else:
            inside = (rows[:, None] < length) & (lanes[None, :] < width)
            tile = tl.load(ptrs, mask=inside, other=0.0)
    return tile


@triton.jit
def scores_of(
    q, k, bias, bias_ptrs, m, n, seqlen_q, seqlen_k, scale, BIAS: tl.constexpr,
    CAUSAL: tl.constexpr, EVEN_N: tl.constexpr,
):  # fmt: skip
    scores = tl.dot(q, tl.trans(k))
    if not EVEN_N:
        scores += tl.where(n[None, :] < seqlen_k, 0, float("-inf"))
    if CAUSAL:
        scores += tl.where(m[:, None] >= n[None, :], 0, float("-inf"))
    if BIAS == "none":
        scores = scores * scale
    else:
        if BIAS == "vector":
            b = tl.load(bias + n, mask=n < seqlen_k, other=0.0).to(tl.float32)[None, :]
        elif BIAS == "matrix":
            inside = (m[:, None] < seqlen_q) & (n[None, :] < seqlen_k)
            b = tl.load(bias_ptrs, mask=inside, other=0.0).to(tl.float32)
        scores = scores * scale + b
    return scores


@EVEN
@triton.jit
def forward_kernel(
    Q, K, V, Bias, Out, Lse, TMP, scale, q_b, q_h, q_m, k_b, k_h, k_n, v_b, v_h, v_n,
    bias_b, bias_h, bias_m, o_b, o_h, o_m, heads, seqlen_q, seqlen_k, rounded, width,
    BIAS: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_D: tl.constexpr, EVEN_M: tl.constexpr,
    EVEN_N: tl.constexpr, EVEN_D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    start_m = tl.program_id(0)
    pair = tl.program_id(1)
    b, h = pair // heads, pair % heads
    m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.arange(0, BLOCK_N)
    d = tl.arange(0, BLOCK_D)
    q_ptrs = Q + b * q_b + h * q_h + (m[:, None] * q_m + d[None, :])
    k_ptrs = K + b * k_b + h * k_h + (n[:, None] * k_n + d[None, :])
    v_ptrs = V + b * v_b + h * v_h + (n[:, None] * v_n + d[None, :])
    if BIAS == "vector":
        bias = Bias + b * bias_b + h * bias_h
        bias_ptrs = bias
    elif BIAS == "matrix":
        bias = Bias + b * bias_b + h * bias_h
        bias_ptrs = bias + (m[:, None] * bias_m + n[None, :])
    else:
        bias = Bias
        bias_ptrs = Bias
    tmp_ptrs = TMP + pair * rounded + m
    lse = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    top = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    acc = tl.zeros([BLOCK_M, BLOCK_D], dtype=tl.float32)
    q = rows_of(q_ptrs, m, seqlen_q, d, width, EVEN_M, EVEN_D)
    end = seqlen_k if not CAUSAL else tl.minimum((start_m + 1) * BLOCK_M, seqlen_k)
    for start in range(0, end, BLOCK_N):
        start = tl.multiple_of(start, BLOCK_N)  # noqa: PLW2901
        k = rows_of(k_ptrs + start * k_n, start + n, seqlen_k, d, width, EVEN_N, EVEN_D)
        scores = scores_of(
            q, k, bias, bias_ptrs + start, m, start + n, seqlen_q, seqlen_k, scale, BIAS, CAUSAL,
            EVEN_N,
        )  # fmt: skip
        new_top = tl.maximum(tl.max(scores, 1), lse)
        p = tl.exp(scores - new_top[:, None])
        total = tl.sum(p, 1)
        # through memory and back, as the original does
        tl.store(tmp_ptrs, tl.exp(top - new_top))
        acc = acc * tl.load(tmp_ptrs)[:, None]
        v = rows_of(v_ptrs + start * v_n, start + n, seqlen_k, d, width, EVEN_N, EVEN_D)
        acc += tl.dot(p.to(v.dtype), v)
        top = new_top
        lse = new_top + tl.log(tl.exp(lse - new_top) + total)
    tl.store(tmp_ptrs, tl.exp(top - lse))
    acc = acc * tl.load(tmp_ptrs)[:, None]
    m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    tl.store(Lse + pair * rounded + m, lse)
    out_ptrs = Out + b * o_b + h * o_h + (m[:, None] * o_m + d[None, :])
    tl.store(out_ptrs, acc, mask=(m[:, None] < seqlen_q) & (d[None, :] < width))


@EVEN
@triton.jit
def backward_kernel(
    Q, K, V, Bias, DO, DQ, DK, DV, Lse, D, scale, q_b, q_h, q_m, bias_b, bias_h, bias_m,
    heads, seqlen_q, seqlen_k, rounded, width,
    BIAS: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_D: tl.constexpr, EVEN_M: tl.constexpr,
    EVEN_N: tl.constexpr, EVEN_D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """All tensors have the strides of Q, and are as long."""
    block = tl.program_id(0)
    pair = tl.program_id(1)
    b, h = pair // heads, pair % heads
    at = b * q_b + h * q_h
    n = block * BLOCK_N + tl.arange(0, BLOCK_N)
    d = tl.arange(0, BLOCK_D)
    begin = 0 if not CAUSAL else ((block * BLOCK_N) // BLOCK_M) * BLOCK_M
    n_at = at + n[:, None] * q_m + d[None, :]
    k = rows_of(K + n_at, n, seqlen_k, d, width, EVEN_N, EVEN_D)
    v = rows_of(V + n_at, n, seqlen_k, d, width, EVEN_N, EVEN_D)
    dk = tl.zeros([BLOCK_N, BLOCK_D], dtype=tl.float32)
    dv = tl.zeros([BLOCK_N, BLOCK_D], dtype=tl.float32)
    bias = Bias
    if BIAS != "none":
        bias += b * bias_b + h * bias_h
    for start in range(begin, seqlen_q, BLOCK_M):
        m = start + tl.arange(0, BLOCK_M)
        m_at = at + m[:, None] * q_m + d[None, :]
        q = rows_of(Q + m_at, m, seqlen_q, d, width, EVEN_M, EVEN_D)
        do = rows_of(DO + m_at, m, seqlen_q, d, width, EVEN_M, EVEN_D)
        bias_ptrs = bias + (m[:, None] * bias_m + n[None, :]) if BIAS == "matrix" else bias
        scores = scores_of(
            q, k, bias, bias_ptrs, m, n, seqlen_q, seqlen_k, scale, BIAS, CAUSAL, EVEN_N
        )
        lse = tl.load(Lse + pair * rounded + m)
        p = tl.exp(scores - lse[:, None])
        if not EVEN_M:
            p = tl.where(m[:, None] < seqlen_q, p, 0.0)
        dv += tl.dot(tl.trans(p).to(do.dtype), do)
        dp = tl.dot(do, tl.trans(v))
        delta = tl.load(D + pair * rounded + m)
        ds = (p * (dp - delta[:, None]) * scale).to(q.dtype)
        dk += tl.dot(tl.trans(ds), q)
        inside = (m[:, None] < seqlen_q) & (d[None, :] < width)
        tl.atomic_add(DQ + m_at, tl.dot(ds, k), mask=inside, sem="relaxed")
    inside = (n[:, None] < seqlen_k) & (d[None, :] < width)
    tl.store(DK + n_at, dk, mask=inside)
    tl.store(DV + n_at, dv, mask=inside)


BLOCKS = {"BLOCK_M": 16, "BLOCK_N": 16}


class Attention(torch.autograd.Function):
    """Of (batch, length, heads, width)."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, bias: Any, causal: bool) -> Any:
        batch, length, heads, width = q.shape
        rounded = -(-length // 16) * 16
        lse = torch.empty((batch * heads, rounded), device=q.device)
        tmp, out = torch.empty_like(lse), torch.empty_like(q)
        kind = "none" if bias is None else ("vector" if bias.shape[2] == 1 else "matrix")
        full = q if bias is None else bias.expand(batch, heads, -1, length)
        strides = (0, 0, 0) if bias is None else full.stride()[:3]
        meta = {
            "BIAS": kind, "CAUSAL": causal, "BLOCK_D": triton.next_power_of_2(width), **BLOCKS,
        }  # fmt: skip
        of = lambda x: (x.stride(0), x.stride(2), x.stride(1))
        grid = lambda meta: (triton.cdiv(length, meta["BLOCK_M"]), batch * heads)
        forward_kernel[grid](
            q, k, v, full, out, lse, tmp, width**-0.5, *of(q), *of(k), *of(v), *strides, *of(out),
            heads, length, length, rounded, width, **meta, num_warps=4, num_stages=1,
        )  # fmt: skip
        ctx.save_for_backward(q, k, v, full, out, lse)
        ctx.launch = strides, rounded, meta
        return out

    @staticmethod
    def backward(ctx: Any, do: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        q, k, v, bias, out, lse = ctx.saved_tensors
        strides, rounded, meta = ctx.launch
        batch, length, heads, width = q.shape
        delta = torch.zeros_like(lse)
        delta[:, :length] = (out * do).sum(-1).transpose(1, 2).reshape(-1, length)
        dq, dk, dv = torch.zeros_like(q), torch.empty_like(k), torch.empty_like(v)
        grid = lambda meta: (triton.cdiv(length, meta["BLOCK_N"]), batch * heads)
        backward_kernel[grid](
            q, k, v, bias, do.contiguous(), dq, dk, dv, lse, delta, width**-0.5,
            q.stride(0), q.stride(2), q.stride(1), *strides, heads, length, length, rounded, width,
            **meta, num_warps=4, num_stages=1,
        )  # fmt: skip
        return dq, dk, dv, None, None


CASES = {"vector": (32, False, (1, 1, 1, 32)), "matrix": (21, True, (1, 2, 21, 21))}


@pytest.mark.parametrize("kind", CASES)
def test_gradients_are_those_of_attention(device: str, kind: str) -> None:
    length, causal, shape = CASES[kind]
    width = 20
    leaves = [torch.randn(1, length, 2, width, device=device) for _ in range(3)]
    bias = None if shape is None else torch.randn(*shape, device=device)
    wide = [leaf.double().requires_grad_() for leaf in leaves]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    q, k, v = (x.transpose(1, 2) for x in wide)
    scores = q @ k.mT * width**-0.5 + (0 if bias is None else bias.double())
    hidden = torch.ones(length, length, dtype=torch.bool, device=device).triu(1)
    scores = scores.masked_fill(hidden, float("-inf")) if causal else scores
    expected = (scores.softmax(-1) @ v).transpose(1, 2)
    d = torch.randn(1, length, 2, width, device=device)
    expected.backward(d.double())
    found = Attention.apply(*leaves, bias, causal)
    found.backward(d)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)
    for mine, true in zip(leaves, wide, strict=True):
        torch.testing.assert_close(mine.grad.double(), true.grad, rtol=1e-4, atol=1e-4)
