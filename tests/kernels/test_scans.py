"""Inclusive scans along every axis, forwards and backwards."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import FLOATS, INTEGERS, Array, assert_same, normals
from tests.kernels.devices import Device
from tilewright import jit

SHAPES = [(64,), (8, 32), (32, 8), (1, 16), (16, 1), (4, 8, 16)]
AXES = [(shape, axis) for shape in SHAPES for axis in range(len(shape))]


@jit
def scan_kernel(
    x, out, FUNCTION: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr,
    SHAPE: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    place = tl.reshape(tl.arange(0, SIZE), SHAPE)
    tl.store(out + place, FUNCTION(tl.load(x + place), AXIS, REVERSE))


def scanned(
    device: Device, function: Any, x: Array, axis: int, reverse: bool, dtype: Any = None
) -> Array:
    out = device.empty(x.shape, dtype or x.dtype)
    device.run(
        scan_kernel, (1,), device.array(x), out, FUNCTION=function, AXIS=axis, REVERSE=reverse,
        SHAPE=x.shape, SIZE=x.size,
    )  # fmt: skip
    return out


@jit
def sums(x, axis, reverse: tl.constexpr):
    return tl.cumsum(x, axis, reverse=reverse)


@jit
def products(x, axis, reverse: tl.constexpr):
    return tl.cumprod(x, axis, reverse=reverse)


@jit
def larger(a, b):
    return tl.maximum(a, b)


@jit
def running_maximum(x, axis, reverse: tl.constexpr):
    return tl.associative_scan(x, axis, larger, reverse=reverse)


@jit
def affine(a, b, c, d):
    """x -> a x + b, then x -> c x + d."""
    return a * c, b * c + d


@jit
def recurrence(x, axis, reverse: tl.constexpr):
    """y[i] = y[i - 1] / 2 + x[i], which is no plain sum."""
    _, y = tl.associative_scan((x * 0 + 0.5, x), axis, affine, reverse=reverse)
    return y


def along(function: Any, x: Array, axis: int, reverse: bool) -> Array:
    """NumPy's accumulation from either end."""
    if reverse:
        return np.flip(function(np.flip(x, axis), axis), axis)
    return function(x, axis)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), AXES, ids=str)
def test_cumsum(device: Device, rng: np.random.Generator, shape: Any, axis: int, reverse: bool):
    x = rng.integers(-9, 9, shape).astype(np.float32)
    assert_same(scanned(device, sums, x, axis, reverse), along(np.cumsum, x, axis, reverse), False)


@pytest.mark.parametrize("dtype", (*INTEGERS, *FLOATS), ids=str)
def test_cumsum_of_every_type(device: Device, rng: np.random.Generator, dtype: Any):
    x = normals(rng, (4, 32), dtype)
    result = dtype
    if dtype in INTEGERS and dtype.itemsize < 4:
        result = np.dtype(np.int32 if dtype.kind == "i" else np.uint32)
    found = scanned(device, sums, x, 1, False, result)
    if dtype in INTEGERS:
        assert_same(found, np.cumsum(x, 1, dtype=result))
        return
    exact = np.cumsum(x.astype(np.float64), 1)
    bound = {2: 2.0**-8, 4: 1e-6, 8: 1e-14}[dtype.itemsize] * np.cumsum(np.abs(x), 1, np.float64)
    assert (np.abs(found.astype(np.float64) - exact) <= bound).all()


@pytest.mark.parametrize("reverse", [False, True])
def test_cumprod(device: Device, rng: np.random.Generator, reverse: bool):
    x = rng.choice([0.5, 2.0, -1.0], (8, 32)).astype(np.float32)
    assert_same(scanned(device, products, x, 1, reverse), along(np.cumprod, x, 1, reverse))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), AXES[:4], ids=str)
def test_scans_by_a_function_of_the_user(
    device: Device, rng: np.random.Generator, shape: Any, axis: int, reverse: bool
):
    x = rng.normal(size=shape).astype(np.float32)
    expected = along(np.maximum.accumulate, x, axis, reverse)
    assert_same(scanned(device, running_maximum, x, axis, reverse), expected)


@pytest.mark.parametrize("reverse", [False, True])
def test_scans_of_tuples(device: Device, rng: np.random.Generator, reverse: bool):
    """Scans need associativity only: the order of the operands counts."""
    x = rng.integers(-64, 64, (4, 16)).astype(np.float32)

    def decayed(values: Array, axis: int) -> Array:
        result = values.astype(np.float64)
        for i in range(1, values.shape[1]):
            result[:, i] += result[:, i - 1] / 2
        return result

    found = scanned(device, recurrence, x, 1, reverse)
    np.testing.assert_allclose(found, along(decayed, x, 1, reverse), rtol=1e-5, atol=1e-5)


@jit
def compact_kernel(x, out, count, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0)
    keep = v > 0
    place = tl.cumsum(keep.to(tl.int32), 0)
    tl.store(out + place - 1, v, mask=keep)
    tl.store(count, tl.max(place, 0))


def test_stream_compaction(device: Device, rng: np.random.Generator):
    x = rng.integers(-5, 5, 100).astype(np.int32)
    out, count = device.empty(100, np.int32), device.empty(1, np.int32)
    device.run(compact_kernel, (1,), device.array(x), out, count, 100, BLOCK=128)
    np.testing.assert_array_equal(out[: count[0]], x[x > 0])
