"""Rows of sequences of all lengths times a matrix for each sequence, and its gradients.

After facebookresearch/generative-recommenders, `ops/triton/triton_jagged.py`: masks joined by
`and`, 64-bit starts added to pointers, early returns on run-time lengths, heuristics inside of an
autotuner, a flag for TF32, and a reduction over sequences with a mask for each part.
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


def configs() -> list[Any]:
    blocks = [(16, 32, 16), (32, 16, 32)]
    return [
        triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_stages=2, num_warps=4)
        for m, n, k in blocks
    ]


@triton.autotune(configs=configs(), key=["LONGEST", "N", "K"])
@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["BLOCK_K"] == 0})
@triton.jit
def product_kernel(
    starts, X, W, Bias, Out, LONGEST, N, K, x_row, w_batch, w_k, w_n, bias_batch, out_row,
    HAS_BIAS: tl.constexpr, ALLOW_TF32: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, EVEN_K: tl.constexpr,
):  # fmt: skip
    first_n = tl.program_id(0) * BLOCK_N
    first_m = tl.program_id(1) * BLOCK_M
    batch = tl.program_id(2)
    start = tl.load(starts + batch).to(tl.int64)
    end = tl.load(starts + batch + 1)
    length = end - start
    if first_m >= length:
        return
    X += start * x_row
    W += batch.to(tl.int64) * w_batch
    Out += start * out_row
    m = first_m + tl.arange(0, BLOCK_M)
    n = first_n + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    x_ptrs = X + m[:, None] * x_row + k[None, :]
    w_ptrs = W + k[:, None] * w_k + n[None, :] * w_n
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for at in range(0, K, BLOCK_K):
        if EVEN_K:
            x = tl.load(x_ptrs, mask=m[:, None] < length, other=0.0)
            w = tl.load(w_ptrs, mask=n[None, :] < N, other=0.0)
        else:
            x = tl.load(x_ptrs, mask=(m[:, None] < length) and ((at + k)[None, :] < K), other=0.0)
            w = tl.load(w_ptrs, mask=((at + k)[:, None] < K) and (n[None, :] < N), other=0.0)
        total += tl.dot(x, w, allow_tf32=ALLOW_TF32)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K * w_k
    if HAS_BIAS:
        bias = tl.load(Bias + batch * bias_batch + n, mask=n < N, other=0.0)
        total += bias[None, :].to(tl.float32)
    out = total.to(Out.dtype.element_ty)
    tl.store(
        Out + m[:, None] * out_row + n[None, :], out, mask=(m[:, None] < length) & (n[None, :] < N)
    )


@triton.jit
def weights_kernel(
    starts, X, D, Out, Bias, N, K, x_row, d_row, ALLOW_TF32: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Out[b] = X[b]^T D[b], and the sums of D over the rows of each sequence."""
    batch = tl.program_id(0)
    k = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    n = tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N)
    start = tl.load(starts + batch).to(tl.int64)
    length = tl.load(starts + batch + 1) - start
    X += start * x_row
    D += start * d_row
    total = tl.zeros((BLOCK_K, BLOCK_N), dtype=tl.float32)
    sums = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for first in range(0, length, BLOCK_M):
        m = first + tl.arange(0, BLOCK_M)
        x = tl.load(
            X + m[None, :] * x_row + k[:, None],
            mask=(m[None, :] < length) and (k[:, None] < K),
            other=0.0,
        )
        d = tl.load(
            D + m[:, None] * d_row + n[None, :],
            mask=(m[:, None] < length) and (n[None, :] < N),
            other=0.0,
        )
        total += tl.dot(x, d, allow_tf32=ALLOW_TF32)
        sums += tl.sum(d.to(tl.float32), axis=0)
    at = batch * K * N + k[:, None] * N + n[None, :]
    tl.store(Out + at, total.to(Out.dtype.element_ty), mask=(k[:, None] < K) & (n[None, :] < N))
    if tl.program_id(1) == 0:
        tl.store(Bias + batch * N + n, sums, mask=n < N)


def product(longest: int, starts: Any, x: Any, w: Any, bias: Any) -> Any:
    batch, k, n = w.shape
    out = torch.empty(x.shape[0], n, device=x.device, dtype=x.dtype)
    grid = lambda meta: (
        triton.cdiv(n, meta["BLOCK_N"]),
        triton.cdiv(longest, meta["BLOCK_M"]),
        batch,
    )
    product_kernel[grid](
        starts, x, w, bias, out, triton.next_power_of_2(longest), n, k, x.stride(0), *w.stride(),
        0 if bias is None else bias.stride(0), out.stride(0), HAS_BIAS=bias is not None,
        ALLOW_TF32=False,
    )  # fmt: skip
    return out


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, longest: int, starts: Any, x: Any, w: Any, bias: Any) -> Any:
        ctx.longest = longest
        ctx.save_for_backward(starts, x, w)
        return product(longest, starts, x, w, bias)

    @staticmethod
    def backward(ctx: Any, d: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        starts, x, w = ctx.saved_tensors
        batch, k, n = w.shape
        dx = product(ctx.longest, starts, d, w.transpose(1, 2), None)
        dw, d_bias = torch.empty_like(w), torch.empty(batch, n, device=w.device)
        weights_kernel[(batch, triton.cdiv(k, 16), triton.cdiv(n, 32))](
            starts, x, d, dw, d_bias, n, k, x.stride(0), d.stride(0), ALLOW_TF32=False,
            BLOCK_M=16, BLOCK_N=32, BLOCK_K=16,
        )  # fmt: skip
        return None, None, dx, dw, d_bias


@pytest.mark.parametrize(("k", "n"), [(21, 33), (32, 10)])
def test_gradients_are_those_of_each_sequence(device: str, k: int, n: int) -> None:
    lengths = [19, 0, 33]
    starts = torch.tensor([0, 19, 19, 52], device=device)
    shapes = [(52, k), (3, k, n), (3, n)]
    leaves = [torch.randn(*shape, device=device) for shape in shapes]
    wide = [leaf.double().requires_grad_() for leaf in leaves]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    parts = zip(wide[0].split(lengths), wide[1], wide[2], strict=True)
    expected = torch.cat([x @ w + bias for x, w, bias in parts])
    d = torch.randn(52, n, device=device)
    expected.backward(d.double())
    found = Product.apply(33, starts, *leaves)
    found.backward(d)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4)
    for mine, true in zip(leaves, wide, strict=True):
        torch.testing.assert_close(mine.grad.double(), true.grad, rtol=1e-5, atol=1e-4)
