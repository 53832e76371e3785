"""Replaces the elementary functions that no machine has by arithmetic, in f32 and f64."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.ir import Builder, Op, Value
from tilewright.ops import MathOp
from tilewright.transforms.expand.error_function import erf
from tilewright.transforms.expand.exponential import exp, exp2, tanh
from tilewright.transforms.expand.logarithm import log_2, log_e, rsqrt
from tilewright.transforms.expand.op_notation import Arithmetic
from tilewright.transforms.expand.trigonometric import cos, sin

Formula = Callable[[Arithmetic, Value], Value]

EXPANSIONS: dict[str, Formula] = {
    "exp": exp,
    "exp2": exp2,
    "log": log_e,
    "log2": log_2,
    "sin": sin,
    "cos": cos,
    "tanh": tanh,
    "erf": erf,
    "rsqrt": rsqrt,
}
"""By function; the others of `MATH_FUNCTIONS` are instructions of every CPU or of LLVM."""


def expand_math(op: Op, builder: Builder, fma: bool) -> Value | None:
    """The value of an elementary function of f32 or f64; None if it is native."""
    assert isinstance(op, MathOp)
    expansion = EXPANSIONS.get(op.function)
    if expansion is None:
        return None
    return expansion(Arithmetic(builder, op.x.type, fma), op.x)
