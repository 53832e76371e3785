"""Expand arithmetic without instructions on NVIDIA GPUs, before layouts are assigned.

    %y = arith.math %x {function = "exp"} : tile<64xf32>
    %s = arith.add %h, %h : tile<64xbf16>

on an architecture without bf16 arithmetic becomes

    %0 = arith.constant {value = 1.4426950408889634} : tile<64xf32>
    %1 = arith.mul %x, %0 : tile<64xf32>
    %y = arith.math %1 {function = "exp2"} : tile<64xf32>
    %2 = arith.cast %h : tile<64xf32>
    %3 = arith.cast %h : tile<64xf32>
    %4 = arith.add %2, %3 : tile<64xf32>
    %s = arith.cast %4 : tile<64xbf16>

* exp2, sqrt and 1/sqrt of f32 are the hardware's approximations; exp is a multiplication and exp2,
  with the error of Triton's (ADR 0006), and tanh uses exp2 and a fast reciprocal. (The hardware's
  log2 is not used: near 1 its absolute error is 2^-22, as large as a small result.)
* The other elementary functions, and all of f64, are expanded to arithmetic.
* Quotients are marked that their uses allow to be 2 ulp off (_quotient_rounding.py).
* f16 is added, multiplied and compared natively, and so is bf16 where the architecture has such
  arithmetic; all other arithmetic on them, and all of fp8, is computed in f32.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

from tilewright.backends.nvidia.arch import Arch, row_for
from tilewright.backends.nvidia.passes._quotient_rounding import infer_quotient_rounding
from tilewright.ir import Builder, Function, Op, Pass, Value
from tilewright.ir.types import DType, bf16, element_of, f16, f32
from tilewright.ops import (
    AbsOp,
    AddOp,
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
from tilewright.support.data_class import dataclass
from tilewright.transforms.expand import (
    EXPANSIONS,
    Expansion,
    FloatArithmetic,
    expand,
    expand_math,
    is_small_float,
    missing_instruction,
    widen_elementwise,
    widen_print,
    widen_sign,
)

_LOG2_E = 1.44269502162933349609375
"""log2(e) as fp32."""
_LOG2_E_LOW = 1.925963033500116e-08
"""log2(e) = LOG2_E + LOG2_E_LOW to 50 bits."""

_APPROXIMATE = ("exp2", "sqrt", "rsqrt", "fast_log2", "fast_sin", "fast_cos", "fast_tanh")
"""Functions of f32 that are instructions: roots and 2^x within about 2 ulp (PTX ISA 9.7.3)."""


def illegal_arithmetic(op: Op, arch: Arch) -> str | None:
    """The error of an op without instructions on an architecture; None for legal ops."""
    native = _native_floats(arch.bf16_arithmetic).get(type(op))
    if native is None:
        return missing_instruction(op)
    element = element_of(op.operands[0].type)
    if is_small_float(element) and element not in native:
        return f"{op.opcode} is computed in f32, not in {element}"
    if isinstance(op, MathOp) and op.function in EXPANSIONS and not _is_instruction(op):
        return f"{op.function} of {element} is expanded"
    return None


@dataclass(frozen=True)
class LegalizeArithmetic(Pass, name="nvidia-legalize-arithmetic"):
    """Expand arithmetic without instructions. capability: of the architecture."""

    capability: int = 90

    def run(self, function: Function) -> bool:
        inferred = infer_quotient_rounding(function)
        # functions of small floats are widened first: only those of f32 and f64 are expanded
        widened = expand(function, _widening(row_for(self.capability)))
        return expand(function, {MathOp: _expand_math}) or widened or inferred


@cache
def _native_floats(bf16_arithmetic: bool) -> Mapping[type[Op], frozenset[DType]]:
    """The floats below 32 bits in which ops compute, by op with such a limit."""
    # Cached by one field: to hash a whole `Arch` takes longer than the rest.
    arithmetic = frozenset((f16, bf16) if bf16_arithmetic else (f16,))
    return {
        **dict.fromkeys((AddOp, SubOp, MulOp, FmaOp, MinOp, MaxOp, CompareOp), arithmetic),
        # Both change the sign bit only, which needs no bf16 arithmetic.
        **dict.fromkeys((NegOp, AbsOp), frozenset((f16, bf16))),
        # Empty: computed in f32 on all architectures.
        **dict.fromkeys((DivOp, RemOp, MathOp), frozenset[DType]()),
    }


def _widening(arch: Arch) -> dict[type[Op], Expansion]:
    """Rules for arithmetic on floats that are not native."""
    native = _native_floats(arch.bf16_arithmetic)

    def widen(op: Op, builder: Builder) -> Value | None:
        if element_of(op.operands[0].type) in native[type(op)]:
            return None
        changes_sign = isinstance(op, NegOp | AbsOp)  # by bits, also for a NaN
        return widen_sign(op, builder) if changes_sign else widen_elementwise(op, builder)

    return {PrintOp: widen_print, **dict.fromkeys(native, widen)}


def _expand_math(op: Op, builder: Builder) -> Value | None:
    assert isinstance(op, MathOp)
    if _is_instruction(op):
        return None
    formula = _BY_HARDWARE.get(op.function)
    if element_of(op.type) is f32 and formula is not None:
        return formula(FloatArithmetic(builder, op.x.type), op.x)
    return expand_math(op, builder, fma=True, exp2=True)


def _is_instruction(op: MathOp) -> bool:
    return element_of(op.type) is f32 and op.function in _APPROXIMATE


def _exp(a: FloatArithmetic, x: Value) -> Value:
    """e^x = 2^(x log2(e)): two instructions; the rounding of x log2(e) costs |x| / 2 ulp.

    `libdevice.exp` is the accurate one.
    """
    return a.math("exp2", a.mul(x, math.log2(math.e)))


def _accurate_exp(a: FloatArithmetic, x: Value) -> Value:
    """e^x = 2^t (1 + r ln 2), where r is what the rounding of t = x log2(e) lost.

    r is infinite or a NaN where 2^t is 0 or infinite; any positive multiplier is right there.
    """
    t = a.mul(x, _LOG2_E)
    lost = a.fma(x, _LOG2_E_LOW, a.fma(x, _LOG2_E, a.neg(t)))
    factor = a.fma(lost, math.log(2), 1.0)
    # Both bounds are returned for a NaN as well.
    return a.mul(a.math("exp2", t), a.min(a.max(factor, 0.5), 2.0))


_BY_HARDWARE = {"exp": _exp, "accurate_exp": _accurate_exp}
