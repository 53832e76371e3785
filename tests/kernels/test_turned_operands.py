"""Products whose operands both lie in memory along M and N, which copies turn where they can."""

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Device
from tilewright import jit


@jit
def product(
    x, y, z, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TF32: tl.constexpr
):
    """x is (K, M), y is (K, N)."""
    i, j, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        rows = start + k
        a = tl.load(x + rows[None, :] * M + i[:, None], (rows[None, :] < K) & (i[:, None] < M), 0)
        b = tl.load(y + rows[:, None] * N + j[None, :], (rows[:, None] < K) & (j[None, :] < N), 0)
        acc = tl.dot(a, b, acc, input_precision="tf32" if TF32 else "tf32x3")
    tl.store(z + i[:, None] * N + j[None, :], acc, (i[:, None] < M) & (j[None, :] < N))


@pytest.mark.parametrize("m, n, k", [(64, 64, 96), (63, 50, 70), (128, 40, 33), (60, 128, 64)])
@pytest.mark.parametrize("tf32", [True, False], ids=["tf32", "tf32x3"])
def test_products_of_rows_along_neither_k(
    device: Device, m: int, n: int, k: int, tf32: bool
) -> None:
    random = np.random.default_rng(m + n + k)
    x, y = (random.normal(size=(k, extent)).astype(np.float32) for extent in (m, n))
    z = device.empty((m, n), np.float32)
    tiles = (128 if m > 64 else 64, 128 if n > 64 else 64, 32)
    device.run(product, (1,), device.array(x), device.array(y), z, m, n, k, *tiles, tf32)
    expected = x.astype(np.float64).T @ y
    # Each factor of tf32 has lost less than 2^-10 of itself.
    limit = np.abs(x.astype(np.float64)).T @ np.abs(y) * (2**-9 if tf32 else 2**-19)
    assert np.all(np.abs(z - expected) <= limit)
