"""Integers that are multiples of 16, of 8, and of neither: what a variant knows of them holds."""

# pyright: reportOperatorIssue=false

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Device
from tilewright import jit

ROWS, BLOCK = 3, 64
MIDDLE = 512


@jit
def copy_rows(x, out, start, stride, n, B: tl.constexpr):
    """Copies the first n numbers of each row; rows begin at `start` and are `stride` apart."""
    i = tl.arange(0, B)
    row = tl.program_id(0)
    tl.store(out + row * B + i, tl.load(x + start + row * stride + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize("n", [0, 1, 4, 7, 8, 9, 12, 16, 24, 56, 60, 63, 64, -8])
@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32])
def test_masks(device: Device, rng: np.random.Generator, n: int, dtype: type):
    x = device.array(rng.integers(0, 100, size=2 * MIDDLE).astype(dtype))
    out = device.array(np.full((ROWS, BLOCK), 7, dtype))
    device.run(copy_rows, (ROWS,), x, out, MIDDLE, 72, n, B=BLOCK)
    count = max(n, 0)
    for row in range(ROWS):
        at = MIDDLE + 72 * row
        np.testing.assert_array_equal(out[row, :count], x[at : at + count])
    assert (out[:, count:] == 7).all()


@pytest.mark.parametrize("stride", [-72, -64, -20, -8, -1, 0, 4, 8, 24, 100, 104, 112])
@pytest.mark.parametrize("start", [MIDDLE, MIDDLE + 8, MIDDLE + 4, MIDDLE + 1])
def test_rows(device: Device, rng: np.random.Generator, start: int, stride: int):
    x = device.array(rng.normal(size=2 * MIDDLE).astype(np.float16))
    out = device.empty((ROWS, BLOCK), np.float16)
    device.run(copy_rows, (ROWS,), x, out, start, stride, BLOCK, B=BLOCK)
    for row in range(ROWS):
        at = start + row * stride
        np.testing.assert_array_equal(out[row], x[at : at + BLOCK])
