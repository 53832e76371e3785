"""Loops over scalars and tiles: `for` over every form of range, `while`, what they carry."""

from contextlib import suppress

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import assert_same
from tests.kernels.devices import Device
from tilewright import jit
from tilewright.support import errors

# --- for ------------------------------------------------------------------------------------------


@jit
def range_kernel(out, start, stop, STEP: tl.constexpr):
    count = 0
    total = 0
    last = -100
    for i in range(start, stop, STEP):
        total += i * (count + 1)
        count += 1
        last = i
    tl.store(out, count)
    tl.store(out + 1, total)
    tl.store(out + 2, last)


@pytest.mark.parametrize("step", [1, 3, -1, -4])
@pytest.mark.parametrize("bounds", [(0, 10), (5, 5), (10, 0), (-3, 8), (8, -3), (1, 2), (2, 1)])
def test_ranges(device: Device, bounds: tuple[int, int], step: int):
    out = device.empty(3, np.int32)
    device.run(range_kernel, (1,), out, *bounds, STEP=step)
    indices = list(range(*bounds, step))
    total = sum(i * (k + 1) for k, i in enumerate(indices))
    assert out.tolist() == [len(indices), total, indices[-1] if indices else -100]


@jit
def run_time_step_kernel(out, n, step):
    total = 0
    for i in range(0, n, step):
        total += i
    tl.store(out, total)


@pytest.mark.parametrize("step", [1, 2, 7, 100])
def test_steps_known_only_at_run_time(device: Device, step: int):
    out = device.empty(1, np.int32)
    device.run(run_time_step_kernel, (1,), out, 50, step)
    assert out[0] == sum(range(0, 50, step))


@jit
def counted_range_kernel(out, start, stop, step):
    count = 0
    last = start
    for i in range(start, stop, step):
        count += 1
        last = i
    tl.store(out, count)
    tl.store(out + 1, last)


@jit
def counted_constant_range_kernel(out, start, stop, STEP: tl.constexpr):
    count = 0
    last = start
    for i in range(start, stop, STEP):
        count += 1
        last = i
    tl.store(out, count)
    tl.store(out + 1, last)


I32 = (-(2**31), 2**31 - 1)
I64 = (-(2**63), 2**63 - 1)
RANGES = [
    (5, 0, -1),
    (10, 0, -3),
    (0, 10, -2),
    (10, 0, 3),
    (7, 7, -7),
    (I32[1] - 9, I32[1], 4),
    (I32[1] - 2, I32[1], 1),
    (I32[0] + 9, I32[0], -4),
    (I32[0], I32[1], 2**30 + 7),
    (I32[1], I32[0], -(2**30)),
    (I32[0], 5, -1),
    (I64[1] - 9, I64[1], 4),
    (I64[0] + 9, I64[0], -7),
    (I64[1], I64[0], -(2**62)),
]


@pytest.mark.parametrize("bounds", RANGES)
def test_ranges_with_signs_and_ends_of_all_kinds(device: Device, bounds: tuple[int, int, int]):
    expected = range(*bounds)
    last = expected[-1] if expected else bounds[0]
    start, stop, step = bounds
    out = device.empty(2, np.int64)
    device.run(counted_range_kernel, (1,), out, *bounds)
    assert out.tolist() == [len(expected), last]
    device.run(counted_constant_range_kernel, (1,), out, start, stop, STEP=step)
    assert out.tolist() == [len(expected), last]


@jit
def unsigned_range_kernel(out, bounds, STEP: tl.constexpr):
    start, stop = tl.load(bounds), tl.load(bounds + 1)
    count = 0
    last = start
    for i in range(start, stop, STEP):
        count += 1
        last = i
    for i in range(start, stop, tl.load(bounds + 2).to(tl.int32) * 0 + STEP):
        count += 1
        last += i - i
    tl.store(out, count)
    tl.store(out + 1, last)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("step", [3, -3])
def test_unsigned_ranges_near_their_ends(device: Device, dtype: type, step: int):
    highest = int(np.iinfo(dtype).max)
    for low, high in [(highest - 7, highest), (0, 8), (3, 3)]:
        start, stop = (low, high) if step > 0 else (high, low)
        out, expected = device.empty(2, np.uint64), range(start, stop, step)
        bounds = device.array([start, stop, 0], dtype)
        device.run(unsigned_range_kernel, (1,), out, bounds, STEP=step)
        assert out.tolist() == [2 * len(expected), expected[-1] if expected else start]


