"""NumPy rules of mathematical functions, and of assembly.

Functions are computed in float64 and rounded once to f32 and below. In float64 they have NumPy's
accuracy (1 ulp; `erf` is that of Python's `math`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tilewright.interp.numpy_dtypes import Array, as_array, wide
from tilewright.interp.rounding import round_float
from tilewright.ir import reference
from tilewright.ir.types import dtype_of
from tilewright.ops import AsmOp, MathOp, VolatileAsmOp
from tilewright.support import errors

Function = Callable[..., object]


def _erf(x: Array) -> object:
    # frompyfunc gives arrays of objects, hence the astype.
    return as_array(np.frompyfunc(math.erf, 1, 1)(x)).astype(np.float64)


def _rsqrt(x: Array) -> object:
    return 1.0 / np.sqrt(x)


FUNCTIONS: dict[str, Function] = {
    "exp": np.exp,
    "accurate_exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "erf": _erf,
    "sqrt": np.sqrt,
    "sqrt_rn": np.sqrt,
    "rsqrt": _rsqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "round_even": np.rint,
    "trunc": np.trunc,
    "fast_log2": np.log2,
    "fast_sin": np.sin,
    "fast_cos": np.cos,
    "fast_tanh": np.tanh,
}
"""Functions by their names in `arith.math`."""


@reference(MathOp)
def math_function(op: MathOp, x: Array) -> Array:
    """float64, rounded once."""
    exact = as_array(FUNCTIONS[op.function](wide(x).astype(np.float64)))
    return round_float(exact, dtype_of(op.type))


@reference(AsmOp)
@reference(VolatileAsmOp)
def assembly(op: AsmOp | VolatileAsmOp, *args: Array) -> Array:
    """Errors: InterpreterError. (Front ends translate it for other targets than GPUs.)"""
    raise errors.InterpreterError("the interpreter does not run assembly of GPUs")
