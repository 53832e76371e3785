"""Tensor descriptors, of the host and made in kernels: blocks of arrays, cut off at their edges."""

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import ALL, BOOL, FLOATS, INTEGERS, assert_same
from tests.kernels.devices import Array, Device
from tilewright import cdiv, jit
from tilewright.language import TensorDescriptor


def block_of(x: Array, at: tuple[int, ...], shape: tuple[int, ...], fill: Any = 0) -> Array:
    """A block of an array, of any rank, that may stick out of it on any side."""
    block = np.full(shape, fill, x.dtype)
    for index in product(*map(range, shape)):
        source = tuple(a + i for a, i in zip(at, index, strict=True))
        if all(0 <= i < n for i, n in zip(source, x.shape, strict=True)):
            block[index] = x[source]
    return block


def with_block(x: Array, at: tuple[int, ...], block: Array) -> Array:
    """An array after a block has been stored to it."""
    result = x.copy()
    for index in product(*map(range, block.shape)):
        target = tuple(a + i for a, i in zip(at, index, strict=True))
        if all(0 <= i < n for i, n in zip(target, x.shape, strict=True)):
            result[target] = block[index]
    return result


PLACES = [(0, 0), (5, 9), (-3, -5), (10, 21), (11, 30), (40, 0), (0, -16), (2**31 - 1, -(2**31))]


@jit
def copy_kernel(source, target, row, column):
    target.store((row, column), source.load((row, column)))


@pytest.mark.parametrize("padding", ["zero", "nan"])
@pytest.mark.parametrize("at", PLACES, ids=str)
def test_loads_pad_at_every_edge(
    device: Device, rng: np.random.Generator, at: tuple[int, int], padding: str
):
    x, out = rng.normal(size=(13, 24)).astype(np.float32), device.empty((8, 16), np.float32)
    source = TensorDescriptor.from_tensor(device.array(x), [8, 16], padding=padding)
    device.run(load_kernel, (1,), source, out, *at)
    assert_same(out, block_of(x, at, (8, 16), 0 if padding == "zero" else np.nan))


@jit
def odd_kernel(source, target, x, out, row, column, N: tl.constexpr):
    target.store((row, column), source.load((row, column)))
    made = tl.make_tensor_descriptor(x, [13, 24], [24, 1], [N, 12])
    block = made.load([row + 1, column - 1])
    place = tl.arange(0, N)[:, None] * 12 + tl.arange(0, 12)[None, :]
    tl.store(out + place, block)
    made.atomic_add([row, column], tl.full((N, 12), 1.0, tl.float32))


@pytest.mark.parametrize("at", [(0, 0), (5, 9), (-3, -5), (10, 21)], ids=str)
def test_blocks_of_any_extents(device: Device, rng: np.random.Generator, at: tuple[int, int]):
    x = rng.normal(size=(13, 24)).astype(np.float32)
    source = TensorDescriptor.from_tensor(device.array(x), [5, 12])
    copied, added = device.array(np.zeros_like(x)), device.array(x)
    target = TensorDescriptor.from_tensor(copied, [5, 12])
    out = device.empty((3, 12), np.float32)
    device.run(odd_kernel, (1,), source, target, added, out, *at, N=3)
    assert_same(copied, with_block(np.zeros_like(x), at, block_of(x, at, (5, 12))))
    assert_same(out, block_of(x, (at[0] + 1, at[1] - 1), (3, 12)))
    assert_same(added, with_block(x, at, block_of(x, at, (3, 12)) + 1))


@jit
def load_kernel(source, out, row, column):
    i, j = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    tl.store(out + i * 16 + j, source.load([row, column]))


@pytest.mark.parametrize("at", PLACES, ids=str)
def test_stores_are_cut_off_at_every_edge(
    device: Device, rng: np.random.Generator, at: tuple[int, int]
):
    x, before = rng.normal(size=(2, 13, 24)).astype(np.float32)
    out = device.array(before)
    source, target = (TensorDescriptor.from_tensor(a, [8, 16]) for a in (device.array(x), out))
    device.run(copy_kernel, (1,), source, target, *at)
    assert_same(out, with_block(before, at, block_of(x, at, (8, 16))))


