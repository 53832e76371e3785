"""Products of tokens with the weights of their experts, by programs that each take many tiles.

After unslothai/unsloth, `unsloth/kernels/moe/grouped_gemm/kernels/forward.py`: descriptors that are
made in the kernel, one of them under a run-time `if`, a `while` inside of a flattened loop that
carries a program id, annotated locals, constexprs made of constexprs, a default that is a dtype,
`w.T`, hints on indices that wrap, and an autotuner around the kernel with a pruning function.
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
def described_product(
    x_desc, w_desc, row, column, expert, K: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, acc_dtype: tl.constexpr,
):  # fmt: skip
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=acc_dtype)
    for offset in range(0, K, BLOCK_K):
        w = tl.reshape(w_desc.load([expert, column, offset]), (BLOCK_N, BLOCK_K))
        total += tl.dot(x_desc.load([row, offset]).to(w.dtype), w.T)
    return total


@triton.jit
def product(
    x_ptrs, w_ptrs, inside, K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, acc_dtype: tl.constexpr,
):  # fmt: skip
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=acc_dtype)
    for _ in range(0, K, BLOCK_K):
        x = tl.load(x_ptrs, mask=inside, other=0.0)
        w = tl.load(w_ptrs)
        total += tl.dot(x.to(w.dtype), w.T)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    return total


@triton.jit
def experts_kernel(
    x_ptr, w_ptr, y_ptr, sizes_ptr, order_ptr, weights_ptr,
    EXPERTS: tl.constexpr, tokens, TOP: tl.constexpr, N: tl.constexpr, K: tl.constexpr, programs,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GATHER: tl.constexpr = False, SCATTER: tl.constexpr = False, WEIGHTED: tl.constexpr = False,
    DESCRIBED: tl.constexpr = False, acc_dtype: tl.constexpr = tl.float32,
    FLATTEN: tl.constexpr = True,
) -> None:  # fmt: skip
    tl.static_assert(K % BLOCK_K == 0)
    rows = tokens * TOP
    ORDERED: tl.constexpr = GATHER or SCATTER or WEIGHTED
    tile = tl.program_id(0)
    element: tl.dtype = y_ptr.dtype.element_ty
    if DESCRIBED:
        x_desc = tl.make_tensor_descriptor(
            x_ptr, shape=[rows, K], strides=[K, 1], block_shape=[BLOCK_M, BLOCK_K]
        )
        w_desc = tl.make_tensor_descriptor(
            w_ptr, [EXPERTS, N, K], [N * K, K, 1], block_shape=[1, BLOCK_N, BLOCK_K]
        )
    end, done, k = 0, 0, tl.arange(0, BLOCK_K)
    for expert in tl.range(EXPERTS, flatten=FLATTEN):
        start = end
        size = tl.load(sizes_ptr + expert).to(tl.int32)
        end = start + size
        if size > 0:
            down = tl.cdiv(size, BLOCK_M)
            tiles = down * tl.cdiv(N, BLOCK_N)
            if DESCRIBED:
                y_desc = tl.make_tensor_descriptor(
                    y_ptr, shape=[end, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N]
                )
            while tile >= done and tile < done + tiles:
                row = (tile - done) % down * BLOCK_M
                column = (tile - done) // down * BLOCK_N
                if DESCRIBED:
                    y = described_product(
                        x_desc, w_desc, start + row, column, expert,
                        K, BLOCK_M, BLOCK_N, BLOCK_K, acc_dtype,
                    )  # fmt: skip
                    y_desc.store([start + row, column], y.to(element))
                else:
                    n, m = column + tl.arange(0, BLOCK_N), row + tl.arange(0, BLOCK_M)
                    inside = (m < size)[:, None]
                    at = (start + m)[:, None]
                    if ORDERED:
                        at = start + tl.max_contiguous(tl.multiple_of(m % size, BLOCK_M), BLOCK_M)
                        use = tl.load(order_ptr + at, mask=at < rows, other=0)[:, None]
                        at = at[:, None]
                    x_ptrs = x_ptr + (use // TOP if GATHER else at) * K + k[None, :]
                    wrapped = tl.max_contiguous(tl.multiple_of(n % N, BLOCK_N), BLOCK_N)
                    w_ptrs = w_ptr + (expert * N + wrapped[:, None]) * K + k[None, :]
                    y = product(x_ptrs, w_ptrs, inside, K, BLOCK_M, BLOCK_N, BLOCK_K, acc_dtype)
                    y = y.to(element)
                    if WEIGHTED:
                        y *= tl.load(weights_ptr + use, mask=inside, other=0.0).to(element)
                    y_ptrs = y_ptr + (use if SCATTER else at) * N + n[None, :]
                    tl.store(y_ptrs, y, mask=inside & (n[None, :] < N))
                tile += programs
            done += tiles


def prune(configs: Any, named: Any, **keywords: Any) -> Any:
    return [config for config in configs if named["K"] % config.kwargs["BLOCK_K"] == 0]


tuned_kernel = triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_warps=4, num_stages=2)
        for m, n, k in [(16, 16, 64), (16, 32, 32), (32, 16, 16)]
    ],
    prune_configs_by={"early_config_prune": prune},
    key=["EXPERTS", "N", "K", "GATHER", "SCATTER", "WEIGHTED", "DESCRIBED"],
)(experts_kernel)

EXPERTS, TOP, PROGRAMS = 4, 2, 3


def routed(tokens: int, device: str) -> Any:
    """The experts of each token, sizes of their groups, and uses in the order of experts."""
    chosen = torch.rand(tokens, EXPERTS - 1, device=device).topk(TOP).indices  # one expert is idle
    sizes = torch.bincount(chosen.flatten(), minlength=EXPERTS)
    return chosen, sizes, chosen.flatten().argsort(stable=True)


def launch(x: Any, w: Any, sizes: Any, order: Any, weights: Any, tokens: int, **flags: Any) -> Any:
    y = torch.empty(tokens * TOP, w.shape[1], device=x.device, dtype=x.dtype)
    triton.set_allocator(
        lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=x.device)
    )
    tuned_kernel[(PROGRAMS,)](
        x, w, y, sizes, order, weights, EXPERTS, tokens, TOP, w.shape[1], w.shape[2], PROGRAMS,
        **flags,
    )  # fmt: skip
    return y


def matrices(tokens: int, n: int, k: int, device: str) -> Any:
    x = torch.randn(tokens, k, device=device).half()
    return x, torch.randn(EXPERTS, n, k, device=device).half()


def test_tokens_are_gathered_for_their_experts(device: str) -> None:
    tokens = 13
    x, w = matrices(tokens, 40, 96, device)
    chosen, sizes, order = routed(tokens, device)
    weights = torch.rand(tokens * TOP, device=device).half()
    found = launch(x, w, sizes, order, weights, tokens, GATHER=True, WEIGHTED=True)
    experts = chosen.flatten()[order]
    expected = torch.einsum("mk,mnk->mn", x[order // TOP].double(), w[experts].double())
    expected = expected * weights[order].double()[:, None]
    torch.testing.assert_close(found.double(), expected, rtol=4e-3, atol=2e-2)


@pytest.mark.parametrize("described", [False, True])
def test_rows_of_experts_are_multiplied(device: str, described: bool) -> None:
    tokens = 21
    chosen, sizes, order = routed(tokens, device)
    x, w = matrices(tokens * TOP, 48, 64, device)
    flags = {"DESCRIBED": True} if described else {"SCATTER": True}
    found = launch(x, w, sizes, order, x, tokens, **flags)
    expected = torch.einsum("mk,mnk->mn", x.double(), w[chosen.flatten()[order]].double())
    if not described:
        expected = torch.zeros_like(expected).index_copy(0, order, expected)
    torch.testing.assert_close(found.double(), expected, rtol=4e-3, atol=2e-2)
