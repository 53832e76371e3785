"""Elementary functions in every float type, against references of more digits."""

import math
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import FLOATS, assert_near, assert_same, finfo
from tests.kernels.devices import Array, Device
from tests.kernels.test_elementwise import apply
from tilewright import jit
from tilewright.language.extra import libdevice

ULPS = {"float16": 0.6, "bfloat16": 0.6, "float32": 2.0, "float64": 4.0}
"""Small floats are computed in fp32 and rounded once."""

ROUNDED = ("exp", "sigmoid")
"""On a GPU these round x log2(e): an error of up to 1.25 ulp for each unit of x, as in Triton."""

WIDE = np.longdouble
EDGES = (0.0, 1.0, 0.5, 2.0, 1e-30, 1e-42, 1e30, math.inf)

_erf = np.vectorize(math.erf, otypes=[np.float64])


@jit
def exp(x):
    return tl.exp(x)


@jit
def exact_exp(x):
    return libdevice.exp(x)


@jit
def exp2(x):
    return tl.exp2(x)


@jit
def log(x):
    return tl.log(x)


@jit
def log2(x):
    return tl.log2(x)


@jit
def sin(x):
    return tl.sin(x)


@jit
def cos(x):
    return tl.cos(x)


@jit
def tanh(x):
    return tl.tanh(x)


@jit
def erf(x):
    return tl.erf(x)


@jit
def sqrt(x):
    return tl.sqrt(x)


@jit
def rsqrt(x):
    return tl.rsqrt(x)


@jit
def floor(x):
    return tl.floor(x)


@jit
def ceil(x):
    return x.ceil()


@jit
def sigmoid(x):
    return tl.sigmoid(x)


FUNCTIONS: dict[str, tuple[Any, Any, float, float]] = {
    # kernel, reference, range of ordinary arguments
    "exp": (exp, np.exp, -90, 90),
    "libdevice.exp": (exact_exp, np.exp, -90, 90),
    "exp2": (exp2, np.exp2, -130, 130),
    "log": (log, np.log, 0, 100),
    "log2": (log2, np.log2, 0, 100),
    "sin": (sin, np.sin, -1000, 1000),
    "cos": (cos, np.cos, -1000, 1000),
    "tanh": (tanh, np.tanh, -10, 10),
    "erf": (erf, lambda x: _erf(x.astype(np.float64)), -5, 5),
    "sqrt": (sqrt, np.sqrt, 0, 100),
    "rsqrt": (rsqrt, lambda x: 1 / np.sqrt(x), 0, 100),
    "sigmoid": (sigmoid, lambda x: 1 / (1 + np.exp(-x)), -20, 20),
}


def arguments(rng: np.random.Generator, low: float, high: float, dtype: Any) -> Array:
    top = float(finfo(dtype).max)
    ordinary = rng.uniform(max(low, -top), min(high, top), 300)
    special = [
        x for edge in EDGES for x in ((edge, -edge) if edge <= top or edge == math.inf else ())
    ]
    small = rng.uniform(-1, 1, 31) * 10.0 ** rng.integers(-6, 0, 31)
    return np.concatenate([ordinary, small, special, [math.nan]]).astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(device: Device, rng: np.random.Generator, name: str, dtype: Any):
    function, reference, low, high = FUNCTIONS[name]
    x = arguments(rng, low, high, dtype)
    with np.errstate(all="ignore"):
        expected = reference(x.astype(WIDE)).astype(np.float64)
    found = apply(device, function, x)
    if device.is_approximate and dtype == np.float32 and name in ("sqrt", "rsqrt"):
        # Subnormal arguments are 0 to the roots of a GPU, as in Triton.
        with np.errstate(all="ignore"):
            flushed = np.where(np.abs(x) < np.finfo(dtype).tiny, np.copysign(0, x), x)
            expected = reference(flushed.astype(WIDE)).astype(np.float64)
    if device.is_approximate and dtype.itemsize < 8:
        ulps: Any = ULPS[str(dtype)]
        if dtype == np.float32:
            ulps = 4.0 + (1.25 * np.abs(np.where(np.isfinite(x), x, 0)) if name in ROUNDED else 0)
        assert_near(found, expected, ulps, float(np.finfo(np.float32).tiny))
        return
    extra = 2.0 if name == "libdevice.exp" and dtype == np.float32 else 0.0
    assert_near(found, expected, ULPS[str(dtype)] + extra)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["floor", "ceil"])
def test_rounding_to_integers(device: Device, rng: np.random.Generator, name: str, dtype: Any):
    x = arguments(rng, -50, 50, dtype)
    function = {"floor": floor, "ceil": ceil}[name]
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x.astype(np.float64)).astype(dtype)
    assert_same(apply(device, function, x), expected)


@jit
def sqrt_rn(x):
    return tl.sqrt_rn(x)


@jit
def div_rn(x, y):
    return tl.div_rn(x, y)


@jit
def fdiv(x, y):
    return tl.fdiv(x, y)


@jit
def umulhi(x, y):
    return tl.umulhi(x, y)


