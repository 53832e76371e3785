"""From legal tile IR to what the CPU lowering accepts.

After it there are no elementary functions but those that LLVM has, no arithmetic on f16, nothing of
bf16 and fp8 but their bits, no casts that LLVM lacks, and products only of f32, f64 and i32.
"""

from __future__ import annotations

from functools import partial

from tilewright.ir import Function, Op
from tilewright.ops import (
    AbsOp,
    AddOp,
    CastOp,
    CompareOp,
    DivOp,
    DotOp,
    FmaOp,
    MathOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    PrintOp,
    RemOp,
    SubOp,
)
from tilewright.transforms.expand import (
    Expansion,
    expand,
    expand_cast,
    expand_math,
    store_as_bits,
    widen_dot,
    widen_elementwise,
    widen_extremum,
    widen_print,
    widen_sign,
)

WIDEN: dict[type[Op], Expansion] = {
    DotOp: widen_dot,
    PrintOp: widen_print,
    NegOp: widen_sign,
    AbsOp: widen_sign,
    MinOp: widen_extremum,
    MaxOp: widen_extremum,
    **dict.fromkeys(
        (AddOp, SubOp, MulOp, DivOp, RemOp, CompareOp, FmaOp, MathOp), widen_elementwise
    ),
}
"""Arithmetic in types that CPUs compute in. It makes casts, and functions of f32."""


def legalize(function: Function, fma: bool = True) -> bool:
    """Rewrite `function` in place; whether anything changed.

    fma: whether the machine multiplies and adds in one instruction.
    """
    widened = expand(function, WIDEN)
    expanded = expand(function, {MathOp: partial(expand_math, fma=fma)})
    cast_by_hand = expand(function, {CastOp: expand_cast})
    return store_as_bits(function) or widened or expanded or cast_by_hand
