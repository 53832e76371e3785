"""Products with weights of 4 bits, eight in a word and in an order of their own.

After vllm-project/vllm, `vllm/model_executor/layers/quantization/awq_triton.py`: words spread by
three `interleave`s, shifts computed from small `arange`s by reshape and broadcast, tiles of one
row, `ptr.type.element_ty`, loads without `other`, `dot` with an accumulator and `out_dtype`, and
partial sums along K that the host adds up.
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


ORDER = [0, 4, 1, 5, 2, 6, 3, 7]
"""Which 4 bits of a word belong to each of eight columns."""


@triton.jit
def shifts_of(ROWS: tl.constexpr, WORDS: tl.constexpr):
    order = ((tl.arange(0, 2) * 4)[None, :] + tl.arange(0, 4)[:, None]).reshape(8)
    shifts = tl.broadcast_to((order * 4)[None, :], (ROWS * WORDS, 8))
    return tl.reshape(shifts, (ROWS, WORDS * 8))


@triton.jit
def spread(words):
    words = tl.interleave(words, words)
    words = tl.interleave(words, words)
    return tl.interleave(words, words)


@triton.jit
def dequantize_kernel(
    words_ptr, scales_ptr, zeros_ptr, group, out_ptr, words_in_row, rows,
    WORDS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    j, i = tl.program_id(axis=0), tl.program_id(axis=1)
    row = i * ROWS + tl.arange(0, ROWS)
    word = j * WORDS + tl.arange(0, WORDS)
    column = j * WORDS * 8 + tl.arange(0, WORDS * 8)
    inside = (row < rows)[:, None] & (word < words_in_row)[None, :]
    words = spread(tl.load(words_ptr + words_in_row * row[:, None] + word[None, :], inside))
    shifts = shifts_of(ROWS, WORDS)
    words = (words >> shifts) & 0xF
    line = i * ROWS // group + tl.arange(0, 1)
    there = (line < rows // group)[:, None] & (word < words_in_row)[None, :]
    zeros = spread(tl.load(zeros_ptr + words_in_row * line[:, None] + word[None, :], there))
    zeros = (tl.broadcast_to(zeros, (ROWS, WORDS * 8)) >> shifts) & 0xF
    there = (line < rows // group)[:, None] & (column < words_in_row * 8)[None, :]
    scales = tl.load(scales_ptr + words_in_row * 8 * line[:, None] + column[None, :], there)
    scales = tl.broadcast_to(scales, (ROWS, WORDS * 8))
    value = ((words - zeros) * scales).to(out_ptr.type.element_ty)
    at = 8 * words_in_row * row[:, None] + column[None, :]
    tl.store(out_ptr + at, value, (row < rows)[:, None] & (column < words_in_row * 8)[None, :])


@triton.jit
def product_kernel(
    a_ptr, words_ptr, c_ptr, zeros_ptr, scales_ptr, M, N, K, group,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    split = tl.program_id(1)
    columns_of_tiles = tl.cdiv(N, BLOCK_N)
    i = tl.program_id(axis=0) // columns_of_tiles
    j = tl.program_id(axis=0) % columns_of_tiles
    element = c_ptr.type.element_ty
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=element)
    shifts = shifts_of(BLOCK_K, BLOCK_N // 8)
    row = i * BLOCK_M + tl.arange(0, BLOCK_M)
    word = j * (BLOCK_N // 8) + tl.arange(0, BLOCK_N // 8)
    column = j * BLOCK_N + tl.arange(0, BLOCK_N)
    k = split * BLOCK_K + tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (K * row[:, None] + k[None, :])
    word_ptrs = words_ptr + ((N // 8) * k[:, None] + word[None, :])
    for step in range(0, tl.cdiv(K, BLOCK_K * SPLITS)):
        a = tl.load(a_ptrs, mask=(row < M)[:, None] & (k < K)[None, :])
        inside = (k < K)[:, None] & (word < N // 8)[None, :]
        b = spread(tl.load(word_ptrs, mask=inside))
        line = (BLOCK_K * SPLITS * step + split * BLOCK_K) // group + tl.arange(0, 1)
        there = (line < K // group)[:, None] & (word < N // 8)[None, :]
        zeros = tl.load(zeros_ptr + (N // 8) * line[:, None] + word[None, :], mask=there)
        zeros = tl.broadcast_to(spread(zeros), (BLOCK_K, BLOCK_N))
        there = (line < K // group)[:, None] & (column < N)[None, :]
        scales = tl.load(scales_ptr + N * line[:, None] + column[None, :], mask=there)
        scales = tl.broadcast_to(scales, (BLOCK_K, BLOCK_N))
        b = (((b >> shifts) & 0xF) - ((zeros >> shifts) & 0xF)) * scales
        total = tl.dot(a, b.to(element), total, out_dtype=element)
        k += BLOCK_K * SPLITS
        a_ptrs += BLOCK_K * SPLITS
        word_ptrs += BLOCK_K * SPLITS * (N // 8)
    at = c_ptr + split * N * M + N * row[:, None] + column[None, :]
    tl.store(at, total.to(element), mask=(row[:, None] < M) & (column[None, :] < N))


def packed(values: Any) -> Any:
    """Eight columns of 4 bits in each int32."""
    words = torch.zeros(values.shape[0], values.shape[1] // 8, dtype=torch.int64)
    for column in range(8):
        words |= values[:, column::8].long() << (4 * ORDER[column])
    return words.to(torch.int32)


def weights(k: int, n: int, group: int, device: str) -> Any:
    """Words, scales and zeros, and the matrix that they mean in fp64."""
    values, zeros = torch.randint(16, (k, n)), torch.randint(16, (k // group, n))
    scales = (torch.rand(k // group, n) + 0.5).half()
    spread_out = (each.double().repeat_interleave(group, 0) for each in (zeros, scales))
    lines, factors = spread_out
    matrix = (values.double() - lines) * factors
    given = packed(values), scales, packed(zeros)
    return [x.to(device) for x in given], matrix.to(device)


def test_words_are_dequantized_in_their_order(device: str) -> None:
    (words, scales, zeros), expected = weights(64, 40, 32, device)
    rows, in_row = words.shape
    found = torch.empty(rows, in_row * 8, device=device, dtype=scales.dtype)
    grid = lambda meta: (triton.cdiv(in_row, meta["WORDS"]), triton.cdiv(rows, meta["ROWS"]))
    dequantize_kernel[grid](words, scales, zeros, 32, found, in_row, rows, WORDS=4, ROWS=32)
    # one rounding to fp16, of a product that is exact in fp32
    assert torch.equal(found, expected.half())


@pytest.mark.parametrize("splits", [1, 2])
def test_products_add_up_along_k(device: str, splits: int) -> None:
    (words, scales, zeros), matrix = weights(96, 40, 32, device)
    a = torch.randn(21, 96, device=device).half()
    out = torch.zeros((splits, 21, 40), dtype=scales.dtype, device=device)
    grid = lambda meta: (
        triton.cdiv(21, meta["BLOCK_M"]) * triton.cdiv(40, meta["BLOCK_N"]),
        splits,
    )
    product_kernel[grid](
        a, words, out, zeros, scales, 21, 40, 96, 32,
        BLOCK_M=16, BLOCK_N=32, BLOCK_K=32, SPLITS=splits,
    )  # fmt: skip
    # partial sums are kept in fp16
    expected = a.double() @ matrix.half().double()
    torch.testing.assert_close(out.sum(0).double(), expected, rtol=1e-2, atol=0.4)