@jit
def unrolled_long_steps_kernel(out, start, n, START: tl.constexpr, STEP: tl.constexpr):
    """What a loop leaves to ptxas to unroll: every index counts."""
    total = tl.full((), 0, tl.int64)
    count = 0
    for k in tl.range(tl.full((), START, tl.int32), n, STEP, loop_unroll_factor=2):
        total += k
        count += 1
    for k in tl.range(tl.full((), START, tl.int32), n, STEP):
        total = total * 3 + k
    for k in tl.range(start, n, STEP):
        total = total * 3 + k
    tl.store(out, total)
    tl.store(out + 1, count)


LONG_STEPS = [
    (0, I32[1], 2**30 - 1),  # without end on an H200 where ptxas unrolled `index != end`
    (0, I32[1], 2**29 + 1),
    (I32[0], I32[1], 2**30 - 1),
    (I32[0], I32[1], 2**28 + 3),
    (I32[1] - 399, I32[1], 100),  # four steps from start to an end beyond the type
    (I32[1] - 799, I32[1], 100),
    (I32[1] - 5, I32[1], 1),
    (I32[0], I32[0] + 9, 1),
    (-5, 6, 1),
]


@pytest.mark.parametrize("bounds", LONG_STEPS)
def test_steps_that_are_long_for_their_type(device: Device, bounds: tuple[int, int, int]):
    start, stop, step = bounds
    out = device.empty(2, np.int64)
    words = {"START": start, "STEP": step, "num_warps": 1}
    device.run(unrolled_long_steps_kernel, (1,), out, start, stop, **words)
    total = sum(range(*bounds))
    for k in [*range(*bounds), *range(*bounds)]:
        total = total * 3 + k
    wrapped = (total + 2**63) % 2**64 - 2**63
    assert out.tolist() == [wrapped, len(range(*bounds))]


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("step", [1, 100])
def test_unsigned_indices_that_pass_the_largest_signed_number(
    device: Device, dtype: type, step: int
):
    middle = 2 ** (8 * np.dtype(dtype).itemsize - 1)
    out = device.empty(2, np.uint64)
    for rest in (0, 1, 2, 50):
        expected = range(middle - 3 * step + rest, middle + step + rest, step)
        bounds = device.array([expected.start, expected.stop, 0], dtype)
        device.run(unsigned_range_kernel, (1,), out, bounds, STEP=step)
        assert out.tolist() == [2 * len(expected), expected[-1]]


def test_a_step_of_zero_stops_the_launch(device: Device):
    out = device.empty(2, np.int64)
    with pytest.raises(errors.DeviceAssertionFailure, match=r"the step of range\(\) is 0"):
        device.run(counted_range_kernel, (1,), out, 3, 9, 0)


@jit
def grid_stride_kernel(out, n, BLOCK: tl.constexpr):
    count = 0
    for _ in range(0, n, tl.num_programs(0) * BLOCK):
        count += 1
    if tl.program_id(0) == 0:
        tl.store(out, count)


@pytest.mark.parametrize("programs", [1, 2, 3, 5])
def test_a_stride_of_the_grid_that_wraps_around_is_the_wrapped_number(
    device: Device, programs: int
):
    out, n = device.empty(1, np.int32), 2**30 + 1
    device.run(grid_stride_kernel, (programs,), out, n, BLOCK=2**30)
    # 1 * 2^30 and 5 * 2^30 are 2^30; the others are below 0, and count no number up to n.
    assert out[0] == (2 if programs in (1, 5) else 0)


def test_a_stride_of_the_grid_that_wraps_around_to_zero_ends(device: Device):
    out = device.array([0], np.int32)
    # As wherever a step is 0 the launch may be stopped; compiled loops may also be left out.
    with suppress(errors.DeviceAssertionFailure):
        device.run(grid_stride_kernel, (4,), out, 10, BLOCK=2**30)
    assert out[0] == 0


