"""`break` and `continue` under conditions that are known when the kernel runs."""

# pyright: reportArgumentType=false, reportAssignmentType=false

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Device
from tilewright import jit


@jit
def searching_kernel(x, out, n, wanted, BLOCK: tl.constexpr):
    """The first tile that contains a number, and what came before it."""
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    at = -1
    for k in range(0, n, BLOCK):
        tile = tl.load(x + k + i, mask=k + i < n, other=0)
        if tl.sum((tile == wanted).to(tl.int32), 0) > 0:
            at = k
            break
        if tl.max(tile, 0) < 0:
            continue
        total += tile
    tl.store(out + i, total + at)


@pytest.mark.parametrize("wanted", [3.0, 77.0, 999.0])
@pytest.mark.parametrize("n", [0, 1, 37, 64])
def test_a_search_ends_where_it_finds(
    device: Device, rng: np.random.Generator, n: int, wanted: float
):
    x = rng.integers(-3, 3, 64).astype(np.float32)
    x[8:16] = -1
    x[33] = 77
    out = device.empty(8, np.float32)
    device.run(searching_kernel, (1,), device.array(x), out, n, wanted, BLOCK=8)
    expected, at = np.zeros(8), -1
    for k in range(0, n, 8):
        tile = np.where(np.arange(k, k + 8) < n, x[k : k + 8], 0)
        if (tile == wanted).any():
            at = k
            break
        expected += tile if tile.max() >= 0 else 0
    np.testing.assert_array_equal(out, expected + at)


def leaves_for(n: int, limit: int) -> list[Any]:
    total, last = 0, -1
    for k in range(n, -n, -3):
        last = k
        if k % 2 == 0:
            if k < limit:
                total += 100
                break
            total += 1
            continue
        total += k
    return [total, last]


def leaves_while(n: int, limit: int) -> list[Any]:
    total, steps = 0, 0
    while True:
        steps += 1
        if steps > n:
            break
        if steps == limit:
            total += 1000
        elif steps % 3 == 0:
            continue
        else:
            total += steps
        if total > 1500:
            break
    return [total, steps]


def leaves_conditional_while(n: int, limit: int) -> list[Any]:
    total, steps = 0, n
    while steps > 0:
        steps -= 1
        if steps == limit:
            break
        if steps % 2:
            if steps % 3:
                continue
        else:
            total += 1
        total += steps
    return [total, steps]


def leaves_nested(n: int, limit: int) -> list[Any]:
    total, rounds = 0, 0
    for a in range(n):
        for b in range(a + 1):
            if b * a > limit:
                break
            if (a + b) % 2 == 0:
                continue
            total += b
        if total > 3 * limit:
            rounds += 50
            break
        rounds += 1
    return [total, rounds]


def leaves_unrolled(n: int, limit: int) -> list[Any]:
    total, seen = 0, 0
    for k in tl.static_range(5):
        if k == n:
            break
        if k == limit:
            continue
        total += k
        seen += 10
    return [total, seen]


def leaves_at_the_end_of_a_type(n: int, limit: int) -> list[Any]:
    total, last = 0, 0
    for k in range(2147483640 + n * 0, 2147483647, 3):
        if k == limit:
            break
        total += 1
        last = k - 2147483640
    return [total, last]


def leaves_at_once(n: int, limit: int) -> list[Any]:
    total, last = 0, 0
    for k in range(n):
        last = k + limit
        total += 1
        break
    while n > 0:
        total += 10
        break
    return [total, last]


LOOPS: list[Callable[[int, int], list[Any]]] = [
    leaves_for,
    leaves_while,
    leaves_conditional_while,
    leaves_nested,
    leaves_unrolled,
    leaves_at_the_end_of_a_type,
    leaves_at_once,
]
HELPERS = {loop: jit(loop) for loop in LOOPS}


@jit
def helper_kernel(out, n, limit, LOOP: tl.constexpr):
    a, b = LOOP(n, limit)
    tl.store(out, a)
    tl.store(out + 1, b)


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
@pytest.mark.parametrize(("n", "limit"), [(0, 0), (2, 1), (9, 4), (20, -1)])
def test_jumps_do_what_they_do_in_python(
    device: Device, loop: Callable[[int, int], list[Any]], n: int, limit: int
):
    out = device.empty(2, np.int32)
    device.run(helper_kernel, (1,), out, n, limit, LOOP=HELPERS[loop])
    assert out.tolist() == loop(n, limit)
