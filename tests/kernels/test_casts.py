"""Casts between all pairs of element types, bit casts, and rounding modes."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import (
    ALL,
    BOOL,
    FLOATS,
    FNUZ,
    FP8,
    INTEGERS,
    LANGUAGE,
    Array,
    anything,
    assert_same,
    edges,
    finfo,
    is_float,
)
from tests.kernels.devices import Device
from tilewright import cdiv, jit, reinterpret

BLOCK = 64


@jit
def cast_kernel(x, out, n, TYPE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n).to(TYPE), mask=i < n)


@jit
def bitcast_kernel(x, out, n, TYPE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n).to(TYPE, bitcast=True), mask=i < n)


@jit
def truncating_kernel(x, out, n, TYPE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n).to(TYPE, fp_downcast_rounding="rtz"), mask=i < n)


def rounded(x: Array, dtype: Any, rounding: Any = np.rint) -> Array:
    """Float64 values in the format of `dtype`, rounded once."""
    info = finfo(dtype)
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.abs(np.where(x == 0, 1, x))))
        step = 2.0 ** np.maximum(exponent - info.nmant, np.log2(float(info.smallest_subnormal)))
        return np.where(np.isfinite(x) & (x != 0), rounding(x / step) * step, x).astype(dtype)


def converted(x: Array, dtype: Any) -> Array:
    """What a cast must give: nearest even, integers towards zero, bool is `!= 0`."""
    if dtype == BOOL:
        return x != 0
    if dtype == x.dtype:
        return x
    if not is_float(dtype):
        return as_integer(x, dtype) if is_float(x.dtype) else x.astype(dtype)
    if x.dtype.kind in "iu" and dtype in FLOATS[2:]:
        return x.astype(dtype)
    return rounded(x.astype(np.float64), dtype)


def as_integer(x: Array, dtype: Any) -> Array:
    """Floats as integers, which saturate; NaN as PTX's `cvt` has it."""
    info, wide = np.iinfo(dtype), x.dtype.itemsize == 8 or dtype.itemsize == 8
    nan = (1 << (info.bits - 1)) * (-1 if info.min else 1) if wide else 0

    def one(number: float) -> int:
        if np.isnan(number):
            return nan
        if np.isinf(number):
            return info.max if number > 0 else info.min
        return min(max(int(number), int(info.min)), int(info.max))

    return np.array([one(float(number)) for number in x.astype(np.float64)], object).astype(dtype)


def inputs(rng: np.random.Generator, source: Any, target: Any) -> Array:
    """Any values, but for overflow between floats; near the ends of integers, too."""
    x = anything(rng, 333, source)
    if is_float(source) and not is_float(target) and target != BOOL:
        info = np.iinfo(target)
        ends = np.array([float(info.min), float(info.max), 300.0, 1e9, 3e9, -3e9, 1e15, 1e30])
        near = np.concatenate([ends, ends - 1, ends + 1, ends * (1 + 2.0**-22)])
        x[: near.size] = near.astype(source)
        steps = x[:8], np.nextafter(x[:8].astype(np.float32), np.float32(0)).astype(source)
        x[near.size : near.size + 16] = np.concatenate(steps)
        return x
    if is_float(target):
        if source in INTEGERS and source.itemsize == 8 and target not in FLOATS[2:]:
            x = x >> source.type(12)  # exact in float64, from which the reference rounds
        top = float(finfo(target).max)
        wide = x.astype(np.float64)
        within = (np.abs(wide) <= top) | np.isnan(wide)
        if target not in (*FP8, *FNUZ):
            within |= np.isinf(wide)
        return np.where(within, x, np.ones_like(x))
    return x


@pytest.mark.parametrize(("source", "target"), list(product(ALL, ALL)), ids=str)
def test_cast(device: Device, rng: np.random.Generator, source: Any, target: Any):
    x = inputs(rng, source, target)
    out = device.empty(x.size, target)
    grid = (cdiv(x.size, BLOCK),)
    device.run(cast_kernel, grid, device.array(x), out, x.size, TYPE=LANGUAGE[target], BLOCK=BLOCK)
    assert_same(out, converted(x, target))


