"""Loops, branches, early returns, inlined calls: with scalars and with tiles."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import ALL, BFLOAT16, assert_same
from tests.kernels.devices import Device
from tilewright import jit

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
def test_tiles_whose_elements_move_each_iteration(
    device: Device, rng: np.random.Generator, n: int
):
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


# --- if -------------------------------------------------------------------------------------------


@jit
def branches_kernel(x, out, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    scale = 1.0
    if pid == 0:
        v = v + 1
    elif pid < n:
        scale = 2.0
        if pid == 2:
            v = tl.flip(v)
        else:
            v = -v
    else:
        v = v * 0 + pid.to(v.dtype)
        scale = 0.5
    tl.store(out + pid * BLOCK + i, v * scale)


@pytest.mark.parametrize("dtype", ["float32", "float16", BFLOAT16, "float64"], ids=str)
def test_branches_that_change_tiles(device: Device, rng: np.random.Generator, dtype: Any):
    x = rng.integers(-9, 9, 32).astype(dtype)
    out = device.empty((5, 32), dtype)
    device.run(branches_kernel, (5,), device.array(x), out, 3, BLOCK=32)
    wide = x.astype(np.float64)
    rows = [wide + 1, -2 * wide, 2 * wide[::-1], np.full(32, 1.5), np.full(32, 2)]
    assert_same(out, np.array(rows).astype(dtype), same_zeros=False)


@jit
def moving_branches_kernel(x, out, n, BLOCK: tl.constexpr):
    """Branches and loops in which values of any type only move."""
    i = tl.arange(0, BLOCK)
    v, w = tl.load(x + i), tl.load(x + BLOCK + i)
    for k in range(n):
        if k % 2 == 0:
            v, w = w, v
        else:
            v = tl.flip(v)
    while n > 100:
        v, n = w, n - 1
    tl.store(out + i, v if n > 2 else w)


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("n", [0, 1, 4, 101])
def test_branches_that_move_tiles_of_any_type(
    device: Device, rng: np.random.Generator, n: int, dtype: Any
):
    x = rng.integers(0, 2, (2, 32)).astype(dtype)
    out = device.empty(32, dtype)
    device.run(moving_branches_kernel, (1,), device.array(x), out, n, BLOCK=32)
    v, w = x
    for k in range(n):
        v, w = (w, v) if k % 2 == 0 else (v[::-1], w)
    assert_same(out, v if 2 < n <= 100 else w)


@jit
def branch_effects_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    if tl.sum(v, 0) > 0:
        tl.store(out + i, v)
        tl.store(x + i, v * 0)
    tl.store(out + BLOCK + i, tl.load(x + i))


@pytest.mark.parametrize("sign", [1, -1])
def test_stores_in_branches(device: Device, rng: np.random.Generator, sign: int):
    x = (np.abs(rng.normal(size=32)) * sign).astype(np.float32)
    there, out = device.array(x), device.empty(64, np.float32)
    device.run(branch_effects_kernel, (1,), there, out, BLOCK=32)
    if sign > 0:
        assert_same(out[:32], x)
        assert not out[32:].any() and not there.any()
    else:
        assert np.isnan(out[:32]).all()
        assert_same(out[32:], x)


@jit
def early_return_kernel(x, out, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= n:
        return
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    if tl.max(v, 0) < 0:
        tl.store(out + pid * BLOCK + i, -v)
        return
    tl.store(out + pid * BLOCK + i, v + pid)


@pytest.mark.parametrize("sign", [1, -1])
def test_early_returns(device: Device, rng: np.random.Generator, sign: int):
    x = (np.abs(rng.normal(size=32)) * sign).astype(np.float32)
    out = device.empty((4, 32), np.float32)
    device.run(early_return_kernel, (4,), device.array(x), out, 2, BLOCK=32)
    rows = [-x, -x] if sign < 0 else [x, x + np.float32(1)]
    assert_same(out[:2], np.array(rows))
    assert np.isnan(out[2:]).all()


@jit
def conditional_expressions_kernel(x, out, a, b, CHOICE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    first = a if a > b else b
    second = (v + 1) if CHOICE == "up" else (v - 1)
    flag = (a > 0 and b > 0) or not (a < 5)
    tl.store(out + i, second * first + flag)


@pytest.mark.parametrize("choice", ["up", "down"])
def test_conditional_expressions(device: Device, rng: np.random.Generator, choice: str):
    x = rng.integers(-9, 9, 32).astype(np.int32)
    for a, b in ((3, 4), (-3, 7), (9, -9)):
        out = device.empty(32, np.int32)
        words = {"CHOICE": choice, "BLOCK": 32}
        device.run(conditional_expressions_kernel, (1,), device.array(x), out, a, b, **words)
        second = x + 1 if choice == "up" else x - 1
        flag = (a > 0 and b > 0) or not a < 5
        assert_same(out, (second * max(a, b) + flag).astype(np.int32))


@jit
def loop_with_branches_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    even = tl.zeros((BLOCK,), tl.float32)
    odd = tl.zeros((BLOCK,), tl.float32)
    for k in range(n):
        v = tl.load(x + k * BLOCK + i)
        if k % 2 == 0:
            even += v
        else:
            odd, even = odd + v, even * 0.5
        if k == 3:
            tl.store(out + i, even)
    tl.store(out + BLOCK + i, even)
    tl.store(out + 2 * BLOCK + i, odd)


@pytest.mark.parametrize("n", [0, 3, 6])
def test_branches_in_loops(device: Device, rng: np.random.Generator, n: int):
    x = rng.integers(-8, 8, (6, 32)).astype(np.float32)
    out = device.empty((3, 32), np.float32)
    device.run(loop_with_branches_kernel, (1,), device.array(x), out, n, BLOCK=32)
    even, odd, seen = np.zeros((3, 32), np.float32)
    seen[:] = np.nan
    for k in range(n):
        if k % 2 == 0:
            even = even + x[k]
        else:
            odd, even = odd + x[k], even * np.float32(0.5)
        if k == 3:
            seen = even
    assert_same(out, np.array([seen, even, odd]))


@jit
def loop_in_branch_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    if n > 2:
        for k in range(n):
            v = v * 2 + k
            while tl.max(v, 0) > 100:
                v -= 50
    else:
        v = -v
    tl.store(out + i, v)


@pytest.mark.parametrize("n", [1, 3, 7])
def test_loops_in_branches(device: Device, rng: np.random.Generator, n: int):
    x = rng.integers(0, 9, 32).astype(np.int32)
    out = device.empty(32, np.int32)
    device.run(loop_in_branch_kernel, (1,), device.array(x), out, n, BLOCK=32)
    v = x if n > 2 else -x
    for k in range(n if n > 2 else 0):
        v = v * 2 + k
        while v.max() > 100:
            v = v - 50
    assert_same(out, v.astype(np.int32))


# --- functions ------------------------------------------------------------------------------------


@jit
def both(x, y, SCALE: tl.constexpr = 2):
    return x + y * SCALE, x - y


@jit
def sign_of(x):
    if x > 0:
        return 1
    if x < 0:
        return -1
    return 0


@jit
def nested_calls(x, n: tl.constexpr):
    if n == 0:
        return x
    total, difference = both(x, x * 2, SCALE=n)
    return total + both(y=difference, x=x)[1]


@jit
def functions_kernel(x, out, k, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    pair = both(v, v * v)
    low, high = pair[1], pair[0]
    pairs = (low, (high, nested_calls(v, 3)))
    result = pairs[0] + pairs[1][0] * 10 + pairs[1][1] * 100 + nested_calls(v, 0)
    tl.store(out + i, result * sign_of(k))


@pytest.mark.parametrize("k", [5, 0, -5])
def test_functions_and_tuples(device: Device, rng: np.random.Generator, k: int):
    x = rng.integers(-9, 9, 32).astype(np.int32)
    out = device.empty(32, np.int32)
    device.run(functions_kernel, (1,), device.array(x), out, k, BLOCK=32)
    low, high = x - x * x, x + 2 * x * x
    nested = (x + 2 * x * 3) + (x - (x - 2 * x))
    expected = (low + high * 10 + nested * 100 + x) * np.sign(k)
    assert_same(out, expected.astype(np.int32))


@jit
def tuple_state_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    state = (tl.load(x + i), 0, 1.5)
    for k in range(n):
        state = (state[0] + k, state[1] + 2, state[2] * 2)
    tl.store(out + i, state[0] + state[1] + state[2])


@pytest.mark.parametrize("n", [0, 3])
def test_tuples_carried_around_a_loop(device: Device, rng: np.random.Generator, n: int):
    x = rng.integers(-9, 9, 32).astype(np.float32)
    out = device.empty(32, np.float32)
    device.run(tuple_state_kernel, (1,), device.array(x), out, n, BLOCK=32)
    assert_same(out, (x + sum(range(n)) + 2 * n + 1.5 * 2**n).astype(np.float32))


@jit
def python_functions_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    v = max(v, -3)
    v = min(v, n, 100)
    size: tl.constexpr = len((1, 2, 3)) + int(2.7)
    tl.static_assert(size == 5)
    if isinstance(n, tl.tensor) and v.dtype == tl.int32:
        v = abs(v) + size
    tl.store(out + i, v)


def test_functions_of_python(device: Device, rng: np.random.Generator):
    x = rng.integers(-9, 9, 32).astype(np.int32)
    out = device.empty(32, np.int32)
    device.run(python_functions_kernel, (1,), device.array(x), out, 4, BLOCK=32)
    assert_same(out, np.abs(np.clip(x, -3, 4)) + np.int32(5))


@jit
def optional_arguments_kernel(x, bias, out, SCALE: tl.constexpr = 3, BLOCK: tl.constexpr = 32):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i) * SCALE
    if bias is not None:
        v += tl.load(bias + i)
    tl.store(out + i, v)


def test_none_and_defaults(device: Device, rng: np.random.Generator):
    x, bias = rng.normal(size=(2, 32)).astype(np.float32)
    there, other, out = device.array(x), device.array(bias), device.empty(32, np.float32)
    device.run(optional_arguments_kernel, (1,), there, None, out)
    assert_same(out, x * np.float32(3))
    device.run(optional_arguments_kernel, (1,), there, other, out, SCALE=1)
    assert_same(out, x + bias)


def reference_of_the_grid(meta: dict[str, Any]) -> tuple[int]:
    return (-(-100 // meta["BLOCK"]),)


@jit
def grid_function_kernel(out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, i, mask=i < n)


@pytest.mark.parametrize("block", [16, 64])
def test_grid_as_a_function_of_the_arguments(device: Device, block: int):
    out = device.empty(100, np.int32)
    device.run(grid_function_kernel, reference_of_the_grid, out, 100, BLOCK=block)
    assert_same(out, np.arange(100, dtype=np.int32))
