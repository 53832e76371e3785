"""Products with columns of 4-bit weights, chosen by an autotuner that the author has written.

After fpgaminer/GPTQ-triton, `src/gptq_triton/quant_linear.py` and `custom_autotune.py`: a class
derived from `triton.KernelInterface` that launches `self.fn.run` with the keywords of a `Config`,
programs in groups with Python's `min`, words that are loaded eight times and shifted by rows, and
products of integers with fp16.
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


class NearestPowerTuner(triton.KernelInterface):
    """Chooses once for all sizes with the same next powers of two."""

    def __init__(self, fn: Any, arg_names: Any, configs: Any, key: Any, pruner: Any) -> None:
        self.fn, self.arg_names, self.configs, self.pruner = fn, arg_names, configs, pruner
        self.places = [arg_names.index(name) for name in key]
        self.chosen: dict[Any, Any] = {}
        self.tried = 0

    def run(self, *args: Any, **keywords: Any) -> Any:
        named = dict(zip(self.arg_names, args, strict=False))
        key = tuple(triton.next_power_of_2(args[place]) for place in self.places)
        if key not in self.chosen:
            left = self.pruner(self.configs, named)
            for config in left:
                self.tried += 1
                self._launch(config, args, keywords)
            self.chosen[key] = left[-1]
        return self._launch(self.chosen[key], args, keywords)

    def _launch(self, config: Any, args: Any, keywords: Any) -> Any:
        launch = {"num_warps": config.num_warps, "num_stages": config.num_stages}
        return self.fn.run(*args, **launch, **keywords, **config.kwargs)


def autotune(configs: Any, key: Any, pruner: Any) -> Any:
    return lambda fn: NearestPowerTuner(fn, fn.arg_names, configs, key, pruner)


def fitting(configs: Any, named: Any) -> Any:
    return [c for c in configs if c.kwargs["BLOCK_N"] <= named["N"]]


@autotune(
    configs=[
        triton.Config(
            {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 32, "GROUP_M": 2}, num_stages=s, num_warps=w
        )
        for m, n, s, w in [(16, 256, 4, 4), (16, 32, 2, 4), (32, 16, 3, 2)]
    ],
    key=["M", "N", "K"],
    pruner=fitting,
)
@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, scales_ptr, zeros_ptr, M, N, K, a_row, a_column, b_row, b_column,
    c_row, c_column, scales_stride, zeros_stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    down, across = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * across
    first = pid // in_group * GROUP_M
    rows = min(down - first, GROUP_M)
    i = first + (pid % rows)
    j = (pid % in_group) // rows
    m = i * BLOCK_M + tl.arange(0, BLOCK_M)
    n = j * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (m[:, None] * a_row + k[None, :] * a_column)
    b_ptrs = b_ptr + ((k[:, None] // 8) * b_row + n[None, :] * b_column)
    shifts = (k % 8) * 4
    scales = tl.load(scales_ptr + n * scales_stride)
    zeros = tl.load(zeros_ptr + (n // 8) * zeros_stride)
    zeros = (zeros >> ((n % 8) * 4)) & 0xF
    zeros = (zeros + 1) * scales
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=m[:, None] < M, other=0.0)
        b = tl.load(b_ptrs)
        b = (b >> shifts[:, None]) & 0xF
        b = b * scales[None, :] - zeros[None, :]
        total += tl.dot(a, b)
        a_ptrs += BLOCK_K * a_column
        b_ptrs += (BLOCK_K // 8) * b_row
    c_ptrs = c_ptr + c_row * m[:, None] + c_column * n[None, :]
    tl.store(c_ptrs, total, mask=(m[:, None] < M) & (n[None, :] < N))


def product(a: Any, words: Any, scales: Any, zeros: Any, bias: Any) -> Any:
    x = a.view(-1, a.shape[-1])
    (m, k), n = x.shape, words.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=torch.float16)
    grid = lambda meta: (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),)
    product_kernel[grid](
        x, words, c, scales, zeros, m, n, k, *x.stride(), *words.stride(), *c.stride(),
        scales.stride(1), zeros.stride(1),
    )  # fmt: skip
    return c.view(*a.shape[:-1], n) + bias


def packed(values: Any, axis: int) -> Any:
    """Eight numbers of 4 bits in an int32, along an axis."""
    parts = values.long().unflatten(axis, (-1, 8)).movedim(axis + 1, 0)
    shifts = 4 * torch.arange(8).view(8, 1, 1)
    return (parts << shifts).sum(0).to(torch.int32)


def test_products_with_columns_of_four_bits(device: str) -> None:
    k, n = 96, 64
    product_kernel.chosen.clear()
    product_kernel.tried = 0
    values, zeros = torch.randint(16, (k, n)), torch.randint(15, (1, n))
    scales = torch.rand(1, n, device=device).half()
    bias = torch.randn(n, device=device).half()
    words, lines = packed(values, 0).to(device), packed(zeros, 1).to(device)
    matrix = (values - zeros - 1).to(device).double() * scales.double()
    for rows in (7, 5):
        a = torch.randn(3, rows, k, device=device).half()
        found = product(a, words, scales, lines, bias)
        expected = a.double() @ matrix + bias.double()
        torch.testing.assert_close(found.double(), expected, rtol=1e-2, atol=0.3)
    assert product_kernel.tried == 4  # two of three fit; 21 and 15 rows are different powers
