"""Reductions over every axis of tiles of rank 1 to 3."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import BOOL, FLOATS, INTEGERS, NUMBERS, Array, assert_same, normals
from tests.kernels.devices import Device
from tilewright import cdiv, jit

SHAPES = [(64,), (16, 32), (32, 2), (1, 64), (64, 1), (4, 8, 16), (2, 2, 64), (16, 4, 1)]
AXES = [(shape, axis) for shape in SHAPES for axis in (*range(len(shape)), None)]


@jit
def reduce_kernel(
    x, out, FUNCTION: tl.constexpr, AXIS: tl.constexpr, SHAPE: tl.constexpr, SIZE: tl.constexpr,
    RESULT: tl.constexpr, RESULT_SIZE: tl.constexpr,
):  # fmt: skip
    tile = tl.load(x + tl.reshape(tl.arange(0, SIZE), SHAPE))
    found = FUNCTION(tile, AXIS)
    if RESULT is None:
        tl.store(out, found)
    else:
        tl.store(out + tl.reshape(tl.arange(0, RESULT_SIZE), RESULT), found)


def reduced(device: Device, function: Any, x: Array, axis: int | None, dtype: Any) -> Array:
    """The function along an axis of the whole array."""
    kept = () if axis is None else tuple(n for d, n in enumerate(x.shape) if d != axis)
    size = int(np.prod(kept))
    out = device.empty(kept, dtype)
    device.run(
        reduce_kernel, (1,), device.array(x), out, FUNCTION=function, AXIS=axis, SHAPE=x.shape,
        SIZE=x.size, RESULT=kept or None, RESULT_SIZE=size,
    )  # fmt: skip
    return out


@jit
def total(x, axis):
    return tl.sum(x, axis)


@jit
def largest(x, axis):
    return tl.max(x, axis)


@jit
def smallest(x, axis):
    return tl.min(x, axis)


@jit
def where_largest(x, axis):
    return tl.argmax(x, axis)


@jit
def where_smallest(x, axis):
    return tl.argmin(x, axis)


@jit
def parity(x, axis):
    return tl.xor_sum(x, axis)


@jit
def any_bit(x, axis):
    return tl.reduce_or(x, axis)


@jit
def multiply(a, b):
    return a * b


@jit
def product(x, axis):
    return tl.reduce(x, axis, multiply)


def sum_type(dtype: Any) -> Any:
    """Integers below 32 bits are summed in 32."""
    if dtype in INTEGERS and dtype.itemsize < 4:
        return np.dtype(f"{'u' if dtype.kind == 'u' else ''}int32")
    return dtype


def assert_close_sums(found: Array, exact: Array, x: Array, axis: int | None) -> None:
    """Within the error bound of a pairwise or straight sum in fp32, plus one rounding."""
    bound = np.abs(x.astype(np.float64)).sum(axis) * 2e-6
    step = np.abs(exact) * {2: 2.0**-8, 4: 0, 8: 0}[found.dtype.itemsize]
    assert (np.abs(found.astype(np.float64) - exact) <= bound + step).all()


@pytest.mark.parametrize(("shape", "axis"), AXES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_sum(device: Device, rng: np.random.Generator, shape: Any, axis: Any, dtype: str):
    x = normals(rng, shape, dtype)
    found = reduced(device, total, x, axis, sum_type(x.dtype))
    if dtype == "int16":
        assert_same(found, x.sum(axis, dtype=np.int32))
    else:
        assert_close_sums(found, x.astype(np.float64).sum(axis), x, axis)


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("axis", [0, 1, None])
def test_sum_of_every_type(device: Device, rng: np.random.Generator, axis: Any, dtype: Any):
    x = normals(rng, (16, 32), dtype)
    found = reduced(device, total, x, axis, sum_type(dtype))
    if dtype in FLOATS:
        assert_close_sums(found, x.astype(np.float64).sum(axis), x, axis)
    else:
        assert_same(found, x.sum(axis, dtype=sum_type(dtype)))


@pytest.mark.parametrize("dtype", FLOATS[:2], ids=str)
@pytest.mark.parametrize("axis", [0, 1, None])
def test_sums_of_long_rows_of_16_bits(
    device: Device, rng: np.random.Generator, axis: Any, dtype: Any
):
    """A GPU adds them by matrix instructions; those of large numbers that cancel are exact."""
    x = normals(rng, (8, 512), dtype)
    x[2, ::2], x[2, 1::2] = 1024, -1024
    found = reduced(device, total, x, axis, sum_type(dtype))
    assert_close_sums(found, x.astype(np.float64).sum(axis), x, axis)
    x[0, 3], x[1, 4], x[3, 5], x[3, 6] = np.inf, np.nan, np.inf, -np.inf
    found = reduced(device, total, x, axis, sum_type(dtype))
    with np.errstate(invalid="ignore"):
        expected = x.astype(np.float64).sum(axis)
    special = ~np.isfinite(expected)
    np.testing.assert_array_equal(found.astype(np.float64)[special], expected[special])
    assert np.isfinite(found[~special].astype(np.float64)).all()


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("axis", [0, 1, None])
def test_extrema_of_every_type(device: Device, rng: np.random.Generator, axis: Any, dtype: Any):
    """Float16 and bfloat16 give fp32; a NaN loses against a number."""
    x = normals(rng, (16, 32), dtype)
    if dtype in FLOATS:
        x[rng.random(x.shape) < 0.1] = np.nan
        x[3, 5], x[4, 6] = np.inf, -np.inf
    wide = np.float32 if dtype in FLOATS[:2] else dtype
    if dtype in INTEGERS and dtype.itemsize < 4:
        wide = np.int32 if dtype.kind == "i" else np.uint32
    exact = x.astype(np.float64) if dtype in FLOATS else x
    for function, reference in ((largest, np.fmax), (smallest, np.fmin)):
        expected = np.asarray(reference.reduce(exact, axis=axis)).astype(wide)
        assert_same(reduced(device, function, x, axis, wide), expected, same_zeros=False)


def test_extrema_pass_over_signaling_nans(device: Device):
    """Any NaN loses against a number, whatever its payload."""
    x = np.array([3.0, -1.0, 7.0, 0.0], np.float32)
    x.view(np.uint32)[3] = 0x7F800001
    for place in range(4):
        turned = np.roll(x.view(np.uint32), place).view(np.float32)
        assert reduced(device, largest, turned, 0, np.float32) == 7
        assert reduced(device, smallest, turned, 0, np.float32) == -1


@pytest.mark.parametrize(("shape", "axis"), AXES, ids=str)
def test_extrema_along_every_axis(device: Device, rng: np.random.Generator, shape: Any, axis: Any):
    x = normals(rng, shape, np.float32)
    assert_same(reduced(device, largest, x, axis, np.float32), x.max(axis))
    assert_same(reduced(device, smallest, x, axis, np.float32), x.min(axis))


@pytest.mark.parametrize(("shape", "axis"), AXES, ids=str)
def test_indices_of_extrema(device: Device, rng: np.random.Generator, shape: Any, axis: Any):
    """Ties go to the left."""
    x = rng.integers(-3, 3, shape).astype(np.float32)
    for function, reference in ((where_largest, np.argmax), (where_smallest, np.argmin)):
        found = reduced(device, function, x, axis, np.int32)
        np.testing.assert_array_equal(found, reference(x, axis))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "float64"])
def test_indices_of_extrema_of_other_types(device: Device, rng: np.random.Generator, dtype: str):
    x = normals(rng, (8, 32), dtype)
    if x.dtype.kind == "f":
        x[rng.random(x.shape) < 0.2] = np.nan
        x[:, 0] = 0
    filled = np.nan_to_num(x.astype(np.float64), nan=-1e9)
    found = reduced(device, where_largest, x, 1, np.int32)
    np.testing.assert_array_equal(found, np.argmax(filled, 1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_indices_of_extrema_count_nans_as_the_least_number(device: Device, dtype: str):
    x = np.full((4, 8), np.nan, dtype)
    x[1, 5], x[2, 3], x[3, 6:] = -1, -np.inf, [-np.inf, -5]
    found = reduced(device, where_largest, x, 1, np.int32)
    np.testing.assert_array_equal(found, [0, 5, 0, 7])
    np.testing.assert_array_equal(reduced(device, where_smallest, -x, 1, np.int32), found)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_bitwise_reductions(device: Device, rng: np.random.Generator, axis: int, dtype: Any):
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, (4, 32), dtype=dtype, endpoint=True)
    found = reduced(device, parity, x, axis, dtype)
    np.testing.assert_array_equal(found, np.bitwise_xor.reduce(x, axis))
    found = reduced(device, any_bit, x, axis, dtype)
    np.testing.assert_array_equal(found, np.bitwise_or.reduce(x, axis))


@pytest.mark.parametrize("axis", [0, 1, None])
def test_sum_of_booleans_counts(device: Device, rng: np.random.Generator, axis: Any):
    x = normals(rng, (8, 32), BOOL)
    assert_same(reduced(device, total, x, axis, np.int32), x.sum(axis, dtype=np.int32))


@pytest.mark.parametrize(("shape", "axis"), AXES, ids=str)
def test_products_by_a_function_of_the_user(
    device: Device, rng: np.random.Generator, shape: Any, axis: Any
):
    x = rng.choice([0.5, 2.0, -1.0, 1.0], shape).astype(np.float32)
    assert_same(reduced(device, product, x, axis, np.float32), x.prod(axis))


@jit
def mean_and_variance(count_a, mean_a, m2_a, count_b, mean_b, m2_b):
    """Chan, Golub and LeVeque's update of the sums of squares of two groups."""
    count = count_a + count_b
    delta = mean_b - mean_a
    mean = mean_a + delta * (count_b / count)
    return count, mean, m2_a + m2_b + delta * delta * (count_a * count_b / count)


