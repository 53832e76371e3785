"""Products of what was computed of another product, against float64."""

import re
from typing import Any

import numpy as np
import pytest

from tests.kernels import chained_products
from tests.kernels.devices import Array, Device, EmulatedNvidia

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


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("persistent", [False, True], ids=["once", "persistent"])
@pytest.mark.parametrize("length, stages", [(16, 2), (70, 2), (150, 3), (0, 2)])
def test_a_producer_loads_for_the_next_iteration(
    length: int, stages: int, persistent: bool, seed: int
) -> None:
    """Programs of two warpgroups, of which a block runs several or not; in any order of warps."""
    device, programs = EmulatedNvidia(seed), 3
    rng = np.random.default_rng(length + seed)
    x, w, v = points(rng, 128 * programs), points(rng, length, True), points(rng, length, True)
    out = device.empty((128 * programs, 32), np.float32)
    arrays = device.array(x), device.array(w), device.array(v), out
    kernel = device.run(
        chained_products.gated_layers, (programs,), *arrays, length, BN=16, STAGES=stages, BM=128,
        num_warps=8, launch_cooperative_grid=not persistent,
    )  # fmt: skip
    code = str(kernel.asm["ttgir"])
    assert_rotated(code)
    # Where a block runs several programs, the producer asks for the rows of the next one, too.
    assert code.count("nvidia.bulk_copy") == 3 + persistent and "nvidia.async_copy" not in code
    w, v = (array[:length].astype(np.float64) for array in (w, v))
    gate = np.maximum(x[: len(out)].astype(np.float64) @ w.T, 0).astype(np.float16)
    np.testing.assert_allclose(out, gate.astype(np.float64) @ v, rtol=1e-3, atol=1e-3)


def assert_rotated(code: str) -> None:
    """There is a producer; the product that comes an iteration later runs as a rule, or may not,
    and has a last one behind."""
    products = re.findall(r"nvidia\.wgmma .*pending = none", code)
    assert "nvidia.roles" in code and len(products) == 3 and code.count("nvidia.wgmma ") == 4


@pytest.mark.parametrize("rows", [1, 130])
def test_products_added_by_several_programs(
    device: Device, rng: np.random.Generator, rows: int
) -> None:
    x, y = (rng.normal(size=(n, 64)).astype(np.float16) for n in (256, rows))
    out = device.array(np.zeros((rows, 64), np.float32))
    compiled = run_added_products(device, device.array(x), device.array(y), out, 8)
    x, y = x.astype(np.float64), y.astype(np.float64)
    np.testing.assert_allclose(out, y @ x.T @ x, rtol=4e-3, atol=0.2)
    if isinstance(device, EmulatedNvidia):
        # Nobody reads what was there, so that loads may pass; pairs of sums are neighbours.
        assert "nvidia.bulk_copy" in str(compiled.asm["ttgir"]) or rows == 1
        assert "red.relaxed.gpu.global.add.v2.f32" in str(compiled.asm["llir"])


def run_added_products(device: Device, x: Array, y: Array, out: Array, warps: int) -> Any:
    return device.run(
        chained_products.added_products, (len(x) // 128,), x, y, out, len(y), BM=64, STAGES=2,
        num_warps=warps,
    )  # fmt: skip


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
