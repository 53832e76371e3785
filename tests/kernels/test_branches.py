"""Branches, early returns, inlined calls, tuples, Python's own functions."""

# pyright: reportArgumentType=false, reportAssignmentType=false, reportAttributeAccessIssue=false

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import ALL, BFLOAT16, assert_same
from tests.kernels.devices import Device
from tilewright import jit

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


@jit
def copied_loop_kernel(out, n):
    i = tl.arange(0, 16)
    if n > 0:
        for k in tl.static_range(2):
            tl.store(out + 16 + i, k + 1)
    tl.store(out + i, 5)


@pytest.mark.parametrize("n", [-3, 3])
def test_what_follows_a_branch_with_a_copied_loop(device: Device, n: int):
    out = device.array(np.zeros(32, np.int32))
    device.run(copied_loop_kernel, (1,), out, n)
    assert_same(out, np.repeat([5, 2 if n > 0 else 0], 16).astype(np.int32))
