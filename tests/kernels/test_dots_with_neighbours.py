"""Products whose results are reduced along either side, or are factors of the next product."""

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Device
from tilewright import jit


@jit
def reduced(x, y, out, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, AXIS: tl.constexpr):
    """The largest sum of each row or column of several products."""
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    best = tl.zeros((N if AXIS == 0 else M,), tl.float32)
    for step in range(n):
        a = tl.load(x + step * M * K + i * K + k[None, :])
        scores = tl.dot(a, tl.load(y + step * K * N + k[:, None] * N + j)) * 2
        best = tl.maximum(best, tl.max(scores, AXIS)) + tl.sum(scores, AXIS)
    tl.store(out + tl.arange(0, N if AXIS == 0 else M), best)


@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_of_products(device: Device, rng: np.random.Generator, axis: int, warps: int):
    n, m, depth = 2, 64, 16
    x, y = rng.integers(-3, 4, (n, m, depth)), rng.integers(-3, 4, (n, depth, m))
    out = device.empty(m, np.float32)
    operands = (device.array(v, "float16") for v in (x, y))
    device.run(reduced, (1,), *operands, out, n, M=m, N=m, K=depth, AXIS=axis, num_warps=warps)
    best = np.zeros(m)
    for scores in 2 * (x @ y):
        best = np.maximum(best, scores.max(axis)) + scores.sum(axis)
    np.testing.assert_array_equal(out, best)


@jit
def chained(x, y, out, n, M: tl.constexpr, N: tl.constexpr, CENTRED: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    first = tl.load(x + i * N + j[None, :])
    for k in range(n):
        square = tl.load(y + k * N * N + j[:, None] * N + j[None, :])
        scores = tl.dot(first, square)
        if CENTRED:
            scores = scores - tl.max(scores, 1)[:, None]
        acc = tl.dot(scores.to(square.dtype), square, acc * 2)
    tl.store(out + i * N + j[None, :], acc)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(("dtype", "m", "warps"), [("float16", 64, 4), ("float32", 32, 4),
                                                   ("float16", 32, 8)])  # fmt: skip
def test_chains_of_products(
    device: Device, rng: np.random.Generator, dtype: str, m: int, warps: int, centred: bool
):
    n, size = 2, 32
    x, y = rng.integers(-1, 2, (m, size)), rng.integers(-1, 2, (n, size, size))
    out = device.empty((m, size), np.float32)
    operands = (device.array(v, dtype) for v in (x, y))
    device.run(chained, (1,), *operands, out, n, M=m, N=size, CENTRED=centred, num_warps=warps)
    expected = np.zeros((m, size))
    for square in y:
        scores = x @ square
        scores = scores - scores.max(1, keepdims=True) if centred else scores
        expected = scores @ square + expected * 2
    np.testing.assert_array_equal(out, expected)
