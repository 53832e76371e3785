"""Numbers as arguments and as locals: one value means the same as another, and as a tensor."""

# pyright: reportAttributeAccessIssue=false, reportInvalidTypeForm=false

from typing import Any, NamedTuple

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Device
from tilewright import jit


@jit
def number_kernel(out, x, n):
    tl.store(out, n.to(tl.float32) / 2)
    tl.store(out + 1, n.dtype.primitive_bitwidth)
    tl.store(out + 2, tl.load(x).to(tl.int8) + n)
    tl.store(out + 3, tl.sum(tl.full([4], n, n.dtype)))
    step = n if n > 1 else 1
    tl.store(out + 4, n == 1 or step > 1)


@pytest.mark.parametrize("n", [1, 2, 16, 2**31])
def test_no_integer_is_special(device: Device, n: int):
    out = device.empty(5, np.float64)
    device.run(number_kernel, (1,), out, device.array([127], np.int32), n)
    assert out.tolist() == [np.float32(n) / 2, 64 if n == 2**31 else 32, 127 + n, 4 * n, 1]


@jit
def numbers_of_tuples_kernel(out, pair):
    tl.store(out, pair[0].to(tl.float32) / 2)
    tl.store(out + 1, pair[1][0].to(tl.int8) + pair[0])


@pytest.mark.parametrize("n", [1, 2])
def test_no_integer_of_a_tuple_is_special(device: Device, n: int):
    out = device.empty(2, np.float64)
    device.run(numbers_of_tuples_kernel, (1,), out, (n, (n, 3)))
    assert out.tolist() == [n / 2, 2 * n]


@jit
def scaled(x, factor: tl.constexpr, BLOCK: tl.constexpr):
    return x * factor + tl.arange(0, BLOCK)


@jit
def literals_kernel(out, n):
    total = 0
    total = total.to(tl.int64)
    for i in range(n):
        total += i
    tl.store(out, total)
    value = 1
    tl.store(out + 1 + tl.arange(0, 2), tl.full([2], value, value.dtype))
    tl.store(out + 3, (2.75).to(tl.int32) + value.to(tl.int64))
    tl.store(out + 4 + tl.arange(0, 4), scaled(n, n + 1, 4))


def test_literals_are_tensors_and_constexpr_parameters_take_tensors(device: Device):
    out = device.empty(8, np.int64)
    device.run(literals_kernel, (1,), out, 3)
    assert out.tolist() == [3, 1, 1, 3, 12, 13, 14, 15]


@jit
def float_kernel(out, x, y: tl.float16):
    tl.store(out, x)
    tl.store(out + 1, y)


@pytest.mark.parametrize("sign", [1, -1])
def test_floats_past_the_largest_are_infinite(device: Device, sign: int):
    out = device.empty(2, np.float64)
    device.run(float_kernel, (1,), out, sign * 1e300, sign * 65520.0)
    assert out.tolist() == [sign * np.inf] * 2
    device.run(float_kernel, (1,), out, sign * 1e38, sign * 65519.0)
    assert out.tolist() == [np.float32(sign * 1e38), sign * 65504.0]


