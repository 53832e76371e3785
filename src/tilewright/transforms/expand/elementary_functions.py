"""Expand elementary functions that no machine has into arithmetic, in f32 and f64."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from tilewright.ir import Builder, Op, Value
from tilewright.ops import MathOp
from tilewright.support import attribute_late, import_late
from tilewright.transforms.expand.float_arithmetic import FloatArithmetic

Formula = Callable[[FloatArithmetic, Value], Value]

EXPANSIONS = {
    "exp": "exponential:exp",
    "accurate_exp": "exponential:exp",
    "exp2": "exponential:exp2",
    "log": "logarithm:log_e",
    "log2": "logarithm:log_2",
    "sin": "trigonometric:sin",
    "cos": "trigonometric:cos",
    "tan": "trigonometric:tan",
    "tanh": "exponential:tanh",
    "erf": "error_function:erf",
    "rsqrt": "logarithm:rsqrt",
    "fast_log2": "logarithm:log_2",
    "fast_sin": "trigonometric:sin",
    "fast_cos": "trigonometric:cos",
    "fast_tanh": "exponential:tanh",
}
"""Module and name of each function's formula; the other `MATH_FUNCTIONS` are instructions of every
CPU or of LLVM."""


def load_expansion_ops() -> None:
    """Register the ops that only formulas emit, for the parser."""
    for module in ("avx512_ops", "rare_branch"):
        import_late(f"tilewright.transforms.expand.{module}")


@cache
def _formula(function: str) -> Formula:
    # imported at the first use: most kernels have no elementary function
    return attribute_late(f"tilewright.transforms.expand.{EXPANSIONS[function]}")


def expand_math(
    op: Op, builder: Builder, fma: bool, avx512: bool = False, exp2: bool = False
) -> Value | None:
    """Expand an elementary function of f32 or f64; None if it is native.

    fma, avx512, exp2: instructions of the machine, see `FloatArithmetic`
    """
    assert isinstance(op, MathOp)
    if op.function not in EXPANSIONS:
        return None
    arithmetic = FloatArithmetic(builder, op.x.type, fma, avx512=avx512, exp2=exp2)
    return _formula(op.function)(arithmetic, op.x)
