"""NumPy rules of mathematical functions, and of the math library that back ends link.

All are computed in float64 and rounded once to f32 and below. In float64 they have NumPy's accuracy
(1 ulp; `erf` and its relatives are those of Python's `math`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tilewright.interp.element_arithmetic import fused_multiply_add
from tilewright.interp.numpy_dtypes import Array, as_array, numpy_dtype, wide
from tilewright.interp.rounding import convert, round_float
from tilewright.ir import reference
from tilewright.ir.types import DType, dtype_of, f64
from tilewright.ops import AsmOp, ExternOp, MathOp, VolatileAsmOp
from tilewright.support import errors
from tilewright.support.asynchronous_exceptions import synchronous

Function = Callable[..., object]


def _each(function: Callable[[float], float]) -> Function:
    """A Python function of one float, for arrays; NaN where it raises."""

    def guarded(x: float) -> float:
        try:
            return function(x)
        except synchronous(ValueError, OverflowError):
            return math.nan

    # frompyfunc gives arrays of objects, hence the astype.
    vectorized = np.frompyfunc(guarded, 1, 1)

    def apply(x: Array) -> Array:
        return as_array(vectorized(x)).astype(np.float64)

    return apply


def _rsqrt(x: Array) -> object:
    return 1.0 / np.sqrt(x)


def _round_half_away(x: Array) -> object:
    # floor(|x| + 0.5), not rint, which rounds half to even.
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _of_pi(function: Function) -> Function:
    """`function` of pi times its argument, which is reduced exactly first."""

    def apply(x: Array) -> object:
        # The functions have period 2 in x; pi * x itself would be rounded before the reduction.
        return function(np.pi * np.fmod(x, 2.0))

    return apply


def _exp10(x: Array) -> object:
    return np.power(10.0, x)


def _ldexp(x: Array, exponent: Array) -> object:
    return np.ldexp(x, exponent.astype(np.int64))


def _ieee_remainder(x: Array, y: Array) -> object:
    whole = np.rint(x / y)  # exact while the quotient is below 2**53
    return x - y * whole


def _lgamma(x: float) -> float:
    # Poles at 0, -1, -2 ...: Python raises there, C gives infinity.
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


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
    "erf": _each(math.erf),
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

LIBRARY: dict[str, Function] = FUNCTIONS | {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "add_rn": np.add,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "copysign": np.copysign,
    "cosh": np.cosh,
    "cospi": _of_pi(np.cos),
    "dividef": np.divide,
    "div_rn": np.divide,
    "erfc": _each(math.erfc),
    "exp10": _exp10,
    "expm1": np.expm1,
    "fabs": np.abs,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "ldexp": _ldexp,
    "lgamma": _each(_lgamma),
    "llrint": np.rint,
    "llround": _round_half_away,
    "log10": np.log10,
    "log1p": np.log1p,
    "mul_rn": np.multiply,
    "nearbyint": np.rint,
    "pow": np.power,
    "powi": np.power,
    "remainder": _ieee_remainder,
    "rint": np.rint,
    "round": _round_half_away,
    "sinh": np.sinh,
    "sinpi": _of_pi(np.sin),
    "sub_rn": np.subtract,
    "tan": np.tan,
    "tgamma": _each(math.gamma),
}
"""Functions of floats by their C names, without the `f` of the float32 forms."""

PREDICATES: dict[str, Function] = {
    "finite": np.isfinite,
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "signbit": np.signbit,
}
"""Functions of a float that return 0 or 1."""


@reference(MathOp)
def math_function(op: MathOp, x: Array) -> Array:
    """float64, rounded once."""
    exact = as_array(FUNCTIONS[op.function](wide(x).astype(np.float64)))
    return round_float(exact, dtype_of(op.type))


@reference(ExternOp)
def extern(op: ExternOp, *args: Array) -> Array:
    """A symbol such as `__nv_expf` or `expm1`. Errors: InterpreterError for an unknown one."""
    name = _plain_name(op.symbol)
    target = dtype_of(op.result_type)
    if name == "fma":
        # before the general path: float64 arithmetic would round the product
        return fused_multiply_add(target, *args)
    # in the dtype itself: the neighbour of a float32 is not a float64 neighbour
    if name == "nextafter":
        return np.nextafter(*args)
    if name in PREDICATES:
        return as_array(PREDICATES[name](*args)).astype(numpy_dtype(target))
    wide_args = [_as_float64(x, dtype_of(v.type)) for x, v in zip(args, op.args, strict=True)]
    return convert(as_array(LIBRARY[name](*wide_args)), f64, target)


@reference(AsmOp)
def assembly(op: AsmOp, *args: Array) -> Array:
    """Errors: InterpreterError. (Front ends translate it for other targets than GPUs.)"""
    raise errors.InterpreterError("the interpreter does not run assembly of GPUs")


@reference(VolatileAsmOp)
def volatile_assembly(op: VolatileAsmOp, *args: Array) -> Array:
    """Errors: InterpreterError."""
    raise errors.InterpreterError("the interpreter does not run assembly of GPUs")


def _as_float64(x: Array, dtype: DType) -> Array:
    return convert(x, dtype, f64)


def _plain_name(symbol: str) -> str:
    """The C name of a function without the decorations of a library and of float32."""
    name = symbol.removeprefix("__nv_").removeprefix("fast_")
    # float32 forms end in f: tried second, as `erf` ends in f itself.
    for candidate in (name, name[:-1]):
        if candidate in LIBRARY or candidate in PREDICATES or candidate in ("fma", "nextafter"):
            return candidate
    raise errors.InterpreterError(f"the interpreter has no library function '{symbol}'")
