"""Reductions and scans by functions that access memory, print or assert, on every device."""

# pyright: reportArgumentType=false

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Device
from tilewright import jit
from tilewright.support import errors


@jit
def checked_composition(a, b, c, d):
    """x * a + b, then x * c + d: the order matters."""
    tl.device_assert(a < 100, "a factor is too large")
    return a * c, b * c + d


@jit
def composition(a, b, c, d):
    return a * c, b * c + d


@jit
def checked_extremes(a, b, c, d):
    tl.device_assert(a <= b, "they are exchanged")
    return tl.minimum(a, c), tl.maximum(b, d)


@jit
def extremes(a, b, c, d):
    return tl.minimum(a, c), tl.maximum(b, d)


@jit
def folding_kernel(out, x, N: tl.constexpr, FUNCTION: tl.constexpr, AXIS: tl.constexpr):
    i = tl.arange(0, 3 if AXIS == 1 else N)[:, None]
    j = tl.arange(0, N if AXIS == 1 else 3)[None, :]
    value = tl.load(x + i * 16 + j)
    factors, offsets = tl.reduce((value, value + 1), AXIS, FUNCTION)
    tl.store(out + tl.arange(0, 3), factors * 1000 + offsets)


@jit
def scanning_kernel(
    out, x, N: tl.constexpr, FUNCTION: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr
):
    i = tl.arange(0, 3 if AXIS == 1 else N)[:, None]
    j = tl.arange(0, N if AXIS == 1 else 3)[None, :]
    value = tl.load(x + i * 16 + j)
    factors, offsets = tl.associative_scan((value, value + 1), AXIS, FUNCTION, reverse=REVERSE)
    tl.store(out + i * 16 + j, factors * 1000 + offsets)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("extent", [1, 2, 7, 8])
def test_results_are_those_of_a_function_without_effects(device: Device, extent: int, axis: int):
    x = device.array(np.arange(256) % 5 - 2, np.int32)
    found, expected = device.empty(3, np.int32), device.empty(3, np.int32)
    for out, function in ((found, checked_extremes), (expected, extremes)):
        device.run(folding_kernel, (1,), out, x, extent, function, axis, debug=True)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("extent", "axis"), [(1, 1), (8, 1), (7, 1), (8, 0), (6, 0)])
def test_scans_are_those_of_a_function_without_effects(
    device: Device, extent: int, axis: int, reverse: bool
):
    x = device.array(np.arange(256) % 5 - 2, np.int32)
    found, expected = device.empty(256, np.int32), device.empty(256, np.int32)
    for out, function in ((found, checked_composition), (expected, composition)):
        device.run(scanning_kernel, (1,), out, x, extent, function, axis, reverse, debug=True)
    assert found.tolist() == expected.tolist()


@jit
def each_pair_kernel(out, x, counter, N: tl.constexpr):
    def counted_sum(a, b):
        tl.atomic_add(counter + (a & 0), 1)
        return a + b

    tl.store(out, tl.reduce(tl.load(x + tl.arange(0, N)), 0, counted_sum))


@pytest.mark.parametrize("extent", [8, 11, 32])
def test_the_function_sees_each_pair_once(device: Device, extent: int):
    x, out = device.array(np.arange(32), np.int32), device.empty(1, np.int32)
    counter = device.array([0], np.int32)
    device.run(each_pair_kernel, (1,), out, x, counter, extent)
    assert [out[0], counter[0]] == [extent * (extent - 1) // 2, extent - 1]


@jit
def checked_sum(a, b):
    wide = a.to(tl.int64) + b.to(tl.int64)
    tl.device_assert((wide >= -(2**31)) & (wide < 2**31), "the sum does not fit")
    return a + b


def checked_kernel(out, x):
    tl.store(out, tl.reduce(tl.load(x + tl.arange(0, 8)), 0, checked_sum))


@pytest.mark.parametrize("interpret", [False, True])
def test_an_assertion_in_the_function_fails_where_it_should(interpret: bool):
    kernel = jit(interpret=interpret, debug=True)(checked_kernel)
    out, x = np.zeros(1, np.int32), np.full(8, 2**28 - 1, np.int32)
    kernel[(1,)](out, x)
    assert out[0] == 2**31 - 8
    x[5] = 2**29
    with pytest.raises(errors.DeviceAssertionFailure, match="does not fit"):
        kernel[(1,)](out, x)


@jit
def of_rank_4_kernel(out):
    x = tl.arange(0, 16).reshape((2, 2, 2, 2))
    tl.device_assert(x < 13, "too large")
    tl.store(out, tl.sum(x))


@pytest.mark.parametrize("interpret", [False, True])
def test_an_assertion_on_a_tile_of_rank_4(interpret: bool):
    kernel = jit(interpret=interpret, debug=True)(of_rank_4_kernel.fn)
    with pytest.raises(errors.DeviceAssertionFailure, match=r"too large.* \(1, 1, 0"):
        kernel[(1,)](np.zeros(1, np.int32))
