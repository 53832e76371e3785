"""Float arithmetic: rounding of every width, NaNs, zeros, infinities."""

import warnings
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import tilewright.ops as ops
from tests.unit.interp.exact import nearest
from tests.unit.interp.tiles import FLOATS, odd_floats, run, same, tile
from tilewright.interp import NUMPY_DTYPES
from tilewright.ir.types import bf16, f8e4m3, f8e5m2, f16, f32, f64

SMALL = [f8e4m3, f8e5m2, f16, bf16]


def finite_pairs(dtype):
    values = odd_floats(dtype)
    values = values[np.isfinite(values.astype(np.float64))]
    rng = np.random.default_rng(5)
    return rng.choice(values, 300), rng.choice(values, 300)


@pytest.mark.parametrize("dtype", SMALL, ids=str)
@pytest.mark.parametrize(
    "op, exact",
    [
        (ops.AddOp, lambda x, y: x + y),
        (ops.SubOp, lambda x, y: x - y),
        (ops.MulOp, lambda x, y: x * y),
        (ops.DivOp, lambda x, y: x / y),
    ],
)
def test_small_floats_are_rounded_once(dtype, op, exact):
    xs, ys = finite_pairs(dtype)
    keep = ys.astype(np.float64) != 0
    xs, ys = xs[keep], ys[keep]
    found = run(op(tile(dtype, xs), tile(dtype, ys))).astype(np.float64)
    fractions = [exact(Fraction(float(x)), Fraction(float(y))) for x, y in zip(xs, ys, strict=True)]
    assert np.abs(found).tolist() == [abs(nearest(f, dtype)) for f in fractions]


@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
def test_wide_floats_are_those_of_numpy(dtype):
    xs, ys = (np.resize(odd_floats(dtype), 300), np.roll(np.resize(odd_floats(dtype), 300), 7))
    with np.errstate(all="ignore"):
        wanted = [xs + ys, xs - ys, xs * ys, xs / ys, np.fmod(xs, ys)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kinds = [ops.AddOp, ops.SubOp, ops.MulOp, ops.DivOp, ops.RemOp]
        found = [run(op(tile(dtype, xs), tile(dtype, ys))) for op in kinds]
    assert all(same(f, w) for f, w in zip(found, wanted, strict=True))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_minimum_and_maximum_of_nan(dtype):
    x, y = tile(dtype, [1.0, np.nan, 3.0, np.nan]), tile(dtype, [2.0, 2.0, np.nan, np.nan])
    nan = np.nan
    numpy = NUMPY_DTYPES[dtype]
    assert same(run(ops.MinOp(x, y)), np.array([1, 2, 3, nan]).astype(numpy))
    assert same(run(ops.MaxOp(x, y)), np.array([2, 2, 3, nan]).astype(numpy))
    assert same(run(ops.MinOp(x, y, nan=True)), np.array([1, nan, nan, nan]).astype(numpy))
    assert same(run(ops.MaxOp(x, y, nan=True)), np.array([2, nan, nan, nan]).astype(numpy))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_negation_flips_and_magnitude_clears_the_sign_bit(dtype):
    x = odd_floats(dtype)
    bits = x.view(f"u{dtype.bytes}").astype(np.uint64)
    sign = np.uint64(1 << (dtype.bits - 1))
    negated = run(ops.NegOp(tile(dtype, x))).view(f"u{dtype.bytes}").astype(np.uint64)
    magnitude = run(ops.AbsOp(tile(dtype, x))).view(f"u{dtype.bytes}").astype(np.uint64)
    assert np.array_equal(negated, bits ^ sign)
    assert np.array_equal(magnitude, bits & ~sign)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_comparisons_with_nan(dtype):
    x, y = tile(dtype, [1.0, np.nan, 0.0]), tile(dtype, [np.nan, np.nan, -0.0])
    results = {p: run(ops.CompareOp(x, y, p)).tolist() for p in ops.COMPARISONS}
    assert results == {
        "eq": [False, False, True],
        "ne": [True, True, False],
        "lt": [False, False, False],
        "le": [False, False, True],
        "gt": [False, False, False],
        "ge": [False, False, True],
    }


def test_constants_are_rounded_and_fp8_ones_saturate():
    assert run(ops.ConstantOp(0.1, f32)) == np.float32(0.1)
    assert run(ops.ConstantOp(0.1, bf16)) == ml_dtypes.bfloat16(0.1)
    assert float(run(ops.ConstantOp(1e9, f8e4m3))) == 448.0
    assert float(run(ops.ConstantOp(-1e9, f8e5m2))) == -57344.0
    assert float(run(ops.ConstantOp(float("inf"), f8e5m2))) == 57344.0
    assert np.isnan(float(run(ops.ConstantOp(float("nan"), f8e4m3))))
    assert float(run(ops.ConstantOp(1e39, f32))) == np.inf