@jit
def welford_kernel(
    x, mean_out, var_out, rows, AXIS: tl.constexpr, M: tl.constexpr, N: tl.constexpr
):
    tile = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    ones = tl.full((M, N), 1.0, tl.float32)
    zeros = tl.zeros((M, N), tl.float32)
    count, mean, m2 = tl.reduce((ones, tile, zeros), AXIS, mean_and_variance)
    kept = tl.arange(0, N if AXIS == 0 else M)
    tl.store(mean_out + kept, mean)
    tl.store(var_out + kept, m2 / count)


@pytest.mark.parametrize("axis", [0, 1])
def test_reduction_of_tuples(device: Device, rng: np.random.Generator, axis: int):
    x = (rng.normal(size=(16, 32)) + 5).astype(np.float32)
    kept = x.shape[1 - axis]
    mean, variance = device.empty(kept, np.float32), device.empty(kept, np.float32)
    device.run(welford_kernel, (1,), device.array(x), mean, variance, 16, AXIS=axis, M=16, N=32)
    exact = x.astype(np.float64)
    np.testing.assert_allclose(mean, exact.mean(axis), rtol=1e-5)
    np.testing.assert_allclose(variance, exact.var(axis), rtol=1e-4)


@jit
def with_index_kernel(x, values, indices, LEFT: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    tile = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    best, index = tl.max(tile, 1, return_indices=True, return_indices_tie_break_left=LEFT)
    tl.store(values + tl.arange(0, M), best)
    tl.store(indices + tl.arange(0, M), index)


def test_maximum_with_its_index(device: Device, rng: np.random.Generator):
    x = rng.permutation(16 * 64).reshape(16, 64).astype(np.float32)
    for left in (True, False):
        values, indices = device.empty(16, np.float32), device.empty(16, np.int32)
        device.run(with_index_kernel, (1,), device.array(x), values, indices, LEFT=left, M=16, N=64)
        assert_same(values, x.max(1))
        np.testing.assert_array_equal(indices, x.argmax(1))


@jit
def keep_dims_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    place = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tile = tl.load(x + place)
    tile = tile - tl.max(tile, 1, keep_dims=True)
    tile = tile / tl.sum(tile, axis=0, keep_dims=True)
    tl.store(out + place, tile * tl.sum(tl.abs(tile), keep_dims=True))


def test_kept_dimensions_broadcast_back(device: Device, rng: np.random.Generator):
    x = rng.normal(size=(8, 16)).astype(np.float32)
    out = device.empty(x.shape, np.float32)
    device.run(keep_dims_kernel, (1,), device.array(x), out, M=8, N=16)
    exact = x.astype(np.float64)
    exact = exact - exact.max(1, keepdims=True)
    exact = exact / exact.sum(0, keepdims=True)
    np.testing.assert_allclose(out, exact * np.abs(exact).sum(), rtol=1e-4, atol=1e-6)


@jit
def pair_kernel(x, sums, highs, lows, N: tl.constexpr):
    pairs = tl.load(x + tl.arange(0, N)[:, None] * 2 + tl.arange(0, 2)[None, :])
    i = tl.arange(0, N)
    tl.store(sums + i, tl.sum(pairs, 1))
    tl.store(highs + i, tl.max(pairs, 1))
    tl.store(lows + i, tl.min(pairs, 1))


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_several_reductions_of_pairs(device: Device, rng: np.random.Generator, dtype: str):
    """All start with the same element, and take in one more."""
    x = normals(rng, (16, 2), dtype)
    sums, highs, lows = (device.empty(16, dtype) for _ in range(3))
    device.run(pair_kernel, (1,), device.array(x), sums, highs, lows, N=16)
    assert_same(sums, x.sum(1, dtype=x.dtype))
    assert_same(highs, x.max(1))
    assert_same(lows, x.min(1))


@jit
def two_shapes_kernel(x, highs, pairs, copy, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    v = tl.load(x + i * N + j)
    tl.store(highs + tl.arange(0, N), tl.max(v, 0))
    sums = tl.sum(tl.reshape(v, (M, N // 2, 2)), 2)
    tl.store(pairs + i * N + j, tl.reshape(tl.interleave(sums, -sums), (M, N)))
    tl.store(copy + i * N + j, v)


def test_one_load_reduced_in_two_shapes(device: Device, rng: np.random.Generator):
    x = normals(rng, (4, 16), np.int32)
    highs, pairs, copy = (device.empty(s, np.int32) for s in (16, (4, 16), (4, 16)))
    device.run(two_shapes_kernel, (1,), device.array(x), highs, pairs, copy, M=4, N=16)
    sums = x[:, ::2] + x[:, 1::2]
    assert_same(highs, x.max(0))
    assert_same(pairs, np.stack([sums, -sums], -1).reshape(4, 16))
    assert_same(copy, x)


@jit
def long_sum_kernel(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        acc += tl.load(x + row * n + i, mask=i < n, other=0.0)
    tl.store(out + row, tl.sum(acc))


@pytest.mark.parametrize("columns", [1, 63, 64, 65, 1000])
def test_sums_of_rows_longer_than_a_tile(device: Device, rng: np.random.Generator, columns: int):
    x = rng.normal(size=(7, columns)).astype(np.float32)
    out = device.empty(7, np.float32)
    device.run(long_sum_kernel, (7,), device.array(x), out, columns, BLOCK=64)
    assert_close_sums(out, x.astype(np.float64).sum(1), x, 1)


@jit
def tall_sum_kernel(x, sums, peaks, columns, rows, X: tl.constexpr, R: tl.constexpr):
    across = (tl.program_id(0) * X + tl.arange(0, X))[:, None]
    sum_ = tl.full([X, R], 0, tl.float32)
    peak = tl.full([X, R], float("-inf"), tl.float32)
    for start in range(0, rows, R):
        down = start + tl.arange(0, R)[None, :]
        mask = (down < rows) & (across < columns)
        value = tl.load(x + (across + columns * down), mask=mask, other=0.0)
        sum_ = tl.where(mask, sum_ + value, sum_)
        peak = tl.where(mask & (value > peak), value, peak)
    tl.store(sums + across, tl.sum(sum_, 1)[:, None], mask=across < columns)
    tl.store(peaks + across, tl.max(peak, 1)[:, None], mask=across < columns)


@pytest.mark.parametrize(("across", "down"), [(16, 4), (32, 32), (1, 64), (64, 1)])
def test_sums_of_columns_whose_rows_are_the_second_dimension(
    device: Device, rng: np.random.Generator, across: int, down: int
):
    """As torch's Inductor writes them: matrices are carried along, in the order of the array."""
    x = rng.normal(size=(37, 45)).astype(np.float32)
    sums, peaks = device.empty(45, np.float32), device.empty(45, np.float32)
    grid = (cdiv(45, across),)
    device.run(tall_sum_kernel, grid, device.array(x), sums, peaks, 45, 37, X=across, R=down)
    assert_close_sums(sums, x.astype(np.float64).sum(0), x, 0)
    assert_same(peaks, x.max(0))


@jit
def fused_rows_kernel(x, lows, highs, sums, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=0.0)
    tl.store(lows + row, tl.min(v))
    tl.store(highs + row, tl.max(v))
    tl.store(sums + row, tl.sum(v * v))
    tl.store(x + row * n + i, v - tl.sum(v) / n, mask=i < n)


def test_several_reductions_of_one_row(device: Device, rng: np.random.Generator):
    x = rng.normal(size=(9, 50)).astype(np.float32)
    x[:, 0], x[:, 1] = 5, -5
    there = device.array(x)
    lows, highs, sums = (device.empty(9, np.float32) for _ in range(3))
    device.run(fused_rows_kernel, (9,), there, lows, highs, sums, 50, BLOCK=64)
    exact = x.astype(np.float64)
    assert_same(lows, x.min(1))
    assert_same(highs, x.max(1))
    np.testing.assert_allclose(sums, (exact**2).sum(1), rtol=1e-5)
    np.testing.assert_allclose(there, exact - exact.mean(1, keepdims=True), rtol=1e-4, atol=1e-6)


def test_large_tiles(device: Device, rng: np.random.Generator):
    """More lanes than registers hold."""
    size = device.pick(1024, 1 << 16)
    x = rng.normal(size=size).astype(np.float32)
    assert_close_sums(reduced(device, total, x, 0, np.float32), x.astype(np.float64).sum(), x, 0)
    assert reduced(device, where_largest, x, 0, np.int32) == x.argmax()
    assert cdiv(size, 1024) >= 1
