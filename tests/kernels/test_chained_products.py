"""Products of what was computed of another product, against float64."""

import numpy as np
import pytest

from tests.kernels import chained_products
from tests.kernels.devices import Array, Device

LENGTHS = [1, 32, 33, 64, 150]
"""In blocks of 32: fewer than are made ahead, as many, and more; the last one whole or not."""

POISON = np.nan
"""Behind the arrays: read by mistake, it would show in all sums."""


def points(rng: np.random.Generator, rows: int, poisoned: bool = False) -> Array:
    values = (rng.normal(size=(rows + 32, 32)) * 0.2).astype(np.float16)
    values[rows:] = POISON if poisoned else 0
    return values


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("length", LENGTHS)
def test_gated_layers(device: Device, rng: np.random.Generator, length: int, stages: int) -> None:
    x, w, v = points(rng, 64)[:64], points(rng, length, True), points(rng, length, True)
    out = device.empty((64, 32), np.float32)
    arrays = device.array(x), device.array(w), device.array(v), out
    kernel = chained_products.gated_layers
    device.run(kernel, (1,), *arrays, length, BN=32, STAGES=stages, num_warps=4)
    w, v = (array[:length].astype(np.float64) for array in (w, v))
    gate = np.maximum(x.astype(np.float64) @ w.T, 0).astype(np.float16).astype(np.float64)
    np.testing.assert_allclose(out, gate @ v, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("length", LENGTHS)
def test_kernel_regression(
    device: Device, rng: np.random.Generator, length: int, stages: int
) -> None:
    x, y, v = points(rng, 64)[:64], points(rng, length, True), points(rng, length, True)
    out = device.empty((64, 32), np.float32)
    arrays = device.array(x), device.array(y), device.array(v), out
    kernel = chained_products.kernel_regression
    device.run(kernel, (1,), *arrays, length, BN=32, STAGES=stages, num_warps=4)
    x, y, v = (array.astype(np.float64) for array in (x, y[:length], v[:length]))
    weights = np.exp(-((x[:, None] - y[None]) ** 2).sum(-1))
    weights *= 0.5 ** ((length - 1) // 32 - np.arange(length) // 32)
    np.testing.assert_allclose(
        out, weights @ v / weights.sum(1, keepdims=True), rtol=4e-3, atol=4e-3
    )
