"""Ops that move elements: reshape, permute, join, split, cat, broadcast, flip, gather."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import ALL, Array, anything, assert_same
from tests.kernels.devices import Device
from tilewright import jit


@jit
def move_kernel(
    x, out, FUNCTION: tl.constexpr, SHAPE: tl.constexpr, SIZE: tl.constexpr, RESULT: tl.constexpr,
    RESULT_SIZE: tl.constexpr,
):  # fmt: skip
    tile = tl.load(x + tl.reshape(tl.arange(0, SIZE), SHAPE))
    tl.store(out + tl.reshape(tl.arange(0, RESULT_SIZE), RESULT), FUNCTION(tile))


def moved(device: Device, function: Any, x: Array, shape: tuple[int, ...]) -> Array:
    """The function of the whole array, which gives an array of `shape`."""
    out = device.empty(shape, x.dtype)
    device.run(
        move_kernel, (1,), device.array(x), out, FUNCTION=function, SHAPE=x.shape, SIZE=x.size,
        RESULT=shape, RESULT_SIZE=int(np.prod(shape)),
    )  # fmt: skip
    return out


@pytest.fixture
def cube(rng: np.random.Generator) -> Array:
    return rng.permutation(4 * 8 * 16).reshape(4, 8, 16).astype(np.int32)


SHAPES = [(512,), (8, 64), (64, 8), (2, 256), (2, 2, 128), (16, 8, 4), (4, 8, 16), (1, 512, 1)]


@jit
def copied_kernel(
    x, out, FROM: tl.constexpr, TO: tl.constexpr, SIZE: tl.constexpr, TWICE: tl.constexpr
):
    place = tl.arange(0, SIZE)
    tile = tl.reshape(tl.load(x + place), FROM)
    if TWICE:
        tile = tile + tl.sum(tile) * 0
    tl.store(out + tl.reshape(place, TO), tl.reshape(tile, TO))


@pytest.mark.parametrize("materialized", [False, True])
@pytest.mark.parametrize("target", SHAPES, ids=str)
@pytest.mark.parametrize("source", SHAPES[::2], ids=str)
def test_reshape(
    device: Device, rng: np.random.Generator, source: Any, target: Any, materialized: bool
):
    x = rng.permutation(512).astype(np.int32)
    out = device.empty(target, np.int32)
    device.run(
        copied_kernel, (1,), device.array(x), out, FROM=source, TO=target, SIZE=512,
        TWICE=materialized,
    )  # fmt: skip
    assert_same(out, x.reshape(target))


@jit
def transposed(x):
    return tl.trans(x)


@jit
def permuted_kernel(
    x, out, ORDER: tl.constexpr, SHAPE: tl.constexpr, RESULT: tl.constexpr, SIZE: tl.constexpr
):
    place = tl.arange(0, SIZE)
    tile = tl.load(x + tl.reshape(place, SHAPE))
    tl.store(out + tl.reshape(place, RESULT), tl.permute(tile, ORDER))


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_permute(device: Device, cube: Array, order: tuple[int, ...]):
    expected = cube.transpose(order)
    out = device.empty(expected.shape, np.int32)
    device.run(
        permuted_kernel, (1,), device.array(cube), out, ORDER=order, SHAPE=cube.shape,
        RESULT=expected.shape, SIZE=cube.size,
    )  # fmt: skip
    assert_same(out, expected)


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("shape", [(32, 32), (16, 64), (4, 8), (1, 32)], ids=str)
def test_transpose(device: Device, rng: np.random.Generator, shape: Any, dtype: Any):
    x = anything(rng, int(np.prod(shape)), dtype).reshape(shape)
    assert_same(moved(device, transposed, x, shape[::-1]), x.T)


@jit
def property_transposed(x):
    return x.T


def test_transpose_by_property(device: Device, rng: np.random.Generator):
    x = rng.normal(size=(8, 16)).astype(np.float32)
    assert_same(moved(device, property_transposed, x, (16, 8)), x.T)


@jit
def flipped_last(x):
    return tl.flip(x)


@jit
def flipped_first(x):
    return tl.flip(x, 0)


def test_flip(device: Device, cube: Array):
    assert_same(moved(device, flipped_last, cube, cube.shape), cube[:, :, ::-1])
    assert_same(moved(device, flipped_first, cube, cube.shape), cube[::-1])


@jit
def raveled(x):
    return tl.ravel(x)


@jit
def doubled(x):
    return tl.join(x, x + 1)


@jit
def interleaved(x):
    return tl.interleave(x, -x)


@jit
def difference_of_halves(x):
    low, high = tl.split(x)
    return high - low


@jit
def swapped_pairs(x):
    low, high = tl.split(tl.reshape(x, (4, 8, 8, 2)))
    return tl.reshape(tl.join(high, low), (4, 8, 16))


def test_join_split_and_interleave(device: Device, cube: Array):
    assert_same(moved(device, raveled, cube, (cube.size,)), cube.ravel())
    assert_same(moved(device, doubled, cube, (4, 8, 16, 2)), np.stack([cube, cube + 1], -1))
    pairs = np.stack([cube, -cube], -1).reshape(4, 8, 32)
    assert_same(moved(device, interleaved, cube, (4, 8, 32)), pairs)
    halves = cube.reshape(4, 64, 2)
    assert_same(
        moved(device, difference_of_halves, halves, (4, 64)), halves[..., 1] - halves[..., 0]
    )
    expected = cube.reshape(4, 8, 8, 2)[..., ::-1].reshape(cube.shape)
    assert_same(moved(device, swapped_pairs, cube, cube.shape), expected)


@jit
def cat_first(x):
    return tl.cat(x, x * 2)


@jit
def cat_last(x):
    return tl.cat(x, x * 2, dim=2)


@jit
def cat_sums(x):
    return tl.cat(tl.sum(x, 1), tl.max(x, 1))


def test_concatenation(device: Device, cube: Array):
    assert_same(moved(device, cat_first, cube, (8, 8, 16)), np.concatenate([cube, cube * 2]))
    assert_same(moved(device, cat_last, cube, (4, 8, 32)), np.concatenate([cube, cube * 2], 2))
    expected = np.concatenate([cube.sum(1, dtype=np.int32), cube.max(1)])
    assert_same(moved(device, cat_sums, cube, (8, 16)), expected)


@jit
def outer_sum(x):
    return x[:, None, :] + tl.expand_dims(x, 2)


@jit
def broadcast_methods(x):
    a, b = tl.broadcast(tl.sum(x, 1)[:, None], tl.sum(x, 0)[None, :])
    return a * 3 + b + tl.broadcast_to(tl.sum(x), 8, 16)


def test_broadcasts(device: Device, rng: np.random.Generator):
    square = rng.integers(-9, 9, (16, 16)).astype(np.int32)
    expected = square[:, None, :] + square[:, :, None]
    assert_same(moved(device, outer_sum, square, (16, 16, 16)), expected)
    x = square[:8]
    total = x.sum(1)[:, None] * 3 + x.sum(0)[None] + x.sum()
    assert_same(moved(device, broadcast_methods, x, (8, 16)), total.astype(np.int32))


@jit
def reversed_rows(x):
    index = 15 - tl.arange(0, 16)
    return tl.gather(x, tl.broadcast_to(index[None, :], 8, 16), 1)


@jit
def picked(x):
    return tl.gather(x, x & 7, 0)


def test_gather_along_an_axis(device: Device, rng: np.random.Generator):
    x = rng.permutation(8 * 16).reshape(8, 16).astype(np.int32)
    assert_same(moved(device, reversed_rows, x, x.shape), x[:, ::-1])
    assert_same(moved(device, picked, x, x.shape), np.take_along_axis(x, x & 7, 0))


@jit
def gathered_arithmetic(x):
    place = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    return tl.flip(place % 3 + x, 0) + tl.flip(x)


def test_gather_of_computed_values(device: Device, rng: np.random.Generator):
    """The indices of a gather become coordinates of what computes its source."""
    x = rng.integers(0, 9, (8, 16)).astype(np.int32)
    place = np.arange(128, dtype=np.int32).reshape(8, 16)
    found = moved(device, gathered_arithmetic, x, x.shape)
    assert_same(found, (place % 3 + x)[::-1] + x[:, ::-1])


@jit
def indexed_kernel(x, index, out, N: tl.constexpr):
    i = tl.arange(0, N)
    table = tl.load(x + i) * 2
    tl.store(out + i, tl.gather(table, tl.load(index + i), 0) + tl.gather(i, tl.load(index + i), 0))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32", "int64", "uint64"])
def test_gather_by_every_integer_type(device: Device, rng: np.random.Generator, dtype: str):
    x = rng.integers(0, 1000, 256).astype(np.int32)
    index = rng.integers(0, min(256, np.iinfo(dtype).max + 1), 256).astype(dtype)
    out = device.empty(256, np.int32)
    device.run(indexed_kernel, (1,), device.array(x), device.array(index), out, N=256)
    assert_same(out, x[index] * 2 + index.astype(np.int32))


@jit
def one_element_kernel(x, out):
    tile = tl.load(x + tl.arange(0, 1))
    tl.store(out, tile.item() + tl.sum(tile))
    tl.store(out + 1, tl.reshape(tile, (1, 1)).item())


def test_single_elements(device: Device):
    out = device.empty(2, np.float32)
    device.run(one_element_kernel, (1,), device.array([2.5], np.float32), out)
    assert out.tolist() == [5.0, 2.5]


@jit
def added(a, b):
    return a + b


@jit
def scalars_of_pairs_kernel(x, out):
    first, second = tl.split(tl.load(x + tl.arange(0, 2)))
    tl.store(out, second)
    tl.store(out + 1, first)
    if first < second:
        tl.store(out + 2, tl.sum(first) + tl.max(second) * 10 + tl.xor_sum(first) * 100)
    best, place = tl.min(second, None, return_indices=True)
    tl.store(out + 3, best + place + tl.sum(first, keep_dims=True) + tl.reduce(first, None, added))
    tl.store(out + 4 + tl.arange(0, 4), first + tl.arange(0, 4))


def test_a_pair_is_split_into_scalars(device: Device):
    out = device.empty(8, np.int32)
    device.run(scalars_of_pairs_kernel, (1,), device.array([3, 4], np.int32), out)
    assert out.tolist() == [4, 3, 343, 10, 3, 4, 5, 6]


@jit
def squeezed(x):
    return tl.squeeze(tl.unsqueeze(x, 1), 1) + tl.view(x, 8, 16)


def test_unit_dimensions(device: Device, rng: np.random.Generator):
    x = rng.integers(0, 9, (8, 16)).astype(np.int32)
    assert_same(moved(device, squeezed, x, x.shape), x * 2)


@jit
def matrix_of_blocks_kernel(x, out, B: tl.constexpr):
    """A transposition in two steps through a rank 4 tile."""
    place = tl.arange(0, 4 * 4 * B * B)
    tile = tl.reshape(tl.load(x + place), (4, B, 4, B))
    blocks = tl.permute(tile, (0, 2, 1, 3))
    turned = tl.permute(tl.reshape(blocks, (16, B, B)), (0, 2, 1))
    back = tl.permute(tl.reshape(turned, (4, 4, B, B)), (1, 2, 0, 3))
    tl.store(out + place, tl.ravel(back))


def test_chains_of_shape_ops(device: Device, rng: np.random.Generator):
    x = rng.permutation(32 * 32).reshape(32, 32).astype(np.int32)
    out = device.empty(x.shape, np.int32)
    device.run(matrix_of_blocks_kernel, (1,), device.array(x), out, B=8)
    assert_same(out, x.T)


@jit
def as_row(tile):
    return tl.ravel(tile)


@jit
def as_columns(tile):
    return tl.ravel(tl.trans(tile))


@jit
def halves_in_order(tile):
    first, second = tl.split(tl.reshape(tile, (tile.shape[0], tile.shape[1] // 2, 2)))
    return tl.ravel(first * second + first)


@jit
def twice_each(tile):
    return tl.ravel(tl.interleave(tile, tile))


@jit
def in_blocks(tile):
    blocks = tl.reshape(tile, (tile.shape[0] // 4, 4, tile.shape[1] // 8, 8))
    return tl.ravel(tl.permute(blocks, (0, 2, 1, 3)))


@jit
def in_rows_of_programs_kernel(
    x, out, FUNCTION: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, SIZE: tl.constexpr
):
    first, i, j = tl.program_id(0) * ROWS * COLUMNS, tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    tile = tl.load(x + first + i[:, None] * COLUMNS + j[None, :])
    tl.store(out + tl.program_id(0) * SIZE + tl.arange(0, SIZE), FUNCTION(tile))


RAVELLED: list[tuple[Any, Any]] = [
    (as_row, lambda x: x.reshape(3, -1)),
    (as_columns, lambda x: x.transpose(0, 2, 1).reshape(3, -1)),
    (halves_in_order, lambda x: (x[..., ::2] * x[..., 1::2] + x[..., ::2]).reshape(3, -1)),
    (twice_each, lambda x: x.repeat(2, axis=2).reshape(3, -1)),
    (
        in_blocks,
        lambda x: x.reshape(3, 16, 4, 8, 8).transpose(0, 1, 3, 2, 4).reshape(3, -1),
    ),
]


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "uint8"])
@pytest.mark.parametrize("function, exact", RAVELLED, ids=lambda f: getattr(f, "__name__", ""))
def test_matrices_that_are_stored_as_rows(
    device: Device, rng: np.random.Generator, function: Any, exact: Any, dtype: str
):
    """Stores of 1 KB and more, ahead of which lines of what is loaded are fetched."""
    x = rng.integers(0, 8, (3, 64, 64)).astype(dtype)
    out = device.empty((3, exact(x).shape[1]), x.dtype)
    device.run(
        in_rows_of_programs_kernel, (3,), device.array(x), out, FUNCTION=function, ROWS=64,
        COLUMNS=64, SIZE=out.shape[1],
    )  # fmt: skip
    assert_same(out, exact(x))


@jit
def sums_of_row_kernel(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.arange(0, ROWS * COLUMNS)
    total = tl.zeros((COLUMNS,), tl.float32)
    for step in range(2):
        tile = tl.load(x + (tl.program_id(0) * 2 + step) * ROWS * COLUMNS + i)
        total += tl.sum(tl.reshape(tile.to(tl.float32), (ROWS, COLUMNS)), 0)
    tl.store(out + tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS), total)


def test_rows_that_are_summed_as_matrices(device: Device, rng: np.random.Generator):
    x = rng.integers(0, 8, (3, 2, 32, 64)).astype(np.float16)
    out = device.empty((3, 64), np.float32)
    device.run(sums_of_row_kernel, (3,), device.array(x), out, ROWS=32, COLUMNS=64)
    assert_same(out, x.astype(np.float32).sum((1, 2)))


@jit
def high_products_kernel(x, largest, out):
    zero = tl.full((16, 4), 0, tl.int32)
    factor = tl.max(tl.full((2, 2), 1 << 20, tl.float32), axis=None).to(tl.int32)
    high = tl.umulhi(tl.load(x + zero).to(tl.int32), tl.broadcast_to(factor, (16, 4)))
    both = tl.cat(high, zero + 1, dim=1)
    square = tl.arange(0, 2)[:, None] + tl.arange(0, 2)[None, :] * 2
    tl.store(largest + square, tl.full((2, 2), 1 << 20, tl.float32))
    tl.store(out + tl.arange(0, 16)[:, None] * 8 + tl.arange(0, 8)[None, :], both)


def test_high_products_of_which_half_the_lanes_count(device: Device):
    """LLVM aborted on CPUs with AVX-512: an extension of half of a hidden vector."""
    x = np.full(4, 5 << 20, np.int64)
    largest, out = device.empty(4, np.float32), device.empty(128, np.int32)
    device.run(high_products_kernel, (1,), device.array(x), largest, out)
    high = (5 << 40) >> 32
    assert_same(out, np.tile(np.repeat([high, 1], 4), 16).astype(np.int32))
    assert_same(largest, np.full(4, 1 << 20, np.float32))
