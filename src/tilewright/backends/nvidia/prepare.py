"""From legal tile IR to the arithmetic that NVIDIA's GPUs have, before layouts are assigned.

* exp and log of f32 go through the hardware's powers of two:

    %y = arith.math %x {function = "exp"}   ->   %s = arith.mul %x, 1.4426950408889634
                                                 %y = arith.math %s {function = "exp2"}

* The other elementary functions, and all of f64, are expanded to arithmetic.
* f16 and bf16 are added, multiplied and compared as they are, all else is computed in f32; fp8
  is always computed in f32.
* Casts that are no instruction are expanded.
"""

from __future__ import annotations

import math
from functools import partial

from tilewright.backends.nvidia.arch import Arch
from tilewright.ir import Builder, Function, Op, Value
from tilewright.ir.types import DType, bf16, dtype_of, element_of, f8e4m3, f8e5m2, f16, f32
from tilewright.ops import (
    AbsOp,
    AddOp,
    CastOp,
    CompareOp,
    ConstantOp,
    DivOp,
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
    widen_elementwise,
    widen_print,
    widen_sign,
)

APPROXIMATE = ("exp2", "log2", "sqrt", "rsqrt")
"""Functions of f32 that the hardware has, with errors of about 2 ulp (PTX ISA 9.7.3)."""


def prepare(function: Function, arch: Arch) -> bool:
    """Rewrite `function` in place; whether anything changed."""
    small = frozenset((f16, bf16))
    casts = small | {f8e4m3, f8e5m2} if arch.fp8_conversion else small
    native = small if arch.bf16_arithmetic else frozenset((f16,))
    widened = expand(function, _widening(native))
    expanded = expand(function, {MathOp: _function})
    cast = expand(function, {CastOp: partial(expand_cast, native=casts)})
    return widened or expanded or cast


def _widening(native: frozenset[DType]) -> dict[type[Op], Expansion]:
    """Rules for arithmetic on floats of less than 32 bits, of which `native` have instructions."""

    def unless_native(op: Op, builder: Builder) -> Value | None:
        if element_of(op.operands[0].type) in native:
            return None
        return widen_elementwise(op, builder)

    def unless_fp8(op: Op, builder: Builder) -> Value | None:
        return widen_sign(op, builder) if dtype_of(op.results[0].type).is_fp8 else None

    return {
        PrintOp: widen_print,
        **dict.fromkeys((AddOp, SubOp, MulOp, FmaOp, MinOp, MaxOp, CompareOp), unless_native),
        **dict.fromkeys((NegOp, AbsOp), unless_fp8),
        **dict.fromkeys((DivOp, RemOp, MathOp), widen_elementwise),
    }


def _function(op: Op, builder: Builder) -> Value | None:
    assert isinstance(op, MathOp)
    if element_of(op.type) is f32:
        if op.function in APPROXIMATE:
            return None
        if op.function == "exp":
            return _exp(op, builder)
        if op.function == "log":
            return _log(op, builder)
    return expand_math(op, builder, fma=True)


def _exp(op: MathOp, builder: Builder) -> Value:
    factor = builder.value(ConstantOp(math.log2(math.e), op.type))
    scaled = builder.value(MulOp(op.x, factor))
    return builder.value(MathOp(scaled, function="exp2"))


def _log(op: MathOp, builder: Builder) -> Value:
    power = builder.value(MathOp(op.x, function="log2"))
    return builder.value(MulOp(power, builder.value(ConstantOp(math.log(2), op.type))))
