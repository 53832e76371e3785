"""Ragged arrays: what is beyond a subarray's last row is neither read nor written."""

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import assert_same
from tests.kernels.devices import Device
from tilewright import jit
from tilewright.kernels.ragged_descriptors import (
    atomic_add_ragged,
    create_ragged_descriptor,
    load_ragged,
    store_ragged,
)
from tilewright.support import errors

STARTS, COUNTS = [0, 5, 12], [5, 6, 19]
"""Subarrays of 40 rows: one behind the other, with a gap, and rows that no subarray has."""


@jit
def copy_rows(source, target, starts, counts, rows: tl.constexpr):
    start = tl.load(starts + tl.program_id(0))
    count = tl.load(counts + tl.program_id(0))
    for row in range(0, count, rows):
        block = load_ragged(source, start, count, [row, 0])
        store_ragged(target, start, count, [row, 0], block + 1)
        atomic_add_ragged(target, start, count, [row, 0], block)


@pytest.mark.parametrize("rows", [1, 8, 32])
def test_subarrays_do_not_leak_into_others(device: Device, rng: np.random.Generator, rows: int):
    x = rng.integers(0, 100, (40, 32)).astype(np.float32)
    out = device.array(np.zeros_like(x))
    source, target = (
        create_ragged_descriptor(array, [rows, 32]) for array in (device.array(x), out)
    )
    starts, counts = (device.array(np.array(n, np.int32)) for n in (STARTS, COUNTS))
    device.run(copy_rows, (3,), source, target, starts, counts, rows=rows)
    expected = np.zeros_like(x)
    for start, count in zip(STARTS, COUNTS, strict=True):
        expected[start : start + count] = 2 * x[start : start + count] + 1
    assert_same(out, expected)


@jit
def copy_planes(source, target, out, start, count, dim: tl.constexpr):
    block = load_ragged(source, start, count, [1, 1, 0], ragged_dim=dim)
    store_ragged(target, start, count, [1, 1, 0], block, ragged_dim=dim)
    i, j, k = tl.arange(0, 2), tl.arange(0, 4), tl.arange(0, 16)
    place = i[:, None, None] * 64 + j[None, :, None] * 16 + k[None, None, :]
    tl.store(out + place, block)


@pytest.mark.parametrize(("dim", "given"), [(0, 0), (1, 1), (1, -2)])
def test_any_dimension_but_the_last_is_ragged(
    device: Device, rng: np.random.Generator, dim: int, given: int
):
    x = rng.integers(0, 100, (8, 8, 16)).astype(np.int32)
    copied, out = device.array(np.zeros_like(x)), device.empty((2, 4, 16), np.int32)
    source, target = (
        create_ragged_descriptor(array, [2, 4, 16], given) for array in (device.array(x), copied)
    )
    device.run(copy_planes, (1,), source, target, out, 2, 3, dim=dim)
    # rows 2 to 4 of the dimension are the subarray; block row 0 is its row 1
    taken = (slice(3, 5), slice(1, 5)) if dim == 0 else (slice(1, 3), slice(3, 5))
    expected, block = np.zeros_like(x), np.zeros((2, 4, 16), np.int32)
    expected[taken] = x[taken]
    block[: x[taken].shape[0], : x[taken].shape[1]] = x[taken]
    assert_same(out, block)
    assert_same(copied, expected)


@pytest.mark.parametrize(
    ("shape", "block", "dim", "reason"),
    [
        ((8,), [4], 0, "'shape' must be 2 to 3 extents"),
        ((2, 2, 2, 8), [1, 1, 1, 8], 0, "'shape' must be 2 to 3 extents"),
        ((8, 8), [8], 0, "'block_shape' must be 2 numbers"),
        ((8, 8), [8, 8], 1, "'ragged_dim' must be a dimension but the last"),
        ((8, 8), [8, 8], -3, "'ragged_dim' must be a dimension but the last"),
    ],
)
def test_mistakes(shape: tuple[int, ...], block: list[int], dim: int, reason: str):
    with pytest.raises(errors.InvalidDescriptor, match=reason):
        create_ragged_descriptor(np.zeros(shape, np.float32), block, dim)
