"""Mathematical functions: accuracy in every width, odd arguments, the linked library."""

import math
import warnings

import numpy as np
import pytest

import tilewright.ops as ops
from tests.unit.interp.tiles import FLOATS, run, same, tile
from tilewright.interp import NUMPY_DTYPES, round_float
from tilewright.ir.types import bf16, f16, f32, f64, i32
from tilewright.support import errors

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


def extern(symbol, *args, result=f32):
    return run(ops.ExternOp(tuple(args), symbol, result))


def test_library_functions_by_the_names_of_both_widths():
    assert extern("__nv_expm1f", tile(f32, 1e-4)) == np.float32(math.expm1(np.float32(1e-4)))
    assert extern("atan2", tile(f64, 1.0), tile(f64, -1.0), result=f64) == math.atan2(1, -1)
    assert extern("__nv_fast_expf", tile(f32, 1.0)) == np.float32(math.e)
    assert extern("__nv_roundf", tile(f32, 2.5)) == 3.0
    assert extern("__nv_rintf", tile(f32, 2.5)) == 2.0
    assert extern("__nv_ldexpf", tile(f32, 3.0), tile(i32, 4)) == 48.0
    assert extern("__nv_isnanf", tile(f32, np.nan), result=i32) == 1
    assert extern("__nv_fmaf", tile(f32, 2.0), tile(f32, 3.0), tile(f32, 1.0)) == 7.0
    assert extern("__nv_nextafterf", tile(f32, 1.0), tile(f32, 2.0)) == np.float32(1 + 2**-23)
    assert extern("__nv_tgammaf", tile(f32, -1.0)) != 0  # NaN: a pole
    assert extern("lgamma", tile(f64, 0.0), result=f64) == math.inf
    assert extern("erfc", tile(f64, 2.0), result=f64) == math.erfc(2.0)
    assert extern("llrint", tile(f32, 2.5), result=i32) == 2
    assert extern("sinpi", tile(f64, 1e6 + 0.5), result=f64) == 1.0
    assert extern("remainder", tile(f32, 5.0), tile(f32, 3.0)) == -1.0
    assert float(extern("tanf", tile(bf16, 1.0), result=bf16)) == 1.5546875
    assert extern("hypot", tile(f16, 3.0), tile(f16, 4.0), result=f16) == 5.0


def test_unknown_library_function():
    with pytest.raises(errors.InterpreterError, match="'__nv_frobnicate'"):
        extern("__nv_frobnicate", tile(f32, 1.0))
