"""Mathematical functions: accuracy in every width, odd arguments."""

import math
import warnings

import numpy as np
import pytest

import tilewright.ops as ops
from tests.unit.interp.tiles import FLOATS, run, same, tile
from tilewright.interp import NUMPY_DTYPES, round_float
from tilewright.ir.types import f32, f64

PYTHON = {
    "exp": math.exp,
    "accurate_exp": math.exp,
    "exp2": lambda x: 2.0**x,
    "log": math.log,
    "log2": math.log2,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "tanh": math.tanh,
    "erf": math.erf,
    "sqrt": math.sqrt,
    "sqrt_rn": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "floor": math.floor,
    "ceil": math.ceil,
    "round_even": round,
    "trunc": math.trunc,
    "fast_log2": math.log2,
    "fast_sin": math.sin,
    "fast_cos": math.cos,
    "fast_tanh": math.tanh,
}


def test_every_function_is_tested():
    assert set(PYTHON) == set(ops.MATH_FUNCTIONS)


@pytest.mark.parametrize("function", ops.MATH_FUNCTIONS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_against_python(function, dtype):
    x = np.array([0.03125, 0.5, 1.0, 1.5, 2.5, 3.0, 7.0]).astype(NUMPY_DTYPES[dtype])
    found = run(ops.MathOp(tile(dtype, x), function))
    wanted = np.array([float(PYTHON[function](float(v))) for v in x])
    if dtype is f64:
        np.testing.assert_allclose(found, wanted, rtol=4e-16)
    else:
        assert same(found, round_float(wanted, dtype))


def test_odd_arguments_give_no_warnings():
    x = tile(f32, [-1.0, 0.0, np.inf, -np.inf, np.nan, 1e30])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = {f: run(ops.MathOp(x, f)) for f in ops.MATH_FUNCTIONS}
    assert np.isnan(found["log"][0]) and found["log"][1] == -np.inf
    assert found["exp"][2] == np.inf and found["exp"][3] == 0 and found["exp"][5] == np.inf
    assert np.isnan(found["sqrt"][0]) and found["rsqrt"][1] == np.inf
    assert found["erf"][2:4].tolist() == [1.0, -1.0] and np.isnan(found["erf"][4])
    assert found["tanh"][5] == 1.0


def test_rounding_functions_round_ties_to_even():
    x = tile(f32, [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])
    assert run(ops.MathOp(x, "round_even")).tolist() == [-2.0, -2.0, -0.0, 0.0, 2.0, 2.0]
