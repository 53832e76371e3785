"""Fused multiply-add against exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tilewright.ops as ops
from tests.unit.interp.exact import nearest
from tests.unit.interp.tiles import odd_floats, run, tile
from tilewright.ir.types import bf16, f8e4m3, f16, f32, f64

doubles = st.floats(allow_nan=False, allow_infinity=False)
singles = st.floats(width=32, allow_nan=False, allow_infinity=False)


def exact64(a, b, c):
    total = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


@given(doubles, doubles, doubles)
@example(1e308, 10.0, -1e308)
@example(5e-324, 0.5, 5e-324)
@example(1.0 + 2**-52, 1.0 - 2**-52, -1.0)
def test_float64(a, b, c):
    found = float(run(ops.FmaOp(tile(f64, a), tile(f64, b), tile(f64, c))))
    assert found == exact64(a, b, c)


def test_a_tie_that_the_addend_breaks():
    """The product lies between two values; what is added is too small for the wider format."""
    x = 1 + 2.0**-12
    found = run(ops.FmaOp(tile(f32, [x, x]), tile(f32, [x, x]), tile(f32, [2.0**-60, -(2.0**-60)])))
    assert found.tolist() == [1 + 2.0**-11 + 2.0**-23, 1 + 2.0**-11]
    x, y = 1 + 2.0**-26, 1 + 2.0**-27
    below = 1 + 2.0**-26 + 2.0**-27
    c = [2.0**-110, -(2.0**-110)]
    found = run(ops.FmaOp(tile(f64, [x, x]), tile(f64, [y, y]), tile(f64, c)))
    assert found.tolist() == [below + 2.0**-52, below]


def test_float64_many_of_ordinary_size():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 2000))
    c = -a * b * (1 + rng.integers(-3, 4, 2000) * 2.0**-52)  # cancels nearly everything
    found = run(ops.FmaOp(tile(f64, a), tile(f64, b), tile(f64, c)))
    assert found.tolist() == [exact64(*row) for row in zip(a, b, c, strict=True)]


@given(singles, singles, singles)
def test_float32(a, b, c):
    found = run(ops.FmaOp(tile(f32, a), tile(f32, b), tile(f32, c)))
    total = Fraction(a) * Fraction(b) + Fraction(c)
    assert abs(float(found)) == abs(round_to_float32(total))


def round_to_float32(x):
    """By the definition: among the neighbours of a guess, the nearest, ties to even."""
    if abs(x) >= Fraction(2) ** 128 - Fraction(2) ** 103:
        return math.copysign(math.inf, 1 if x > 0 else -1)
    guess = np.float32(float(x))
    if np.isinf(guess):
        guess = np.copysign(np.finfo(np.float32).max, guess)
    near = [
        np.nextafter(guess, np.float32(-np.inf)),
        guess,
        np.nextafter(guess, np.float32(np.inf)),
    ]
    near = [v for v in near if np.isfinite(v)]
    distance = [abs(Fraction(float(v)) - x) for v in near]
    best = [v for v, d in zip(near, distance, strict=True) if d == min(distance)]
    even = [v for v in best if not int(v.view(np.uint32)) & 1]
    return float((even or best)[0])


@pytest.mark.parametrize("dtype", [f8e4m3, f16, bf16], ids=str)
def test_small_floats(dtype):
    values = odd_floats(dtype)
    values = values[np.isfinite(values.astype(np.float64))]
    rng = np.random.default_rng(2)
    a, b, c = (rng.choice(values, 400) for _ in range(3))
    found = run(ops.FmaOp(tile(dtype, a), tile(dtype, b), tile(dtype, c))).astype(np.float64)
    for x, y, z, value in zip(a, b, c, found, strict=True):
        total = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert abs(value) == abs(nearest(total, dtype))


@pytest.mark.parametrize("dtype", [f16, f32, f64], ids=str)
def test_special_values(dtype):
    inf, nan = np.inf, np.nan
    a, b, c = (
        [inf, inf, 0.0, 1.0, nan, -0.0],
        [1.0, 0.0, inf, 1.0, 1.0, 1.0],
        [-inf, 1, 1, inf, 0, -0.0],
    )
    found = run(ops.FmaOp(tile(dtype, a), tile(dtype, b), tile(dtype, c)))
    assert np.isnan(found[[0, 1, 2, 4]]).all()
    assert found[3] == inf and found[5] == 0 and np.signbit(found[5])
