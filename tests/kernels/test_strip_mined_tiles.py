"""Tiles with more elements for each thread than registers: loops over parts, or none."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import normals
from tests.kernels.devices import Device
from tests.unit.backends.nvidia.compiled import compiled
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import jit

SIZE = 16384
"""Elements of a tile: 512 for each thread of one warp."""


@jit
def group_norm(x, w, out, sums, n, width, eps, SIZE: tl.constexpr):
    """Two passes over a row, the second with a weight for each channel of `width` elements."""
    i = tl.arange(0, SIZE)
    total, squares = 0.0, 0.0
    for k in range(0, n, SIZE):
        value = tl.load(x + k + i, mask=k + i < n, other=0.0)
        total += tl.sum(value)
        squares += tl.sum(value * value)
    mean = total / n
    scale = tl.rsqrt(squares / n - mean * mean + eps)
    for k in range(0, n, SIZE):
        at = k + i
        value = tl.load(x + at, mask=at < n, other=mean)
        weight = tl.load(w + at // width, mask=at < n)
        tl.store(out + at, (value - mean) * scale * weight, mask=at < n)
    tl.store(sums, total)
    tl.store(sums + 1, squares)


def test_rows_of_more_elements_than_registers(device: Device, rng: np.random.Generator):
    n, width = SIZE - 84, 100
    x, w = normals(rng, (2, SIZE), np.float32)
    out, sums = device.empty(SIZE, np.float32), device.empty(2, np.float32)
    arguments = device.array(x), device.array(w), out, sums, n, width, 1e-5
    device.run(group_norm, (1,), *arguments, SIZE=SIZE, num_warps=1)
    row = x[:n].astype(np.float64)
    expected = (row - row.mean()) / np.sqrt(row.var() + 1e-5) * np.repeat(w[: n // width], width)
    assert np.allclose(np.asarray(out)[:n], expected, rtol=1e-5, atol=1e-5)
    assert np.allclose(sums, [row.sum(), (row * row).sum()], rtol=1e-5)


@jit
def in_place(x, out, SIZE: tl.constexpr):
    at = x + tl.arange(0, SIZE)
    value = tl.load(at)
    tl.store(at, value * 2)
    tl.store(out, tl.max(value))
    tl.store(out + 1, tl.min(value))


@jit
def moved_by_one(x, out, SIZE: tl.constexpr):
    at = x + tl.arange(0, SIZE)
    value = tl.load(at)
    tl.store(at + 1, value)
    tl.store(out, tl.max(value))
    tl.store(out + 1, tl.min(value))


@jit
def centred(x, out, SIZE: tl.constexpr):
    at = x + tl.arange(0, SIZE)
    value = tl.load(at)
    mean = tl.sum(value) / SIZE
    tl.store(at, value - mean)
    tl.store(out, tl.max(value))
    tl.store(out + 1, tl.min(value))


@pytest.mark.parametrize(
    "kernel, change",
    [(in_place, lambda x: x * 2), (moved_by_one, None), (centred, lambda x: x - x.mean())],
)
def test_elements_change_in_place(
    device: Device, rng: np.random.Generator, kernel: Any, change: Any
):
    x = rng.integers(-50, 50, SIZE + 1).astype(np.float32)
    given, out = device.array(x), device.empty(2, np.float32)
    size = SIZE if kernel is not moved_by_one else SIZE // 2
    device.run(kernel, (1,), given, out, SIZE=size, num_warps=1)
    found, tile = np.asarray(given), x[:size].astype(np.float64)
    if kernel is moved_by_one:
        assert (found[1 : size + 1] == x[:size]).all()
    else:
        assert np.allclose(found[:size], change(tile), rtol=1e-6, atol=1e-4)
    assert (np.asarray(out) == [tile.max(), tile.min()]).all()


@needs_ptxas
def test_no_register_is_spilled():
    """Straight-line code took 33,163 instructions, and spilled 2,816 words of a thread."""
    types = "*bf16/16 *bf16/16 *bf16/16 *fp32/16 i32/16 i32/16 fp32"
    kernel = compiled(group_norm, types, SIZE=65536, num_warps=4)
    assert kernel.metadata.spills == 0 and kernel.metadata.registers <= 128
