"""What is left of the language: hints, helpers, queries of types, globals, named tuples."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.kernels.data import assert_near, assert_same
from tests.kernels.devices import Device
from tilewright import jit

SCALE = tl.constexpr(3)
PLAIN_GLOBAL = 5


@jit
def hints_kernel(x, out, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    start = tl.multiple_of(start, BLOCK)
    i = start + tl.max_contiguous(tl.arange(0, BLOCK), BLOCK)
    tl.assume(n > 0)
    row = tl.max_constancy(i // BLOCK, [BLOCK])
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, v * SCALE + PLAIN_GLOBAL + row, mask=i < n)


def test_hints_change_nothing(device: Device, rng: np.random.Generator):
    x, out = rng.integers(0, 9, 100).astype(np.float32), device.empty(100, np.float32)
    device.run(hints_kernel, (2,), device.array(x), out, 100, BLOCK=64)
    assert_same(out, (x * 3 + 5 + np.arange(100) // 64).astype(np.float32))


@jit
def helpers_kernel(out, n, m):
    tl.store(out, tl.cdiv(n, m))
    tl.store(out + 1, tilewright.cdiv(n, 4))
    i, j = tl.swizzle2d(1, 2, 4, 4, 2)
    tl.store(out + 2, i * 10 + j)
    tl.store(out + 3, tl.add(n, m) + tl.sub(n, m) * tl.mul(n, m))
    tl.store(out + 4, tl.full((), 7, tl.int32))
    tl.store(out + 5, tilewright.next_power_of_2(100))
    tl.store(out + 6, tl.to_tensor(9) + tl.cast(2.75, tl.int32))


def test_helpers(device: Device):
    out = device.empty(7, np.int32)
    device.run(helpers_kernel, (1,), out, 17, 5)
    assert out.tolist() == [4, 5, 3, 22 + 12 * 85, 7, 128, 11]


@jit
def types_kernel(x, out):
    element = x.dtype.element_ty
    v = tl.load(x)
    tl.static_assert(v.dtype == element)
    if element.is_floating():
        tl.store(out, element.primitive_bitwidth)
    elif element.is_int_signed():
        tl.store(out, -element.primitive_bitwidth)
    else:
        tl.store(out, 1000 + element.primitive_bitwidth)
    tile = tl.zeros((4, 8), element)
    tl.store(out + 1, tile.shape[0] * 10 + tile.shape[1])
    tl.store(out + 2, tile.numel)


@pytest.mark.parametrize(
    ("dtype", "code"),
    [("float32", 32), ("float16", 16), ("int64", -64), ("int8", -8), ("uint16", 1016)],
)
def test_queries_of_types(device: Device, dtype: str, code: int):
    out = device.empty(3, np.int32)
    device.run(types_kernel, (1,), device.array([1, 2], dtype), out)
    assert out.tolist() == [code, 48, 32]


@jit
def logic_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    inside = tl.logical_and(v > 2, v < 7)
    either = tl.logical_or(v == 0, v == 9).logical_or(inside)
    tl.store(out + i, either & ~(v == 4))
    chained = 0 < n < 100
    tl.store(out + BLOCK, chained and not n == 7)


def test_logic(device: Device, rng: np.random.Generator):
    x, out = rng.integers(0, 10, 64).astype(np.int32), device.empty(65, bool)
    device.run(logic_kernel, (1,), device.array(x), out, 50, BLOCK=64)
    expected = (((x > 2) & (x < 7)) | (x == 0) | (x == 9)) & (x != 4)
    assert_same(out, np.append(expected, True))


@jit
def softmax_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    place = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + place)
    tl.store(out + place, tl.softmax(v, 1))
    tl.store(out + M * N + place, tl.sigmoid(v) * v.sigmoid())


def test_softmax_of_the_language(device: Device, rng: np.random.Generator):
    x = rng.normal(size=(4, 16)).astype(np.float32)
    out = device.empty((2, 4, 16), np.float32)
    device.run(softmax_kernel, (1,), device.array(x), out, M=4, N=16)
    e = np.exp(x.astype(np.float64))
    assert_near(out[0], e / e.sum(1, keepdims=True), 8)
    assert_near(out[1], (e / (1 + e)) ** 2, 8)


class Matrix(NamedTuple):
    """A matrix as kernels take it."""

    data: Any
    stride: Any


@jit
def named_tuple_kernel(source, target, n, BLOCK: tl.constexpr):
    i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    inside = (i < n) & (j < n)
    v = tl.load(source.data + i * source.stride + j, mask=inside)
    tl.store(target.data + j * target.stride + i, v, mask=inside)


def test_named_tuples(device: Device, rng: np.random.Generator):
    x, out = rng.normal(size=(10, 10)), device.empty((10, 10), np.float64)
    device.run(named_tuple_kernel, (1,), Matrix(device.array(x), 10), Matrix(out, 10), 10, BLOCK=16)
    assert_same(out, x.T)


def kernel_over(amount: Any) -> Any:
    @jit
    def closure_kernel(out):
        tl.store(out, amount + 1)

    return closure_kernel


def test_closures(device: Device):
    for amount in (1, 41):
        out = device.empty(1, np.int32)
        device.run(kernel_over(tl.constexpr(amount)), (1,), out)
        assert out[0] == amount + 1


@jit
def rest_kernel(out, *values):
    for k in tl.static_range(len(values)):
        tl.store(out + k, values[k])


def test_any_number_of_arguments(device: Device):
    out = device.empty(3, np.int32)
    device.run(rest_kernel, (1,), out, 7, 8, 9)
    assert out.tolist() == [7, 8, 9]