@jit
def narrow_kernel(x, out, N: tl.constexpr, TYPE: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i).to(TYPE)
    tl.store(out + i, v.to(tl.int32))
    tl.store(out + N + i, (v < 0).to(tl.int32))
    tl.store(out + 2 * N + i, tl.maximum(v, 0).to(tl.int32))
    tl.store(out + 3 * N + i, (v + v).to(tl.int32))
    tl.store(out + 4 * N + i, v.to(tl.int32) // 3 + (v >> 1).to(tl.int32))


@pytest.mark.parametrize("source", FLOATS, ids=str)
@pytest.mark.parametrize("target", INTEGERS[:2] + INTEGERS[4:6], ids=str)
def test_what_is_computed_of_narrow_integers(
    device: Device, rng: np.random.Generator, source: Any, target: Any
):
    """A number that does not fit is a number of the type in all that uses it."""
    x = inputs(rng, source, target)[:256]
    out = device.empty(5 * 256, np.int32)
    device.run(narrow_kernel, (1,), device.array(x), out, N=256, TYPE=LANGUAGE[target])
    v = as_integer(x, target)
    third = np.fix(v.astype(np.int32) / 3).astype(np.int32)
    expected = v, v < 0, np.maximum(v, 0), v + v, third + (v >> target.type(1))
    assert_same(out, np.concatenate([part.astype(np.int32) for part in expected]))


@jit
def lookup_kernel(x, table, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(table + tl.load(x + i).to(tl.uint8)))


@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_bytes_are_places_among_256(device: Device, rng: np.random.Generator, source: Any):
    x, table = inputs(rng, source, np.dtype("uint8"))[:256], rng.integers(0, 99, 256)
    out = device.empty(256, np.int64)
    device.run(lookup_kernel, (1,), device.array(x), device.array(table), out, N=256)
    assert_same(out, table[as_integer(x, np.dtype("uint8"))])


@jit
def wide_nan_kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(tl.float64).to(tl.int32))


@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_a_nan_of_float64_is_another_integer(device: Device, rng: np.random.Generator, source: Any):
    """Though every number is the same in float64."""
    x, out = inputs(rng, source, np.dtype("int32"))[:256], device.empty(256, np.int32)
    device.run(wide_nan_kernel, (1,), device.array(x), out, N=256)
    assert_same(out, as_integer(x.astype(np.float64), np.dtype("int32")))


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", FLOATS[:2], ids=str)
def test_ties_and_their_neighbours(
    device: Device, rng: np.random.Generator, source: str, target: Any
):
    """Halfway between two numbers of the narrower type, and one step to either side."""
    below = rng.integers(0, 0x7A00, 333).astype(np.uint16).view(target).astype(source)
    above = (below.astype(target).view(np.uint16) + 1).astype(np.uint16).view(target)
    ties = (below.astype(np.float64) + above.astype(np.float64)) / 2
    x = ties.astype(source)
    x[1::3] = np.nextafter(x[1::3], np.inf)
    x[2::3] = np.nextafter(x[2::3], 0)
    x[rng.random(x.size) < 0.5] *= -1
    out = device.empty(x.size, target)
    grid = (cdiv(x.size, BLOCK),)
    device.run(cast_kernel, grid, device.array(x), out, x.size, TYPE=LANGUAGE[target], BLOCK=BLOCK)
    assert_same(out, rounded(x.astype(np.float64), target))


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", (*FLOATS[:2], *FP8, *FNUZ), ids=str)
def test_truncating_casts(device: Device, rng: np.random.Generator, source: str, target: Any):
    x = inputs(rng, np.dtype(source), target)
    x = np.where(np.isinf(x), np.ones_like(x), x)
    x[:2] = -1e-9, 1e-9  # to zero, and to the zero that the format has
    out = device.empty(x.size, target)
    grid = (cdiv(x.size, BLOCK),)
    device.run(
        truncating_kernel, grid, device.array(x), out, x.size, TYPE=LANGUAGE[target], BLOCK=BLOCK
    )
    assert_same(out, rounded(x.astype(np.float64), target, np.trunc))


BITS = [
    (source, target)
    for source, target in product((*INTEGERS, *FLOATS, *FP8, *FNUZ), repeat=2)
    if source.itemsize == target.itemsize and source != target
]


@pytest.mark.parametrize(("source", "target"), BITS, ids=str)
def test_bit_casts(device: Device, rng: np.random.Generator, source: Any, target: Any):
    x = rng.integers(0, 256, 333 * source.itemsize).astype(np.uint8).view(source)
    out = device.empty(x.size, target)
    grid = (cdiv(x.size, BLOCK),)
    device.run(
        bitcast_kernel, grid, device.array(x), out, x.size, TYPE=LANGUAGE[target], BLOCK=BLOCK
    )
    np.testing.assert_array_equal(out.view(np.uint8), x.view(np.uint8))


