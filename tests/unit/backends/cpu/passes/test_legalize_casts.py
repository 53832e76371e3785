"""Casts between all number types: machine code against the reference rules, bit by bit."""

from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np
import pytest

from tests.unit.backends.cpu.elementwise import (
    BLOCK,
    Array,
    cast_kernel,
    compiled,
    interpreted,
    padded,
    parsed,
    prepared,
)
from tilewright.interp import convert, numpy_dtype
from tilewright.ir import print_function
from tilewright.ir.types import dtype_named
from tilewright.ir.verifier import report
from tilewright.llvm import host_cpu

FLOATS = ("f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64")
INTEGERS = ("i1", "i8", "u8", "i16", "i32", "u32", "i64", "u64")
FP8 = {"f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}


def _values(dtype: str) -> Array:
    """All values of narrow types; of wide ones the ties of the narrow types and many others."""
    target = numpy_dtype(dtype_named(dtype))
    if dtype == "i1":
        return padded(np.array([False, True]))
    if target.itemsize <= 2:
        bits = np.arange(1 << (8 * target.itemsize), dtype=f"u{target.itemsize}")
        return padded(bits.view(target))
    return padded(_wide_floats(target) if dtype in FLOATS else _wide_integers(target))


def _wide_integers(target: np.dtype) -> Array:
    random = np.random.default_rng(1)
    lengths = random.integers(0, 64, 8192).astype(np.uint64)
    random_bits = random.integers(0, 2**64, 8192, dtype=np.uint64)
    return (random_bits >> lengths).astype(target)


@np.errstate(all="ignore")
def _wide_floats(target: np.dtype) -> Array:
    random = np.random.default_rng(2)
    groups = [np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 65519.99, 65520.0, 1e-8, 3.4e38])]
    for narrow in (*FP8.values(), np.float16, ml_dtypes.bfloat16):
        size = np.dtype(narrow).itemsize
        all_bits = np.arange(1 << (8 * size), dtype=f"u{size}")
        values = all_bits.view(narrow).astype(np.float64)
        values = np.sort(values[np.isfinite(values)])
        ties = (values[1:] + values[:-1]) / 2
        for nudge in (0.0, 2.0**-24, -(2.0**-24), 2.0**-45, -(2.0**-45)):
            groups.append(ties * (1 + nudge))
    groups.append(np.exp2(random.uniform(-160, 127, 4096)) * random.choice([-1, 1], 4096))
    found = np.concatenate(groups).astype(target)
    return found


@np.errstate(all="ignore")
def _defined(x: Array, target: str) -> Array:
    """Values outside an integer type's range, where the cast is undefined, replaced by 0."""
    dtype = dtype_named(target)
    if dtype.is_float or dtype.is_bool or x.dtype.kind in "iub":
        return x
    wide = x.astype(np.float64)
    inside = (wide > dtype.min_int - 1) & (wide < float(dtype.max_int))
    return np.where(inside, x, np.zeros((), x.dtype))


@np.errstate(all="ignore")
def _assert_same_bits(found: Array, expected: Array, x: Array) -> None:
    if found.dtype.kind not in "iub":
        numbers = ~(np.isnan(found.astype(np.float64)) & np.isnan(expected.astype(np.float64)))
        found, expected, x = found[numbers], expected[numbers], x[numbers]
    bits = f"u{found.dtype.itemsize}"
    wrong = np.flatnonzero(found.view(bits) != expected.view(bits))
    assert not wrong.size, [(x[i], found[i], expected[i]) for i in wrong[:4]]


@pytest.mark.parametrize(
    ("source", "target"), [p for p in product(FLOATS, FLOATS + INTEGERS) if p[0] != p[1]]
)
def test_casts_from_floats(source: str, target: str) -> None:
    x = _defined(_values(source), target)
    with np.errstate(all="ignore"):
        expected = convert(x, dtype_named(source), dtype_named(target))
        found = compiled(cast_kernel(source, target), target)(x)
    _assert_same_bits(found, expected, x)


@np.errstate(all="ignore")
@pytest.mark.parametrize(("source", "target"), list(product(INTEGERS, FLOATS)))
def test_casts_from_integers(source: str, target: str) -> None:
    x = _values(source)
    expected = convert(x, dtype_named(source), dtype_named(target))
    _assert_same_bits(compiled(cast_kernel(source, target), target)(x), expected, x)


@pytest.mark.parametrize(("source", "target"), [p for p in product(FLOATS, FLOATS) if p[0] != p[1]])
def test_truncating_casts(source: str, target: str) -> None:
    x = _values(source)
    with np.errstate(all="ignore"):
        expected = convert(x, dtype_named(source), dtype_named(target), "rtz")
        found = compiled(cast_kernel(source, target, "rtz"), target)(x)
    _assert_same_bits(found, expected, x)


def _every_kind_of_float() -> Array:
    """Of f32: all upper halves with the lower ones that decide a rounding or alone make a NaN."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    lower = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    return padded((upper[:, None] | lower).reshape(-1).view(np.float32))


@pytest.mark.skipif(not host_cpu().rounds_to_bf16, reason="another CPU")
def test_the_instruction_for_bf16_gives_the_bits_of_integers() -> None:
    """Subnormal numbers, the sign of zeros and the payloads of NaNs among them."""
    text, x = cast_kernel("f32", "bf16"), _every_kind_of_float()
    found, expected = (compiled(text, "bf16", rounds_bf16=r)(x) for r in (True, False))
    assert not np.array_equal(expected[:1], expected[-1:])
    np.testing.assert_array_equal(found.view(np.uint16), expected.view(np.uint16))


def test_the_rule_of_the_instruction_for_bf16_gives_the_same_bits() -> None:
    text, x = cast_kernel("f32", "bf16"), _every_kind_of_float()
    rules = [prepared(text), prepared(text, rounds_bf16=True)]
    assert "arith.round_normal_to_bf16" in print_function(rules[1])
    found, expected = (interpreted(f, "bf16", x[-(8 * BLOCK) :]) for f in rules)
    np.testing.assert_array_equal(found.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
@pytest.mark.parametrize(
    ("source", "target"), [("f64", "f8e4m3"), ("f32", "f8e5m2"), ("f8e4m3", "f16")]
)
def test_expanded_casts_are_tile_ir(source: str, target: str, rounding: str) -> None:
    """The same by the NumPy rules, without machine code."""
    text = cast_kernel(source, target, rounding)
    x = _values(source)[: 8 * BLOCK]
    x = padded(x)
    expanded = prepared(text)
    assert report(expanded) is None
    with np.errstate(all="ignore"):
        found, expected = (interpreted(f, target, x) for f in (expanded, parsed(text)))
    _assert_same_bits(found, expected, x)
