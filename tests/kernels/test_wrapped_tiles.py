"""Tiles whose indices wrap around: `(index * BLOCK + tl.arange(0, BLOCK)) % n`."""

# pyright: reportOperatorIssue=false

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import assert_near
from tests.kernels.devices import Array, Device
from tests.kernels.tutorial_matmul import tutorial_matmul
from tilewright import cdiv, jit
from tilewright.llvm import host_cpu

BLOCKS = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16}


def steps(x: Array) -> tuple[int, ...]:
    return tuple(s // x.itemsize for s in x.strides)


def stored(device: Device, x: Array, transposed: bool) -> Array:
    """A copy of a matrix on the device, by rows or by columns."""
    return device.array(x.T).T if transposed else device.array(x)


SIZES = [(64, 64, 32), (48, 80, 48), (56, 72, 40), (45, 50, 19), (7, 100, 33)]
"""Multiples of 16, multiples of 8, and others."""


@pytest.mark.parametrize("majors", ["rows rows", "rows columns", "columns rows", "columns columns"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_matrix_product(
    device: Device, rng: np.random.Generator, size: tuple[int, int, int], majors: str
):
    """Tiles that wrap once, and more than once."""
    m, n, k = size
    a, b = (rng.normal(size=shape).astype(np.float16) for shape in ((m, k), (k, n)))
    by_columns = [major == "columns" for major in majors.split()]
    there = [stored(device, x, turned) for x, turned in zip((a, b), by_columns, strict=True)]
    c = device.empty((m, n), np.float16)
    grid = (cdiv(m, 32) * cdiv(n, 32),)
    device.run(
        tutorial_matmul, grid, *there, c, m, n, k, *steps(there[0]), *steps(there[1]), *steps(c),
        **BLOCKS, GROUP_M=2, EVEN_K=k % 16 == 0,
    )  # fmt: skip
    assert_near(c, a.astype(np.float64) @ b.astype(np.float64), 2, floor=1e-5)


@jit
def rows_around(x, out, n, stride, index, B: tl.constexpr, W: tl.constexpr):
    """Copies B rows of W numbers, from row index * B on; row n of x is the one with number 0."""
    at = (index * B + tl.arange(0, B)) % n
    i = tl.arange(0, W)
    tile = tl.load(x + (n + at[:, None]) * stride + i[None, :] % W)
    tl.store(out + tl.arange(0, B)[:, None] * W + i[None, :], tile)


@jit
def around(x, out, n, index, B: tl.constexpr):
    """Copies B numbers, from number index * B on; number 0 is x[n]."""
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + n + (index * B + i) % n))


def remainders(index: int, block: int, n: int) -> Array:
    """As C divides: a remainder has the sign of the dividend."""
    return np.fmod(index * block + np.arange(block), n)


@pytest.mark.parametrize("n", [16, 48, 64, 100, 129, 1000])
@pytest.mark.parametrize("index", [0, 1, 2, 5, -1, -2])
def test_indices_of_both_signs(device: Device, rng: np.random.Generator, n: int, index: int):
    """No assumption is made of an argument: below zero indices count as C's remainder does."""
    x, out = device.array(rng.normal(size=2 * n).astype(np.float32)), device.empty(64, np.float32)
    device.run(around, (1,), x, out, n, index, B=64)
    np.testing.assert_array_equal(out, x[n + remainders(index, 64, n)])


@pytest.mark.parametrize("index", [0, 3, -1])
def test_rows_of_both_signs(device: Device, rng: np.random.Generator, index: int):
    x = device.array(rng.normal(size=(80, 16)).astype(np.float32))
    out = device.empty((32, 16), np.float32)
    device.run(rows_around, (1,), x, out, 40, 16, index, B=32, W=16)
    np.testing.assert_array_equal(out, x[40 + remainders(index, 32, 40)])


@jit
def from_start(x, out, start, n, B: tl.constexpr):
    """The window of B numbers that ends before `start`, in a ring of n."""
    i = tl.arange(0, B)
    ring = ((start - B + i) % n + n) % n
    tl.store(out + i, tl.load(x + ring))


@pytest.mark.parametrize("start", [0, 16, 40, 64, 95])
def test_windows_that_begin_before_a_ring(device: Device, rng: np.random.Generator, start: int):
    """A difference is no tile index: nothing is assumed of it."""
    x, out = device.array(rng.normal(size=96).astype(np.float32)), device.empty(64, np.float32)
    device.run(from_start, (1,), x, out, start, 96, B=64)
    np.testing.assert_array_equal(out, x[(start - 64 + np.arange(64)) % 96])


@jit
def by_program(x, out, n, per_row, B: tl.constexpr, PROMISE: tl.constexpr):
    """Programs in reverse order."""
    index = per_row - 1 - tl.program_id(0) % per_row
    if PROMISE:
        tl.assume(index >= 0)
    i = tl.arange(0, B)
    tl.store(out + tl.program_id(0) * B + i, tl.load(x + (index * B + i) % n))


@pytest.mark.parametrize("promise", [False, True])
@pytest.mark.parametrize("n", [80, 75])
def test_programs_in_reverse_order(device: Device, rng: np.random.Generator, n: int, promise: bool):
    x, out = device.array(rng.normal(size=n).astype(np.float32)), device.empty(96, np.float32)
    device.run(by_program, (3,), x, out, n, 3, B=32, PROMISE=promise)
    expected = [remainders(index, 32, n) for index in (2, 1, 0)]
    np.testing.assert_array_equal(out, x[np.concatenate(expected)])


def test_majors_do_not_change_a_bit(device: Device, rng: np.random.Generator):
    """Wide copies and narrow loads give the same products. AMX adds up in another order what its
    tiles can read, which is but one of the majors: of numbers whose sums are exact there."""
    a, b = (rng.normal(size=(48, 48)).astype(np.float16) for _ in range(2))
    if device.name == "cpu" and host_cpu().tile_dots:
        a, b = (np.round(x * 8) / 8 for x in (a, b))
    results: list[Any] = []
    for turned in (False, True):
        there = stored(device, a, turned), stored(device, b, turned)
        c = device.empty((48, 48), np.float32)
        device.run(
            tutorial_matmul, (4,), *there, c, 48, 48, 48, *steps(there[0]), *steps(there[1]),
            *steps(c), **BLOCKS, GROUP_M=1, EVEN_K=True,
        )  # fmt: skip
        results.append(c)
    np.testing.assert_array_equal(*results)