@jit
def last_indices_kernel(out, n, m):
    for i in range(n):
        tl.store(out, i)
    tl.store(out + 1, i)  # pyright: ignore[reportPossiblyUnboundVariable]
    k = 77
    for k in range(m, 0, -3):
        k = k * 10
    tl.store(out + 2, k)
    for j in tl.static_range(4):
        tl.store(out + 3, j)
    tl.store(out + 3, j)  # pyright: ignore[reportPossiblyUnboundVariable]


def test_a_loop_variable_is_used_after_its_loop(device: Device):
    out = device.empty(4, np.int64)
    device.run(last_indices_kernel, (1,), out, 3, 7)
    assert out.tolist() == [2, 2, 10, 3]
    device.run(last_indices_kernel, (1,), out, 1, 0)
    assert out.tolist() == [0, 0, 77, 3]


@jit
def wide_range_kernel(out, start, n):
    total = start * 0
    for i in range(start, start + n):
        total += i - start
    tl.store(out, total)


def test_64_bit_ranges(device: Device):
    out = device.empty(1, np.int64)
    device.run(wide_range_kernel, (1,), out, 2**40, 10)
    assert out[0] == 45


@jit
def forms_of_range_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.int32)
    for k in tl.range(0, n, 2, num_stages=3):
        acc += tl.load(x + k * BLOCK + i)
    for k in tl.static_range(3):
        acc = acc * 2 + k
    for k in tl.range(n, loop_unroll_factor=2):
        acc -= k
    for k in range(2):
        for m in range(k, 3):
            acc += k * 10 + m
    tl.store(out + i, acc)


def test_forms_of_range(device: Device, rng: np.random.Generator):
    x = rng.integers(-9, 9, (5, 32)).astype(np.int32)
    out = device.empty(32, np.int32)
    device.run(forms_of_range_kernel, (1,), device.array(x), out, 5, BLOCK=32)
    expected = x[0] + x[2] + x[4]
    for k in range(3):
        expected = expected * 2 + k
    expected = expected - 10 + sum(k * 10 + m for k in range(2) for m in range(k, 3))
    assert_same(out, expected.astype(np.int32))


# --- carried tiles --------------------------------------------------------------------------------


@jit
def fibonacci_tiles_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = a * 0 + 1
    for _ in range(n):
        a, b = b, a + b
    tl.store(out + i, a)
    tl.store(out + BLOCK + i, b)


@jit
def rotate_tiles_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b, c = tl.load(x + i), tl.load(x + BLOCK + i), tl.load(x + 2 * BLOCK + i)
    for _ in range(n):
        a, b, c = b, c, a
    tl.store(out + i, a)
    tl.store(out + BLOCK + i, b)
    tl.store(out + 2 * BLOCK + i, c)


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_tiles_that_trade_places(device: Device, rng: np.random.Generator, n: int):
    x = rng.integers(0, 9, 64).astype(np.int32)
    out = device.empty(128, np.int32)
    device.run(fibonacci_tiles_kernel, (1,), device.array(x), out, n, BLOCK=64)
    a, b = x, np.ones_like(x)
    for _ in range(n):
        a, b = b, a + b
    assert_same(out, np.concatenate([a, b]))
    x = rng.normal(size=(3, 32)).astype(np.float32)
    out = device.empty((3, 32), np.float32)
    device.run(rotate_tiles_kernel, (1,), device.array(x), out, n, BLOCK=32)
    assert_same(out, np.roll(x, -n, 0))


@jit
def shuffled_state_kernel(x, out, n, BLOCK: tl.constexpr):
    """Each iteration moves elements of the carried tile and folds it."""
    i = tl.arange(0, BLOCK)
    state = tl.load(x + i)
    best = tl.max(state, 0)
    for k in range(n):
        state = tl.flip(state) + k
        state = tl.where(i < k, state, -state)
        best = tl.maximum(best, tl.max(state, 0))
        state -= best
    tl.store(out + i, state)
    tl.store(out + BLOCK, best)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_tiles_whose_elements_move_each_iteration(device: Device, rng: np.random.Generator, n: int):
    x = rng.integers(-9, 9, 64).astype(np.int32)
    out = device.empty(65, np.int32)
    device.run(shuffled_state_kernel, (1,), device.array(x), out, n, BLOCK=64)
    state, best = x, x.max()
    for k in range(n):
        state = state[::-1] + k
        state = np.where(np.arange(64) < k, state, -state)
        best = max(best, state.max())
        state = state - best
    assert_same(out, np.append(state, best).astype(np.int32))


