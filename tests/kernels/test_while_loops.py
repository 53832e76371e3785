"""`while` loops over a counter, and matmuls whose loops are other than counted ones over K."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.corpus.users.gathered_matmuls import stream_k_matmul, while_persistent_matmul
from tests.corpus.users.matmuls import downward_matmul, skipping_matmul, while_matmul
from tests.kernels.devices import Device
from tilewright import jit

Array = np.ndarray[Any, Any]
I32 = (-(2**31), 2**31 - 1)
TILE: Any = {"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 32}


def operands(rng: np.random.Generator, m: int, n: int, k: int) -> tuple[Array, Array]:
    """Small integers, whose dots are exact."""
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    return a, b


@pytest.mark.parametrize("steps", [1, 3, 5, 20])
def test_stream_k(device: Device, rng: np.random.Generator, steps: int):
    """4 tiles of 5 steps: programs start and end within tiles."""
    m, n, k = 128, 64, 160
    a, b = operands(rng, m, n, k)
    out = device.array(np.zeros((m, n), np.float32))
    there = (device.array(a), device.array(b))
    device.run(stream_k_matmul, (20 // steps,), *there, out, m, n, k, k, n, n, steps, **TILE)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    if 20 % steps:
        # The last tile lacks the last steps.
        assert not np.array_equal(out, expected)
        out, expected = np.asarray(out)[:64], expected[:64]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("programs", [1, 3])
def test_persistent_by_while(device: Device, rng: np.random.Generator, programs: int):
    m, n, k = 128, 64, 96
    a, b = operands(rng, m, n, k)
    out = device.empty((m, n), np.float16)
    there = (device.array(a), device.array(b))
    device.run(while_persistent_matmul, (programs,), *there, out, m, n, k, k, n, n, **TILE)
    np.testing.assert_array_equal(out, a @ b)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("kernel", [while_matmul, downward_matmul])
def test_loops_over_k(device: Device, rng: np.random.Generator, kernel: Any, steps: int):
    m, n, k = 64, 32, 32 * steps
    a, b = operands(rng, m, n, max(k, 32))
    out = device.empty((m, n), np.float16)
    there = (device.array(a), device.array(b))
    device.run(kernel, (1, 1), *there, out, k, max(k, 32), n, n, **TILE)
    np.testing.assert_array_equal(out, a[:, :k] @ b[:k])


@pytest.mark.parametrize("live", [(0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 1, 0, 1), (1,), (1, 0, 0)])
def test_branches_around_loads(device: Device, rng: np.random.Generator, live: tuple[int, ...]):
    m, n, k = 64, 32, 32 * len(live)
    a, b = operands(rng, m, n, k)
    out = device.empty((m, n), np.float16)
    flags = device.array(np.array(live, np.int32))
    device.run(skipping_matmul, (1, 1), device.array(a), device.array(b), flags, out, k, k, n, n,
               **TILE)  # fmt: skip
    kept = np.repeat(np.array(live, np.float16), 32)
    np.testing.assert_array_equal(out, (a * kept) @ b)


@jit
def counted_while_kernel(out, first, bound, STEP: tl.constexpr, INCLUDED: tl.constexpr):
    count = 0
    k = first
    if STEP > 0:
        while k <= bound if INCLUDED else k < bound:
            count += k % 7 + 1
            k += STEP
    else:
        while k >= bound if INCLUDED else k > bound:
            count += k % 7 + 1
            k += STEP
    tl.store(out, count)
    tl.store(out + 1, k)


WHILES = [
    (0, 10, 1), (0, 10, 4), (10, 0, 4), (-5, 6, 3), (10, 0, -1), (10, -1, -4), (0, 10, -3),
    (I32[1] - 20, I32[1], 4), (I32[1] - 20, I32[1] - 4, 3), (I32[0] + 19, I32[0], -4),
    # It wraps, and ends thereafter.
    (0, 2**31 - 2**28, 2**30 + 1), (1, 2**30, 3 * 2**29), (0, -(2**31) + 2**28, -(2**30) - 1),
]  # fmt: skip


@pytest.mark.parametrize("included", [False, True])
@pytest.mark.parametrize("case", WHILES)
def test_while_by_a_constant(device: Device, case: tuple[int, int, int], included: bool):
    first, bound, step = case
    count, trips, k = 0, 0, first
    while (included and k == bound) or (k < bound if step > 0 else k > bound):
        count += int(np.fmod(k, 7)) + 1
        k = (k + step + 2**31) % 2**32 - 2**31
        trips += 1
        if trips > 1000:
            pytest.skip("it does not end soon")
    out = device.empty(2, np.int32)
    device.run(counted_while_kernel, (1,), out, first, bound, STEP=step, INCLUDED=included)
    assert out.tolist() == [count, k]
