"""Random numbers: the same bits on every device, and the right distribution."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import assert_near
from tests.kernels.devices import DEVICES, Array, Device
from tilewright import cdiv, jit


@jit
def bits_kernel(out, seed, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.randint(seed, i), mask=i < n)


@jit
def uniform_kernel(out, seed, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.rand(seed, i), mask=i < n)


@jit
def normal_kernel(out, seed, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.randn(seed, i), mask=i < n)


@jit
def four_kernel(out, seed, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b, c, d = tl.randint4x(seed, i)
    tl.store(out + i, a, mask=i < n)
    tl.store(out + n + i, b, mask=i < n)
    tl.store(out + 2 * n + i, c, mask=i < n)
    tl.store(out + 3 * n + i, d, mask=i < n)


def philox(seed: int, counters: Array) -> Array:
    """Philox 4x32-10 of Salmon, Moraes, Dror and Shaw (2011): (4, n) words of 32 bits."""
    low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
    words = [counters.astype(np.uint64), *(np.zeros(counters.size, np.uint64) for _ in range(3))]
    keys = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32 & 0xFFFFFFFF)]
    for _ in range(10):
        first, second = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = [
            (second >> high) ^ words[1] ^ keys[0], second & low,
            (first >> high) ^ words[3] ^ keys[1], first & low,
        ]  # fmt: skip
        keys = [
            (keys[0] + np.uint64(0x9E3779B9)) & low, (keys[1] + np.uint64(0xBB67AE85)) & low
        ]  # fmt: skip
    return np.array(words).astype(np.uint32)


SEEDS = [0, 1, 12345, 2**31 - 1, 2**40 + 7]


@pytest.mark.parametrize("seed", SEEDS)
def test_bits_are_those_of_philox(device: Device, seed: int):
    out = device.empty(200, np.uint32)
    device.run(bits_kernel, (4,), out, seed, 200, BLOCK=64)
    np.testing.assert_array_equal(out, philox(seed, np.arange(200))[0])
    out = device.empty((4, 100), np.uint32)
    device.run(four_kernel, (2,), out, seed, 100, BLOCK=64)
    np.testing.assert_array_equal(out, philox(seed, np.arange(100)))


def test_uniform_numbers(device: Device):
    n = device.pick(2000, 100_000)
    out = device.empty(n, np.float32)
    device.run(uniform_kernel, (cdiv(n, 1024),), out, 42, n, BLOCK=1024)
    assert out.min() >= 0 and out.max() < 1
    counts = np.histogram(out, 10, (0, 1))[0]
    assert np.abs(counts - n / 10).max() < 5 * np.sqrt(n / 10)
    signed = philox(42, np.arange(n))[0].view(np.int32)
    np.testing.assert_allclose(out, np.where(signed < 0, -signed - 1, signed) * 2.0**-31, atol=1e-7)


def test_normal_numbers(device: Device):
    n = device.pick(2000, 100_000)
    out = device.empty(n, np.float32)
    device.run(normal_kernel, (cdiv(n, 1024),), out, 7, n, BLOCK=1024)
    assert abs(out.mean()) < 5 / np.sqrt(n)
    assert abs(out.std() - 1) < 5 / np.sqrt(n)
    assert 2.5 < np.abs(out).max() < 7


@jit
def dropout_kernel(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.where(tl.rand(seed, i) > p, v / (1 - p), 0.0), mask=i < n)


def dropped(device: Device, x: Array, p: float, seed: int, block: int) -> Array:
    out: Any = device.empty(x.size, np.float32)
    grid = (cdiv(x.size, block),)
    device.run(dropout_kernel, grid, device.array(x), out, x.size, p, seed, BLOCK=block)
    return out


@pytest.mark.parametrize("p", [0.0, 0.25, 0.9])
def test_dropout_is_the_same_everywhere(device: Device, rng: np.random.Generator, p: float):
    """Every device and every block size drops the same elements; quotients may differ by 2 ulp."""
    x = rng.normal(size=1000).astype(np.float32)
    found = dropped(device, x, p, 99, 64)
    np.testing.assert_array_equal(found, dropped(device, x, p, 99, 256))
    reference = dropped(DEVICES["interpreter"](), x, p, 99, 256)
    np.testing.assert_array_equal(found == 0, reference == 0)
    assert not np.array_equal(found, dropped(device, x, p, 100, 64)) or p == 0
    kept = found != 0
    assert abs(kept.mean() - (1 - p)) < 0.06
    scale = np.float32(1) - np.float32(p)
    assert_near(found[kept], x[kept].astype(np.float64) / scale, 2)
