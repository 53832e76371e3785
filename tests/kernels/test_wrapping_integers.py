"""Sums and products of integers that wrap, and what is made of them: //, %, >>, comparisons, masks.

That address arithmetic does not wrap (docs/adr/0022-tile-indices-start-at-zero.md) says nothing of
numbers that a kernel computes with.
"""

# pyright: reportOperatorIssue=false

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import INTEGERS, LANGUAGE, SIGNED, Array, assert_same
from tests.kernels.devices import Device
from tilewright import jit

N = 512
FACTOR, TERM = 1103515245, 12345


def wrapped(x: Any, dtype: Any) -> Array:
    """Python integers as a type holds them."""
    info = np.iinfo(dtype)
    span = int(info.max) - int(info.min) + 1
    numbers = (np.asarray(x, object) - int(info.min)) % span + int(info.min)
    return np.asarray(numbers, object).astype(dtype)


def divided(x: Array, y: Any) -> Array:
    """Quotients that round towards zero, exactly."""
    exact, divisors = x.astype(object), np.asarray(y, object)
    quotients = abs(exact) // abs(divisors)
    signs = np.where((exact < 0) != (divisors < 0), -1, 1)
    return wrapped(quotients * signs, x.dtype)


def remains(x: Array, y: Any) -> Array:
    exact = x.astype(object)
    return wrapped(exact - divided(x, y).astype(object) * np.asarray(y, object), x.dtype)