@jit
def made_copy_kernel(x, out, m, n, stride, row, column, PADDING: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [m, n], [stride, 1], [4, 8], PADDING)
    target = tl.make_tensor_descriptor(out, (4, 8), (8, 1), (4, 8))
    tl.store_tensor_descriptor(target, (0, 0), tl.load_tensor_descriptor(source, (row, column)))


@pytest.mark.parametrize("padding", ["zero", "nan"])
@pytest.mark.parametrize(("m", "n", "stride"), [(16, 32, 32), (7, 11, 13), (1, 1, 1), (0, 5, 5)])
def test_descriptors_that_a_kernel_makes(
    device: Device, rng: np.random.Generator, m: int, n: int, stride: int, padding: str
):
    """Of any stride, where there are no copy engines; also of nothing."""
    x = rng.normal(size=(max(m, 1), stride)).astype(np.float32)
    for at in ((0, 0), (5, 7), (-2, -3)):
        out = device.empty((4, 8), np.float32)
        device.run(made_copy_kernel, (1,), device.array(x), out, m, n, stride, *at, PADDING=padding)
        assert_same(out, block_of(x[:m, :n], at, (4, 8), 0 if padding == "zero" else np.nan))


# --- ranks and dtypes -----------------------------------------------------------------------------


@jit
def copy_1(x, y, a):
    y.store([a], x.load([a]))


@jit
def copy_3(x, y, a, b, c):
    y.store([a, b, c], x.load([a, b, c]))


@jit
def copy_4(x, y, a, b, c, d):
    y.store([a, b, c, d], x.load([a, b, c, d]))


@jit
def copy_5(x, y, a, b, c, d, e):
    y.store([a, b, c, d, e], x.load([a, b, c, d, e]))


@pytest.mark.parametrize("rank", range(1, 6))
def test_every_rank(device: Device, rng: np.random.Generator, rank: int):
    kernel = (copy_1, copy_kernel, copy_3, copy_4, copy_5)[rank - 1]
    extents, block = (3, 2, 3, 5, 12)[-rank:], (2, 1, 4, 2, 4)[-rank:]
    x, before = rng.normal(size=(2, *extents)).astype(np.float32)
    for at in ((1, 1, 1, 3, 8)[-rank:], (-1, 0, 0, -1, -2)[-rank:], (2, 0, 2, 4, 11)[-rank:]):
        out = device.array(before)
        pair = (TensorDescriptor.from_tensor(a, block) for a in (device.array(x), out))
        device.run(kernel, (1,), *pair, *at)
        assert_same(out, with_block(before, at, block_of(x, at, block)))


@jit
def made_5(
    x, y, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr, E: tl.constexpr
):
    shape, strides = (A, B, C, D, E), (B * C * D * E, C * D * E, D * E, E, 1)
    source = tl.make_tensor_descriptor(x, shape, strides, (1, 2, 2, 2, 4))
    target = tl.make_tensor_descriptor(y, shape, strides, (1, 2, 2, 2, 4))
    target.store((1, 0, -1, 2, 3), source.load((1, 0, -1, 2, 3)))