@jit
def constant_bits(out, n):
    i = tl.arange(0, 16)
    chosen = tl.broadcast_to(n.to(tl.int1), (16,)).to(tl.float16)
    tl.store(out + i, chosen.to(tl.bfloat16, bitcast=True).to(tl.float32))


@pytest.mark.parametrize("n", [1, 5, 0])
def test_bits_of_a_half_that_is_known_as_those_of_a_bfloat(device: Device, n: int):
    """LLVM 22 aborts the process when it folds this itself."""
    out = device.empty(16, np.float32)
    device.run(constant_bits, (1,), out, n)
    np.testing.assert_array_equal(out, np.float32(0.0078125 if n else 0.0))


@jit
def store_converts_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize(
    ("source", "target"),
    [("float32", "int8"), ("int32", "float16"), ("float64", "bfloat16"), ("uint8", "bool")],
)
def test_stores_cast_to_the_type_in_memory(
    device: Device, rng: np.random.Generator, source: str, target: str
):
    from_, to = next(d for d in ALL if d == source), next(d for d in ALL if str(d) == target)
    x = inputs(rng, from_, to)
    out = device.empty(x.size, to)
    grid = (cdiv(x.size, BLOCK),)
    device.run(store_converts_kernel, grid, device.array(x), out, x.size, BLOCK=BLOCK)
    assert_same(out, converted(x, to))


def test_every_fp8_number_survives_a_round_trip(device: Device):
    """But infinity: casts to fp8 saturate."""
    for dtype in (*FP8, *FNUZ):
        x = np.arange(256, dtype=np.uint8).view(dtype)
        wide, back = device.empty(256, np.float32), device.empty(256, dtype)
        device.run(cast_kernel, (4,), device.array(x), wide, 256, TYPE=tl.float32, BLOCK=BLOCK)
        device.run(cast_kernel, (4,), wide, back, 256, TYPE=LANGUAGE[dtype], BLOCK=BLOCK)
        assert_same(wide, x.astype(np.float32))
        top = np.array(finfo(dtype).max).astype(dtype)
        assert_same(back, np.where(np.isinf(x), np.copysign(top, x), x))


E4B15 = (np.arange(128) << 7).astype(np.uint16).view(np.float16).astype(np.float64)
"""The numbers of the positive codes of fp8e4b15: those of fp16 with the same fields."""


def codes_of_e4b15(x: Array) -> Array:
    """Nearest codes, ties away from zero; too large numbers and NaN are 1.75, as in Triton."""
    size = np.where(np.isnan(x), 1.75, np.minimum(np.abs(x), 1.75))
    distance = np.abs(size[:, None] - E4B15[None, :127])
    nearest = 126 - np.argmin(distance[:, ::-1], axis=1)
    return (nearest + 128 * np.signbit(x)).astype(np.uint8)


@pytest.mark.parametrize("source", ["float16", "float32", "float64", "int32"])
def test_casts_to_the_fp8_that_only_triton_has(
    device: Device, rng: np.random.Generator, source: str
):
    middles = (E4B15[1:127] + E4B15[:126]) / 2
    x = np.concatenate([middles, -middles, edges(np.float32), rng.normal(size=80)])
    x[3::5] *= 1 + 2.0**-9
    with np.errstate(all="ignore"):
        x = np.nan_to_num(x).astype(source) if source == "int32" else x.astype(source)
    out = device.array(np.zeros(x.size, np.uint8))
    seen = reinterpret(out, tl.float8e4b15)
    grid = (cdiv(x.size, BLOCK),)
    device.run(cast_kernel, grid, device.array(x), seen, x.size, TYPE=tl.float8e4b15, BLOCK=BLOCK)
    np.testing.assert_array_equal(out, codes_of_e4b15(x.astype(np.float64)))


@pytest.mark.parametrize("target", [*FLOATS, np.dtype("int8"), BOOL, *FP8, *FNUZ], ids=str)
def test_casts_from_the_fp8_that_only_triton_has(device: Device, target: Any):
    codes = np.arange(256, dtype=np.uint8)
    x, out = reinterpret(device.array(codes), tl.float8e4b15), device.empty(256, target)
    device.run(cast_kernel, (4,), x, out, 256, TYPE=LANGUAGE[target], BLOCK=BLOCK)
    numbers = np.concatenate([E4B15, -E4B15])
    assert_same(out, converted(numbers, target))


def test_truncation_to_the_fp8_that_only_triton_has(device: Device, rng: np.random.Generator):
    x = rng.normal(size=100).astype(np.float32)
    out = device.array(np.zeros(100, np.uint8))
    seen = reinterpret(out, tl.float8e4b15)
    device.run(
        truncating_kernel, (2,), device.array(x), seen, 100, TYPE=tl.float8e4b15, BLOCK=BLOCK
    )
    below = np.searchsorted(E4B15[:127], np.abs(x), side="right") - 1
    np.testing.assert_array_equal(out, below + 128 * np.signbit(x))