@jit
def carried_bytes_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    state = tl.load(x + i)
    for k in range(n):
        if k % 2 == 0:
            state = state * 3
        else:
            state = state + 1
    while n > 2:
        state = state ^ 5
        n -= 1
    tl.store(out + i, state)


@pytest.mark.parametrize("n", [0, 1, 6])
def test_tiles_of_bytes_are_passed_on(device: Device, rng: np.random.Generator, n: int):
    """Through loops of both kinds and branches; four elements of a thread are one register."""
    x = rng.integers(-128, 128, 1024).astype(np.int8)
    out = device.empty(1024, np.int8)
    device.run(carried_bytes_kernel, (1,), device.array(x), out, n, BLOCK=1024)
    state = x
    for k in range(n):
        state = state * np.int8(3) if k % 2 == 0 else state + np.int8(1)
    for _ in range(2, n):
        state = state ^ np.int8(5)
    assert_same(out, state)


@jit
def carried_pointers_kernel(x, out, rows, stride, BLOCK: tl.constexpr):
    pointers = x + tl.arange(0, BLOCK)
    base = x
    total = tl.zeros((BLOCK,), tl.float32)
    first = 0.0
    for _ in range(rows):
        total += tl.load(pointers)
        first += tl.load(base)
        pointers += stride
        base += stride
    tl.store(out + tl.arange(0, BLOCK), total)
    tl.store(out + BLOCK, first)


@pytest.mark.parametrize("rows", [0, 1, 6])
def test_carried_pointers(device: Device, rng: np.random.Generator, rows: int):
    x = rng.integers(0, 9, (6, 40)).astype(np.float32)
    out = device.empty(33, np.float32)
    device.run(carried_pointers_kernel, (1,), device.array(x), out, rows, 40, BLOCK=32)
    sums = x[:rows, :32].sum(0)
    assert_same(out, np.append(sums, sums[0]))