def test_rank_5_made_in_a_kernel(device: Device, rng: np.random.Generator):
    x, before = rng.normal(size=(2, 2, 3, 2, 3, 5)).astype(np.float32)
    out, at = device.array(before), (1, 0, -1, 2, 3)
    device.run(made_5, (1,), device.array(x), out, A=2, B=3, C=2, D=3, E=5)
    assert_same(out, with_block(before, at, block_of(x, at, (1, 2, 2, 2, 4))))


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_dtype(device: Device, rng: np.random.Generator, dtype: Any):
    columns = 48 // dtype.itemsize
    x, before = rng.integers(0, 2 if dtype == BOOL else 9, (2, 5, columns)).astype(dtype)
    out, at, block = device.array(before), (2, -3), (4, 32 // dtype.itemsize)
    pair = (TensorDescriptor.from_tensor(a, block) for a in (device.array(x), out))
    device.run(copy_kernel, (1,), *pair, *at)
    assert_same(out, with_block(before, at, block_of(x, at, block)))


@jit
def cast_kernel(source, target):
    target.store((0, 0), source.load((0, 0)).to(tl.float32) * 3)


@pytest.mark.parametrize("dtype", ["float16", "int32", "uint8"])
def test_stores_convert_to_the_dtype_of_the_array(
    device: Device, rng: np.random.Generator, dtype: str
):
    x, out = rng.integers(0, 9, (4, 16)).astype(np.float32), device.empty((4, 16), dtype)
    pair = (TensorDescriptor.from_tensor(a, [4, 16]) for a in (device.array(x), out))
    device.run(cast_kernel, (1,), *pair)
    assert_same(out, (x * 3).astype(dtype))


def test_parts_of_arrays_with_strides_of_their_own(device: Device, rng: np.random.Generator):
    x, before = rng.integers(0, 99, (2, 6, 40)).astype(np.int32)
    there, out = device.array(x), device.array(before)
    pair = (TensorDescriptor.from_tensor(a[1:4, 8:27], [4, 16]) for a in (there, out))
    device.run(copy_kernel, (1,), *pair, 1, 5)
    expected = before.copy()
    expected[2:4, 13:27] = x[2:4, 13:27]
    assert_same(out, expected)


def test_arrays_without_elements(device: Device):
    """Nothing is read or written, whatever the dimension that is empty."""
    for shape in ((0, 16), (4, 0)):
        empty, out = np.zeros(shape, np.float32), device.empty((8, 16), np.float32)
        source = TensorDescriptor(out, shape, (16, 1), [8, 16])
        target = TensorDescriptor(out, (8, 16), (16, 1), [8, 16])
        device.run(copy_kernel, (1,), source, target, 0, 0)
        assert_same(out, np.zeros((8, 16), np.float32))
        assert empty.size == 0


def test_arrays_of_more_than_two_billion_elements():
    """On the CPU, where their memory is made when it is touched."""
    x = np.zeros((66_000, 33_008), np.int8)
    x[65_990:, 32_988:] = np.arange(10 * 20).reshape(10, 20) % 100
    out = np.ones((8, 32), np.int8)
    source = TensorDescriptor(x, x.shape, (33_008, 1), [8, 32])
    copy_part_kernel[(1,)](source, out, 65_996, 32_984)
    assert_same(out, block_of(x, (65_996, 32_984), (8, 32)))


@jit
def copy_part_kernel(source, out, row, column):
    target = tl.make_tensor_descriptor(out, (8, 32), (32, 1), (8, 32))
    target.store((0, 0), source.load((row, column)))


@jit
def wide_extent_kernel(x, out, n):
    source = tl.make_tensor_descriptor(x, [n.to(tl.int64) * 65536 * 32768], [1], [8])
    target = tl.make_tensor_descriptor(out, [8], [1], [8])
    target.store([0], source.load([3]))


def test_extents_beyond_int32_are_not_cut_to_their_low_bits(device: Device):
    x, out = np.arange(16, dtype=np.float32), device.empty(8, np.float32)
    device.run(wide_extent_kernel, (1,), device.array(x), out, 2)
    assert_same(out, x[3:11])


# --- reductions -----------------------------------------------------------------------------------


@jit
def reduce_kernel(x, target, row, column, KIND: tl.constexpr):
    block = x.load((0, 0))
    if KIND == "add":
        target.atomic_add((row, column), block)
    elif KIND == "min":
        target.atomic_min((row, column), block)
    elif KIND == "max":
        target.atomic_max((row, column), block)
    elif KIND == "and":
        target.atomic_and((row, column), block)
    elif KIND == "or":
        target.atomic_or((row, column), block)
    else:
        target.atomic_xor((row, column), block)


COMBINE: Any = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
WIDE = tuple(dtype for dtype in INTEGERS if dtype.itemsize >= 4)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        *product(COMBINE, WIDE),
        *product(("add", "min", "max"), FLOATS),
    ],
    ids=str,
)
def test_reductions(device: Device, rng: np.random.Generator, kind: str, dtype: Any):
    columns = 32 // dtype.itemsize
    x, before = rng.integers(0, 99, (2, 4, columns)).astype(dtype)
    out, at = device.array(before), (1, -2)
    pair = (TensorDescriptor.from_tensor(a, [4, columns]) for a in (device.array(x), out))
    device.run(reduce_kernel, (1,), *pair, *at, KIND=kind)
    expected = before.copy()
    expected[1:, :-2] = COMBINE[kind](before[1:, :-2], x[:-1, 2:])
    assert_same(out, expected)


