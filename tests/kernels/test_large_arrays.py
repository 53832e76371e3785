"""Arrays of more than 2**31 elements: blocks at their end, read and written on a CPU and a GPU.

On CPUs the arrays are pages that nobody touched, but for the blocks at their end.
"""

from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright import jit
from tilewright.language import TensorDescriptor

ROWS, COLUMNS = 2**15 + 40, 2**16
ROW, COLUMN = ROWS - 33, COLUMNS - 40
"""Where a block of 64x64 begins that is partly outside."""

NEAR = (slice(ROW, None), slice(COLUMN, None))


@jit
def rows_kernel(x, out, row, column, ROWS, COLUMNS, BLOCK: tl.constexpr):
    i = row + tl.arange(0, BLOCK)[:, None]
    j = column + tl.arange(0, BLOCK)[None, :]
    place = i * COLUMNS + j
    inside = (i < ROWS) & (j < COLUMNS)
    tl.store(out + place, tl.load(x + place, inside, other=0) + 1, inside)


@jit
def described_kernel(x, out, row, column, BLOCK: tl.constexpr):
    out.store([row, column], x.load([row, column]) + 1)


@jit
def made_kernel(x, out, row, column, ROWS, COLUMNS, BLOCK: tl.constexpr):
    shape = [ROWS, COLUMNS]
    source = tl.make_tensor_descriptor(x, shape, [COLUMNS, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(out, shape, [COLUMNS, 1], [BLOCK, BLOCK])
    target.store([row, column], source.load([row, column]) + 1)


def by_rows(x: Any, out: Any) -> None:
    rows_kernel[(1,)](x, out, ROW, COLUMN, ROWS, COLUMNS, BLOCK=64, int64_offsets=True)


def by_descriptors(x: Any, out: Any) -> None:
    source, target = (TensorDescriptor.from_tensor(array, [64, 64]) for array in (x, out))
    described_kernel[(1,)](source, target, ROW, COLUMN, BLOCK=64)


def by_descriptors_of_the_kernel(x: Any, out: Any) -> None:
    made_kernel[(1,)](x, out, ROW, COLUMN, ROWS, COLUMNS, BLOCK=64)


WAYS = [by_rows, by_descriptors, by_descriptors_of_the_kernel]


@pytest.mark.parametrize("launch", WAYS)
def test_blocks_at_the_end_of_large_arrays_on_cpus(launch: Any, rng: np.random.Generator):
    assert ROWS * COLUMNS > 2**31
    x, out = (np.zeros((ROWS, COLUMNS), np.int8) for _ in range(2))
    x[NEAR] = rng.integers(-100, 100, x[NEAR].shape)
    launch(x, out)
    assert (out[NEAR] == x[NEAR] + 1).all()
    assert not out[ROW - 1].any()


@pytest.mark.gpu
@pytest.mark.parametrize("launch", WAYS)
def test_blocks_at_the_end_of_large_arrays_on_gpus(launch: Any):
    torch = pytest.importorskip("torch")
    x = torch.randint(-100, 100, (ROWS, COLUMNS), dtype=torch.int8, device="cuda")
    out = torch.zeros_like(x)
    launch(x, out)
    assert torch.equal(out[NEAR], x[NEAR] + 1)
    assert out.count_nonzero() == (x[NEAR] != -1).sum()


@jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, a_row, b_row, c_row,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    columns = tl.arange(0, BLOCK_N) % N
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * a_row + k[None, :]
    b_ptrs = b_ptr + k[:, None] * b_row + columns[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=k[None, :] < K - first, other=0.0)
        b = tl.load(b_ptrs, mask=k[:, None] < K - first, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * b_row
    i, j = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    inside = (i[:, None] < M) & (j[None, :] < N)
    tl.store(c_ptr + i[:, None] * c_row + j[None, :], acc.to(tl.float16), inside)


@pytest.mark.gpu
@pytest.mark.parametrize("bulk_loads", ["all", "none"])
def test_products_of_large_arrays_on_gpus(bulk_loads: str):
    torch = pytest.importorskip("torch")
    m, n, k = 2**16 + 24, 64, 2**15 + 8
    a = torch.randn((m, k), dtype=torch.float16, device="cuda")
    b = torch.randn((k, n), dtype=torch.float16, device="cuda") / 128
    c = torch.full((m, n), float("nan"), dtype=torch.float16, device="cuda")
    product_kernel[(tilewright.cdiv(m, 128),)](
        a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0),
        BLOCK_M=128, BLOCK_N=64, BLOCK_K=64, int64_offsets=True, bulk_loads=bulk_loads,
    )  # fmt: skip
    expected = a[-256:].double() @ b.double()
    assert a.numel() > 2**31
    assert not c.isnan().any()
    torch.testing.assert_close(c[-256:].double(), expected, rtol=1e-2, atol=1e-2)
