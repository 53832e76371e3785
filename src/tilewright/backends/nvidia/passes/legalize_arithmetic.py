"""From legal tile IR to the arithmetic that NVIDIA's GPUs have, before layouts are assigned.

* exp2, sqrt and 1/sqrt of f32 are the hardware's approximations; exp is a product and exp2, with
  the error of Triton's (ADR 0006). (The hardware's log2 is not used: near 1 it is good to 2^-22
  absolutely, which is nothing of a small result.)
* The other elementary functions, and all of f64, are expanded to arithmetic.
* f16 is added, multiplied and compared as it is, and so is bf16 where the architecture has
  arithmetic on it; all else of them, and all of fp8, is computed in f32.
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
    Arithmetic,
    Expansion,
    expand,
    expand_cast,
    expand_math,
    widen_elementwise,
    widen_print,
    widen_sign,
)

APPROXIMATE = ("exp2", "sqrt", "rsqrt")
"""Functions of f32 that the hardware has, with errors of about 2 ulp (PTX ISA 9.7.3)."""


def legalize_arithmetic(function: Function, arch: Arch) -> bool:
    """Rewrite `function` in place; whether anything changed."""
    native = frozenset((f16, bf16) if arch.bf16_arithmetic else (f16,))
    widened = expand(function, _widening(native))
    return expand(function, {MathOp: _function}) or widened


def legalize_casts(function: Function, arch: Arch) -> bool:
    """Leave only casts that are instructions; whether anything changed.

    After it casts must not be merged: one of fp8 to an integer would be made of two again.
    """
    small = frozenset((f16, bf16))
    native = small | {f8e4m3, f8e5m2} if arch.fp8_conversion else small
    return expand(function, {CastOp: partial(expand_cast, native=native)})


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
            return _exp(op, Arithmetic(builder, op.x.type))
    return expand_math(op, builder, fma=True)


def _exp(op: MathOp, a: Arithmetic) -> Value:
    """e^x = 2^(x log2(e)): two instructions; the rounding of the product costs |x| / 2 ulp.

    What it loses is in `libdevice.exp`.
    """
    return a.math("exp2", a.mul(op.x, math.log2(math.e)))