@jit
def scattered_pointers_kernel(x, index, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    pointers = x + tl.load(index + i)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(n):
        total += tl.load(pointers)
        pointers += tl.load(index + i) * 0 + k
    tl.store(out + i, total)


def test_carried_pointers_of_a_gather(device: Device, rng: np.random.Generator):
    x, index = rng.normal(size=60).astype(np.float32), rng.integers(0, 50, 32).astype(np.int32)
    out = device.empty(32, np.float32)
    arrays = device.array(x), device.array(index)
    device.run(scattered_pointers_kernel, (1,), *arrays, out, 4, BLOCK=32)
    expected = x[index] + x[index] + x[index + 1] + x[index + 3]
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


@jit
def online_softmax_kernel(x, out, n, BLOCK: tl.constexpr):
    top = -float("inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + i, mask=i < n, other=-float("inf"))
        higher = max(top, tl.max(v, 0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(v - higher), 0)
        top = higher
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + i, mask=i < n)
        tl.store(out + i, tl.exp(v - top) / total, mask=i < n)


@pytest.mark.parametrize("n", [1, 31, 32, 100])
def test_online_softmax(device: Device, rng: np.random.Generator, n: int):
    x, out = rng.normal(size=n).astype(np.float32) * 5, device.empty(n, np.float32)
    device.run(online_softmax_kernel, (1,), device.array(x), out, n, BLOCK=32)
    exact = np.exp(x.astype(np.float64) - x.max())
    np.testing.assert_allclose(out, exact / exact.sum(), rtol=1e-5)


# --- while ----------------------------------------------------------------------------------------


@jit
def collatz_kernel(x, out):
    n = tl.load(x + tl.program_id(0))
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    tl.store(out + tl.program_id(0), steps)


def test_while(device: Device):
    x, out = device.array(np.arange(1, 20), np.int32), device.empty(19, np.int32)
    device.run(collatz_kernel, (19,), x, out)
    assert out.tolist() == [0, 1, 7, 2, 5, 8, 16, 3, 19, 6, 14, 9, 9, 17, 17, 4, 12, 20, 20]


@jit
def newton_kernel(x, out, tolerance, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    root = v * 0.5 + 0.5
    error = tl.max(tl.abs(root * root - v), 0)
    rounds = 0
    while (error > tolerance) and (rounds < 50):
        root = 0.5 * (root + v / root)
        error = tl.max(tl.abs(root * root - v), 0)
        rounds += 1
    tl.store(out + i, root)


def test_while_over_tiles(device: Device, rng: np.random.Generator):
    x, out = rng.uniform(0.1, 50, 64), device.empty(64, np.float64)
    device.run(newton_kernel, (1,), device.array(x), out, 1e-9, BLOCK=64)
    np.testing.assert_allclose(out, np.sqrt(x), rtol=1e-7)


@jit
def nested_while_kernel(out, n):
    total = 0
    i = 0
    while i < n:
        j = i
        while j > 0:
            total += j
            j -= 2
        i += 1
    tl.store(out, total)


@pytest.mark.parametrize("n", [0, 1, 6])
def test_nested_while(device: Device, n: int):
    out = device.empty(1, np.int32)
    device.run(nested_while_kernel, (1,), out, n)
    assert out[0] == sum(j for i in range(n) for j in range(i, 0, -2))


@jit
def sliding_window_kernel(x, out, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Each block of rows is added to the one six iterations before."""
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    zero = tl.zeros((ROWS, COLUMNS), tl.float32)
    a, b, c, d, e, f = zero, zero, zero, zero, zero, zero
    for k in range(n):
        new = tl.load(x + k * ROWS + i + j * n * ROWS)
        tl.store(out + k * ROWS + i + j * n * ROWS, a + new)
        a, b, c, d, e, f = b, c, d, e, f, new


def test_a_window_of_tiles_slides(device: Device, rng: np.random.Generator):
    n, rows, columns = 8, 16, 8
    x = rng.integers(-9, 9, (columns, n, rows)).astype(np.float32)
    out = device.empty(x.shape, np.float32)
    device.run(sliding_window_kernel, (1,), device.array(x), out, n, ROWS=rows, COLUMNS=columns)
    expected = x.copy()
    expected[:, 6:] += x[:, :-6]
    assert_same(out, expected)


@jit
def trading_products_kernel(x, out, n):
    """Values with layouts of their own change places in both loops."""
    i = tl.arange(0, 16)[:, None]
    j = tl.arange(0, 32)[None, :]
    tile = tl.load(x + i * 32 + j)
    a = tl.dot(tile, tl.trans(tile))
    b = tl.trans(tl.dot(tile, tl.trans(tile))) * 2
    for _ in range(n):
        for _ in range(n):
            a, b = b, a
        a, b = b + 1, a
    k = tl.arange(0, 16)[None, :]
    tl.store(out + i * 16 + k, a)
    tl.store(out + 256 + i * 16 + k, b)


def test_products_that_trade_places(device: Device, rng: np.random.Generator):
    x, out = rng.integers(-3, 3, (16, 32)).astype(np.float16), device.empty((2, 16, 16), np.float32)
    device.run(trading_products_kernel, (1,), device.array(x), out, 3)
    a = x.astype(np.float32) @ x.astype(np.float32).T
    b = a.T * 2
    for _ in range(3):
        a, b = b, a  # three exchanges are one
        a, b = b + 1, a
    assert_same(out, np.stack([a, b]))


@jit
def hinted_while_kernel(out, n):
    i = 0
    total = 0
    while tl.condition(i < n, disable_licm=True):
        total += i
        i += 1
    tl.store(out, total)


def test_a_while_loop_whose_condition_carries_a_hint(device: Device):
    out = device.empty(1, np.int32)
    device.run(hinted_while_kernel, (1,), out, 7)
    assert out[0] == 21


@jit
def turned_pointers(x, y, n, B: tl.constexpr):
    """Pointers that a loop carries are used in two layouts."""
    i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    p, q = x + i * B + j, y + i * B + j
    for _ in range(n):
        tl.store(tl.trans(q), tl.load(p))
        p += B * B
        q += B * B


def test_carried_pointers_are_used_in_other_threads(device: Device) -> None:
    source = np.random.default_rng(0).normal(size=(3, 32, 32)).astype(np.float32)
    out = device.empty((3, 32, 32), np.float32)
    device.run(turned_pointers, (1,), device.array(source), out, 3, 32)
    np.testing.assert_array_equal(out, source.transpose(0, 2, 1))