@jit
def hashed(out, n, N: tl.constexpr, TYPE: tl.constexpr, K: tl.constexpr, T: tl.constexpr):
    i = tl.arange(0, N)
    v = i.to(TYPE) * K + T
    tl.store(out + i, v % 97)
    tl.store(out + N + i, v // 4)
    tl.store(out + 2 * N + i, v >> 3)
    tl.store(out + 3 * N + i, (v < 60).to(TYPE))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_products_of_ranges(device: Device, dtype: Any):
    """Of numbers that are not negative; the product is."""
    bits = 8 * dtype.itemsize
    factor, term = FACTOR % (1 << (bits - 1)), TERM % (1 << (bits - 1))
    out = device.empty(4 * N, dtype)
    device.run(hashed, (1,), out, N, N=N, TYPE=LANGUAGE[dtype], K=factor, T=term)
    v = wrapped(wrapped(np.arange(N), dtype).astype(object) * factor + term, dtype)
    expected = remains(v, 97), divided(v, 4), v >> dtype.type(3), (v < 60).astype(dtype)
    assert_same(out, np.concatenate(expected))


@jit
def of_loaded(h, out, N: tl.constexpr, MASK: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(h + i) & MASK
    tl.store(out + i, (v * 3 + 1) % 97)
    tl.store(out + N + i, (v + v) // 4)
    m = tl.maximum(tl.load(h + i), 0) << 1
    tl.store(out + 2 * N + i, m // 8)
    tl.store(out + 3 * N + i, tl.minimum(m, 5))


@pytest.mark.parametrize("dtype", SIGNED, ids=str)
def test_sums_of_loaded_numbers(device: Device, rng: np.random.Generator, dtype: Any):
    h = rng.integers(0, 256, N * dtype.itemsize).astype(np.uint8).view(dtype)
    out, most = device.empty(4 * N, dtype), int(np.iinfo(dtype).max)
    device.run(of_loaded, (1,), device.array(h), out, N=N, MASK=most)
    v = (h & dtype.type(most)).astype(object)
    m = wrapped(np.maximum(h, 0).astype(object) * 2, dtype)
    expected = (
        remains(wrapped(v * 3 + 1, dtype), 97), divided(wrapped(v + v, dtype), 4),
        divided(m, 8), np.minimum(m, 5),
    )  # fmt: skip
    assert_same(out, np.concatenate(expected))


@jit
def by_argument(out, n, m, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, (i * n) % 1000)
    tl.store(out + N + i, (i + m) // 16)
    tl.store(out + 2 * N + i, (i + m) % 48)
    tl.store(out + 3 * N + i, ((i + m).to(tl.int64) < 100).to(tl.int32))
    tl.store(out + 4 * N + i, i, mask=(i + m) < 2147483640)
    tl.store(out + 5 * N + i, tl.where(i + m < 2147483640, i, -1))


@pytest.mark.parametrize("n", [100000007, 5])
@pytest.mark.parametrize("m", [2147483632, 2147483647 - 255, 16])
def test_arguments_of_any_size(device: Device, n: int, m: int):
    out, i = device.array(np.full(6 * N, 77, np.int32)), np.arange(N)
    device.run(by_argument, (1,), out, n, m, N=N)
    product = wrapped(i.astype(object) * n, np.int32)
    total = wrapped(i.astype(object) + m, np.int32)
    below = total < 2147483640
    expected = (
        remains(product, 1000), divided(total, 16), remains(total, 48), total < 100,
        np.where(below, i, 77), np.where(below, i, -1),
    )  # fmt: skip
    assert_same(out, np.concatenate(expected).astype(np.int32))


@jit
def rows_below(x, out, sums, m, R: tl.constexpr, C: tl.constexpr):
    i, j = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    inside = (i + m < 2147483640) & (j + m < 2147483641)
    v = tl.load(x + i * C + j, mask=inside, other=3)
    tl.store(out + i * C + j, v, mask=inside)
    tl.store(sums + tl.arange(0, R), tl.sum(v, 1))


@jit
def rows_copied(x, out, m, R: tl.constexpr, C: tl.constexpr):
    i, j = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    inside = (i + m < 2147483640) & (j + m < 2147483641)
    tl.store(out + i * C + j, tl.load(x + i * C + j, mask=inside), mask=inside)


@pytest.mark.parametrize("m", [2147483600, 2147483632, 2147483584 - 64])
def test_masks_that_end_and_begin_again(device: Device, rng: np.random.Generator, m: int):
    """An index beyond a bound wraps, and is below it again: for rows, columns and sums."""
    x = rng.integers(-99, 99, (64, 128)).astype(np.int32)
    out, sums = device.array(np.full((64, 128), 7, np.int32)), device.empty(64, np.int32)
    device.run(rows_below, (1,), device.array(x), out, sums, m, R=64, C=128)
    rows = wrapped(np.arange(64).astype(object) + m, np.int32) < 2147483640
    columns = wrapped(np.arange(128).astype(object) + m, np.int32) < 2147483641
    inside = rows[:, None] & columns[None, :]
    assert_same(out, np.where(inside, x, 7).astype(np.int32))
    assert_same(sums, np.where(inside, x, 3).sum(1).astype(np.int32))
    copy = device.array(np.full((64, 128), 7, np.int32))
    device.run(rows_copied, (1,), device.array(x), copy, m, R=64, C=128)
    assert_same(copy, out)


@jit
def carried(out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    v, s = i + 1, n
    for k in range(5):
        tl.store(out + 2 * k * N + i, v % 1000)
        tl.store(out + (2 * k + 1) * N + i, (v + s) // 32 + s % 97)
        v = v * 75 + 74
        s = s * FACTOR_ + 1


FACTOR_ = tl.constexpr(FACTOR)


def test_products_that_a_loop_carries(device: Device):
    out, expected = device.empty(10 * N, np.int32), list[Array]()
    device.run(carried, (1,), out, 7, N=N)
    v, s = np.arange(N) + 1, np.array(7)
    for _ in range(5):
        v, s = wrapped(v, np.int32), wrapped(s, np.int32)
        total = divided(wrapped(v.astype(object) + s.astype(object), np.int32), 32)
        expected += [remains(v, 1000), wrapped(total.astype(object) + remains(s, 97), np.int32)]
        v, s = v.astype(object) * 75 + 74, s.astype(object) * FACTOR + 1
    assert_same(out, np.concatenate(expected))


@jit
def around(x, out, n, step, start, B: tl.constexpr, UNSIGNED: tl.constexpr):
    i = tl.arange(0, B)
    if UNSIGNED:
        at = ((i.to(tl.uint32) * step.to(tl.uint32) + start.to(tl.uint32)) % 48).to(tl.int32)
    else:
        at = (i * step + start) % n
    tl.store(out + i, tl.load(x + 256 + at))


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("start", [2147483632, 2147483616, 1000, 48])
@pytest.mark.parametrize("unsigned", [False, True])
def test_places_that_wrap(
    device: Device, rng: np.random.Generator, step: int, start: int, unsigned: bool
):
    """Below zero a remainder by 48 does not count up where it passes a multiple of 48."""
    x, out = rng.normal(size=512).astype(np.float32), device.empty(256, np.float32)
    device.run(around, (1,), device.array(x), out, 48, step, start, B=256, UNSIGNED=unsigned)
    kind = np.uint32 if unsigned else np.int32
    at = remains(wrapped(np.arange(256).astype(object) * step + start, kind), 48)
    assert_same(out, x[256 + at.astype(np.int64)])


@jit
def by_number_of_programs(x, out, n, B: tl.constexpr, K: tl.constexpr):
    pid = tl.program_id(0)
    at = (pid * K + tl.arange(0, B)) % n
    tl.store(out + pid * B + tl.arange(0, B), tl.load(x + n + at))


def test_programs_times_a_large_number(device: Device, rng: np.random.Generator):
    """Not the first element of a tile: a product that wraps."""
    x, out = rng.normal(size=96).astype(np.float32), device.empty(8 * 64, np.float32)
    device.run(by_number_of_programs, (8,), device.array(x), out, 48, B=64, K=1103515232)
    i = (np.arange(8)[:, None] * 1103515232).astype(object) + np.arange(64)
    at = remains(wrapped(i, np.int32), 48).astype(np.int64)
    assert_same(out, x[48 + at.reshape(-1)])


@jit
def by_quotient(x, out, n, B: tl.constexpr, K: tl.constexpr):
    i = tl.arange(0, B)
    pid = tl.program_id(0)
    tl.store(out + pid * B + i, tl.load(x + 48 + (pid // (n - 2) * K + i) % 48))


def test_quotients_times_a_large_number(device: Device, rng: np.random.Generator):
    """No tile index below zero, which the interpreter would report."""
    x, out = rng.normal(size=96).astype(np.float32), device.empty(4 * 64, np.float32)
    device.run(by_quotient, (4,), device.array(x), out, 3, B=64, K=1103515232)
    i = (np.arange(4)[:, None] * 1103515232).astype(object) + np.arange(64)
    at = remains(wrapped(i, np.int32), 48).astype(np.int64)
    assert_same(out, x[48 + at.reshape(-1)])


@jit
def persistent(x, y, c, h, M, N, K, FACTOR: tl.constexpr, PROGRAMS: tl.constexpr, B: tl.constexpr):
    """Matrix products by programs that take one tile after the other; h: two numbers of each."""
    a = tl.make_tensor_descriptor(x, [M, K], [K, 1], [B, B])
    b = tl.make_tensor_descriptor(y, [K, N], [N, 1], [B, B])
    columns = tl.cdiv(N, B)
    for tile in range(tl.program_id(0), tl.cdiv(M, B) * columns, PROGRAMS):
        first, second = (tile * FACTOR + 12345) % 97, (tile * FACTOR + 12345) // M
        row, column = tile // columns * B, tile % columns * B
        acc = tl.zeros((B, B), tl.float32)
        for k in range(0, K, B):
            acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
        i, j = row + tl.arange(0, B), column + tl.arange(0, B)
        tl.store(c + i[:, None] * N + j[None, :], acc)
        tl.store(h + tile * 2, first)
        tl.store(h + tile * 2 + 1, second)


def test_hashes_beside_products(device: Device, rng: np.random.Generator):
    """A kernel with a producer, whose scalars are divided by shorter ways."""
    m, n, k = 256, 384, 128
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c, h = device.empty((m, n), np.float32), device.empty(2 * 24, np.int32)
    device.run(
        persistent, (3,), device.array(a), device.array(b), c, h, m, n, k,
        FACTOR=FACTOR, PROGRAMS=3, B=64, num_warps=4, num_stages=3,
    )  # fmt: skip
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    tiles = wrapped(np.arange(24).astype(object) * FACTOR + 12345, np.int32)
    assert_same(h.reshape(24, 2), np.stack([remains(tiles, 97), divided(tiles, m)], 1))
