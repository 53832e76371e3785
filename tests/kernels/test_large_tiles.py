"""Products whose results are larger than shared memory: they leave it in rounds."""

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Device
from tilewright import jit


@jit
def product(x, y, z, M, N, K, B: tl.constexpr, BK: tl.constexpr, TF32: tl.constexpr):
    i, j, k = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :], tl.arange(0, BK)
    acc = tl.zeros((B, B), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(x + i * K + start + k[None, :], (i < M) & (start + k[None, :] < K), 0)
        b = tl.load(y + (start + k[:, None]) * N + j, (j < N) & (start + k[:, None] < K), 0)
        acc = tl.dot(a, b, acc, input_precision="tf32" if TF32 else "ieee")
    tl.store(z + i * N + j, acc, (i < M) & (j < N))


@jit
def one_tile_matmul(x, y, z, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(x + i * K + start + k[None, :])
        b = tl.load(y + (start + k[:, None]) * N + j)
        acc = tl.dot(a, b, acc)
    tl.store(z + i * N + j, acc)


@pytest.mark.parametrize("m, n", [(256, 256), (250, 253)])
@pytest.mark.parametrize("tf32", [True, False], ids=["tf32", "ieee"])
def test_products_of_256_by_256_by_32(device: Device, m: int, n: int, tf32: bool) -> None:
    random = np.random.default_rng(n)
    x, y = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((m, 40), (40, n)))
    z = device.empty((m, n), np.float32)
    device.run(product, (1,), device.array(x), device.array(y), z, m, n, 40, 256, 32, tf32,
               num_warps=8)  # fmt: skip
    np.testing.assert_array_equal(z, x.astype(np.float64) @ y)


def test_accumulators_that_twice_the_warps_hold(device: Device) -> None:
    """The rows of 256 take 256 registers of each thread of one warp."""
    random = np.random.default_rng(3)
    x, y = (random.integers(-4, 5, shape).astype(np.float16) for shape in ((32, 48), (48, 256)))
    z = device.empty((32, 256), np.float32)
    device.run(one_tile_matmul, (1,), device.array(x), device.array(y), z, 48, 32, 256, 16,
               num_warps=1)  # fmt: skip
    np.testing.assert_array_equal(z, x.astype(np.float64) @ y)
