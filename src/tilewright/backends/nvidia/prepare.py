"""What the hardware's own functions replace before general expansions: exp, log by powers of two.

%y = arith.math %x {function = "exp"}   ->   %s = arith.mul %x, 1.4426950408889634
                                             %y = arith.math %s {function = "exp2"}
"""

from __future__ import annotations

import math

from tilewright.ir import Builder, Function, Op, Rewriter, Value
from tilewright.ir.types import element_of, f32
from tilewright.ops import ConstantOp, MathOp, MulOp


def use_powers_of_two(function: Function) -> None:
    """Rewrite exp and log of f32 in one function."""
    for op in [op for op in function.walk() if isinstance(op, MathOp)]:
        if element_of(op.type) is not f32:
            continue
        if op.function == "exp":
            _replace(op, _exp(op, Builder.at(op)))
        elif op.function == "log":
            _replace(op, _log(op, Builder.at(op)))


def _replace(op: Op, value: Value) -> None:
    Rewriter.replace(op, value)


def _exp(op: MathOp, builder: Builder) -> Value:
    factor = builder.value(ConstantOp(math.log2(math.e), op.type))
    scaled = builder.value(MulOp(op.x, factor))
    return builder.value(MathOp(scaled, function="exp2"))


def _log(op: MathOp, builder: Builder) -> Value:
    power = builder.value(MathOp(op.x, function="log2"))
    return builder.value(MulOp(power, builder.value(ConstantOp(math.log(2), op.type))))
