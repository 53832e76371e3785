"""Loops of products that do more than multiply what they have loaded, against float64."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.kernels import unusual_loops
from tests.kernels.devices import Array, Device

BK = 32
BN = 32
LOOPS = [(64, 0), (32, 1), (64, 1), (64, 2), (32, 5), (64, 5)]
"""Rows of a tile, of which warpgroups multiply 64; iterations: fewer than are made ahead, as many,
and more."""


def operands(rng: np.random.Generator, rows: int, trips: int) -> tuple[Array, Array]:
    """A and B; not empty, so that there are addresses to look at."""
    a = rng.normal(size=(rows, max(trips, 1) * BK)).astype(np.float16)
    b = rng.normal(size=(max(trips, 1) * BK, BN)).astype(np.float16)
    return a, b


def product(a: Array, b: Array, trips: int) -> Array:
    """Of the first blocks of K, in float64."""
    k = trips * BK
    return a[:, :k].astype(np.float64) @ b[:k].astype(np.float64)


def assert_close(found: Array, expected: Array, tolerance: float = 1e-3) -> None:
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


def blocks(rows: int, **others: Any) -> dict[str, Any]:
    return {"BM": rows, "BN": BN, "BK": BK, "num_warps": 4, **others}


@pytest.mark.parametrize(("rows", "trips"), LOOPS[1:])
def test_an_operand_of_a_norm(device: Device, rng: np.random.Generator, rows: int, trips: int):
    a, b = operands(rng, rows, trips)
    c = device.empty((rows, BN), np.float32)
    arrays = device.array(a), device.array(b), c
    device.run(unusual_loops.with_norm, (1,), *arrays, trips * BK, BN, **blocks(rows))
    norm = np.sqrt((a.astype(np.float64) ** 2).sum(1, keepdims=True))
    assert_close(c, product(a, b, trips) / norm)


@pytest.mark.parametrize(("rows", "trips"), LOOPS)
def test_scales_of_columns(device: Device, rng: np.random.Generator, rows: int, trips: int):
    a, _ = operands(rng, rows, trips)
    b = rng.integers(-128, 128, (max(trips, 1) * BK, BN)).astype(np.int8)
    s = rng.normal(size=(max(trips, 1), BN)).astype(np.float16)
    c = device.empty((rows, BN), np.float32)
    arrays = device.array(a), device.array(b), device.array(s), c
    device.run(unusual_loops.scaled_columns, (1,), *arrays, trips * BK, BN, **blocks(rows))
    weights = (b * np.repeat(s, BK, 0).astype(np.float32)).astype(np.float16)
    assert_close(c, product(a, weights, trips), 1e-2)


@pytest.mark.parametrize("dtype", [np.int8, ml_dtypes.float8_e4m3fn], ids=["int8", "fp8"])
@pytest.mark.parametrize("period", [1, 2])
@pytest.mark.parametrize("trips", [0, 1, 5])
def test_scales_of_sums(
    device: Device, rng: np.random.Generator, trips: int, period: int, dtype: Any
):
    rows, k = 64, max(trips, 1) * BK
    a, b = ((rng.normal(size=(n, k)) * 5).astype(dtype) for n in (rows, BN))
    groups = -(-trips // period)
    sa = rng.normal(size=(rows, max(groups, 1))).astype(np.float32)
    sb = rng.normal(size=(max(groups, 1), BN)).astype(np.float32)
    c = device.empty((rows, BN), np.float32)
    arrays = (device.array(x) for x in (a, b, sa, sb))
    words = blocks(rows, PERIOD=period)
    device.run(unusual_loops.scaled_sums, (1,), *arrays, c, trips * BK, BN, **words)
    expected = np.zeros((rows, BN))
    for t in range(trips):
        block = slice(t * BK, (t + 1) * BK)
        scales = sa[:, t // period, None] * sb[t // period].astype(np.float64)
        expected += a[:, block].astype(np.float64) @ b[:, block].astype(np.float64).T * scales
    # Tensor cores sum products of fp8 with fewer bits than fp32 has: small sums have the errors of
    # large ones.
    error = np.abs(c.astype(np.float64) - expected).max(initial=0.0)
    assert error <= 1e-4 * np.abs(expected).max(initial=1.0)


@pytest.mark.parametrize(("rows", "trips"), LOOPS)
@pytest.mark.parametrize("kind", ["paged", "paged_ahead", "gathered"])
def test_rows_from_a_table(
    device: Device, rng: np.random.Generator, kind: str, rows: int, trips: int
):
    a, b = operands(rng, rows, trips)
    paged = kind != "gathered"
    count = max(trips, 1)
    table = rng.permutation(count if paged else count * BK).astype(np.int32)
    c = device.empty((rows, BN), np.float32)
    arrays = device.array(a), device.array(b), device.array(table), c
    device.run(getattr(unusual_loops, kind), (1,), *arrays, trips * BK, BN, **blocks(rows))
    order = (table[:, None] * BK + np.arange(BK)).reshape(-1) if paged else table
    assert_close(c, product(a, b[order], trips))


@pytest.mark.parametrize(("rows", "trips"), LOOPS)
def test_products_of_different_widths(
    device: Device, rng: np.random.Generator, rows: int, trips: int
):
    a, b = operands(rng, rows, trips)
    d = rng.normal(size=(b.shape[0], 16)).astype(np.float16)
    c, e = device.empty((rows, BN), np.float32), device.empty((rows, 16), np.float32)
    arrays = device.array(a), device.array(b), device.array(d), c, e
    device.run(unusual_loops.gated, (1,), *arrays, trips * BK, BN, 16, **blocks(rows, BW=16))
    assert_close(c, product(a, b, trips))
    assert_close(e, product(a, d, trips))


@pytest.mark.parametrize(("rows", "trips"), LOOPS)
def test_zero_points(device: Device, rng: np.random.Generator, rows: int, trips: int):
    a, b = operands(rng, rows, trips)
    zero = rng.normal(size=a.shape[1]).astype(np.float16)
    c = device.empty((rows, BN), np.float32)
    arrays = device.array(a), device.array(b), device.array(zero), c
    device.run(unusual_loops.with_bias, (1,), *arrays, trips * BK, BN, **blocks(rows))
    assert_close(c, product(a - zero, b, trips), 1e-2)


# --- loads for the next iteration -----------------------------------------------------------------


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize(("rows", "trips"), LOOPS)
def test_loads_for_the_next_iteration(
    device: Device, rng: np.random.Generator, rows: int, trips: int, stages: int
):
    a, b = operands(rng, rows, trips)
    c = device.empty((rows, BN), np.float32)
    words = blocks(rows, STAGES=stages)
    arrays = device.array(a), device.array(b), c
    device.run(unusual_loops.prefetched, (1,), *arrays, trips * BK, BN, **words)
    assert_close(c, product(a, b, trips))


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize(("rows", "trips"), LOOPS[1:])
def test_loads_for_behind_the_loop(
    device: Device, rng: np.random.Generator, rows: int, trips: int, stages: int
):
    a, b = operands(rng, rows, trips)
    c = device.empty((rows, BN), np.float32)
    arrays = device.array(a), device.array(np.ascontiguousarray(b.T)), c
    words = blocks(rows, STAGES=stages)
    device.run(unusual_loops.prefetched_for_behind, (1,), *arrays, trips * BK, BN, **words)
    assert_close(c, product(a, b, trips))


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize(("rows", "trips"), LOOPS)
@pytest.mark.parametrize("kind", ["prefetched_in_part", "prefetched_and_overwritten"])
def test_loads_for_the_next_iteration_with_others(
    device: Device, rng: np.random.Generator, kind: str, rows: int, trips: int, stages: int
):
    a, b = operands(rng, rows, trips)
    first = (np.arange(BK)[:, None] - np.arange(BN)).astype(np.float16)
    there, c = device.array(b), device.empty((rows, BN), np.float32)
    words = blocks(rows, STAGES=stages)
    kernel = getattr(unusual_loops, kind)
    device.run(kernel, (1,), device.array(a), there, c, trips * BK, BN, **words)
    if kind == "prefetched_in_part":
        assert_close(c, product(a, np.concatenate([first, b]), trips))
    else:
        assert_close(c, product(a, b, trips))
        np.testing.assert_array_equal(
            there[BK : trips * BK], np.tile(first, (max(trips - 1, 0), 1))
        )


# --- one loop over the blocks of all tiles --------------------------------------------------------


@pytest.mark.parametrize(("rows", "depth"), [(64, 16), (64, 64), (32, 144), (64, 144)])
@pytest.mark.parametrize("programs", [1, 3])
def test_a_flat_loop(
    device: Device, rng: np.random.Generator, programs: int, rows: int, depth: int
):
    m, n = 2 * rows - 8, 2 * BN - 16
    a, b = rng.normal(size=(m, depth)), rng.normal(size=(depth, n))
    c = device.empty((m, n), np.float16)
    arrays = device.array(a, np.float16), device.array(b, np.float16), c
    words = blocks(rows, PROGRAMS=programs)
    device.run(unusual_loops.flat, (programs,), *arrays, m, n, depth, **words)
    expected = arrays[0].astype(np.float64) @ arrays[1].astype(np.float64)
    assert_close(c, expected, 1e-2)


@pytest.mark.parametrize(("rows", "trips"), LOOPS[2:])
@pytest.mark.parametrize("programs", [1, 3])
@pytest.mark.parametrize("kind", ["flat_select", "flat_keep"])
def test_a_flat_loop_of_scalars(
    device: Device, rng: np.random.Generator, kind: str, programs: int, rows: int, trips: int
):
    m, n, k = 2 * rows, 2 * BN, trips * BK
    a, b = rng.normal(size=(m, k)), rng.normal(size=(k, n))
    c = device.empty((m, n), np.float16)
    arrays = device.array(a, np.float16), device.array(b, np.float16), c
    words = blocks(rows, PROGRAMS=programs)
    device.run(getattr(unusual_loops, kind), (programs,), *arrays, m, n, k, **words)
    expected = arrays[0].astype(np.float64) @ arrays[1].astype(np.float64)
    assert_close(c, expected, 1e-2)