@pytest.mark.parametrize("dtype", FLOATS[2:], ids=str)
def test_correctly_rounded_forms(device: Device, rng: np.random.Generator, dtype: Any):
    x, y = np.abs(rng.normal(size=(2, 333))).astype(dtype)
    assert_same(apply(device, sqrt_rn, x), np.sqrt(x))
    assert_same(apply(device, div_rn, x, y), x / y)
    assert_near(apply(device, fdiv, x, y), x.astype(WIDE) / y.astype(WIDE), 2)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_high_half_of_products(device: Device, rng: np.random.Generator, dtype: str):
    info = np.iinfo(dtype)
    x, y = rng.integers(info.min, info.max, (2, 333), dtype=dtype, endpoint=True)
    bits = (1 << info.bits) - 1
    expected = ((x.astype(object) & bits) * (y.astype(object) & bits)) >> info.bits
    unsigned = expected.astype(f"u{np.dtype(dtype)}" if info.min else dtype)
    assert_same(apply(device, umulhi, x, y), unsigned.view(dtype))


@jit
def high_products_of_constants(x, out):
    negative = tl.load(x)
    tl.store(out, tl.umulhi(negative, 2))
    tl.store(out + 1, tl.umulhi(tl.full((), -1, tl.int32), tl.full((), 3, tl.int32)))
    tl.store(out + 2, tl.umulhi(tl.full((), -5, tl.int32), negative))
    tl.store(out + 3, tl.umulhi(tl.full((), -5, tl.int64), negative))


def test_high_products_count_bits_as_unsigned_ones_in_constants_too(device: Device):
    """-1 is 2**32 - 1, also where the compiler multiplies; widened to int64 it is 2**64 - 1."""
    out = device.empty(4, np.int64)
    device.run(high_products_of_constants, (1,), device.array(np.array([-1], np.int32)), out)
    assert out.tolist() == [1, 2, -6, -6]


@jit
def narrow_umulhi(x, out):
    i = tl.arange(0, 8)
    v = tl.load(x + i).to(tl.int32)
    tl.store(out + i, tl.umulhi(v, v))


def test_umulhi_of_numbers_that_were_narrow(device: Device):
    """LLVM 22 takes the upper half of products of 16-bit numbers for undefined, in vectors."""
    x, out = np.arange(8).astype(np.int16), device.empty(8, np.int16)
    device.run(narrow_umulhi, (1,), device.array(x), out)
    assert out.tolist() == [0] * 8


@jit
def log1p(x):
    return libdevice.log1p(x)


@jit
def expm1(x):
    return libdevice.expm1(x)


@jit
def tan(x):
    return libdevice.tan(x)


@jit
def atan(x):
    return libdevice.atan(x)


@jit
def asin(x):
    return libdevice.asin(x)


@jit
def acos(x):
    return libdevice.acos(x)


@jit
def sinh(x):
    return libdevice.sinh(x)


@jit
def cosh(x):
    return libdevice.cosh(x)


@jit
def rint(x):
    return libdevice.rint(x)


@jit
def trunc(x):
    return libdevice.trunc(x)


LIBRARY: dict[str, tuple[Any, Any, float, float]] = {
    "log1p": (log1p, np.log1p, -1, 10),
    "expm1": (expm1, np.expm1, -10, 10),
    "tan": (tan, np.tan, -10, 10),
    "atan": (atan, np.arctan, -10, 10),
    "asin": (asin, np.arcsin, -1, 1),
    "acos": (acos, np.arccos, -1, 1),
    "sinh": (sinh, np.sinh, -10, 10),
    "cosh": (cosh, np.cosh, -10, 10),
    "rint": (rint, np.rint, -10, 10),
    "trunc": (trunc, np.trunc, -10, 10),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_library_function(device: Device, rng: np.random.Generator, name: str):
    function, reference, low, high = LIBRARY[name]
    x = rng.uniform(low, high, 333).astype(np.float32)
    ulps = 2.5 if name == "cosh" else 2.0
    assert_near(apply(device, function, x), reference(x.astype(WIDE)).astype(np.float64), ulps)


@jit
def power(x, y):
    return libdevice.pow(x, y)


@jit
def angle(x, y):
    return libdevice.atan2(x, y)


@jit
def remainder(x, y):
    return libdevice.fmod(x, y)


@jit
def copysign(x, y):
    return libdevice.copysign(x, y)


def test_library_functions_of_two(device: Device, rng: np.random.Generator):
    x, y = rng.normal(size=(2, 333)).astype(np.float32)
    size, wide, other = np.abs(x), x.astype(np.float64), y.astype(np.float64)
    assert_near(apply(device, power, size, y), np.abs(wide) ** other, 2)
    assert_near(apply(device, angle, x, y), np.arctan2(wide, other), 2)
    assert_same(apply(device, remainder, x, y), np.fmod(x, y))
    assert_same(apply(device, copysign, x, y), np.copysign(x, y))


@jit
def classify(x):
    nan, infinite = libdevice.isnan(x), libdevice.isinf(x)
    return nan.to(tl.int32) + infinite.to(tl.int32) * 2 + libdevice.signbit(x).to(tl.int32) * 4


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_classification(device: Device, rng: np.random.Generator, dtype: Any):
    x = arguments(rng, -1, 1, dtype)
    x = x[~np.isnan(x)]
    x = np.concatenate([x, np.array([math.nan], dtype)])
    expected = np.isnan(x) * 1 + np.isinf(x) * 2 + np.signbit(x) * 4
    found = apply(device, classify, x, dtype=np.int32)
    np.testing.assert_array_equal(found, expected)
