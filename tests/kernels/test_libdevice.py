"""The functions of libdevice, within the bounds that they declare (docs/libdevice.md)."""

from fractions import Fraction
from itertools import product
from typing import Any

import mpmath  # pyright: ignore[reportMissingTypeStubs]
import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import Array, assert_near, assert_same
from tests.kernels.devices import Device
from tests.kernels.libdevice_cases import CASES, arguments, exact, worst_error
from tilewright import jit
from tilewright.language.extra import libdevice


@jit
def unary_kernel(x, out, FUNCTION: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, FUNCTION(tl.load(x + i)))


@jit
def binary_kernel(x, y, out, FUNCTION: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, FUNCTION(tl.load(x + i), tl.load(y + i)))


@jit
def ternary_kernel(x, y, z, out, FUNCTION: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, FUNCTION(tl.load(x + i), tl.load(y + i), tl.load(z + i)))


@jit
def quaternary_kernel(x, y, z, w, out, FUNCTION: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    a, b, c, d = tl.load(x + i), tl.load(y + i), tl.load(z + i), tl.load(w + i)
    tl.store(out + i, FUNCTION(a, b, c, d))


KERNELS = (unary_kernel, binary_kernel, ternary_kernel, quaternary_kernel)


def computed(device: Device, name: str, columns: list[Array], dtype: Any = None) -> Array:
    """A function of libdevice of some columns, whose length is a power of two."""
    out = device.empty(len(columns[0]), dtype or columns[0].dtype)
    arrays = [device.array(column) for column in columns]
    kernel = KERNELS[len(columns) - 1]
    function = getattr(libdevice, name)
    device.run(kernel, (1,), *arrays, out, FUNCTION=function, SIZE=len(columns[0]))
    return out


def declared_bounds() -> dict[str, tuple[float, float]]:
    """The bounds of fp32 and fp64, by function."""
    library = tl.library_functions.LIBRARY
    functions = {name: library.get(getattr(libdevice, name)) for name in libdevice.__all__}
    return {name: f.ulp for name, f in functions.items() if f is not None and f.ulp is not None}


BOUNDS = declared_bounds()


@pytest.mark.parametrize(("name", "dtype"), [*product(BOUNDS, (np.float32, np.float64))])
def test_declared_bounds(device: Device, rng: np.random.Generator, name: str, dtype: Any):
    columns = arguments(CASES[name], rng, device.pick(16, 128), dtype)
    found = computed(device, name, columns)
    bound = BOUNDS[name][dtype is np.float64]
    assert worst_error(name, found, exact(name, columns)) <= bound


@jit
def dense_kernel(x, single, double, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i)
    tl.store(single + i, FUNCTION(value))
    tl.store(double + i, FUNCTION(value.to(tl.float64)))


SPECIAL_POINTS = (0.0, 1.0, 0.5, 2.0, 3.0, 0.46875, 0.625, 0.75, 5.0, 6.0, 10.0, 88.7, np.pi / 2)
BY_FP64 = ("j0", "j1", "y0", "y1", "cyl_bessel_i0", "cyl_bessel_i1", "tgamma", "remainder")
"""Computed in fp64: the same twice."""
NEAR_ZEROS = {"lgamma": (-50.0, -2.0)}
"""Where a function has zeros that are no floats, and its bound does not hold."""


def dense_arguments(count: int) -> Array:
    """Of all bits, of a usual size, near special points of both signs, and the special numbers."""
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 2**32, count // 2, np.uint64).astype(np.uint32).view(np.float32)
    usual = rng.uniform(-12, 12, count // 4).astype(np.float32)
    signs = rng.choice([-1.0, 1.0], count // 4)
    near = rng.choice(SPECIAL_POINTS, count // 4) + signs * 2.0 ** rng.uniform(-26, -2, count // 4)
    x = np.concatenate([bits, usual, (near * rng.choice([-1, 1], count // 4)).astype(np.float32)])
    special = [0, 1e-45, 1e-40, np.finfo(np.float32).tiny, 1, 2, 3.4e38, np.inf, np.nan]
    x[: 2 * len(special)] = [*special, *(-v for v in special)]
    return x


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if len(c.ranges) == 1])
def test_dense_bounds(device: Device, name: str):
    """fp32 beside fp64, whose errors are 2^-20 ulp of fp32."""
    if device.is_slow:
        pytest.skip("dense arguments take too long")
    if name in BY_FP64:
        pytest.skip("computed in fp64")
    x = dense_arguments(2**15)
    single, double = device.empty(x.size, np.float32), device.empty(x.size, np.float64)
    with np.errstate(all="ignore"):
        device.run(
            dense_kernel, (x.size // 1024,), device.array(x), single, double,
            FUNCTION=getattr(libdevice, name), BLOCK=1024,
        )  # fmt: skip
        low, high = NEAR_ZEROS.get(name, (np.inf, np.inf))
        chosen = ~((x > low) & (x < high))
        found, exact = np.asarray(single)[chosen], np.asarray(double)[chosen]
        least = float(np.finfo(np.float32).tiny) if device.is_approximate else 0.0
    assert_near(found, exact, BOUNDS[name][0], least)
    zeros = (exact == 0) & (found == 0)
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(exact[zeros]))


def test_every_declared_bound_has_a_case():
    assert BOUNDS.keys() == CASES.keys()


INFINITY, NAN = float("inf"), float("nan")
SPECIAL: dict[str, list[tuple[float, ...]]] = {
    # arguments and, last, the value
    "exp10": [(400, INFINITY), (-INFINITY, 0), (2, 100), (NAN, NAN)],
    "expm1": [
        (-0.0, -0.0),
        (0.0, 0.0),
        (INFINITY, INFINITY),
        (89, INFINITY),
        (-INFINITY, -1),
        (NAN, NAN),
    ],
    "log1p": [
        (-0.0, -0.0),
        (0.0, 0.0),
        (INFINITY, INFINITY),
        (-1, -INFINITY),
        (-1.5, NAN),
        (NAN, NAN),
    ],
    "asinh": [(-0.0, -0.0), (INFINITY, INFINITY)],
    "acosh": [(1, 0), (0.5, NAN), (INFINITY, INFINITY)],
    "atanh": [(1, INFINITY), (-1, -INFINITY), (2, NAN)],
    "sinpi": [(5, 0), (0.5, 1), (INFINITY, NAN)],
    "cospi": [(5, -1), (0.5, 0), (NAN, NAN)],
    "cbrt": [(-0.0, -0.0), (-27, -3), (INFINITY, INFINITY), (NAN, NAN)],
    "hypot": [(INFINITY, NAN, INFINITY), (0, 0, 0), (3, 4, 5), (1, NAN, NAN)],
    "rhypot": [(INFINITY, 1, 0), (0, 0, INFINITY)],
    "remainder": [(5, INFINITY, 5), (1, 0, NAN), (5, 2, 1), (7, 2, -1), (-5, 3, 1)],
    "erfc": [(INFINITY, 0), (-INFINITY, 2), (0, 1), (NAN, NAN)],
    "erfcx": [(INFINITY, 0), (-INFINITY, INFINITY), (0, 1), (NAN, NAN)],
    "erfinv": [(1, INFINITY), (-1, -INFINITY), (0, 0), (1.5, NAN), (NAN, NAN)],
    "erfcinv": [(0, INFINITY), (2, -INFINITY), (1, 0), (2.5, NAN), (NAN, NAN)],
    "normcdf": [(INFINITY, 1), (-INFINITY, 0), (0, 0.5), (NAN, NAN)],
    "normcdfinv": [(0, -INFINITY), (1, INFINITY), (-1, NAN)],
    "lgamma": [(1, 0), (2, 0), (0, INFINITY), (-3, INFINITY), (-INFINITY, INFINITY), (NAN, NAN)],
    "tgamma": [(5, 24), (0.0, INFINITY), (-0.0, -INFINITY), (-2, NAN), (INFINITY, INFINITY)],
    "j0": [(0, 1), (INFINITY, 0), (NAN, NAN)],
    "j1": [(0, 0), (INFINITY, 0), (NAN, NAN)],
    "y0": [(0, -INFINITY), (-1, NAN), (INFINITY, 0)],
    "y1": [(0, -INFINITY), (-1, NAN), (INFINITY, 0)],
    "cyl_bessel_i0": [(0, 1), (INFINITY, INFINITY), (NAN, NAN)],
    "cyl_bessel_i1": [(0, 0), (-INFINITY, -INFINITY), (NAN, NAN)],
    "logb": [(8, 3), (0.75, -1), (0, -INFINITY), (-INFINITY, INFINITY), (1e-40, -133)],
    "fdim": [(3, 1, 2), (1, 3, 0), (INFINITY, INFINITY, 0), (NAN, 1, NAN)],
    "saturatef": [(-1, 0), (0.25, 0.25), (7, 1), (NAN, 0)],
    "nextafter": [(0, 1, 1e-45), (1, 2, 1 + 2**-23), (1, 0, 1 - 2**-24), (0, -1, -1e-45)],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_arguments(device: Device, name: str):
    rows = SPECIAL[name]
    count = 1 << (len(rows) - 1).bit_length()
    table = np.array([rows[i % len(rows)] for i in range(count)], np.float32)
    found = computed(device, name, list(table[:, :-1].T.copy()))
    assert_same(
        found, table[:, -1], same_zeros=name in ("cbrt", "asinh", "tgamma", "expm1", "log1p")
    )


MODES = {"rz": -1, "rd": 0, "ru": 1}


def directed(exact_value: Fraction, mode: str, dtype: Any) -> float:
    """A number rounded to a float in a direction; those beyond the type are not asked for."""
    near = dtype(float(exact_value) if dtype is np.float64 else np.float32(float(exact_value)))
    up = mode == "ru" or (mode == "rz" and exact_value < 0)
    # From a float nearby to the neighbour on the right side.
    while Fraction(float(near)) < exact_value:
        near = np.nextafter(near, dtype(np.inf))
    while Fraction(float(near)) > exact_value:
        near = np.nextafter(near, dtype(-np.inf))
    if up and Fraction(float(near)) < exact_value:
        near = np.nextafter(near, dtype(np.inf))
    return float(near)


EXACT = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y, "fma": lambda x, y, z: x * y + z, "rcp": lambda x: 1 / x,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "mode", "dtype"), [*product(EXACT, MODES, (np.float32, np.float64))]
)
def test_directed_rounding(
    device: Device, rng: np.random.Generator, name: str, mode: str, dtype: Any
):
    arity = EXACT[name].__code__.co_argcount
    scale = 10.0 ** rng.uniform(-9, 9, (arity, 32))
    columns = list((rng.normal(size=(arity, 32)) * scale).astype(dtype))
    found = computed(device, f"{name}_{mode}", columns)
    rows = zip(*columns, strict=True)
    expected = [
        directed(EXACT[name](*(Fraction(float(x)) for x in row)), mode, dtype) for row in rows
    ]
    np.testing.assert_array_equal(found, np.array(expected, dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mode", MODES)
def test_directed_roots(device: Device, rng: np.random.Generator, mode: str, dtype: Any):
    x = (rng.random(32) * 10.0 ** rng.uniform(-9, 9, 32)).astype(dtype)
    found = computed(device, f"sqrt_{mode}", [x])
    for root, value in zip(found, x, strict=True):
        square, right = Fraction(float(root)) ** 2, Fraction(float(value))
        beyond = Fraction(float(np.nextafter(root, dtype(np.inf if mode != "ru" else 0)))) ** 2
        assert (beyond < right <= square) if mode == "ru" else (square <= right < beyond)


INTEGERS = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}
ROUNDED = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}


@pytest.mark.parametrize(
    ("source", "target", "mode"), [*product(("float", "double"), INTEGERS, ROUNDED)]
)
def test_conversions_to_integers(device: Device, source: str, target: str, mode: str):
    real = {"float": np.float32, "double": np.float64}[source]
    info = np.iinfo(INTEGERS[target])
    x = np.array([0.5, 1.5, -0.5, -2.5, 1e4 + 0.75, 1e30, -1e30, np.nan], real)
    found = computed(device, f"{source}2{target}_{mode}", [x], INTEGERS[target])
    whole = ROUNDED[mode](x.astype(np.float64))
    nan = 0 if real is np.float32 and info.bits == 32 else info.min or 2 ** (info.bits - 1)
    expected = [nan if v != v else min(max(int(np.clip(v, -2e19, 2e19)), info.min), info.max)
                for v in whole]  # fmt: skip
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("name", "mode"),
    [("int2double", "rn"), ("uint2double", "rn"),
     *product(("int2float", "uint2float", "ll2float", "ull2float", "ll2double", "ull2double"),
              ("rn", *MODES))],
)  # fmt: skip
def test_conversions_of_integers(device: Device, rng: np.random.Generator, name: str, mode: str):
    kind, target = name.split("2")
    real = {"float": np.float32, "double": np.float64}[target]
    info = np.iinfo(INTEGERS[kind])
    x = rng.integers(info.min, info.max, 32, INTEGERS[kind], endpoint=True)
    x >>= rng.integers(0, 30, 32).astype(x.dtype)
    found = computed(device, f"{name}_{mode}", [x], real)
    expected = [real(int(v)) if mode == "rn" else directed(Fraction(int(v)), mode, real) for v in x]
    np.testing.assert_array_equal(found, np.array(expected, real))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_functions_of_bits(device: Device, rng: np.random.Generator, dtype: Any):
    info, bits = np.iinfo(dtype), np.iinfo(dtype).bits
    x = rng.integers(info.min, info.max, 32, dtype, endpoint=True)
    x[:4] = 0, 1, info.max, info.min
    y = rng.permutation(x)
    plain = [int(v) % 2**bits for v in x]
    count = {
        name: computed(device, name, [x], np.int32).tolist() for name in ("popc", "clz", "ffs")
    }
    assert count["popc"] == [v.bit_count() for v in plain]
    assert count["clz"] == [bits - v.bit_length() for v in plain]
    assert count["ffs"] == [(v & -v).bit_length() for v in plain]
    turned = [int(format(v, f"0{bits}b")[::-1], 2) for v in plain]
    assert [int(v) % 2**bits for v in computed(device, "brev", [x])] == turned
    pairs = [(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    assert computed(device, "mulhi", [x, y]).tolist() == [a * b >> bits for a, b in pairs]
    assert computed(device, "hadd", [x, y]).tolist() == [(a + b) >> 1 for a, b in pairs]
    assert computed(device, "rhadd", [x, y]).tolist() == [(a + b + 1) >> 1 for a, b in pairs]


def test_functions_of_32_bits(device: Device, rng: np.random.Generator):
    x, y, z = rng.integers(-(2**31), 2**31, (3, 32)).astype(np.int32)
    triples = [tuple(map(int, row)) for row in zip(x, y, z, strict=True)]

    def wrapped(value: int) -> int:
        return (value + 2**31) % 2**32 - 2**31

    def low(value: int) -> int:
        return (value + 2**23) % 2**24 - 2**23

    def permuted(a: int, b: int, s: int) -> int:
        pair = (a % 2**32 | (b % 2**32) << 32).to_bytes(8, "little")
        nibbles = [s >> 4 * i & 15 for i in range(4)]
        chosen = [pair[n & 7] if n < 8 else 255 * (pair[n & 7] >> 7) for n in nibbles]
        return int.from_bytes(bytes(chosen), "little", signed=True)

    expected = [wrapped(low(a) * low(b)) for a, b, _ in triples]
    assert computed(device, "mul24", [x, y]).tolist() == expected
    expected = [wrapped(abs(a - b) + c) for a, b, c in triples]
    assert computed(device, "sad", [x, y, z]).tolist() == expected
    assert computed(device, "byte_perm", [x, y, z]).tolist() == [permuted(*t) for t in triples]


def test_scaling_and_exponents(device: Device):
    x = np.array([1.5, -3.0, 1e-310, 5e-324, 1e300, 0.75, -0.0, np.inf])
    n = np.array([-1074, 2, 60, 1074, 40, -1074, 5, -5], np.int32)
    np.testing.assert_array_equal(computed(device, "ldexp", [x, n]), np.ldexp(x, n))
    exponents = computed(device, "ilogb", [x], np.int32)
    finite = [int(np.frexp(v)[1]) - 1 for v in x[:6]]
    assert exponents.tolist() == [*finite, -(2**31), 2**31 - 1]


def test_words_of_doubles(device: Device, rng: np.random.Generator):
    x = rng.normal(size=16)
    bits = x.view(np.int64)
    high = computed(device, "double2hiint", [x], np.int32)
    low = computed(device, "double2loint", [x], np.int32)
    np.testing.assert_array_equal(high, bits >> 32)
    np.testing.assert_array_equal(low, bits.astype(np.int32))
    np.testing.assert_array_equal(computed(device, "hiloint2double", [high, low], np.float64), x)
    as_integer = computed(device, "double_as_longlong", [x], np.int64)
    np.testing.assert_array_equal(as_integer, bits)
    whole = computed(device, "llrint", [x * 100], np.int64)
    np.testing.assert_array_equal(whole, np.rint(x * 100))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["jn", "yn"])
def test_bessel_functions_of_any_order(
    device: Device, rng: np.random.Generator, name: str, dtype: Any
):
    n = np.array([0, 1, 2, 3, 5, 9, -3, 12] * 2, np.int32)
    x = np.concatenate([rng.uniform(0.5, 4, 8), rng.uniform(4, 30, 8)]).astype(dtype)
    found = computed(device, name, [n, x], dtype)
    function = mpmath.besselj if name == "jn" else mpmath.bessely
    for value, order, at in zip(found, n, x, strict=True):
        right = float(function(int(order), float(at)))
        assert abs(value - right) <= (1e-10 if dtype is np.float64 else 1e-6) * max(1, abs(right))


def test_every_name_of_triton_is_there():
    assert len(libdevice.__all__) >= 199
    for name in libdevice.__all__:
        assert getattr(libdevice, name).__doc__


FP32 = tl.dtype("fp32")


@tl.extern
def sine(x, _semantic=None):
    symbols = {(FP32,): ("__nv_sinf", FP32), (tl.float64,): ("__nv_sin", tl.float64)}
    return tl.extern_elementwise("", "", [x], symbols, is_pure=True, _semantic=_semantic)


@tl.extern
def length(x, y, _semantic=None):
    symbols = {(FP32, FP32): ("__nv_hypotf", FP32)}
    return tl.extern_elementwise("libdevice", "", [x, y], symbols, True, _semantic=_semantic)


@jit
def by_symbol(x, y, out, n):
    i = tl.arange(0, 64)
    a, b = tl.load(x + i, i < n, 0.5), tl.load(y + i, i < n, 0.5)
    tl.store(out + i, sine(a), i < n)
    tl.store(out + n + i, length(a, b), i < n)


def test_functions_by_the_symbols_of_libdevice(device: Device, rng: np.random.Generator):
    x, y = (device.array(rng.normal(size=50).astype(np.float32)) for _ in range(2))
    out = device.empty(100, np.float32)
    device.run(by_symbol, (1,), x, y, out, 50)
    np.testing.assert_allclose(out[:50], np.sin(x.astype(np.float64)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(out[50:], np.hypot(x.astype(np.float64), y), rtol=1e-6)
