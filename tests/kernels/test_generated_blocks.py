"""Blocks as code generators write them for GPUs: one flat index taken apart by // and %, rows that
a mask lets through as a whole, tiles that are read along one dim and written along the other."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Device
from tilewright import cdiv, jit
from tilewright.support import errors

ROWS, COLUMNS = 13, 96


@jit
def embed_kernel(
    indices, table, out, n, end, COLUMNS: tl.constexpr, BLOCK: tl.constexpr
):  # a row of the table for each index
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(indices + at // COLUMNS, at < n, other=0)
    tl.device_assert((row >= 0) & (row < end), "no such row")
    x = tl.load(table + at % COLUMNS + COLUMNS * row, at < n)
    tl.store(out + at, x, at < n)


@pytest.mark.parametrize("columns", [7, 32, 64, 96, 256])
@pytest.mark.parametrize("block", [8, 128, 512])
def test_rows_by_index(device: Device, rng: np.random.Generator, columns: int, block: int):
    table = rng.normal(size=(19, columns)).astype(np.float32)
    indices = rng.integers(0, 19, 23)
    out = device.empty((23, columns), np.float32)
    arrays = (device.array(indices), device.array(table), out)
    grid = (cdiv(out.size, block),)
    device.run(embed_kernel, grid, *arrays, out.size, 19, COLUMNS=columns, BLOCK=block, debug=True)
    np.testing.assert_array_equal(out, table[indices])


@pytest.mark.parametrize("wrong", [0, 5, 21])
def test_the_first_failing_element_is_told(device: Device, wrong: int):
    indices = np.zeros(23, np.int64)
    indices[wrong] = 19
    table, out = device.array(np.zeros((19, 4), np.float32)), device.empty((23, 4), np.float32)
    arrays = (device.array(indices), table, out)
    with pytest.raises(errors.DeviceAssertionFailure, match="no such row") as caught:
        device.run(embed_kernel, (1,), *arrays, 92, 19, COLUMNS=4, BLOCK=128, debug=True)
    assert device.name != "cpu" or f"at ({4 * wrong})" in str(caught.value)


@jit
def countdown_kernel(out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK) - n
    tl.store(out + tl.arange(0, BLOCK), at // 16 * 100 + at % 16)


@pytest.mark.parametrize("n", [0, 1, 16, 40, 64])
def test_indices_below_zero_round_towards_zero(device: Device, n: int):
    out = device.empty(64, np.int32)
    device.run(countdown_kernel, (1,), out, n, BLOCK=64)
    at = np.arange(64) - n
    expected = np.trunc(at / 16).astype(int) * 100 + np.fmod(at, 16)
    np.testing.assert_array_equal(out, expected)


@jit
def normalize_kernel(x, out, sums, rows, columns, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    row = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    column = tl.arange(0, RBLOCK)[None, :]
    mask = (column < columns) & (row < rows)
    value = tl.load(x + row * columns + column, mask, other=0.5)
    total = tl.sum(tl.where(mask, value, 0.0), 1)[:, None]
    most = tl.max(value, 1)[:, None]
    tl.store(sums + row, total + most, row < rows)
    tl.store(out + row * columns + column, (value - total) * most, mask)


@pytest.mark.parametrize("xblock", [1, 4, 16])
def test_rows_that_are_masked_as_a_whole(device: Device, rng: np.random.Generator, xblock: int):
    x = rng.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    out, sums = device.empty(x.shape, np.float32), device.empty(ROWS, np.float32)
    arrays = (device.array(x), out, sums)
    # programs beyond the last row have nothing but masked rows
    grid = (cdiv(ROWS, xblock) + 1,)
    device.run(normalize_kernel, grid, *arrays, ROWS, COLUMNS, XBLOCK=xblock, RBLOCK=128)
    wide = x.astype(np.float64)
    total, most = wide.sum(1), np.maximum(wide.max(1), 0.5)
    np.testing.assert_allclose(sums, total + most, rtol=1e-4, atol=1e-4)
    expected = (wide - total[:, None]) * most[:, None]
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@jit
def across_kernel(x, y, out, m, n, XBLOCK: tl.constexpr, YBLOCK: tl.constexpr, DOWN: tl.constexpr):
    row = tl.program_id(1) * YBLOCK + tl.arange(0, YBLOCK)[:, None]
    column = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[None, :]
    mask = (row < m) & (column < n)
    a = tl.load(x + column * m + row, mask)
    b = tl.load(y + row * n + column, mask)
    place = column * m + row if DOWN else row * n + column
    tl.store(out + place, a + 2 * b, mask)


BLOCKS = [(8, 8), (16, 64), (64, 16), (32, 32), (1, 128), (4, 16)]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("size", [(64, 128), (45, 37)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64], ids=lambda d: d.__name__)
def test_tiles_read_across(
    device: Device, rng: np.random.Generator, block: tuple[int, int], size: tuple[int, int],
    dtype: Any,
):  # fmt: skip
    m, n = size
    x, y = (rng.integers(-9, 9, shape).astype(dtype) for shape in ((n, m), (m, n)))
    out = device.empty((m, n), dtype)
    arrays = (device.array(x), device.array(y), out)
    grid = (cdiv(n, block[1]), cdiv(m, block[0]))
    words = {"YBLOCK": block[0], "XBLOCK": block[1], "DOWN": False}
    device.run(across_kernel, grid, *arrays, m, n, **words)
    np.testing.assert_array_equal(out, x.T + 2 * y)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_tiles_written_by_columns(device: Device, rng: np.random.Generator, block: tuple[int, int]):
    m, n = 48, 80
    x, y = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((n, m), (m, n)))
    out = device.empty((n, m), np.float32)
    arrays = (device.array(x), device.array(y), out)
    grid = (cdiv(n, block[1]), cdiv(m, block[0]))
    words = {"YBLOCK": block[0], "XBLOCK": block[1], "DOWN": True}
    device.run(across_kernel, grid, *arrays, m, n, **words)
    np.testing.assert_array_equal(out, x + 2 * y.T)


def code_of(kernel: Any, *arguments: Any, **constants: Any) -> str:
    return kernel.warmup(*arguments, grid=(1,), **constants).asm["llir"]


@pytest.mark.parametrize("columns", [64, 7])
def test_what_a_row_shares_is_loaded_once_and_the_rest_in_vectors(columns: int):
    table, indices = np.zeros((19, 64), np.float32), np.zeros(23, np.int64)
    arrays = (indices, table, np.zeros_like(table))
    code = code_of(embed_kernel, *arrays, 1472, 19, COLUMNS=columns, BLOCK=256)
    # the step that the mask cuts may gather
    assert ("= load <32 x float>" in code or "= load <16 x float>" in code) == (columns == 64)


def test_tiles_read_across_are_turned_in_registers():
    arrays = [np.zeros((64, 64), np.float32) for _ in range(3)]
    code = code_of(across_kernel, *arrays, 64, 64, XBLOCK=32, YBLOCK=32, DOWN=False)
    assert "masked.gather" not in code and "masked.scatter" not in code
    narrow = code_of(across_kernel, *arrays, 64, 64, XBLOCK=4, YBLOCK=4, DOWN=False)
    assert "masked.gather" in narrow


def test_rows_are_loaded_without_masks_where_theirs_holds():
    x, sums = np.zeros((16, 128), np.float32), np.zeros(16, np.float32)
    code = code_of(normalize_kernel, x, x.copy(), sums, 16, 128, XBLOCK=1, RBLOCK=128)
    assert "= load <" in code
