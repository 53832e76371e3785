"""Block pointers: boundary checks, padding, advancing, orders."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import assert_same
from tests.kernels.devices import Array, Device
from tilewright import cdiv, jit


@jit
def window_kernel(
    x, out, rows, columns, row, column, M: tl.constexpr, N: tl.constexpr, PADDING: tl.constexpr
):
    source = tl.make_block_ptr(x, (rows, columns), (columns, 1), (row, column), (M, N), (1, 0))
    tile = tl.load(source, boundary_check=(0, 1), padding_option=PADDING)
    target = tl.make_block_ptr(out, (M, N), (N, 1), (0, 0), (M, N), (1, 0))
    tl.store(target, tile)


def window(x: Array, row: int, column: int, m: int, n: int, fill: Any) -> Array:
    """A part of a matrix that may stick out of it on any side."""
    padded = np.pad(x, 64, constant_values=fill)
    return padded[64 + row : 64 + row + m, 64 + column : 64 + column + n]


@pytest.mark.parametrize("padding", ["zero", "nan"])
@pytest.mark.parametrize("at", [(0, 0), (10, 20), (30, 0), (-3, -5), (36, 40), (60, 60)], ids=str)
def test_windows(device: Device, rng: np.random.Generator, at: tuple[int, int], padding: str):
    """What lies outside, before the start too, is padding."""
    x = rng.normal(size=(37, 41)).astype(np.float32)
    out = device.empty((8, 16), np.float32)
    device.run(window_kernel, (1,), device.array(x), out, 37, 41, *at, M=8, N=16, PADDING=padding)
    assert_same(out, window(x, *at, 8, 16, 0 if padding == "zero" else np.nan))


@jit
def add_one_kernel(x, rows, columns, stride_m, stride_n, M: tl.constexpr, N: tl.constexpr):
    block = tl.make_block_ptr(
        base=x, shape=(rows, columns), strides=(stride_m, stride_n),
        offsets=(tl.program_id(0) * M, tl.program_id(1) * N), block_shape=(M, N), order=(1, 0),
    )  # fmt: skip
    tl.store(block, tl.load(block, boundary_check=(0, 1)) + 1, boundary_check=(0, 1))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (16, 32), (37, 41), (5, 64)], ids=str)
def test_in_place_over_a_grid(
    device: Device, rng: np.random.Generator, shape: Any, transposed: bool
):
    x = rng.integers(0, 100, shape).astype(np.int32)
    there = device.array(x)
    view = there.T if transposed else there
    strides = (s // 4 for s in view.strides)
    grid = (cdiv(view.shape[0], 16), cdiv(view.shape[1], 16))
    device.run(add_one_kernel, grid, view, *view.shape, *strides, M=16, N=16)
    assert_same(there, x + 1)


@jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    left = tl.make_block_ptr(a, (M, K), (K, 1), (row, 0), (BM, BK), (1, 0))
    right = tl.make_block_ptr(b, (K, N), (N, 1), (0, column), (BK, BN), (1, 0))
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        x = tl.load(left, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(x, tl.load(right, boundary_check=(0, 1), padding_option="zero"), acc)
        left = tl.advance(left, (0, BK))
        right = tl.advance(right, (BK, 0))
    result = tl.make_block_ptr(c, (M, N), (N, 1), (row, column), (BM, BN), (1, 0))
    tl.store(result, acc.to(c.dtype.element_ty), boundary_check=(0, 1))


@pytest.mark.parametrize("size", [(32, 32, 32), (33, 50, 17)], ids=str)
def test_matmul(device: Device, rng: np.random.Generator, size: tuple[int, int, int]):
    m, n, k = size
    a, b = rng.normal(size=(m, k)).astype(np.float16), rng.normal(size=(k, n)).astype(np.float16)
    c = device.empty((m, n), np.float16)
    grid = (cdiv(m, 32), cdiv(n, 32))
    device.run(
        matmul_kernel, grid, device.array(a), device.array(b), c, m, n, k, BM=32, BN=32, BK=16
    )
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=2e-3, atol=4e-3)


@jit
def line_kernel(x, out, n, BLOCK: tl.constexpr):
    block = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(0, n, BLOCK):
        total += tl.load(block, boundary_check=(0,), padding_option="zero")
        block = tl.advance(block, (BLOCK,))
    tl.store(out, tl.sum(total, 0))


@pytest.mark.parametrize("n", [1, 64, 100])
def test_one_dimension(device: Device, rng: np.random.Generator, n: int):
    x, out = rng.integers(0, 9, n).astype(np.float32), device.empty(1, np.float32)
    device.run(line_kernel, (1,), device.array(x), out, n, BLOCK=32)
    assert out[0] == x.sum()


@jit
def cube_kernel(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    whole = tl.make_block_ptr(x, (A, B, C), (B * C, C, 1), (0, 0, 0), (A, B, C), order=(2, 1, 0))
    turned = tl.make_block_ptr(out, (C, A, B), (A * B, B, 1), (0, 0, 0), (C, A, B), order=(2, 1, 0))
    tl.store(turned, tl.permute(tl.load(whole), (2, 0, 1)))


def test_three_dimensions(device: Device, rng: np.random.Generator):
    x, out = rng.normal(size=(4, 8, 16)), device.empty((16, 4, 8), np.float64)
    device.run(cube_kernel, (1,), device.array(x), out, A=4, B=8, C=16)
    assert_same(out, x.transpose(2, 0, 1))