@jit
def add_everywhere_kernel(target, n):
    target.atomic_add((tl.program_id(0) * 0,), tl.full((16,), 1, tl.int32))


def test_programs_add_to_one_block(device: Device):
    out = device.array(np.zeros(11, np.int32))
    target = TensorDescriptor.from_tensor(out, [16])
    device.run(add_everywhere_kernel, (7,), target, 11)
    assert_same(out, np.full(11, 7, np.int32))


# --- rows by their indices ------------------------------------------------------------------------

ROWS = [3, 0, -1, 12, 12, 5, 13, 40]
"""Of a matrix of 13 rows; some outside, one twice."""


@jit
def gather_kernel(source, rows, out, column):
    picked = source.gather(tl.load(rows + tl.arange(0, 8)), column)
    i, j = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    tl.store(out + i * 16 + j, picked)


@pytest.mark.parametrize("padding", ["zero", "nan"])
@pytest.mark.parametrize("column", [0, 4, 17, -3, 24])
def test_gather(device: Device, rng: np.random.Generator, column: int, padding: str):
    x, out = rng.normal(size=(13, 24)).astype(np.float32), device.empty((8, 16), np.float32)
    source = TensorDescriptor.from_tensor(device.array(x), [1, 16], padding)
    device.run(gather_kernel, (1,), source, device.array(np.array(ROWS, np.int32)), out, column)
    fill = 0 if padding == "zero" else np.nan
    expected = np.concatenate([block_of(x, (row, column), (1, 16), fill) for row in ROWS])
    assert_same(out, expected)


@jit
def scatter_kernel(x, rows, out, m, n, column):
    target = tl.make_tensor_descriptor(out, [m, n], [n, 1], [1, 16])
    i, j = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    target.scatter(tl.load(x + i * 16 + j), tl.load(rows + tl.arange(0, 8)), column)


@pytest.mark.parametrize("column", [0, 4, 17, -3, 24])
def test_scatter(device: Device, rng: np.random.Generator, column: int):
    x, before = rng.normal(size=(8, 16)).astype(np.float32), np.zeros((13, 24), np.float32)
    rows, out = np.array([3, 0, -1, 12, 7, 5, 13, 40], np.int32), device.array(before)
    device.run(scatter_kernel, (1,), device.array(x), device.array(rows), out, 13, 24, column)
    for row, line in zip(rows, x, strict=True):
        before = with_block(before, (int(row), column), line[None])
    assert_same(out, before)


# --- as values ------------------------------------------------------------------------------------


class Pair(NamedTuple):
    source: Any
    target: Any


@jit
def tuple_kernel(pair, more):
    value = pair.source.load((0, 0))
    pair.target.store((0, 0), value + more[1].load((0, 0)) * more[0])


def test_descriptors_in_tuples(device: Device, rng: np.random.Generator):
    x, y = rng.integers(0, 9, (2, 3, 8)).astype(np.int32)
    out = device.empty((3, 8), np.int32)
    first, second, target = (
        TensorDescriptor.from_tensor(a, [4, 8]) for a in (device.array(x), device.array(y), out)
    )
    device.run(tuple_kernel, (1,), Pair(first, target), (5, second))
    assert_same(out, x + 5 * y)


@jit
def chosen_kernel(a, b, out, n, flip):
    chosen = a
    if flip > 0:
        chosen = b
    total = tl.zeros((16,), tl.int32)
    for i in range(0, n, 16):
        total += chosen.load([i])
        chosen = a
    out.store([0], total)


