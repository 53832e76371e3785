"""Matmuls in other loops than counted ones over K: stream-K, `while`, downwards, with branches."""

from typing import Any

import numpy as np
import pytest

from tests.corpus.users.gathered_matmuls import stream_k_matmul, while_persistent_matmul
from tests.corpus.users.matmuls import downward_matmul, skipping_matmul, while_matmul
from tests.kernels.devices import Device

Array = np.ndarray[Any, Any]
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
