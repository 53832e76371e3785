"""Casts between all number types against exact rounding."""

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright.ops as ops
from tests.unit.interp.exact import finite_values, nearest, toward_zero
from tests.unit.interp.tiles import FLOATS, INTEGERS, odd_floats, odd_integers, run, tile, wrapped
from tilewright.interp import NUMPY_DTYPES, round_float
from tilewright.ir.types import (
    PointerType,
    TileType,
    bf16,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i1,
    i8,
    i32,
    i64,
    nan_as_integer,
    u8,
    u64,
)

SMALL = [f8e4m3, f8e5m2, f16, bf16]


def cast(x, dtype, **attrs):
    return run(ops.CastOp(x, TileType(x.data.shape, dtype), **attrs))


def hard_cases(dtype):
    """float64 values at, just below and just above each tie of a small type."""
    values = finite_values(dtype)[:: 1 if dtype.is_fp8 else 97]
    ties = np.array([float((a + b) / 2) for a, b in itertools.pairwise(values)])
    largest = float(finite_values(dtype)[-1])
    ends = np.array([largest, largest * 1.001, largest * 1.2, largest * 4])
    base = np.concatenate([ties, ends, [float(v) for v in values]])
    around = [base, np.nextafter(base, np.inf), np.nextafter(base, -np.inf)]
    return np.concatenate([*around, *(-x for x in around)])


def hard_singles(dtype):
    """The same in float32."""
    with np.errstate(over="ignore"):
        x = hard_cases(dtype).astype(np.float32)
    return x[np.isfinite(x)]


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_float64_to_small_floats_rounds_once(dtype):
    x = hard_cases(dtype)
    with np.errstate(over="ignore"):
        found = round_float(x, dtype).astype(np.float64)
    assert found.tolist() == [nearest(Fraction(float(v)), dtype) for v in x]


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_float32_to_small_floats(dtype):
    x = hard_singles(dtype)
    found = cast(tile(f32, x), dtype).astype(np.float64)
    assert found.tolist() == [nearest(Fraction(float(v)), dtype) for v in x]


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_rounding_toward_zero(dtype):
    x = hard_singles(dtype)
    found = cast(tile(f32, x), dtype, rounding="rtz").astype(np.float64)
    assert found.tolist() == [toward_zero(Fraction(float(v)), dtype) for v in x]


def test_float64_to_float32_toward_zero():
    x = np.array([0.1, -0.1, 1e300, -1e300, np.inf, 1.0, 1e-50])
    found = cast(tile(f64, x), f32, rounding="rtz").astype(np.float64)
    largest = float(np.finfo(np.float32).max)
    assert np.all(np.abs(found[:4]) <= np.abs(x[:4]))
    assert found[2:].tolist() == [largest, -largest, np.inf, 1.0, 0.0]


@pytest.mark.parametrize("dtype", SMALL, ids=str)
@pytest.mark.parametrize("source", [i64, u64], ids=str)
def test_integers_to_small_floats_round_once(dtype, source):
    values = odd_integers(source)
    if dtype is bf16:  # just above a tie of bf16, where float64 itself would round to the tie
        values += [2**62 + 2**54 + 1, 2**62 + 2**54, 2**62 + 2**54 - 1]
    found = cast(tile(source, np.array(values, object)), dtype).astype(np.float64)
    assert found.tolist() == [nearest(Fraction(v), dtype) for v in values]


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_any_int64_to_bfloat16(value):
    assert float(cast(tile(i64, [value]), bf16)[0]) == nearest(Fraction(value), bf16)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_float64_to_bfloat16(value):
    with np.errstate(over="ignore"):
        found = round_float(np.array([value]), bf16)
    assert float(found[0]) == nearest(Fraction(value), bf16)


@pytest.mark.parametrize("source", FLOATS, ids=str)
@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_floats_to_integers_truncate_without_warnings(source, target):
    x = odd_floats(source)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cast(tile(source, x), target).tolist()
    for value, integer in zip(x.astype(np.float64), found, strict=True):
        if np.isnan(value):
            assert integer == nan_as_integer(source, target)
        elif not target.min_int <= value <= target.max_int:
            assert integer == (target.min_int if value < 0 else target.max_int)
        else:
            assert integer == int(value)


@pytest.mark.parametrize("source, target", list(itertools.product(INTEGERS, INTEGERS)), ids=str)
def test_integers_wrap(source, target):
    values = odd_integers(source)
    found = cast(tile(source, np.array(values, object)), target)
    assert found.dtype == NUMPY_DTYPES[target]
    assert found.tolist() == [wrapped(v, target) for v in values]


def test_to_and_from_bool():
    assert cast(tile(f32, [0.0, -0.0, 0.5, np.nan]), i1).tolist() == [False, False, True, True]
    assert cast(tile(i32, [0, 256, -1]), i1).tolist() == [False, True, True]
    assert cast(tile(i1, [True, False]), i32).tolist() == [1, 0]
    assert cast(tile(i1, [True, False]), bf16).astype(float).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("source, target", list(itertools.product(FLOATS, FLOATS)), ids=str)
def test_special_values(source, target):
    x = cast(tile(source, [np.inf, -np.inf, np.nan, -0.0]), target).astype(np.float64)
    if source.specials in ("fn", "fnuz"):  # no infinity: the first two are NaN
        assert np.isnan(x[:3]).all()
    elif target.is_fp8 and target is not source:
        assert x[:2].tolist() == [target.largest, -target.largest]
    else:
        assert x[:2].tolist() == [np.inf, -np.inf]
    signed = source.has_negative_zero and target.has_negative_zero
    assert np.isnan(x[2]) and x[3] == 0 and np.signbit(x[3]) == signed


def test_pointers_keep_their_address():
    pointer = run(ops.CastOp(tile(i64, [4096, -1]), TileType((2,), PointerType(f32))))
    assert pointer.tolist() == [4096, 2**64 - 1]


def test_bitcasts():
    assert run(ops.BitcastOp(tile(f32, 1.0), i32)) == 0x3F800000
    assert run(ops.BitcastOp(tile(i32, 0x3F800000), f32)) == 1.0
    assert float(run(ops.BitcastOp(tile(u8, 0x7E), f8e4m3))) == 448.0
    assert run(ops.BitcastOp(tile(bf16, 1.0), f16)).dtype == "f2"
    assert run(ops.BitcastOp(tile(u8, [255]), TileType((1,), i8))).tolist() == [-1]
