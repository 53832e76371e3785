"""`libdevice`: the wider mathematical library, on every backend.

Functions of floats take tensors and literals as those of `tl.math` do, and those that are in both
are the same, but for `exp`. fp32 is computed in fp64 and rounded, at most 1 ulp off; fp64 is at
most 4 ulp off, `pow` more where the exponent is large: up to abs(y * log2(x)) ulp. The `fast_`
names are those of `tl.math`.
"""

from __future__ import annotations

from tilewright.language.core import Operand
from tilewright.language.math import (
    abs,
    add,
    ceil,
    cos,
    div_rn,
    erf,
    exp2,
    fdiv,
    floor,
    fma,
    log,
    log2,
    mul,
    rsqrt,
    sin,
    sqrt,
    sqrt_rn,
    sub,
    tanh,
)
from tilewright.language.math import exp as fast_expf
from tilewright.language.stub_dispatch import builtin
from tilewright.language.tensors import tensor

add_rn, sub_rn, mul_rn = add, sub, mul
fast_logf, fast_log2f = log, log2
fast_sinf, fast_cosf, fast_tanhf = sin, cos, tanh
fast_dividef = fdiv


@builtin
def isnan(x: Operand) -> tensor:
    """int1: x is a NaN."""
    ...


@builtin
def isinf(x: Operand) -> tensor:
    """int1: x is infinite."""
    ...


@builtin
def isfinite(x: Operand) -> tensor:
    """int1: x is neither infinite nor a NaN."""
    ...


@builtin
def signbit(x: Operand) -> tensor:
    """int1: the sign bit of x is set."""
    ...


@builtin
def rint(x: Operand) -> tensor:
    """x rounded to an integer, halves to even."""
    ...


@builtin
def round(x: Operand) -> tensor:
    """x rounded to an integer, halves away from zero."""
    ...


@builtin
def trunc(x: Operand) -> tensor:
    """x rounded to an integer, toward zero."""
    ...


@builtin
def exp(x: Operand) -> tensor:
    """e^x, within 4 ulp in fp32 where `tl.exp` on a GPU is off by |x| ulp."""
    ...


@builtin
def log1p(x: Operand) -> tensor:
    """log(1 + x), exact near 0."""
    ...


@builtin
def expm1(x: Operand) -> tensor:
    """exp(x) - 1, exact near 0."""
    ...


@builtin
def log10(x: Operand) -> tensor:
    """Logarithm to base 10."""
    ...


@builtin
def tan(x: Operand) -> tensor:
    """Tangent of x radians."""
    ...


@builtin
def atan(x: Operand) -> tensor:
    """Arc tangent."""
    ...


@builtin
def asin(x: Operand) -> tensor:
    """Arc sine; NaN outside [-1, 1]."""
    ...


@builtin
def acos(x: Operand) -> tensor:
    """Arc cosine; NaN outside [-1, 1]."""
    ...


@builtin
def sinh(x: Operand) -> tensor:
    """Hyperbolic sine."""
    ...


@builtin
def cosh(x: Operand) -> tensor:
    """Hyperbolic cosine."""
    ...


@builtin
def pow(x: Operand, y: Operand) -> tensor:
    """x to the power of y, as C's pow: NaN for x < 0 unless y is an integer."""
    ...


@builtin
def fmod(x: Operand, y: Operand) -> tensor:
    """Remainder of x / y with the sign of x."""
    ...


@builtin
def copysign(x: Operand, y: Operand) -> tensor:
    """abs(x) with the sign of y."""
    ...


@builtin
def atan2(x: Operand, y: Operand) -> tensor:
    """C's atan2(x, y): the angle of the point whose ordinate is x and whose abscissa is y."""
    ...


@builtin
def int2float_rn(x: Operand) -> tensor:
    """An integer as fp32, rounded to nearest even."""
    ...


finitef = isfinited = isfinite
nearbyint = rint
fast_powf = pow

__all__ = [
    "abs",
    "acos",
    "add_rn",
    "asin",
    "atan",
    "atan2",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "div_rn",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "fast_cosf",
    "fast_dividef",
    "fast_expf",
    "fast_log2f",
    "fast_logf",
    "fast_powf",
    "fast_sinf",
    "fast_tanhf",
    "finitef",
    "floor",
    "fma",
    "fmod",
    "int2float_rn",
    "isfinite",
    "isfinited",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log1p",
    "log2",
    "mul_rn",
    "nearbyint",
    "pow",
    "rint",
    "round",
    "rsqrt",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "sqrt_rn",
    "sub_rn",
    "tan",
    "tanh",
    "trunc",
]
