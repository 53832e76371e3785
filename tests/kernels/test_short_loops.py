"""Loops over a row of known length, as torch.compile writes reductions: Welford's means, the place
of a maximum, and loads of several types that meet."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Device
from tilewright import jit


@jit
def mean_of_both(mean_1, m2_1, weight_1, mean_2, m2_2, weight_2):
    delta = mean_2 - mean_1
    weight = weight_1 + weight_2
    part = tl.where(weight == 0.0, 0.0, weight_2 / weight)
    return mean_1 + delta * part, m2_1 + m2_2 + delta * delta * weight_1 * part, weight


@jit
def moments(x, means, variances, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    base = tl.arange(0, BLOCK)
    mean = tl.zeros([BLOCK], tl.float32)
    m2 = tl.zeros([BLOCK], tl.float32)
    weight = tl.zeros([BLOCK], tl.float32)
    for offset in tl.range(0, COLUMNS, BLOCK):
        mask = offset + base < COLUMNS
        value = tl.load(x + row * COLUMNS + offset + base, mask, other=0.0)
        if offset == 0:
            next_mean, next_m2, next_weight = (
                value,
                tl.zeros_like(m2),
                tl.full([BLOCK], 1.0, tl.float32),
            )
        else:
            next_weight = weight + 1
            next_mean = mean + (value - mean) / next_weight
            next_m2 = m2 + (value - mean) * (value - next_mean)
        mean = tl.where(mask, next_mean, mean)
        m2 = tl.where(mask, next_m2, m2)
        weight = tl.where(mask, next_weight, weight)
    mean, m2, weight = tl.reduce((mean, m2, weight), 0, mean_of_both)
    tl.store(means + row, mean)
    tl.store(variances + row, m2 / COLUMNS)


@pytest.mark.parametrize("warps", [1, 4, 16])
@pytest.mark.parametrize("columns", [512, 1024, 1000, 64, 5000])
def test_means_and_variances(device: Device, rng: np.random.Generator, columns: int, warps: int):
    x = rng.standard_normal((3, columns)).astype(np.float32) * 3 + 7
    means, variances = device.empty(3, np.float32), device.empty(3, np.float32)
    device.run(
        moments, (3,), device.array(x), means, variances, COLUMNS=columns, BLOCK=512,
        num_warps=warps,
    )  # fmt: skip
    exact = x.astype(np.float64)
    np.testing.assert_allclose(means, exact.mean(1), rtol=2e-6)
    np.testing.assert_allclose(variances, exact.var(1), rtol=1e-5)


@jit
def first_of_largest(value_1, index_1, value_2, index_2):
    equal = value_1 == value_2
    is_nan_1 = value_1 != value_1
    is_nan_2 = value_2 != value_2
    mask = (value_1 > value_2) | (is_nan_1 & (not is_nan_2))
    mask |= (equal | (is_nan_1 & is_nan_2)) & (index_1 < index_2)
    return tl.where(mask, value_1, value_2), tl.where(mask, index_1, index_2)


@jit
def place_of_largest(x, places, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    base = tl.arange(0, BLOCK)
    best = tl.full([BLOCK], float("-inf"), tl.float32)
    index = tl.full([BLOCK], 2147483647, tl.int32)
    for offset in tl.range(0, COLUMNS, BLOCK):
        at = offset + base
        value = tl.load(x + row * COLUMNS + at, at < COLUMNS, other=0.0)
        next_best, next_index = first_of_largest(best, index, value, at)
        best = tl.where(at < COLUMNS, next_best, best)
        index = tl.where(at < COLUMNS, next_index, index)
    best, index = tl.reduce((best, index), 0, first_of_largest)
    tl.store(places + row, index.to(tl.int64))


@pytest.mark.parametrize("warps", [2, 16])
@pytest.mark.parametrize("columns", [1024, 777])
def test_places_of_maxima(device: Device, rng: np.random.Generator, columns: int, warps: int):
    x = rng.integers(-9, 9, (4, columns)).astype(np.float32)
    x[1, columns // 2 :: 7] = np.nan
    x[2] = -np.inf
    places = device.empty(4, np.int64)
    device.run(
        place_of_largest, (4,), device.array(x), places, COLUMNS=columns, BLOCK=512, num_warps=warps
    )
    np.testing.assert_array_equal(places, np.argmax(x, axis=1))


@jit
def chosen_losses(labels, x, sizes, out, n, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    base = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for offset in tl.range(0, 1024, BLOCK):
        row = offset + base
        mask = row < n
        label = tl.load(labels + row, mask, other=0)
        size = tl.load(sizes + row // 16, mask, other=1.0)
        loss = tl.load(x + label + COLUMNS * row, mask, other=0.0) / size
        total = tl.where(mask & (label != 3), total + loss, total)
    tl.store(out + base, total)


@pytest.mark.parametrize("n", [1024, 700])
def test_loads_of_several_types_that_meet(device: Device, rng: np.random.Generator, n: int):
    labels = rng.integers(0, 9, n).astype(np.int64)
    x = rng.standard_normal((n, 9)).astype(np.float32)
    sizes = rng.integers(1, 5, 64).astype(np.float32)
    out = device.empty(256, np.float32)
    device.run(
        chosen_losses, (1,), device.array(labels), device.array(x), device.array(sizes), out, n,
        COLUMNS=9, BLOCK=256,
    )  # fmt: skip
    losses = x[np.arange(n), labels].astype(np.float64) / np.repeat(sizes, 16)[:n]
    expected = np.zeros(1024)
    expected[:n] = np.where(labels != 3, losses, 0.0)
    np.testing.assert_allclose(out, expected.reshape(4, 256).sum(0), rtol=1e-5, atol=1e-6)


@jit
def halves(x, out, n, DIVISOR: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) / DIVISOR, i < n)


@pytest.mark.parametrize("divisor", [2.0, -0.25, 2.0**127, 2.0**-126, 2.0**-140, 3.0])
def test_quotients_by_constants(device: Device, rng: np.random.Generator, divisor: float):
    x = np.ldexp(rng.standard_normal(200), rng.integers(-120, 120, 200)).astype(np.float32)
    x[:6] = 0.0, -0.0, np.inf, -np.inf, np.nan, np.float32(2.0**-149)
    out = device.empty(200, np.float32)
    device.run(halves, (4,), device.array(x), out, 200, DIVISOR=divisor, BLOCK=64)
    with np.errstate(all="ignore"):
        expected = x / np.float32(divisor)
    if divisor == 3.0:
        np.testing.assert_allclose(out, expected, rtol=3e-7, atol=1e-45)
    else:
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(np.signbit(out), np.signbit(expected))
