"""sort, topk, bitonic_merge and histogram, against NumPy."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import FLOATS, FNUZ, FP8, INTEGERS, Array, anything, assert_same, is_float
from tests.kernels.devices import Device
from tilewright import jit


@jit
def rearranged_kernel(
    x, out, FUNCTION: tl.constexpr, SHAPE: tl.constexpr, SIZE: tl.constexpr, OUT: tl.constexpr,
    OUT_SIZE: tl.constexpr,
):  # fmt: skip
    place = tl.reshape(tl.arange(0, SIZE), SHAPE)
    to = tl.reshape(tl.arange(0, OUT_SIZE), OUT)
    tl.store(out + to, FUNCTION(tl.load(x + place)))


def rearranged(device: Device, function: Any, x: Array, shape: Any = None, **words: Any) -> Array:
    shape = shape or x.shape
    out = device.empty(shape, x.dtype)
    device.run(
        rearranged_kernel, (1,), device.array(x), out, FUNCTION=function, SHAPE=x.shape,
        SIZE=x.size, OUT=shape, OUT_SIZE=int(np.prod(shape)), **words,
    )  # fmt: skip
    return out


def in_order(x: Array, axis: int = -1) -> Array:
    """As `tl.sort`: NaNs of either sign last, -0.0 before 0.0."""
    if not is_float(x.dtype):
        return np.sort(x, axis)
    wide = x.astype(np.float64)
    order = np.lexsort((~np.signbit(wide), wide, np.isnan(wide)), axis)
    return np.take_along_axis(x, order, axis)


@jit
def ascending(x):
    return tl.sort(x)


@jit
def descending(x):
    return tl.sort(x, descending=True)


@jit
def columns_descending(x):
    return x.sort(0, True)


@pytest.mark.parametrize("dtype", (*INTEGERS, *FLOATS, *FP8, *FNUZ), ids=str)
def test_sorts_of_every_type(device: Device, rng: np.random.Generator, dtype: Any):
    x = anything(rng, 64, dtype)
    assert_same(rearranged(device, ascending, x), in_order(x))


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize(
    "shape", [(1,), (2,), (16,), (512,), (8, 32), (32, 8), (2, 4, 16)], ids=str
)
def test_sorts_of_every_shape(device: Device, rng: np.random.Generator, shape: Any, warps: int):
    x = rng.normal(size=shape).astype(np.float32)
    found = rearranged(device, descending, x, num_warps=warps)
    assert_same(found, np.flip(np.sort(x), -1))


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
@pytest.mark.parametrize("shape", [(3,), (100,), (5, 7), (3, 2, 9)], ids=str)
def test_sorts_of_any_length(device: Device, rng: np.random.Generator, shape: Any, dtype: str):
    x = anything(rng, int(np.prod(shape)), dtype).reshape(shape)
    assert_same(rearranged(device, ascending, x), in_order(x))
    assert_same(rearranged(device, descending, x), np.flip(in_order(x), -1))


@jit
def largest_four_of_columns(x):
    return tl.topk(x, 5, 0)  # Triton takes the power of two below


@pytest.mark.parametrize("shape", [(5,), (100,), (6, 3)], ids=str)
def test_the_largest_of_any_length(device: Device, rng: np.random.Generator, shape: Any):
    x = rng.integers(-99, 99, shape)
    found = rearranged(device, largest_four_of_columns, x, (4, *shape[1:]))
    assert_same(found, np.flip(np.sort(x, 0), 0)[:4])


@pytest.mark.parametrize("shape", [(64, 4), (4, 16), (6, 5)], ids=str)
def test_sorts_along_another_dimension(device: Device, rng: np.random.Generator, shape: Any):
    x = rng.integers(-99, 99, shape)
    assert_same(rearranged(device, columns_descending, x), np.flip(np.sort(x, 0), 0))


@jit
def largest_1(x):
    return tl.topk(x, 1)


@jit
def largest_8(x):
    return tl.topk(x, 8)


@jit
def largest_64(x):
    return tl.topk(x, 64, dim=1)


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize(
    ("function", "shape", "kept"),
    [(largest_1, (32,), 1), (largest_8, (256,), 8), (largest_8, (4, 8), 8), (largest_8, (8, 64), 8),
     (largest_64, (2, 128), 64)],
    ids=str,
)  # fmt: skip
def test_topk(
    device: Device, rng: np.random.Generator, function: Any, shape: Any, kept: int, warps: int
):
    x = rng.normal(size=shape).astype(np.float32)
    found = rearranged(device, function, x, (*shape[:-1], kept), num_warps=warps)
    assert_same(found, np.flip(np.sort(x), -1)[..., :kept])


@jit
def smallest_8(x):
    return tl.topk(x, 8, descending=False)


@jit
def smallest_4_of_columns(x):
    return tl.topk(x, 4, 0, False)


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint8"])
@pytest.mark.parametrize("shape", [(8,), (256,), (100,), (4, 8), (6, 50)], ids=str)
def test_the_smallest(device: Device, rng: np.random.Generator, shape: Any, dtype: str):
    x = anything(rng, int(np.prod(shape)), dtype).reshape(shape)
    found = rearranged(device, smallest_8, x, (*shape[:-1], 8))
    assert_same(found, in_order(x)[..., :8])


@pytest.mark.parametrize("shape", [(6, 3), (32, 4)], ids=str)
def test_the_smallest_of_columns(device: Device, rng: np.random.Generator, shape: Any):
    x = rng.integers(-99, 99, shape)
    found = rearranged(device, smallest_4_of_columns, x, (4, *shape[1:]))
    assert_same(found, np.sort(x, 0)[:4])


@jit
def merged(x):
    return tl.bitonic_merge(x)


@jit
def merged_down(x):
    return tl.bitonic_merge(x, descending=True)


@pytest.mark.parametrize("down", [False, True])
def test_bitonic_merge(device: Device, rng: np.random.Generator, down: bool):
    x = np.sort(rng.integers(0, 99, (4, 32)).astype(np.int32))
    x[:, 16:] = x[:, :15:-1]
    expected = np.sort(x)
    found = rearranged(device, merged_down if down else merged, x)
    assert_same(found, np.flip(expected, -1) if down else expected)


@jit
def histogram_kernel(x, out, n, SIZE: tl.constexpr, BINS: tl.constexpr):
    i = tl.arange(0, SIZE)
    counts = tl.histogram(tl.load(x + i), BINS, mask=i < n)
    tl.store(out + tl.arange(0, BINS), counts)


@pytest.mark.parametrize(
    ("size", "bins"), [(64, 2), (256, 16), (512, 128), (16, 256), (1, 1)], ids=str
)
def test_histograms(device: Device, rng: np.random.Generator, size: int, bins: int):
    x = rng.integers(-2, bins + 2, size).astype(np.int32)
    n = size - size // 5
    out = device.empty(bins, np.int32)
    device.run(histogram_kernel, (1,), device.array(x), out, n, SIZE=size, BINS=bins)
    counted = x[:n][(x[:n] >= 0) & (x[:n] < bins)]
    np.testing.assert_array_equal(out, np.bincount(counted, minlength=bins))


@jit
def unmasked_kernel(x, out, SIZE: tl.constexpr, BINS: tl.constexpr):
    total = tl.zeros((BINS,), tl.int32)
    for start in range(0, 4 * SIZE, SIZE):
        total += tl.load(x + start + tl.arange(0, SIZE)).histogram(BINS)
    tl.store(out + tl.arange(0, BINS), total)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_histograms_of_every_type_in_a_loop(device: Device, rng: np.random.Generator, dtype: Any):
    x = rng.integers(0, 9, 4 * 128).astype(dtype)
    out = device.empty(8, np.int32)
    device.run(unmasked_kernel, (1,), device.array(x), out, SIZE=128, BINS=8)
    np.testing.assert_array_equal(out, np.bincount(x[x < 8].astype(int), minlength=8))


@jit
def halves(x, right):
    """The lower and the upper of each pair along the middle of three dims, for both of them."""
    lower, upper = tl.sum(x * (1 - right), 1), tl.sum(x * right, 1)
    pairs: tl.constexpr = x.shape
    return tl.broadcast_to(lower[:, None, :], pairs), tl.broadcast_to(upper[:, None, :], pairs)


@jit
def sort_by_sums_kernel(x, out, places, ROWS: tl.constexpr, LEVELS: tl.constexpr):
    """A bitonic network of sums of pairs, which carries where its elements were."""
    number = tl.arange(0, ROWS << LEVELS)
    key, place = tl.load(x + number), number & ((1 << LEVELS) - 1)
    right = tl.arange(0, 2)[None, :, None]
    for stage in tl.static_range(1, LEVELS + 1):
        for step in tl.static_range(stage):
            BIT: tl.constexpr = stage - 1 - step
            PAIRS = (ROWS << (LEVELS - 1 - BIT), 2, 1 << BIT)
            keys, at = tl.reshape(key, PAIRS), tl.reshape(place, PAIRS)
            low, high = halves(keys, right)
            low_at, high_at = halves(at, right)
            falls = tl.reshape(number, PAIRS) >> stage & 1 if stage < LEVELS else 0
            moves = ((low > high) | ((low == high) & (low_at > high_at))) ^ (falls != 0)
            key = tl.reshape(keys ^ tl.where(moves, low ^ high, 0), key.shape)
            place = tl.reshape(at ^ tl.where(moves, low_at ^ high_at, 0), key.shape)
    tl.store(out + number, key)
    tl.store(places + number, place)


def test_sorts_written_with_sums_of_pairs(device: Device, rng: np.random.Generator):
    x = rng.integers(-9, 9, size=(16, 16), dtype=np.int32)
    out, places = device.empty(x.shape, "int32"), device.empty(x.shape, "int32")
    device.run(
        sort_by_sums_kernel, (1,), device.array(x), out, places, ROWS=16, LEVELS=4, num_warps=2
    )
    assert np.array_equal(places, np.argsort(x, 1, kind="stable"))
    assert np.array_equal(out, np.sort(x, 1))