@jit
def logic_kernel(out, x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    tl.store(out + i, not a)
    tl.store(out + BLOCK + i, i < n and a > 2)
    tl.store(out + 2 * BLOCK + i, 1 < i < n)
    tl.store(out + 3 * BLOCK + i, a and 3 or i == 0)
    tl.store(out + 4 * BLOCK + i, (n and 3) + (not n) + (3 and n))


def test_logic_is_element_by_element(device: Device):
    x = np.array([0, 5, 0, 3, 1, 9, 2, 0], np.int32)
    out, i = device.empty((5, 8), np.int32), np.arange(8)
    device.run(logic_kernel, (1,), out, device.array(x), 6, BLOCK=8)
    expected = [x == 0, (i < 6) & (x > 2), (i > 1) & (i < 6), (x != 0) | (i == 0), i * 0 + 1 + 6]
    assert out.tolist() == np.array(expected).astype(int).tolist()


class Strided(NamedTuple):
    base: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@jit
def summed(view):
    tl.static_assert(view.strides[1] == 1)
    columns = tl.arange(0, 4)
    return tl.sum(tl.load(view.base + columns * view.strides[1], columns < view.shape[1], 0))


@jit
def specialized_members_kernel(out, nested, view, one):
    tl.static_assert(nested[0] == 1 and one == 1)
    tl.static_assert(nested[1][0] is None)
    tl.static_assert(nested[1][1] == 4)
    tl.static_assert((tl.load(out).to(tl.int8) * nested[0]).dtype == tl.int32)
    tl.static_assert((tl.load(out).to(tl.int8) * nested[1][1]).dtype == tl.int8)
    tl.store(out + tl.arange(0, nested[1][1]), nested[1][2])
    tl.store(out + 4, summed(view))
    tl.store(out + 5, nested[1][3])


@pytest.mark.parametrize("n", [7, 32])
def test_members_of_tuples_are_specialized(device: Device, n: int):
    out, x = device.empty(6, np.int32), device.array(np.arange(1, 9), np.int32)
    nested = (1, (None, tl.constexpr(4), n, True))
    device.run(specialized_members_kernel, (1,), out, nested, Strided(x, (2, 3), (4, 1)), 1)
    assert out.tolist() == [n, n, n, n, 6, 1]


@jit
def described_kernel(out, x, shape, strides, block):
    tile = tl.make_tensor_descriptor(x, shape=shape, strides=strides, block_shape=block)
    tile.store([0, 0], tile.load([0, 0]) + 1)
    tl.store(out, tl.sum(tile.load([0, 0]), None))


def test_shapes_and_blocks_of_descriptors_may_be_tuples(device: Device):
    out, x = device.empty(1, np.float32), device.array(np.ones((4, 8)), np.float32)
    block = (tl.constexpr(4), tl.constexpr(8))
    device.run(described_kernel, (1,), out, x, (4, 8), (8, 1), block)
    assert out.tolist() == [64.0]


@jit
def indexed_scalars_kernel(out, x):
    scalar = tl.load(x)
    tl.static_assert(len(scalar[:, None].shape) == 1 and len(scalar[None, :, None].shape) == 2)
    tl.static_assert(len(scalar[:].shape) == 0)
    tl.store(out + tl.arange(0, 4)[:, None], scalar[:, None] + tl.zeros((4, 1), tl.float32))


def test_a_slice_of_a_scalar_stands_for_nothing(device: Device):
    out, x = device.empty(4, np.float32), device.array([2.5], np.float32)
    device.run(indexed_scalars_kernel, (1,), out, x)
    assert out.tolist() == [2.5] * 4


@pytest.mark.parametrize("n", [2**64, -(2**63) - 1])
def test_integers_of_more_than_64_bits_overflow(device: Device, n: int):
    out = device.empty(1, np.int64)
    with pytest.raises(OverflowError, match="integer of more than 64 bits"):
        device.run(stored_kernel, (1,), out, n)
    device.run(stored_kernel, (1,), out, n - 1 if n > 0 else n + 1)
    assert out[0] == (-1 if n > 0 else -(2**63))


@jit
def stored_kernel(out, n):
    tl.store(out, n)


@jit
def wide_ones_kernel(out, one, pair):
    tl.static_assert((one * tl.program_id(0).to(tl.int32)).dtype == tl.int64)
    tl.static_assert(one.dtype == tl.int64 and pair[0].dtype == tl.int64)
    tl.store(out, one + pair[0])


def test_an_integer_that_is_1_is_as_wide_as_others(device: Device):
    out = device.empty(1, np.int64)
    device.run(wide_ones_kernel, (1,), out, 1, (1, 2), int64_offsets=True)
    assert out.tolist() == [2]