@jit
def fp8_arithmetic_kernel(codes, out, TYPE: tl.constexpr):
    i = tl.arange(0, 256)
    x = tl.load(codes + i).to(TYPE, bitcast=True)
    tl.store(out + i, (x + x).to(tl.float32))
    tl.store(out + 256 + i, (-x).to(tl.float32))
    tl.store(out + 512 + i, tl.abs(x).to(tl.float32))
    constant = tl.full((256,), 1.5, tl.float32).to(TYPE)
    tl.store(out + 768 + i, tl.where(i < 16, x, constant).to(tl.float32))


@pytest.mark.parametrize("dtype", [*FP8, *FNUZ, "e4b15"], ids=str)
def test_every_fp8_kind_computes(device: Device, dtype: Any):
    codes = np.arange(256, dtype=np.uint8)
    out = device.empty(1024, np.float32)
    if dtype == "e4b15":
        numbers, type_, top = np.concatenate([E4B15, -E4B15]), tl.float8e4b15, 1.75
    else:
        numbers, type_ = codes.view(dtype).astype(np.float64), LANGUAGE[dtype]
        top = float(finfo(dtype).max)
    device.run(fp8_arithmetic_kernel, (1,), device.array(codes), out, TYPE=type_)
    twice, negated, magnitude, chosen = out.reshape(4, 256)
    # all are numbers of the format, or too large
    np.testing.assert_array_equal(twice, np.clip(2 * numbers, -top, top))
    np.testing.assert_array_equal(negated, np.clip(-numbers, -top, top))
    # which takes the sign off alone, from infinity, too
    np.testing.assert_array_equal(magnitude, np.abs(numbers))
    np.testing.assert_array_equal(chosen, np.where(codes < 16, numbers, 1.5))


@jit
def fp8_products_kernel(a, b, out, A: tl.constexpr, B: tl.constexpr):
    row, column = tl.arange(0, 32)[:, None], tl.arange(0, 32)[None, :]
    x = tl.load(a + row * 32 + column).to(A)
    y = tl.load(b + row * 32 + column).to(B)
    tl.store(out + row * 32 + column, tl.dot(x, y))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (tl.float8e4b8, tl.float8e4b8),
        (tl.float8e5b16, tl.float8e4nv),
        (tl.float8e4b15, tl.float8e5),
    ],
    ids=str,
)
def test_products_of_every_fp8_kind(
    device: Device, rng: np.random.Generator, left: Any, right: Any
):
    a, b = (rng.integers(-3, 4, (32, 32)).astype(np.float32) / 2 for _ in range(2))
    out = device.empty((32, 32), np.float32)
    device.run(fp8_products_kernel, (1,), device.array(a), device.array(b), out, A=left, B=right)
    np.testing.assert_array_equal(out, a @ b)


@pytest.mark.parametrize("source", ["int8", "uint8"])
@pytest.mark.parametrize("target", FLOATS[:3], ids=str)
def test_every_byte_becomes_a_float(device: Device, source: str, target: Any):
    """Several elements of a thread at once, of tiles that are large enough."""
    x = np.tile(np.arange(256, dtype=np.uint8).view(source), 4)
    out = device.empty(1024, target)
    device.run(cast_kernel, (1,), device.array(x), out, 1024, TYPE=LANGUAGE[target], BLOCK=1024)
    assert_same(out, x.astype(target))


def test_the_reference_rounds_as_numpy_does():
    x = np.concatenate([edges(np.float32), np.linspace(-9, 9, 97, dtype=np.float32)])
    x = x[~(np.abs(x) > 65504) | np.isinf(x)]
    assert_same(rounded(x.astype(np.float64), np.float16), x.astype(np.float16))


@jit
def size_kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.abs(tl.load(x + i)))


@pytest.mark.parametrize("name", ["float8e4b15", "float8e4nv", "float8e5"])
def test_absolute_values_of_bytes(device: Device, name: str):
    """Only the sign goes, also of what stands for no number or for infinity."""
    codes, out = np.arange(256).astype(np.uint8), device.empty(256, np.uint8)
    dtype = getattr(tl, name)
    device.run(
        size_kernel, (1,), reinterpret(device.array(codes), dtype), reinterpret(out, dtype), N=256
    )
    np.testing.assert_array_equal(out, codes & 127)
