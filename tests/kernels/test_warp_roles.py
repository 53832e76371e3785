"""Programs with a producer: loops in loops, two loops, flat loops, loops without iterations."""

from typing import Any

import numpy as np
import pytest

from tests.kernels.devices import Device, EmulatedNvidia
from tests.kernels.looped_products import (
    batched,
    chained,
    flat,
    nested,
    shifted,
    stored_by_descriptor,
    twice,
)

BLOCKS = {"BM": 64, "BN": 64, "BK": 64}


def assert_right(
    device: Device, kernel: Any, sizes: tuple[int, int, int], warps: int = 4, stages: int = 3,
    **blocks: int,
) -> None:  # fmt: skip
    """Run a kernel by two programs; sizes: M, N, K."""
    blocks, (m, n, k) = BLOCKS | blocks, sizes
    rng = np.random.default_rng(m + n + k)
    a = rng.standard_normal((m, n if kernel is chained else k)).astype(np.float16) / 4
    b = rng.standard_normal((k, n)).astype(np.float16) / 4
    c = device.empty((m, n), np.float16)
    arrays = (device.array(a), device.array(b), c)
    options = {"num_warps": warps, "num_stages": stages}
    device.run(kernel, (2,), *arrays, m, n, k, PROGRAMS=2, **blocks, **options)
    left, right = a.astype(np.float64), b.astype(np.float64)
    expected = left @ right.T @ right if kernel is chained else left @ right
    if kernel is twice:
        tiles = np.add.outer(
            np.arange(m) // blocks["BM"] * -(-n // blocks["BN"]), np.arange(n) // blocks["BN"]
        )
        expected *= 1 + tiles % 2
    np.testing.assert_allclose(c.astype(np.float64), expected, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("kernel", [nested, flat, twice], ids=lambda kernel: kernel.fn.__name__)
@pytest.mark.parametrize("sizes", [(136, 200, 328), (64, 136, 64), (8, 72, 200)])
def test_tiles_one_after_the_other(
    device: Device, kernel: Any, sizes: tuple[int, int, int]
) -> None:
    assert_right(device, kernel, sizes)


@pytest.mark.parametrize("sizes", [(200, 64, 200), (64, 64, 64)])
def test_products_that_end_in_their_iteration(device: Device, sizes: tuple[int, int, int]) -> None:
    assert_right(device, chained, sizes)


@pytest.mark.parametrize("stages", [2, 4])
def test_two_warpgroups(device: Device, stages: int) -> None:
    assert_right(device, nested, (264, 72, 456), 8, stages, BM=128)


@pytest.mark.parametrize("kernel", [nested, twice], ids=lambda kernel: kernel.fn.__name__)
def test_tiles_without_products_are_zeros(device: Device, kernel: Any) -> None:
    assert_right(device, kernel, (136, 72, 0))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "kernel", [nested, flat, twice, chained], ids=lambda kernel: kernel.fn.__name__
)
def test_results_do_not_depend_on_the_order_of_warps(kernel: Any, seed: int) -> None:
    columns = 64 if kernel is chained else 136
    assert_right(EmulatedNvidia(seed), kernel, (136, columns, 200))


@pytest.mark.parametrize("sizes", [(136, 200, 328), (64, 136, 64), (8, 72, 0)])
def test_programs_of_three_axes(device: Device, sizes: tuple[int, int, int]) -> None:
    batches, (m, n, k) = 3, sizes
    rng = np.random.default_rng(m + n + k)
    a = rng.integers(-2, 3, (batches, m, k)).astype(np.float16)
    b = rng.integers(-2, 3, (k, n)).astype(np.float16)
    c = device.empty((batches, m, n), np.float32)
    grid = (-(-n // 64), -(-m // 64), batches)
    arrays = (device.array(a), device.array(b), c)
    device.run(batched, grid, *arrays, m, n, k, batches * m, **BLOCKS, num_warps=4)
    z, i, j = np.ogrid[:batches, :m, :n]
    programs = (z * grid[1] + i // 64) * grid[0] + j // 64
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64) + programs)


def assert_shifted(device: Device, blocks: int) -> None:
    rng = np.random.default_rng(blocks)
    a = rng.integers(-1, 2, (192, 64)).astype(np.float16)
    b = rng.integers(-1, 2, (blocks, 64, 64)).astype(np.float16)
    c = device.empty((192, 64), np.float32)
    device.run(shifted, (3,), device.array(a), device.array(b), c, 192, 64 * blocks, B=64)
    expected, last = np.zeros((192, 64)), np.zeros((192, 64))
    for block in b.astype(np.float64):
        expected, last = expected + last @ block, a @ block.T
    np.testing.assert_array_equal(c, expected + last)


@pytest.mark.parametrize("blocks", [0, 1, 9])
def test_slots_are_read_until_products_end_that_nothing_uses_in_the_iteration(
    device: Device, blocks: int
) -> None:
    assert_shifted(device, blocks)
    if device.name == "emulated":
        assert_shifted(EmulatedNvidia(1), blocks)


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("sizes", [(136, 200, 328), (64, 328, 64)])
def test_programs_that_the_copy_engine_stores(
    device: Device, sizes: tuple[int, int, int], seed: int | None
) -> None:
    if device.name == "emulated":
        device = EmulatedNvidia(seed)
    m, n, k = sizes
    rng = np.random.default_rng(m + n + k)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = device.empty((m, n), np.float16)
    arrays, grid = (device.array(a), device.array(b), c), (-(-n // 64), -(-m // 64))
    device.run(stored_by_descriptor, grid, *arrays, m, n, k, **BLOCKS, num_warps=4)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(c.astype(np.float64), expected)


def assert_turns(device: Device, kernel: Any, sizes: tuple[int, int, int]) -> None:
    """Tiles of which two programs fit on a multiprocessor."""
    m, n, k = sizes
    rng = np.random.default_rng(m + n + k)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = device.empty((m, n), np.float16 if kernel is stored_by_descriptor else np.float32)
    arrays, grid = (device.array(a), device.array(b), c), (-(-n // 128), -(-m // 128))
    blocks = {"BM": 128, "BN": 128, "BK": 32}
    rows = () if kernel is stored_by_descriptor else (m,)
    device.run(kernel, grid, *arrays, m, n, k, *rows, **blocks, num_warps=4)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    if kernel is batched:
        i, j = np.ogrid[:m, :n]
        expected += i // 128 * grid[0] + j // 128
    np.testing.assert_array_equal(c.astype(np.float64), expected)


@pytest.mark.parametrize("kernel", [batched, stored_by_descriptor], ids=lambda k: k.fn.__name__)
@pytest.mark.parametrize("sizes", [(136, 264, 136), (128, 136, 0), (8, 520, 32)])
def test_groups_of_consumers_take_turns(
    device: Device, kernel: Any, sizes: tuple[int, int, int]
) -> None:
    assert_turns(device, kernel, sizes)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kernel", [batched, stored_by_descriptor], ids=lambda k: k.fn.__name__)
def test_turns_do_not_depend_on_the_order_of_warps(kernel: Any, seed: int) -> None:
    assert_turns(EmulatedNvidia(seed), kernel, (8, 648, 200))
