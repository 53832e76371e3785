"""pow by the type of its exponent: products for whole ones that are known, C's rules for all."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import assert_near, assert_same
from tests.kernels.devices import Array, Device
from tests.kernels.test_elementwise import apply
from tests.unit.backends.nvidia.compiled import compiled, count
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import jit
from tilewright.language.extra import libdevice

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, 1e-42, 3e38, np.inf, -np.inf, np.nan]
WIDE = np.longdouble


def bases(rng: np.random.Generator) -> Array:
    sized = rng.normal(size=200) * 10.0 ** rng.uniform(-3, 3, 200)
    return np.concatenate([sized, EDGES]).astype(np.float32)


@jit
def square(x):
    return libdevice.pow(x, 2)


@jit
def inverse(x):
    return libdevice.pow(x, -1)


@jit
def seventh(x):
    return libdevice.pow(x, 7.0)


@jit
def none(x):
    return libdevice.pow(x, 0)


@jit
def root(x):
    return libdevice.pow(x, 0.5)


@jit
def hundredth(x):
    return libdevice.pow(x, 100)


KNOWN = {square: 2, inverse: -1, seventh: 7, none: 0, root: 0.5, hundredth: 100}


@pytest.mark.parametrize("dtype", [np.float16, np.float32], ids=lambda d: d.__name__)
@pytest.mark.parametrize("function", KNOWN)
def test_known_exponents(device: Device, rng: np.random.Generator, function: Any, dtype: Any):
    x = bases(rng)
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
        # Of an array of exponents: NumPy takes a root for a scalar of 1/2, of -inf, too.
        expected = np.power(x.astype(np.float64), np.full(x.size, float(KNOWN[function])))
    least = float(np.finfo(np.float32).tiny) if device.is_approximate else 0.0
    assert_near(apply(device, function, x), expected, 4.0 if dtype is np.float32 else 0.6, least)


@jit
def power(x, n):
    return libdevice.pow(x, n)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int32, np.uint32, np.int64], ids=lambda d: d.__name__
)
def test_exponents_of_integers(device: Device, rng: np.random.Generator, dtype: str):
    x = bases(rng)[:-1]
    n = rng.integers(0 if dtype == "uint32" else -9, 10, x.size).astype(dtype)
    with np.errstate(all="ignore"):
        expected = x.astype(WIDE) ** n.astype(WIDE)
    assert_near(apply(device, power, x, n), expected, 4.0)


def test_exponents_with_more_bits_than_a_float(device: Device):
    x = np.array([1 + 2**-20, 1 - 2**-21, -1.0, -1.0, -1 - 2**-22, 2.0, 0.5, -0.5], np.float32)
    n = np.array([2**24 + 1, 2**25 + 3, 2**30 + 1, -(2**31), 2**24 + 1, 2**31 - 1, -5, 2**31 - 1])
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(WIDE), n)
    found = apply(device, power, x, n.astype(np.int32))
    assert_near(found, expected, 4.0)
    huge = np.array([2**40, 2**40 + 1, -(2**40), 2**62 + 1], np.int64)
    found = apply(device, power, np.full(4, -1.0, np.float32), huge)
    assert_same(found, np.array([1, -1, 1, -1], np.float32))


def test_small_integer_exponents_are_products(device: Device):
    """The powers of one number that products of three factors round exactly, and their inverses."""
    n = np.arange(-7, 8, dtype=np.int32)
    found = apply(device, power, np.full(15, 3.0, np.float32), n)
    assert found[7:].tolist() == [3.0**i for i in range(8)]
    assert_near(found[:7], 3.0 ** n[:7].astype(WIDE), 1.0)
    specials = np.array([np.nan, np.inf, -np.inf, -0.0, -0.0, 0.0], np.float32)
    powers = apply(device, power, specials, np.array([0, -3, 3, 3, -3, -2], np.int32))
    assert_same(powers, np.array([1, 0, -np.inf, -0.0, -np.inf, np.inf], np.float32))


@jit
def two_to_the(x):
    return libdevice.pow(2.0, x)


def test_a_literal_to_a_power(device: Device, rng: np.random.Generator):
    x = rng.uniform(-40, 40, 100).astype(np.float32)
    assert_near(apply(device, two_to_the, x), 2.0 ** x.astype(WIDE), 4.0)


@jit
def store_power(x, out, N: tl.constexpr):
    i = tl.arange(0, 128)
    tl.store(out + i, libdevice.pow(tl.load(x + i), N))


@needs_ptxas
@pytest.mark.parametrize(("n", "products"), [(2, 1), (3, 2), (2.0, 1), (8, 3)])
def test_whole_powers_are_products(n: float, products: int):
    kernel = compiled(store_power, "*fp32/16 *fp32/16", N=n)
    assert count(kernel, "mul.f32") == products
    assert count(kernel, "ex2") == count(kernel, "fma") == 0
