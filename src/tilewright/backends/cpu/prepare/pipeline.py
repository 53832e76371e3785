"""From legal tile IR to what the CPU lowering accepts.

After it there are no elementary functions but those that LLVM has, no arithmetic on f16, nothing of
bf16 and fp8 but their bits, no casts that LLVM lacks, and products only of f32, f64 and i32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import cast

from tilewright.backends.cpu.prepare.expand_casts import expand_cast
from tilewright.backends.cpu.prepare.expand_math import expand_math
from tilewright.backends.cpu.prepare.storage import store_as_bits
from tilewright.backends.cpu.prepare.widen import (
    widen_dot,
    widen_elementwise,
    widen_extremum,
    widen_print,
    widen_sign,
)
from tilewright.ir import Builder, Function, Op, Rewriter, Value
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

Rule = Callable[[Op, Builder], Value | None]

WIDEN: dict[type[Op], Rule] = {
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


def prepare(function: Function, fma: bool = True) -> bool:
    """Rewrite `function` in place; whether anything changed.

    fma: whether the machine multiplies and adds in one instruction.
    """
    widened = rewrite(function, WIDEN)
    expanded = rewrite(function, {MathOp: partial(expand_math, fma=fma)})
    cast_by_hand = rewrite(function, {CastOp: expand_cast})
    return store_as_bits(function) or widened or expanded or cast_by_hand


def rewrite(function: Function, rules: dict[type[Op], Rule]) -> bool:
    """Apply at most one rule to each op that is there now, in regions too."""
    changed = False
    matching = [op for op in cast("Iterator[Op]", function.walk()) if type(op) in rules]
    for op in matching:
        value = rules[type(op)](op, Builder.at(op))
        if value is not None:
            Rewriter.replace(op, value)
            changed = True
    return changed
