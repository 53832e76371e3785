"""Loops of products whose loads could be copied ahead, if what else they do in memory allows it.

On GPUs such loads are asynchronous copies into buffers with slots; see backends/nvidia.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Device, EmulatedAmpere, EmulatedNvidia
from tests.kernels.tutorial_matmul import tutorial_matmul
from tilewright import jit

Array = np.ndarray[Any, Any]


@pytest.fixture
def cyclic() -> Array:
    """A permutation: products with it are exact, and no two of its powers below 32 are equal."""
    return np.roll(np.eye(32, dtype=np.float16), 1, axis=1)


# --- loads and stores of one array ----------------------------------------------------------------


@jit
def chain(a, w, n, D: tl.constexpr, FENCE: tl.constexpr, STAGES: tl.constexpr):
    """Each step multiplies a tile that the D-th step before has stored."""
    i = tl.arange(0, 32)
    tile = i[:, None] * 32 + i[None, :]
    y = tl.load(w + tile)
    for s in tl.range(0, n, num_stages=STAGES):
        if FENCE:
            tl.debug_barrier()
        x = tl.load(a + s * 1024 + tile)
        tl.store(a + (s + D) * 1024 + tile, tl.dot(x, y).to(tl.float16))
        if FENCE:
            tl.debug_barrier()


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("distance", [1, 2, 3, 4])
@pytest.mark.parametrize("fence", [False, True])
def test_tiles_that_earlier_iterations_stored(
    device: Device, cyclic: Array, distance: int, fence: bool, stages: int
):
    a = np.zeros((9, 32, 32), np.float16)
    a[:distance] = np.arange(distance)[:, None, None] + np.arange(32)
    expected = a.copy()
    for s in range(9 - distance):
        expected[s + distance] = expected[s] @ cyclic
    there = device.array(a)
    words: Any = {"D": distance, "FENCE": fence, "STAGES": stages}
    device.run(chain, (1,), there, device.array(cyclic), 9 - distance, **words)
    np.testing.assert_array_equal(there, expected)


@jit
def panels(a, w, n, D: tl.constexpr, STAGES: tl.constexpr):
    """As `chain`, with tiles side by side in rows of 512 and pointers that move."""
    i = tl.arange(0, 32)
    y = tl.load(w + i[:, None] * 32 + i[None, :])
    p = a + i[:, None] * 512 + i[None, :]
    for _ in tl.range(0, n, num_stages=STAGES):
        tl.store(p + 32 * D, tl.dot(tl.load(p), y).to(tl.float16))
        p += 32


@pytest.mark.parametrize("distance", [1, 2, 3])
def test_tiles_side_by_side(device: Device, cyclic: Array, distance: int):
    a = np.zeros((32, 512), np.float16)
    a[:, : 32 * distance] = np.arange(32 * distance)
    expected = a.copy()
    for s in range(0, 256, 32):
        expected[:, s + 32 * distance :][:, :32] = expected[:, s : s + 32] @ cyclic
    there = device.array(a)
    device.run(panels, (1,), there, device.array(cyclic), 8, D=distance, STAGES=3)
    np.testing.assert_array_equal(there, expected)


@jit
def stored_before(a, b, c, n, STAGES: tl.constexpr):
    """Each iteration stores a tile and loads it again."""
    i = tl.arange(0, 32)
    tile = i[:, None] * 32 + i[None, :]
    y = tl.load(b + tile)
    acc = tl.zeros((32, 32), tl.float32)
    for s in tl.range(0, n, num_stages=STAGES):
        tl.store(a + s * 1024 + tile, (y * (s + 1)).to(tl.float16))
        acc = tl.dot(tl.load(a + s * 1024 + tile), y, acc)
    tl.store(c + tile, acc)


def test_tiles_that_the_same_iteration_stored(device: Device, cyclic: Array):
    a, out = device.array(np.zeros((5, 32, 32), np.float16)), device.empty((32, 32), np.float32)
    device.run(stored_before, (1,), a, device.array(cyclic), out, 5, STAGES=3)
    np.testing.assert_array_equal(out, 15 * (cyclic @ cyclic))


@jit
def handed_over(flags, a, w, n, STAGES: tl.constexpr):
    """A semaphore guards each tile, as in a product that is split along its inner dimension."""
    i = tl.arange(0, 32)
    tile = i[:, None] * 32 + i[None, :]
    y = tl.load(w + tile)
    for s in tl.range(0, n, num_stages=STAGES):
        while tl.atomic_cas(flags + s, 1, 1) != 1:
            pass
        x = tl.load(a + s * 1024 + tile)
        tl.store(a + (s + 1) * 1024 + tile, tl.dot(x, y).to(tl.float16))
        tl.debug_barrier()
        tl.atomic_xchg(flags + s + 1, 1)


def test_tiles_behind_semaphores(device: Device, cyclic: Array):
    a = np.zeros((6, 32, 32), np.float16)
    a[0] = np.arange(32)
    there, flags = device.array(a), device.array(np.array([1, 0, 0, 0, 0, 0], np.int32))
    device.run(handed_over, (1,), flags, there, device.array(cyclic), 5, STAGES=3)
    np.testing.assert_array_equal(there[5], np.broadcast_to(np.roll(np.arange(32), 5), (32, 32)))
    assert flags.all()


@jit
def counted(a, b, c, seen, n):
    """An atomic operation in a branch of the loop is a fence too."""
    i = tl.arange(0, 32)
    tile = i[:, None] * 32 + i[None, :]
    acc = tl.zeros((32, 32), tl.float32)
    for s in range(n):
        if s % 2 == 0:
            tl.atomic_add(seen, 1)
        acc = tl.dot(tl.load(a + s * 1024 + tile), tl.load(b + tile), acc)
    tl.store(c + tile, acc)


def test_atomics_in_branches(device: Device, rng: np.random.Generator, cyclic: Array):
    a = rng.integers(-3, 4, (5, 32, 32)).astype(np.float16)
    out, seen = device.empty((32, 32), np.float32), device.array(np.zeros(1, np.int32))
    device.run(counted, (1,), device.array(a), device.array(cyclic), out, seen, 5)
    np.testing.assert_array_equal(out, a.sum(0, dtype=np.float32) @ cyclic)
    assert seen[0] == 3


# --- several loops, and what follows them ---------------------------------------------------------


@jit
def multiplied(a, b, K, M: tl.constexpr, N: tl.constexpr, B: tl.constexpr, STAGES: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, B)
    acc = tl.zeros((M, N), tl.float32)
    for start in tl.range(0, K, B, num_stages=STAGES):
        x = tl.load(a + i[:, None] * K + start + k[None, :])
        y = tl.load(b + (start + k[:, None]) * N + j[None, :])
        acc = tl.dot(x, y, acc)
    return acc


@jit
def several(
    a, b, out, K, M: tl.constexpr, N: tl.constexpr, B: tl.constexpr, STAGES: tl.constexpr,
    LOOPS: tl.constexpr,
):  # fmt: skip
    i, j = tl.arange(0, M), tl.arange(0, N)
    tile = i[:, None] * N + j[None, :]
    tl.store(out + tile, multiplied(a, b, K, M, N, B, STAGES))
    if LOOPS > 1:
        other = multiplied(a, b, K, N, M, 2 * B, STAGES)
        tl.store(out + M * N + j[:, None] * M + i[None, :], other)
    if LOOPS > 2:
        tl.store(out + 2 * M * N + tile, multiplied(a, b, K, M, N, B, 2))


@pytest.mark.parametrize("loops", [2, 3])
@pytest.mark.parametrize("shape", [(32, 32), (64, 32)])
@pytest.mark.parametrize("stages", [2, 3, 5])
def test_loops_one_after_another(
    device: Device, rng: np.random.Generator, shape: tuple[int, int], stages: int, loops: int
):
    m, n = shape
    a, b = rng.integers(-3, 4, m * 128), rng.integers(-3, 4, 128 * m)
    out = device.empty((loops, m * n), np.float32)
    words: Any = {"M": m, "N": n, "B": 16, "STAGES": stages, "LOOPS": loops}
    operands = (device.array(x, np.float16) for x in (a, b))
    device.run(several, (1,), *operands, out, 128, **words)
    first = (a[: m * 128].reshape(m, 128) @ b[: 128 * n].reshape(128, n)).reshape(-1)
    np.testing.assert_array_equal(out[0], first)
    second = a[: n * 128].reshape(n, 128) @ b[: 128 * m].reshape(128, m)
    np.testing.assert_array_equal(out[1], second.reshape(-1))
    if loops > 2:
        np.testing.assert_array_equal(out[2], first)


@jit
def followed(a, b, sums, turned, K, STAGES: tl.constexpr, REVERSED: tl.constexpr):
    i = tl.arange(0, 32)
    acc = multiplied(a, b, K, 32, 32, 32, STAGES)
    if REVERSED:
        tl.store(turned + i[None, :] * 32 + i[:, None], acc)
    tl.store(sums + i, tl.sum(acc, 0))
    tl.store(sums + 32 + i, tl.sum(tl.cumsum(acc, 0), 1))
    if not REVERSED:
        tl.store(turned + i[None, :] * 32 + i[:, None], acc)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("stages", [2, 3])
def test_a_loop_and_exchanges_behind_it(
    device: Device, rng: np.random.Generator, stages: int, backwards: bool
):
    a, b = rng.integers(-3, 4, (2, 32, 32))
    sums, turned = device.empty((2, 32), np.float32), device.empty((32, 32), np.float32)
    operands = (device.array(x, np.float16) for x in (a, b))
    words: Any = {"STAGES": stages, "REVERSED": backwards}
    device.run(followed, (1,), *operands, sums, turned, 32, **words)
    np.testing.assert_array_equal(turned, (a @ b).T)
    np.testing.assert_array_equal(sums, [(a @ b).sum(0), np.cumsum(a @ b, 0).sum(1)])


@jit
def nested(a, b, c, N, K, OUTER: tl.constexpr):
    """Both loops multiply what they load."""
    i = tl.arange(0, 32)
    tile = i[:, None] * 32 + i[None, :]
    out = tl.zeros((32, 32), tl.float32)
    for n in tl.range(0, N, num_stages=OUTER):
        x = tl.load(a + n * 1024 + tile)
        inner = tl.zeros((32, 32), tl.float32)
        for k in range(K):
            inner = tl.dot(tl.load(a + k * 1024 + tile), tl.load(b + k * 1024 + tile), inner)
        out = tl.dot(x, tl.load(b + n * 1024 + tile), out) + inner * tl.sum(inner)
    tl.store(c + tile, out)


@pytest.mark.parametrize("outer", [1, 3])
@pytest.mark.parametrize("counts", [(3, 4), (2, 0), (0, 3)])
def test_a_loop_in_a_loop(
    device: Device, rng: np.random.Generator, counts: tuple[int, int], outer: int
):
    n, k = counts
    a, b = rng.integers(-1, 2, (2, 4, 32, 32))
    out = device.empty((32, 32), np.float32)
    operands = (device.array(x, np.float16) for x in (a, b))
    device.run(nested, (1,), *operands, out, n, k, OUTER=outer)
    inner = (a[:k] @ b[:k]).sum(0)
    expected = (a[:n] @ b[:n]).sum(0) + n * inner * inner.sum()
    np.testing.assert_array_equal(out, expected.astype(np.float32))


# --- bounds, masks, slots -------------------------------------------------------------------------


@jit
def two_ahead(a, b, c, n, STEP: tl.constexpr, BY_POINTERS: tl.constexpr):
    """What an iteration loads was decided one, two or three iterations before."""
    i = tl.arange(0, 32)
    tile = i[:, None] * 32 + i[None, :]
    acc = tl.zeros((32, 32), tl.float32)
    p, r, t = 0, 1, 2
    x, y = a, a + 1024
    for q in range(n):
        tile_a = tl.load((x if BY_POINTERS else a + p * 1024) + tile)
        acc = tl.dot(tile_a, tl.load(b + q * 1024 + tile), acc)
        p = r
        x = y
        if STEP == 3:
            r = t
            t = q + 3
        else:
            r = q + 2
        y = a + (q + 2) * 1024
    tl.store(c + tile, acc)


def assert_two_ahead(
    device: Device, rng: np.random.Generator, dtype: str, step: int, by_pointers: bool
) -> None:
    n = 6
    a, b = (rng.integers(-3, 4, (n, 32, 32)).astype(dtype) for _ in range(2))
    out = device.empty((32, 32), np.float32)
    words: Any = {"STEP": step, "BY_POINTERS": by_pointers}
    device.run(two_ahead, (1,), device.array(a), device.array(b), out, n, **words)
    np.testing.assert_array_equal(out, (a.astype(np.float64) @ b).sum(0))


@pytest.mark.parametrize("by_pointers", [False, True], ids=["scalars", "pointers"])
@pytest.mark.parametrize("step", [2, 3])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_indices_of_later_iterations(
    device: Device, rng: np.random.Generator, dtype: str, step: int, by_pointers: bool
):
    assert_two_ahead(device, rng, dtype, step, by_pointers)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_indices_of_later_iterations_without_a_copy_engine(rng: np.random.Generator, dtype: str):
    assert_two_ahead(EmulatedAmpere(), rng, dtype, 2, False)


@jit
def bounded(a, b, c, low, high, stride, STEP: tl.constexpr):
    i = tl.arange(0, 32)
    tile = i[:, None] * 32 + i[None, :]
    acc = tl.zeros((32, 32), tl.float32)
    p = a + tile
    for _ in tl.range(low, high, STEP):
        acc = tl.dot(tl.load(p), tl.load(b + tile), acc)
        p += stride
    tl.store(c + tile, acc)


NEAR_THE_END: Sequence[tuple[int, int, int]] = [
    (2**31 - 2**20, 2**31 - 1, 2**20),
    (2**31 - 3 * 2**20, 2**31 - 1, 2**20),
    (2**31 - 3, 2**31 - 1, 1),
    (-(2**31), 2**31 - 1, 2**30),
    (-(2**31), -(2**31) + 5, 3),
    (5, -5, 2**30),
]


@pytest.mark.parametrize("bounds", NEAR_THE_END, ids=str)
def test_bounds_near_the_ends_of_their_type(
    device: Device, rng: np.random.Generator, cyclic: Array, bounds: tuple[int, int, int]
):
    """The index of an iteration that is copied ahead, or of the next one, may be no int32."""
    a = rng.integers(-3, 4, (len(range(*bounds)), 32, 32)).astype(np.float16)
    out = device.empty((32, 32), np.float32)
    stride = 1024 if len(a) > 1 else 1 << 24  # far outside of all arrays
    low, high, step = bounds
    operands = device.array(a), device.array(cyclic)
    device.run(bounded, (1,), *operands, out, low, high, stride, STEP=step)
    np.testing.assert_array_equal(out, a.sum(0, dtype=np.float32) @ cyclic)


@jit
def filled(a, b, c, K, OTHER: tl.constexpr):
    """Counts the elements with a sign bit by products with ones."""
    i = tl.arange(0, 32)
    acc = tl.zeros((32, 32), tl.float32)
    for k in range(0, K, 32):
        inside = (k + i[None, :] < K - 16) & (i[:, None] >= 0)
        x = tl.load(a + i[:, None] * K + k + i[None, :], inside, other=OTHER)
        y = tl.load(b + (k + i[:, None]) * 32 + i[None, :])
        negative = tl.where(1.0 / x.to(tl.float32) < 0, 1.0, 0.0)
        acc = tl.dot(negative.to(tl.float16), y, acc)
    tl.store(c + i[:, None] * 32 + i[None, :], acc)


@pytest.mark.parametrize("other, expected", [(-0.0, 16), (0.0, 0)])
def test_masked_elements_keep_the_sign_of_zero(device: Device, other: float, expected: int):
    a, b = np.ones((32, 64), np.float16), np.ones((64, 32), np.float16)
    out = device.empty((32, 32), np.float32)
    device.run(filled, (1,), device.array(a), device.array(b), out, 64, OTHER=other)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("stages", [7, 9, 100])
def test_more_stages_than_iterations(device: Device, rng: np.random.Generator, stages: int):
    a, b = rng.integers(-3, 4, (2, 32, 32))
    sums, turned = device.empty((2, 32), np.float32), device.empty((32, 32), np.float32)
    operands = (device.array(x, np.float16) for x in (a, b))
    device.run(followed, (1,), *operands, sums, turned, 32, STAGES=stages, REVERSED=True)
    np.testing.assert_array_equal(turned, (a @ b).T)


def product_by_threads(device: Device, k: int, stages: int) -> Array:
    """Of 64 x K and K x 64, in tiles that threads copy."""
    random = np.random.default_rng(k)
    left, right = random.normal(size=(64, k)), random.normal(size=(k, 64))
    a, b = (device.array(x, np.float16) for x in (left, right))
    out = device.empty((64, 64), np.float16)
    strides = (step // 2 for x in (a, b, out) for step in x.strides)
    words = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP_M": 8, "EVEN_K": False}
    options = {"num_warps": 4, "num_stages": stages, "bulk_loads": "none"}
    device.run(tutorial_matmul, (1,), a, b, out, 64, 64, k, *strides, **words, **options)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(out.astype(np.float64), exact, rtol=2e-3, atol=3e-2)
    return out


@pytest.mark.parametrize("stages", [3, 4])
@pytest.mark.parametrize("k", [16, 64, 136, 328])
def test_products_of_few_and_of_more_slots(device: Device, k: int, stages: int):
    assert product_by_threads(device, k, stages).any()


@pytest.mark.parametrize("seed", range(3))
def test_copies_meet_no_product_whatever_the_order_of_warps(seed: int):
    expected = product_by_threads(EmulatedNvidia(), 328, 3)
    np.testing.assert_array_equal(product_by_threads(EmulatedNvidia(seed), 328, 3), expected)
