"""Matrices of fp8 with a scale for each block, made and multiplied.

After deepseek-ai/DeepSeek-V3, `inference/kernel.py`: a reduction of a whole tile, stores in the
element type of a pointer, sizes that are constexprs, rows that wrap around by `%`, scales that are
applied to each partial product, and configurations whose choice depends on the sizes.
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


LARGEST = 448.0
"""Of torch.float8_e4m3fn."""


@triton.jit
def quantize_rows_kernel(x_ptr, y_ptr, scale_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at).to(tl.float32)
    scale = tl.max(tl.abs(x)) / 448.0
    tl.store(y_ptr + at, (x / scale).to(y_ptr.dtype.element_ty))
    tl.store(scale_ptr + tl.program_id(axis=0), scale)


@triton.jit
def dequantize_kernel(x_ptr, scale_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    i, j = tl.program_id(axis=0), tl.program_id(axis=1)
    row = i * BLOCK + tl.arange(0, BLOCK)
    column = j * BLOCK + tl.arange(0, BLOCK)
    at = row[:, None] * N + column[None, :]
    inside = (row[:, None] < M) & (column[None, :] < N)
    x = tl.load(x_ptr + at, mask=inside).to(tl.float32)
    scale = tl.load(scale_ptr + i * tl.cdiv(N, BLOCK) + j)
    tl.store(y_ptr + at, x * scale, mask=inside)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 32}, num_stages=s, num_warps=4)
        for m, n, s in [(16, 32, 3), (64, 16, 2)]
    ],
    key=["N", "K"],
)
@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, a_scale_ptr, b_scale_ptr, M, N: tl.constexpr, K: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    i, j = tl.program_id(axis=0), tl.program_id(axis=1)
    steps = tl.cdiv(K, BLOCK_K)
    row = (i * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    column = (j * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + row[:, None] * K + k[None, :]
    b_ptrs = b_ptr + column[None, :] * K + k[:, None]
    a_scales = a_scale_ptr + row * steps
    b_scales = b_scale_ptr + (column // BLOCK_K) * steps
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(steps):
        a = tl.load(a_ptrs, mask=k[None, :] < K - step * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=k[:, None] < K - step * BLOCK_K, other=0.0)
        a_scale = tl.load(a_scales)
        b_scale = tl.load(b_scales)
        total += tl.dot(a, b) * a_scale[:, None] * b_scale[None, :]
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
        a_scales += 1
        b_scales += 1
    row = i * BLOCK_M + tl.arange(0, BLOCK_M)
    column = j * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = (row[:, None] < M) & (column[None, :] < N)
    tl.store(
        c_ptr + row[:, None] * N + column[None, :], total.to(c_ptr.dtype.element_ty), mask=inside
    )


def quantize_rows(x: Any, block: int) -> Any:
    y = torch.empty_like(x, dtype=torch.float8_e4m3fn)
    scales = x.new_empty(*x.size()[:-1], x.size(-1) // block, dtype=torch.float32)
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
    quantize_rows_kernel[grid](x, y, scales, BLOCK=block)
    return y, scales


def dequantize(x: Any, scales: Any, block: int) -> Any:
    rows, columns = x.size()
    y = torch.empty_like(x, dtype=torch.get_default_dtype())
    grid = lambda meta: (triton.cdiv(rows, meta["BLOCK"]), triton.cdiv(columns, meta["BLOCK"]))
    dequantize_kernel[grid](x, scales, y, rows, columns, BLOCK=block)
    return y


def product(a: Any, a_scales: Any, b: Any, b_scales: Any) -> Any:
    k, n = a.size(-1), b.size(0)
    m = a.numel() // k
    c = a.new_empty(*a.size()[:-1], n, dtype=torch.get_default_dtype())
    grid = lambda meta: (triton.cdiv(m, meta["BLOCK_M"]), triton.cdiv(n, meta["BLOCK_N"]))
    product_kernel[grid](a, b, c, a_scales, b_scales, m, n, k)
    return c


def test_each_block_is_scaled_to_the_largest_number(device: str) -> None:
    x = torch.randn(3, 5, 96, device=device)
    y, scales = quantize_rows(x, 32)
    blocks = x.double().unflatten(-1, (3, 32))
    torch.testing.assert_close(scales.double(), blocks.abs().amax(-1) / LARGEST)
    back = y.double().unflatten(-1, (3, 32)) * scales.double()[..., None]
    # half a unit in the last of 3 bits, or of the smallest number
    allowed = blocks.abs() / 16 + scales.double()[..., None] * 2.0**-10
    assert ((back - blocks).abs() <= allowed * 1.001).all()


def test_a_matrix_is_scaled_back(device: str) -> None:
    x = torch.randn(45, 70, device=device).to(torch.float8_e4m3fn)
    scales = torch.rand(2, 3, device=device)
    spread = scales.double().repeat_interleave(32, 0).repeat_interleave(32, 1)[:45, :70]
    found = dequantize(x, scales, 32)
    torch.testing.assert_close(found.double(), x.double() * spread, rtol=1e-6, atol=0)


def test_products_are_scaled_by_blocks(device: str) -> None:
    a, a_scales = quantize_rows(torch.randn(1, 21, 96, device=device), 32)
    b = torch.randn(45, 96, device=device).to(torch.float8_e4m3fn)
    b_scales = torch.rand(2, 3, device=device)
    wide_a = a.double() * a_scales.double().repeat_interleave(32, -1)
    wide_b = b.double() * b_scales.double().repeat_interleave(32, 0)[:45].repeat_interleave(32, 1)
    found = product(a, a_scales, b, b_scales)
    torch.testing.assert_close(found.double(), wide_a @ wide_b.T, rtol=2e-3, atol=2e-3)