@pytest.mark.parametrize("flip", [0, 2])
def test_descriptors_where_control_flow_meets(device: Device, rng: np.random.Generator, flip: int):
    """Which array it is may be decided by an `if`, and change in a loop."""
    a, b, out = rng.integers(0, 9, 40), rng.integers(0, 9, 28), device.empty(16, np.int32)
    arrays = [device.array(x.astype(np.int32)) for x in (a, b)]
    descriptors = [TensorDescriptor.from_tensor(x, [16]) for x in (*arrays, out)]
    device.run(chosen_kernel, (1,), *descriptors, 40, flip)
    blocks = [block_of(x, (at,), (16,)) for at, x in ((0, (a, b)[flip // 2]), (16, a), (32, a))]
    assert_same(out, np.sum(blocks, axis=0).astype(np.int32))


@jit
def described(array, shape, strides, block_shape: tl.constexpr):
    if isinstance(array, tl.tensor_descriptor):
        return array
    else:
        return tl.make_tensor_descriptor(array, shape, strides, block_shape)


@jit
def either_kernel(x, out, m, n):
    source = described(x, [m, n], [n, 1], [8, 8])
    tl.static_assert(source.dtype == tl.float32)
    tl.static_assert(source.block_shape[0] == 8)
    tl.static_assert(source.type.block_type == tl.block_type(tl.float32, [8, 8]))
    tl.static_assert(source.type.block_type == source.block_type)
    tl.static_assert(isinstance(source, tl.tensor_descriptor_base))
    tl.static_assert(source.shape[0].dtype == tl.int32)
    tl.static_assert(source.strides[1].dtype == tl.int64)
    total = tl.sum(source.load([0, 0])) + source.shape[1] + source.strides[0] + source.strides[1]
    tl.store(out, total.to(tl.float32))


@pytest.mark.parametrize("of_host", [False, True])
def test_functions_that_take_either(device: Device, rng: np.random.Generator, of_host: bool):
    x, out = rng.integers(0, 9, (5, 12)).astype(np.float32), device.empty(1, np.float32)
    there = device.array(x)
    argument: Any = TensorDescriptor.from_tensor(there, [8, 8]) if of_host else there
    device.run(either_kernel, (1,), argument, out, 5, 12)
    assert out[0] == x[:, :8].sum() + 12 + 12 + 1


@jit
def loaded_address_kernel(x, addresses, out, m, n):
    tl.store(addresses, x.to(tl.int64))
    tl.debug_barrier()
    base = tl.load(addresses).to(tl.pointer_type(tl.float32))
    source = tl.make_tensor_descriptor(base, [m, n], [n, 1], [4, 8])
    target = tl.make_tensor_descriptor(out, [4, 8], [8, 1], [4, 8])
    target.store([0, 0], source.load([1, 2]))


def test_addresses_that_a_kernel_has_loaded(device: Device, rng: np.random.Generator):
    """As products of many matrices get theirs, in the tutorial of grouped products."""
    x, out = rng.normal(size=(4, 9)).astype(np.float32), device.empty((4, 8), np.float32)
    there = device.array(x)
    device.run(loaded_address_kernel, (1,), there, device.array(np.zeros(1, np.int64)), out, 4, 9)
    assert_same(out, block_of(x, (1, 2), (4, 8)))


# --- products, as the tutorials write them --------------------------------------------------------


@jit
def matmul_step(pid, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    per_group = GROUP * tl.cdiv(N, BN)
    first = pid // per_group * GROUP
    height = min(tl.cdiv(M, BM) - first, GROUP)
    return first + pid % height, pid % per_group // height


@jit
def matmul_kernel(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TURNED: tl.constexpr
):
    row, column = matmul_step(tl.program_id(0), M, N, BM, BN, 2)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(tl.cdiv(K, BK)):
        left = a.load([row * BM, k * BK])
        if TURNED:
            right = b.load([column * BN, k * BK]).T
        else:
            right = b.load([k * BK, column * BN])
        acc = tl.dot(left, right, acc)
    c.store([row * BM, column * BN], acc.to(c.dtype))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("size", [(64, 32, 32), (33, 56, 24), (40, 16, 72)], ids=str)
def test_matmul_by_host_descriptors(
    device: Device, rng: np.random.Generator, size: tuple[int, int, int], turned: bool
):
    m, n, k = size
    a, b = rng.normal(size=(m, k)).astype(np.float16), rng.normal(size=(k, n)).astype(np.float16)
    c = device.empty((m, n), np.float16)
    right, block = (b.T, [32, 16]) if turned else (b, [16, 32])
    descriptors = (
        TensorDescriptor.from_tensor(device.array(a), [32, 16]),
        TensorDescriptor.from_tensor(device.array(np.ascontiguousarray(right)), block),
        TensorDescriptor.from_tensor(c, [32, 32]),
    )
    grid = (cdiv(m, 32) * cdiv(n, 32),)
    device.run(matmul_kernel, grid, *descriptors, m, n, k, BM=32, BN=32, BK=16, TURNED=turned)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=2e-3, atol=4e-3)


@jit
def persistent_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    a = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN // 2])
    tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=True):
        row, column = matmul_step(tile, M, N, BM, BN, 2)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            left, right = a.load([row * BM, k * BK]), b.load([column * BN, k * BK])
            acc = tl.dot(left, right.T, acc)
        halves = tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1))
        first, second = tl.split(halves)
        c.store([row * BM, column * BN], first.to(tl.float16))
        c.store([row * BM, column * BN + BN // 2], second.to(tl.float16))


@pytest.mark.parametrize("size", [(64, 64, 32), (50, 70, 37)], ids=str)
def test_persistent_matmul_by_descriptors_of_its_own(
    device: Device, rng: np.random.Generator, size: tuple[int, int, int]
):
    m, n, k = size
    a, b = rng.normal(size=(m, k)).astype(np.float16), rng.normal(size=(n, k)).astype(np.float16)
    c = device.empty((m, n), np.float16)
    device.run(
        persistent_kernel, (3,), device.array(a), device.array(b), c, m, n, k,
        BM=32, BN=32, BK=16, PROGRAMS=3,
    )  # fmt: skip
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(c, exact, rtol=2e-3, atol=4e-3)


@jit
def attention_step(acc, sums, tops, q, k, v, start, end, head, columns, BN: tl.constexpr):
    for at in tl.range(start, end, BN):
        scores = tl.dot(q, k.load([head + at, 0]).T)
        scores = tl.where(at + tl.arange(0, BN)[None, :] < columns, scores, float("-inf"))
        above = tl.maximum(tops, tl.max(scores, 1))
        weights = tl.exp2(scores - above[:, None])
        scale = tl.exp2(tops - above)
        sums = sums * scale + tl.sum(weights, 1)
        acc = tl.dot(weights.to(tl.float16), v.load([head + at, 0]), acc * scale[:, None])
        tops = above
    return acc, sums, tops


@jit
def attention_kernel(
    q, k, v, out, heads, rows, factor, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """All heads below each other, as in one matrix of heads * rows rows."""
    total = heads * rows
    q = described(q, [total, D], [D, 1], [BM, D])
    k = described(k, [total, D], [D, 1], [BN, D])
    v = described(v, [total, D], [D, 1], [BN, D])
    out = described(out, [total, D], [D, 1], [BM, D])
    head, row = tl.program_id(1) * rows, tl.program_id(0) * BM
    left = (q.load([head + row, 0]) * (factor * 1.44269504)).to(tl.float16)
    tops, sums = tl.full((BM,), float("-inf"), tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    acc, sums, _ = attention_step(acc, sums, tops, left, k, v, 0, rows, head, rows, BN)
    out.store([head + row, 0], (acc / sums[:, None]).to(out.dtype))


@pytest.mark.parametrize("of_host", [False, True])
def test_attention(device: Device, rng: np.random.Generator, of_host: bool):
    """As in the tutorial: descriptors or pointers, which functions make descriptors of."""
    heads, rows, columns = 2, 64, 16
    q, k, v = rng.normal(size=(3, heads * rows, columns)).astype(np.float16)
    out = device.empty(q.shape, np.float16)
    arguments: list[Any] = [*map(device.array, (q, k, v)), out]
    if of_host:
        blocks = ([32, columns], [16, columns], [16, columns], [32, columns])
        arguments = [
            TensorDescriptor.from_tensor(x, block)
            for x, block in zip(arguments, blocks, strict=True)
        ]
    device.run(
        attention_kernel,
        (rows // 32, heads),
        *arguments,
        heads,
        rows,
        0.25,
        D=columns,
        BM=32,
        BN=16,
    )
    for part in (slice(0, rows), slice(rows, None)):
        left, right, values = (x[part].astype(np.float64) for x in (q, k, v))
        weights = np.exp(left @ right.T * 0.25)
        exact = weights @ values / weights.sum(1, keepdims=True)
        np.testing.assert_allclose(out[part], exact, rtol=2e-2, atol=5e-3)
