"""Quotients: within 2 ulp where they are stored, exact where they decide something."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import assert_near
from tests.kernels.devices import Array, Device
from tests.kernels.test_elementwise import apply
from tilewright import jit
from tilewright.language.extra import libdevice

ULPS = 2.0
WIDE = np.longdouble


def whole_quotients() -> tuple[Array, Array, Array]:
    """x, y and x / y, all of them integers."""
    grid = np.meshgrid(np.arange(-20, 21), [*range(1, 25), -3, -7, 41, 107, 239])
    quotient, y = (v.ravel().astype(np.float32) for v in grid)
    return quotient * y, y, quotient


@jit
def floored(x, y):
    return tl.floor(x / y)


@jit
def truncated(x, y):
    return (x / y).to(tl.int32).to(tl.float32)


@jit
def rounded_up(x, y):
    return tl.ceil(tl.where(y != 0, x / y, x))


@jit
def whole(x, y):
    quotient = x / y
    return tl.where(quotient == libdevice.rint(quotient), quotient, 1e9)


@jit
def nearest(x, y):
    return libdevice.rint(x / y)


@pytest.mark.parametrize("function", [floored, truncated, rounded_up, whole, nearest])
def test_a_quotient_that_decides_is_exact(device: Device, function: Any):
    x, y, expected = whole_quotients()
    np.testing.assert_array_equal(apply(device, function, x, y), expected)


@jit
def quotient(x, y):
    return x / y


@jit
def third(x):
    return x / 3.0


@jit
def tiny_part(x):
    return x / 3e-39


@jit
def fast(x, y):
    return libdevice.fast_dividef(x, y)


EDGES = [0.0, -0.0, 1e-45, 1e-40, 2.0**-126, 1.0, 3.0, 2.0**126, 3e38, np.inf, -np.inf, np.nan]


def pairs(rng: np.random.Generator) -> tuple[Array, Array]:
    """Of all sizes, and of special numbers with each other."""
    sized = rng.normal(size=(2, 400)) * 10.0 ** rng.uniform(-37, 37, (2, 400))
    edges = np.array(np.meshgrid(EDGES, EDGES)).reshape(2, -1)
    x, y = np.concatenate([sized, edges], axis=1).astype(np.float32)
    return x, y


def test_quotients_are_within_two_ulp(device: Device, rng: np.random.Generator):
    x, y = pairs(rng)
    with np.errstate(all="ignore"):
        expected = x.astype(WIDE) / y.astype(WIDE)
    assert_near(apply(device, quotient, x, y), expected, ULPS)


@pytest.mark.parametrize(("function", "divisor"), [(third, 3.0), (tiny_part, 3e-39)])
def test_quotients_by_constants(
    device: Device, rng: np.random.Generator, function: Any, divisor: float
):
    x, _ = pairs(rng)
    with np.errstate(all="ignore"):
        expected = x.astype(WIDE) / WIDE(np.float32(divisor))
    assert_near(apply(device, function, x), expected, ULPS)


def test_fast_quotients(device: Device, rng: np.random.Generator):
    x, y = (rng.normal(size=300) * 10.0 ** rng.uniform(-18, 18, 300) for _ in range(2))
    x, y = x.astype(np.float32), y.astype(np.float32)
    assert_near(apply(device, fast, x, y), x.astype(WIDE) / y.astype(WIDE), ULPS)


@jit
def by_sum(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    row = tl.load(x + i)
    tl.store(out + i, row / tl.sum(row, 0))


@pytest.mark.parametrize("size", [1.0, 1e-42, 2.0**-126, 1e36])
def test_a_row_by_its_sum(device: Device, rng: np.random.Generator, size: float):
    x = (rng.uniform(0.5, 1, 64) * size).astype(np.float32)
    out = device.empty(64, np.float32)
    device.run(by_sum, (1,), device.array(x), out, SIZE=64)
    total = x.astype(WIDE).sum()
    np.testing.assert_allclose(out, (x / total).astype(np.float64), rtol=6e-7)


@jit
def by_option(x, y, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, tl.sqrt(a) / b)
    tl.store(out + SIZE + i, tl.rsqrt(b))


def test_correct_rounding_is_an_option(device: Device, rng: np.random.Generator):
    x, y = rng.uniform(0.1, 100, (2, 256)).astype(np.float32)
    out = device.empty(2 * x.size, np.float32)
    arrays = (device.array(x), device.array(y), out)
    device.run(by_option, (1,), *arrays, SIZE=x.size, ieee_rounding=True)
    expected = np.concatenate([np.sqrt(x) / y, np.float32(1) / np.sqrt(y)])
    np.testing.assert_array_equal(out, expected)
