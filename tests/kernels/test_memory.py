"""Loads and stores: masks, strides, index arrays, scalars, 64-bit offsets, grids."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import ALL, Array, anything, assert_same, is_float
from tests.kernels.devices import Device
from tilewright import cdiv, jit

# --- masks ----------------------------------------------------------------------------------------


@jit
def filled_kernel(x, out, n, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=OTHER))


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("n", [0, 1, 17, 63, 64])
def test_masked_lanes_get_other(device: Device, rng: np.random.Generator, n: int, dtype: Any):
    x, out = anything(rng, 64, dtype), device.empty(64, dtype)
    device.run(filled_kernel, (1,), device.array(x[:n]), out, n, OTHER=1, BLOCK=64)
    assert_same(out, np.where(np.arange(64) < n, x, np.ones_like(x)))


@jit
def other_tile_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    other = tl.load(y + i)
    tl.store(out + i, tl.load(x + i, mask=(i % 3 == 0) & (i < n), other=other), mask=i != 5)


def test_other_may_be_a_tile_and_masks_any_pattern(device: Device, rng: np.random.Generator):
    x, y = rng.normal(size=(2, 64)).astype(np.float32)
    out = device.empty(64, np.float32)
    device.run(other_tile_kernel, (1,), device.array(x), device.array(y), out, 50, BLOCK=64)
    i = np.arange(64)
    expected = np.where((i % 3 == 0) & (i < 50), x, y)
    assert np.isnan(out[5])
    assert_same(np.delete(out, 5), np.delete(expected, 5))


@jit
def scalar_mask_kernel(x, out, flag, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=flag > 0, other=-1.0), mask=flag > -5)
    tl.store(out + BLOCK, 1.0, mask=flag > 0)


def test_scalar_masks(device: Device, rng: np.random.Generator):
    x = rng.normal(size=32).astype(np.float32)
    for flag in (3, -3, -7):
        out = device.empty(33, np.float32)
        device.run(scalar_mask_kernel, (1,), device.array(x), out, flag, BLOCK=32)
        expected = x if flag > 0 else np.full(32, -1 if flag > -5 else np.nan, np.float32)
        assert_same(out[:32], expected)
        assert np.isnan(out[32]) == (flag <= 0)


@jit
def rows_and_columns_kernel(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.program_id(1) * N + tl.arange(0, N)
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    place = i[:, None] * columns + j[None, :]
    tl.store(out + place, tl.load(x + place, mask=inside, other=0) + 1, mask=inside)


@pytest.mark.parametrize("shape", [(1, 1), (7, 9), (16, 32), (17, 33), (40, 3)], ids=str)
def test_odd_sizes_in_two_dimensions(device: Device, rng: np.random.Generator, shape: Any):
    x, out = rng.normal(size=shape).astype(np.float32), device.empty(shape, np.float32)
    grid = (cdiv(shape[0], 8), cdiv(shape[1], 16))
    device.run(rows_and_columns_kernel, grid, device.array(x), out, *shape, M=8, N=16)
    assert_same(out, x + np.float32(1))


@jit
def differences_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    place = i[:, None] * BLOCK + i[None, :]
    row = tl.load(x + i, mask=i < n, other=1.0)
    ones = tl.load(y + place, mask=i[:, None] < n, other=0.0)
    product = tl.dot(row[None, :] - row[:, None], ones)
    tl.store(out + place, product, mask=i[:, None] < n)


def test_a_masked_tile_along_rows_and_columns(device: Device, rng: np.random.Generator):
    """A mask that holds for a row says nothing of the columns."""
    n, extent = 5, 16
    x, y = np.full(extent, np.nan, np.float32), np.ones((extent, extent), np.float32)
    x[:n] = rng.integers(-9, 9, n)
    out = device.empty((extent, extent), np.float32)
    device.run(differences_kernel, (1,), device.array(x), device.array(y), out, n, BLOCK=extent)
    assert_same(out[:n], np.tile((x[:n] - x[:n, None]).sum(1)[:, None], extent))


# --- strides --------------------------------------------------------------------------------------


@jit
def strided_kernel(
    x, out, rows, columns, stride_m, stride_n, out_m, out_n, M: tl.constexpr, N: tl.constexpr
):
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.program_id(1) * N + tl.arange(0, N)
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    tile = tl.load(x + i[:, None] * stride_m + j[None, :] * stride_n, mask=inside)
    tl.store(out + i[:, None] * out_m + j[None, :] * out_n, tile, mask=inside)


def steps(x: Array) -> tuple[int, ...]:
    return tuple(s // x.itemsize for s in x.strides)


VIEWS: dict[str, Any] = {
    "whole": lambda x: x,
    "transposed": lambda x: x.T,
    "every other column": lambda x: x[:, ::2],
    "every third row": lambda x: x[::3],
    "backwards": lambda x: x[::-1, ::-1],
    "backwards rows of a transposed part": lambda x: x[3:30, 5:25].T[::-1],
    "one column": lambda x: x[:, 4:5],
    "one row": lambda x: x[4:5],
    "unaligned part": lambda x: x[1:, 1:],
}


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "bool"])
@pytest.mark.parametrize("target", ["whole", "transposed", "backwards"])
@pytest.mark.parametrize("view", VIEWS)
def test_views(device: Device, rng: np.random.Generator, view: str, target: str, dtype: str):
    base = device.array(rng.integers(0, 2 if dtype == "bool" else 100, (37, 41)).astype(dtype))
    x = VIEWS[view](base)
    shape = x.shape[::-1] if target == "transposed" else x.shape
    whole = device.empty(shape, dtype)
    out = VIEWS[target](whole)
    grid = (cdiv(x.shape[0], 16), cdiv(x.shape[1], 16))
    device.run(strided_kernel, grid, x, out, *x.shape, *steps(x), *steps(out), M=16, N=16)
    np.testing.assert_array_equal(out, x)


@jit
def broadcast_rows_kernel(x, out, stride, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + i * N + j, tl.load(x + i * stride + j))


def test_stride_zero_repeats_a_row(device: Device, rng: np.random.Generator):
    x, out = rng.normal(size=32).astype(np.float32), device.empty((16, 32), np.float32)
    device.run(broadcast_rows_kernel, (1,), device.array(x), out, 0, M=16, N=32)
    assert_same(out, np.broadcast_to(x, (16, 32)))


# --- gathers and scatters -------------------------------------------------------------------------


@jit
def gather_kernel(table, index, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(index + i, mask=i < n, other=0)
    tl.store(out + i, tl.load(table + place, mask=i < n), mask=i < n)


@jit
def scatter_kernel(values, index, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(index + i, mask=i < n)
    tl.store(out + place, tl.load(values + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_gather_by_an_index_array(device: Device, rng: np.random.Generator, dtype: Any):
    table, index = anything(rng, 100, dtype), rng.integers(0, 100, 333).astype(np.int32)
    out = device.empty(333, dtype)
    device.run(gather_kernel, (6,), device.array(table), device.array(index), out, 333, BLOCK=64)
    assert_same(out, table[index])


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_scatter_by_an_index_array(device: Device, rng: np.random.Generator, dtype: Any):
    values, index = anything(rng, 333, dtype), rng.permutation(333).astype(np.int64)
    out = device.empty(333, dtype)
    device.run(scatter_kernel, (6,), device.array(values), device.array(index), out, 333, BLOCK=64)
    expected = np.empty_like(values)
    expected[index] = values
    assert_same(out, expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32", "int64", "uint64"])
def test_index_arrays_of_every_integer_type(device: Device, rng: np.random.Generator, dtype: str):
    """Unsigned indices above the signed range stay positive."""
    top = min(200, np.iinfo(dtype).max)
    table, index = rng.normal(size=201).astype(np.float32), rng.integers(0, top, 333).astype(dtype)
    out = device.empty(333, np.float32)
    device.run(gather_kernel, (6,), device.array(table), device.array(index), out, 333, BLOCK=64)
    assert_same(out, table[index])


@jit
def embedding_kernel(table, tokens, out, width, BLOCK: tl.constexpr):
    token = tl.load(tokens + tl.program_id(0))
    j = tl.arange(0, BLOCK)
    row = tl.load(table + token * width + j, mask=j < width)
    tl.store(out + tl.program_id(0) * width + j, row, mask=j < width)


def test_rows_by_an_index_in_memory(device: Device, rng: np.random.Generator):
    table, tokens = rng.normal(size=(20, 50)).astype(np.float32), rng.integers(0, 20, 9)
    out = device.empty((9, 50), np.float32)
    device.run(embedding_kernel, (9,), device.array(table), device.array(tokens), out, 50, BLOCK=64)
    assert_same(out, table[tokens])


@jit
def linked_list_kernel(following, out, start, n):
    place = start
    for i in range(n):
        tl.store(out + i, place)
        place = tl.load(following + place)


def test_loads_whose_address_was_loaded(device: Device, rng: np.random.Generator):
    order = rng.permutation(40).astype(np.int32)
    following = np.empty(40, np.int32)
    following[order] = np.roll(order, -1)
    out = device.empty(40, np.int32)
    device.run(linked_list_kernel, (1,), device.array(following), out, int(order[0]), 40)
    assert_same(out, order)


@jit
def pointer_table_kernel(base, offsets, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    address = base.to(tl.int64) + tl.load(offsets + i) * 4
    tl.store(out + i, tl.load(address.to(tl.pointer_type(tl.float32))))


def test_pointers_made_of_integers(device: Device, rng: np.random.Generator):
    x, offsets = rng.normal(size=100).astype(np.float32), rng.integers(0, 100, 32)
    out = device.empty(32, np.float32)
    device.run(pointer_table_kernel, (1,), device.array(x), device.array(offsets), out, BLOCK=32)
    assert_same(out, x[offsets])


# --- scalars --------------------------------------------------------------------------------------


@jit
def scalars_kernel(x, out, k):
    first = tl.load(x)
    second = tl.load(x + k, mask=k < 3, other=7)
    tl.store(out, first + second)
    tl.store(out + 1, first - second, mask=k < 100)
    tl.store(out + 2, first * second, mask=k > 100)
    tl.store(out + tl.program_id(0) + 3, 4)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "float32", "float64"])
def test_scalar_loads_and_stores(device: Device, dtype: str):
    x = device.array([9, 3, 2], dtype)
    for k, second in ((2, 2), (1, 3), (50, 7)):
        out = device.empty(4, dtype)
        device.run(scalars_kernel, (1,), x, out, k)
        assert out[[0, 1, 3]].tolist() == [9 + second, 9 - second, 4]
        assert np.isnan(out[2]) if is_float(out.dtype) else out[2] != 9 * second


@jit
def scalar_arguments_kernel(out, i, j, f, flag, big):
    tl.store(out, i + j)
    tl.store(out + 1, f * 2)
    tl.store(out + 2, flag)
    tl.store(out + 3, big // 1000)


@pytest.mark.parametrize("i", [0, 1, 2, 16, -1, 2**31 - 1, -(2**31)])
def test_scalar_arguments(device: Device, i: int):
    """Specialized values, and those at the limits of their types."""
    for big in (2**40, 2**63 - 1, 2**63, -(2**63)):
        out = device.empty(4, np.float64)
        device.run(scalar_arguments_kernel, (1,), out, i, 3, 0.5, i > 0, big)
        quotient = abs(big) // 1000 * (1 if big > 0 else -1)
        wrapped = (i + 3 + 2**31) % 2**32 - 2**31 if i != 1 else 4
        assert out.tolist() == [wrapped, 1.0, float(i > 0), float(quotient)]


# --- large offsets --------------------------------------------------------------------------------


@jit
def far_kernel(x, out, offset, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    far = x + offset + i
    near = far - offset
    tl.store(out + i, tl.load(near))


@pytest.mark.parametrize("offset", [2**31, 2**33 + 16, -(2**35)])
def test_offsets_beyond_32_bits(device: Device, rng: np.random.Generator, offset: int):
    x, out = rng.normal(size=32).astype(np.float32), device.empty(32, np.float32)
    device.run(far_kernel, (1,), device.array(x), out, offset, BLOCK=32)
    assert_same(out, x)


@jit
def wide_index_kernel(x, out, rows, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK).to(tl.int64) * stride - (rows * stride.to(tl.int64))
    tl.store(out + tl.arange(0, BLOCK), tl.load(x + (i + rows * stride.to(tl.int64)) // stride))


def test_64_bit_index_arithmetic(device: Device, rng: np.random.Generator):
    x, out = rng.normal(size=32).astype(np.float32), device.empty(32, np.float32)
    device.run(wide_index_kernel, (1,), device.array(x), out, 70000, 2**30, BLOCK=32)
    assert_same(out, x)


# --- tuples of pointers, grids --------------------------------------------------------------------


@jit
def tuple_kernel(arrays, out, scales, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(len(arrays)):
        total += tl.load(arrays[k] + i, mask=i < n) * scales[k]
    tl.store(out + i, total, mask=i < n)


def test_tuples_of_arrays(device: Device, rng: np.random.Generator):
    arrays = rng.normal(size=(3, 50)).astype(np.float32)
    out = device.empty(50, np.float32)
    there = tuple(map(device.array, arrays))
    device.run(tuple_kernel, (1,), there, out, (1, 2.0, 3), 50, BLOCK=64)
    np.testing.assert_allclose(out, arrays[0] + arrays[1] * 2 + arrays[2] * 3, rtol=1e-5, atol=1e-5)


@jit
def grid_kernel(out):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    place = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    tl.store(out + place, x + 10 * y + 100 * z)


@pytest.mark.parametrize("grid", [(5,), (3, 4), (2, 3, 4), (1, 1, 7)], ids=str)
def test_every_program_of_the_grid_runs_once(device: Device, grid: tuple[int, ...]):
    x, y, z = (*grid, 1, 1)[:3]
    out = device.empty((z, y, x), np.int32)
    device.run(grid_kernel, grid, out)
    k, j, i = np.indices(out.shape)
    assert_same(out, (i + 10 * j + 100 * k).astype(np.int32))


@jit
def scaled_kernel(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2 + 1, mask=i < n)


def test_many_programs(device: Device, rng: np.random.Generator):
    """More of them than threads; the last one is partly masked."""
    n = device.pick(333, 100_003)
    x = rng.normal(size=n).astype(np.float32)
    there = device.array(x)
    device.run(scaled_kernel, (cdiv(n, 64),), there, n, BLOCK=64)
    assert_same(there, x * 2 + 1)
