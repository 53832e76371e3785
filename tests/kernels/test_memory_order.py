"""Loads and stores of one array: aliasing, order, several stores, hints, booleans."""

import warnings
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.corpus.users.scans import running_sum
from tests.kernels.data import assert_same
from tests.kernels.devices import Device, EmulatedNvidia
from tests.unit.runtime.launch.test_overlap_warning import SHIFTED, floats
from tilewright import OverlapWarning, jit


@jit
def in_place_kernel(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2 + 1, mask=i < n)


def test_in_place(device: Device, rng: np.random.Generator):
    x = rng.normal(size=333).astype(np.float32)
    there = device.array(x)
    device.run(in_place_kernel, (6,), there, 333, BLOCK=64)
    assert_same(there, x * 2 + 1)


@jit
def reverse_in_place_kernel(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + BLOCK - 1 - i))


@jit
def transpose_in_place_kernel(x, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(x + i * N + j, tl.load(x + j * N + i))


@jit
def shift_in_place_kernel(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i + 1, tl.load(x + i))


@pytest.mark.parametrize("size", [16, 128, 1024])
def test_a_whole_tile_is_loaded_before_it_is_stored(
    device: Device, rng: np.random.Generator, size: int
):
    x = rng.normal(size=size).astype(np.float32)
    there = device.array(x)
    device.run(reverse_in_place_kernel, (1,), there, BLOCK=size)
    assert_same(there, x[::-1])
    shifted = device.array(np.append(x, np.float32(0)))
    device.run(shift_in_place_kernel, (1,), shifted, BLOCK=size)
    assert_same(shifted, np.append(x[:1], x))


def test_transpose_in_place(device: Device, rng: np.random.Generator):
    x = rng.normal(size=(32, 32)).astype(np.float32)
    there = device.array(x)
    device.run(transpose_in_place_kernel, (1,), there, N=32)
    assert_same(there, x.T)


@jit
def swap_kernel(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(x + i, b)
    tl.store(y + i, a)


def test_swap_of_two_arrays(device: Device, rng: np.random.Generator):
    x, y = rng.normal(size=(2, 64)).astype(np.float32)
    there = device.array(x), device.array(y)
    device.run(swap_kernel, (1,), *there, BLOCK=64)
    assert_same(there[0], y)
    assert_same(there[1], x)


@jit
def centered_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0)
    tl.store(out + tl.program_id(0) * n + i, v - tl.sum(v) / n, mask=i < n)


def test_one_array_as_input_and_output(device: Device, rng: np.random.Generator):
    """Where each element is read and written at one index, parameters may be one array."""
    x = rng.normal(size=(5, 50))
    there = device.array(x)
    device.run(centered_kernel, (5,), there, there, 50, BLOCK=64)
    np.testing.assert_allclose(there, x - x.mean(1, keepdims=True), atol=1e-12)


@jit
def store_then_load_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    before = tl.load(x + i)
    tl.store(x + i, before + 1)
    after = tl.load(x + i)
    tl.store(x + i, after * 2)
    tl.store(out + i, before + after * 10 + tl.load(x + BLOCK - 1 - i) * 100)


def test_load_after_store(device: Device, rng: np.random.Generator):
    x = rng.integers(0, 9, 64).astype(np.int32)
    there, out = device.array(x), device.empty(64, np.int32)
    device.run(store_then_load_kernel, (1,), there, out, BLOCK=64)
    assert_same(there, (x + 1) * 2)
    assert_same(out, x + (x + 1) * 10 + ((x + 1) * 2)[::-1] * 100)


@jit
def load_between_stores_kernel(x, out, first, second, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(out + i, v)
    stored = tl.load(out + i)
    tl.store(first + i, v)
    tl.store(second + i, stored)


def test_load_between_stores_of_other_arrays(device: Device, rng: np.random.Generator):
    x = rng.normal(size=64).astype(np.float32)
    out, first, second = (device.empty(64, np.float32) for _ in range(3))
    device.run(load_between_stores_kernel, (1,), device.array(x), out, first, second, BLOCK=64)
    for found in (out, first, second):
        assert_same(found, x)


@jit
def two_stores_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(out + i, v)
    tl.store(out + i, -v, mask=i % 2 == 0)
    tl.store(out + n + (BLOCK - 1 - i), v)
    tl.store(out + 3, 100.0)


def test_the_later_store_wins(device: Device, rng: np.random.Generator):
    x, out = rng.normal(size=32).astype(np.float32), device.empty(48, np.float32)
    device.run(two_stores_kernel, (1,), device.array(x), out, 16, BLOCK=32)
    expected = np.empty(48, np.float32)
    expected[:32] = np.where(np.arange(32) % 2 == 0, -x, x)
    expected[16:] = x[::-1]
    expected[3] = 100
    assert_same(out, expected)


@jit
def same_place_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i // 4, tl.load(x + i), mask=i % 4 == 3)
    tl.store(out + BLOCK // 4 + i * 0, 5.0)


def test_lanes_that_store_to_one_place(device: Device, rng: np.random.Generator):
    x, out = rng.normal(size=64).astype(np.float32), device.empty(17, np.float32)
    device.run(same_place_kernel, (1,), device.array(x), out, BLOCK=64)
    assert_same(out, np.append(x[3::4], np.float32(5)))


@jit
def prefix_in_memory_kernel(x, n):
    """Each step reads what the one before has stored."""
    for i in range(1, n):
        tl.store(x + i, tl.load(x + i - 1) + tl.load(x + i))


def test_loop_through_memory(device: Device, rng: np.random.Generator):
    x = rng.integers(0, 9, 50).astype(np.int32)
    there = device.array(x)
    device.run(prefix_in_memory_kernel, (1,), there, 50)
    assert_same(there, np.cumsum(x, dtype=np.int32))


@jit
def stencil_kernel(x, n, steps, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for _ in range(steps):
        left = tl.load(x + i - 1, mask=(i > 0) & (i < n), other=0)
        right = tl.load(x + i + 1, mask=i + 1 < n, other=0)
        tl.debug_barrier()
        tl.store(x + i, (left + right) & 0xFF, mask=i < n)
        tl.debug_barrier()


def test_tiles_that_pass_through_memory_between_iterations(
    device: Device, rng: np.random.Generator
):
    x = rng.integers(0, 256, 50).astype(np.int32)
    there = device.array(x)
    device.run(stencil_kernel, (1,), there, 50, 5, BLOCK=64)
    expected = x
    for _ in range(5):
        padded = np.pad(expected, 1)
        expected = (padded[:-2] + padded[2:]) & 0xFF
    assert_same(there, expected.astype(np.int32))


@jit
def condition_on_memory_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(x + i, v * 0)
    if tl.load(x) == 0:
        tl.store(out + i, v)
    else:
        tl.store(out + i, -v)


def test_a_loaded_tile_keeps_its_value_in_later_branches(device: Device, rng: np.random.Generator):
    x, out = rng.normal(size=64).astype(np.float32), device.empty(64, np.float32)
    there = device.array(x)
    device.run(condition_on_memory_kernel, (1,), there, out, BLOCK=64)
    assert_same(out, x)
    assert not there.any()


@jit
def volatile_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i, volatile=True)
    b = tl.load(x + i, mask=i < 3, other=1, volatile=True, cache_modifier=".cg")
    c = tl.load(x, volatile=True, eviction_policy="evict_last")
    tl.store(out + i, a + b * 10 + c * 100, cache_modifier=".wb", eviction_policy="evict_first")


def test_volatile_and_hints(device: Device, rng: np.random.Generator):
    x, out = rng.integers(0, 9, 32).astype(np.int32), device.empty(32, np.int32)
    device.run(volatile_kernel, (1,), device.array(x), out, BLOCK=32)
    assert_same(out, x + np.where(np.arange(32) < 3, x, 1) * 10 + x[0] * 100)


@jit
def booleans_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n, other=False), tl.load(y + i, mask=i < n, other=True)
    tl.store(out + i, (a & b) | (a ^ b) & ~a, mask=i < n)
    if tl.load(x):
        tl.store(out, tl.load(y) == 0)


def test_boolean_arrays(device: Device, rng: np.random.Generator):
    x, y = rng.integers(0, 2, (2, 50)).astype(bool)
    out = device.empty(50, bool)
    device.run(booleans_kernel, (1,), device.array(x), device.array(y), out, 50, BLOCK=64)
    expected = (x & y) | (x ^ y) & ~x
    if x[0]:
        expected[0] = not y[0]
    assert_same(out, expected)


def test_any_byte_but_zero_is_true(device: Device):
    raw = np.array([0, 1, 2, 128, 255, 0, 7, 3], np.uint8)
    x = device.empty(8, bool)
    x.view(np.uint8)[...] = raw
    out = device.empty(8, bool)
    true = device.array(np.ones(8, bool))
    device.run(booleans_kernel, (1,), x, true, out, 8, BLOCK=8)
    assert out.view(np.uint8).tolist() == [1] * 8


@jit
def windows_kernel(x, out, n, hop, BLOCK: tl.constexpr):
    """Each window overwrites what the one before has written of it."""
    i = tl.arange(0, BLOCK)
    for k in range(n):
        tl.store(out + k * hop + i, tl.load(x + k * BLOCK + i))


@pytest.mark.parametrize("hop", [1, 3, 32, 64, 100])
def test_windows_that_may_overlap(device: Device, rng: np.random.Generator, hop: int):
    n, size = 5, 64
    x = rng.normal(size=(n, size)).astype(np.float32)
    expected = np.zeros(hop * (n - 1) + size, np.float32)
    out = device.array(expected)
    for k in range(n):
        expected[k * hop :][:size] = x[k]
    device.run(windows_kernel, (1,), device.array(x), out, n, hop, BLOCK=size)
    assert_same(out, expected)


@jit
def halving_kernel(x, n, hop, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in range(n):
        tl.store(x + k * hop + i, tl.load(x + k * hop + (BLOCK - 1 - i)) * 0.5)


@pytest.mark.parametrize("hop", [2, 64])
def test_windows_that_are_read_and_written(device: Device, rng: np.random.Generator, hop: int):
    n, size = 4, 64
    expected = rng.normal(size=hop * (n - 1) + size).astype(np.float32)
    there = device.array(expected)
    device.run(halving_kernel, (1,), there, n, hop, BLOCK=size)
    for k in range(n):
        window = expected[k * hop :][:size]
        window[:] = window[::-1] * np.float32(0.5)
    assert_same(there, expected)


@jit
def shared_places_kernel(x, out, BLOCK: tl.constexpr):
    """Four elements of a tile are one of the array; of a store to it the last one stays."""
    i = tl.arange(0, BLOCK)
    tl.store(out + i // 4, tl.load(x + i), mask=i % 4 == 0)
    tl.store(out + i // 4, tl.load(out + i // 4) * 2 + tl.load(x + i), mask=i % 4 == 3)


def test_elements_that_share_a_place(device: Device, rng: np.random.Generator):
    x, out = rng.integers(0, 99, 256).astype(np.int32), device.empty(64, np.int32)
    device.run(shared_places_kernel, (1,), device.array(x), out, BLOCK=256)
    assert_same(out, x[::4] * 2 + x[3::4])


@jit
def reversed_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + (n - 1 - i), mask=i < n), mask=i < n)


@jit
def transposed_kernel(x, out, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + i * N + j, tl.load(x + j * N + i))


def test_one_array_for_arguments_that_must_be_two(device: Device, rng: np.random.Generator):
    """Within a program the order is kept; a warning says that there is none between programs."""
    x = rng.normal(size=(16, 16)).astype(np.float32)
    for kernel, rest, words, expected in (
        (reversed_kernel, (256,), {"BLOCK": 256}, x.ravel()[::-1].reshape(16, 16)),
        (transposed_kernel, (), {"N": 16}, x.T),
    ):
        there = device.array(x)
        if device.name == "interpreter":
            device.run(kernel, (1,), there, there, *rest, **words)
            assert_same(there, expected)
            continue
        with pytest.warns(OverlapWarning, match="'x' and 'out'"):
            device.run(jit(kernel.fn), (1,), there, there, *rest, **words)
        assert_same(there, expected)
        apart = device.array(x), device.empty(x.shape, np.float32)
        device.run(kernel, (1,), *apart, *rest, **words)
        assert_same(apart[1], expected)


@pytest.mark.parametrize("shift", [1, 4, 32])
@pytest.mark.parametrize("case", SHIFTED)
def test_one_program_loads_before_it_stores(device: Device, case: str, shift: int):
    """Through parameters that are shifted views of one array."""
    function, arguments, n, block = SHIFTED[case]
    expected = floats(1024) % 31
    jit(interpret=True)(function)[(1,)](*arguments(expected, shift), n, B=block)
    found = device.array(floats(1024) % 31)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverlapWarning)
        device.run(jit(function), (1,), *arguments(found, shift), n, B=block)
    np.testing.assert_allclose(found, expected, rtol=1e-5)  # an exponential on GPUs


# --- one array as two parameters, of which several threads hold each element ---------------------


@jit
def small_tile_in_place(x, y, total, size, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    old = tl.load(x + i)
    tl.store(y + i, old + 1)
    tl.store(total, tl.sum(old))


@jit
def scalars_in_place(x, y, total, size, BLOCK: tl.constexpr):
    old = tl.load(x + size - 1)
    tl.store(y + size - 1, old + 1)
    tl.store(total + tl.arange(0, BLOCK), tl.full((BLOCK,), 0, tl.int32) + old)


@jit
def small_tile_in_place_by_atomics(x, y, total, size, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    old = tl.load(x + i)
    tl.atomic_add(y + i, 1)
    tl.store(total, tl.sum(old))


@jit
def small_tile_in_place_under_a_mask(x, y, total, size, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    old = tl.load(x + i)
    if size > 1:
        tl.store(y + i, old + 1, mask=i < size)
    tl.store(total, tl.sum(old))


@jit
def small_windows_in_place(x, y, total, size, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK // 2)
    seen = tl.zeros((BLOCK // 2,), tl.int32)
    for k in range(2):
        seen += tl.load(x + k * (BLOCK // 2) + i)
    for k in range(2):
        tl.store(y + k * (BLOCK // 2) + i, k * (BLOCK // 2) + i + 1)
    tl.store(total, tl.sum(seen))


@jit
def each_element_twice(x, y, total, size, BLOCK: tl.constexpr):
    """Two elements of the tile are one of the array, of which one is stored."""
    i = tl.arange(0, 32 * BLOCK)
    old = tl.load(x + i // 32)
    tl.store(y + i // 32, old + 1, mask=i % 32 == 31)
    tl.store(total, tl.sum(tl.where(i % 32 == 0, old, 0)))


IN_PLACE = [
    small_tile_in_place,
    scalars_in_place,
    small_tile_in_place_by_atomics,
    small_tile_in_place_under_a_mask,
    small_windows_in_place,
    each_element_twice,
]


@pytest.mark.parametrize("kernel", IN_PLACE, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("order", [None, 1, 2], ids=str)
def test_a_small_tile_in_place_through_two_parameters(device: Device, kernel: Any, order: Any):
    if isinstance(device, EmulatedNvidia):
        device.seed = order
    elif order is not None:
        pytest.skip("only the emulator has orders")
    x, total = device.array(np.arange(8, dtype=np.int32)), device.array(np.zeros(8, np.int32))
    device.run(kernel, (1,), x, x, total, 8, BLOCK=8, num_warps=4)
    of_scalar = kernel is scalars_in_place
    assert total.tolist() == ([7] * 8 if of_scalar else [28] + [0] * 7)
    assert x.tolist() == ([*range(7), 8] if of_scalar else list(range(1, 9)))


@jit
def recurrence_kernel(x, y, n, B: tl.constexpr):
    i, h = tl.arange(0, B), tl.zeros((B,), tl.float32)
    for k in range(0, n, B):
        h = h * 3 + tl.load(x + k + i, mask=k + i < n)
        tl.store(y + k + i, h, mask=k + i < n)


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("kernel", [running_sum, recurrence_kernel])
def test_loops_from_one_parameter_to_the_other(device: Device, kernel: Any, in_place: bool):
    numbers = np.arange(100, dtype=np.float32)
    x = device.array(numbers)
    y = x if in_place else device.empty(numbers.shape, np.float32)
    device.run(kernel, (1,), x, y, 100, B=16, num_warps=4)
    expected = np.cumsum(numbers)
    if kernel is recurrence_kernel:
        expected = numbers.copy()
        for k in range(16, 100):
            expected[k] += 3 * expected[k - 16]
    np.testing.assert_array_equal(y, expected)
