"""Functions with rare forms on many elements of a thread: vector by vector, loads ahead."""

import numpy as np

import tilewright.language as tl
from tests.kernels.devices import Device
from tilewright import jit

SIZE = 2048
"""16 elements of a thread."""


@jit
def in_place(x, y, n, SIZE: tl.constexpr):
    """A load of what has been stored, whose elements another rare form takes."""
    i = tl.arange(0, SIZE)
    first = tl.sin(tl.load(x + i, mask=i < n, other=0.5))
    tl.store(x + i, first, mask=i < n)
    again = tl.load(x + i, mask=i < n, other=0.25)
    tl.store(y + i, tl.cos(again) + first, mask=i < n)


def test_a_load_after_a_store_sees_it(device: Device, rng: np.random.Generator) -> None:
    n, given = SIZE - 8, (rng.normal(size=SIZE) * 100).astype(np.float32)
    given[:3] = 1e30, -3e5, 200000
    x, y = device.array(given), device.array(np.zeros_like(given))
    device.run(in_place, (1,), x, y, n, SIZE=SIZE)
    first = np.sin(given[:n].astype(np.float64))
    np.testing.assert_allclose(x[:n], first, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(x[n:], given[n:])
    np.testing.assert_allclose(y[:n], np.cos(first) + first, rtol=1e-5, atol=1e-6)
    assert not y[n:].any()


@jit
def gathered(x, index, y, total, SIZE: tl.constexpr):
    """A load from where another one says, pairs of fp16, and a sum of what the vectors gave."""
    i = tl.arange(0, SIZE)
    at = tl.load(index + i) % SIZE
    value = tl.sin(tl.load(x + at)) % 0.3
    small = value.to(tl.float16) * value.to(tl.float16)
    tl.store(y + i, small)
    tl.store(total, tl.sum(value, 0))


def test_a_gather_and_a_sum(device: Device, rng: np.random.Generator) -> None:
    given = (rng.normal(size=SIZE) * 1e5).astype(np.float32)
    index = rng.integers(0, 10 * SIZE, SIZE).astype(np.int32)
    y, total = device.empty(SIZE, np.float16), device.empty(1, np.float32)
    device.run(gathered, (1,), device.array(given), device.array(index), y, total, SIZE=SIZE)
    value = np.fmod(np.sin(given[index % SIZE].astype(np.float64)), 0.3)
    np.testing.assert_allclose(y.astype(np.float64), value**2, rtol=3e-3, atol=1e-4)
    np.testing.assert_allclose(total[0], value.sum(), rtol=1e-3)


@jit
def divided(x, rows, y, M: tl.constexpr, N: tl.constexpr):
    """Quotients with one divisor for each row, beside exact ones."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    value = tl.load(x + i * N + j)
    scale = tl.load(rows + tl.arange(0, M))
    exact = tl.div_rn(value, scale[:, None])
    tl.store(y + i * N + j, exact + value / scale[:, None] + tl.sin(value) / (scale[:, None] + 1.0))


def test_quotients_share_their_divisors(device: Device, rng: np.random.Generator) -> None:
    value = rng.normal(size=(32, 64)).astype(np.float32)
    scale = rng.uniform(0.5, 4, 32).astype(np.float32)
    y = device.empty((32, 64), np.float32)
    device.run(divided, (1,), device.array(value), device.array(scale), y, M=32, N=64)
    wide, by = value.astype(np.float64), scale.astype(np.float64)[:, None]
    np.testing.assert_allclose(y, 2 * wide / by + np.sin(wide) / (by + 1), rtol=2e-6, atol=1e-6)


@jit
def masked(x, y, n, SIZE: tl.constexpr):
    """Masks that are equal over vectors: of the group's own, and of a dim that vectors repeat."""
    i = tl.arange(0, SIZE)
    value = tl.sin(tl.load(x + i))
    value = tl.where(i < n, value, 2.0)
    tl.store(y + i, tl.where((i >= 32) & (i // 8 % 3 != 1), value, -value))


def test_masks_of_vectors(device: Device, rng: np.random.Generator) -> None:
    value = (rng.normal(size=SIZE) * 9).astype(np.float32)
    for n in (SIZE - 16, SIZE - 304, 5):
        y = device.empty(SIZE, np.float32)
        device.run(masked, (1,), device.array(value), y, n, SIZE=SIZE)
        i = np.arange(SIZE)
        made = np.where(i < n, np.sin(value.astype(np.float64)), 2.0)
        keeps = (i >= 32) & (i // 8 % 3 != 1)
        np.testing.assert_allclose(y, np.where(keeps, made, -made), rtol=1e-5, atol=1e-6)
