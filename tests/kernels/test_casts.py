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
from tilewright import cdiv, jit

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
        if is_float(x.dtype):
            x = np.trunc(x.astype(np.float64))
        return x.astype(dtype)
    if x.dtype.kind in "iu" and dtype in FLOATS[2:]:
        return x.astype(dtype)
    return rounded(x.astype(np.float64), dtype)


def inputs(rng: np.random.Generator, source: Any, target: Any) -> Array:
    """Values that the cast defines: any, but for overflow and NaN from float to integer."""
    x = anything(rng, 333, source)
    if is_float(target):
        if source in INTEGERS and source.itemsize == 8 and target not in FLOATS[2:]:
            x = x >> source.type(12)  # exact in float64, from which the reference rounds
        top = float(finfo(target).max)
        wide = x.astype(np.float64)
        within = (np.abs(wide) <= top) | np.isnan(wide)
        if target not in FP8:
            within |= np.isinf(wide)
        return np.where(within, x, np.ones_like(x))
    if is_float(source) and target != BOOL:
        info = np.iinfo(target)
        wide = np.trunc(x.astype(np.float64))
        low, high = float(info.min), float(info.max)
        within = (wide >= low) & ((wide <= high) if info.bits < 64 else (wide < high))
        return np.where(within, x, np.ones_like(x))
    return x


@pytest.mark.parametrize(("source", "target"), list(product(ALL, ALL)), ids=str)
def test_cast(device: Device, rng: np.random.Generator, source: Any, target: Any):
    x = inputs(rng, source, target)
    out = device.empty(x.size, target)
    grid = (cdiv(x.size, BLOCK),)
    device.run(cast_kernel, grid, device.array(x), out, x.size, TYPE=LANGUAGE[target], BLOCK=BLOCK)
    assert_same(out, converted(x, target))


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
@pytest.mark.parametrize("target", FLOATS[:2], ids=str)
def test_truncating_casts(device: Device, rng: np.random.Generator, source: str, target: Any):
    x = inputs(rng, np.dtype(source), target)
    x = np.where(np.isinf(x), np.ones_like(x), x)
    out = device.empty(x.size, target)
    grid = (cdiv(x.size, BLOCK),)
    device.run(
        truncating_kernel, grid, device.array(x), out, x.size, TYPE=LANGUAGE[target], BLOCK=BLOCK
    )
    assert_same(out, rounded(x.astype(np.float64), target, np.trunc))


BITS = [
    (source, target)
    for source, target in product((*INTEGERS, *FLOATS, *FP8), repeat=2)
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
    for dtype in FP8:
        x = np.arange(256, dtype=np.uint8).view(dtype)
        wide, back = device.empty(256, np.float32), device.empty(256, dtype)
        device.run(cast_kernel, (4,), device.array(x), wide, 256, TYPE=tl.float32, BLOCK=BLOCK)
        device.run(cast_kernel, (4,), wide, back, 256, TYPE=LANGUAGE[dtype], BLOCK=BLOCK)
        assert_same(wide, x.astype(np.float32))
        top = np.array(finfo(dtype).max).astype(dtype)
        assert_same(back, np.where(np.isinf(x), np.copysign(top, x), x))


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
