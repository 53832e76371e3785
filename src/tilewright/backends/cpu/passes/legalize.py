"""Expands ops that the CPU lowering has no code for.

    %s = arith.add %h, %h : tile<64xf16>
    mem.store %p, %b                              (%p: tile<64xptr<bf16>>, %b: tile<64xbf16>)
becomes
    %0 = arith.cast %h : tile<64xf32>
    %1 = arith.cast %h : tile<64xf32>
    %2 = arith.add %0, %1 : tile<64xf32>
    %s = arith.cast %2 : tile<64xf16>
    mem.store %p, %b                              (%p: tile<64xptr<u16>>, %b: tile<64xu16>)

After it there are no sorts, no elementary functions but those that LLVM has, no arithmetic on f16,
nothing of bf16 and fp8 but their bits, no casts that LLVM lacks, and products only of f32, f64 and
i32.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tilewright.ir import Function, Op, Pass
from tilewright.ir.types import element_of
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
    SortOp,
    SubOp,
)
from tilewright.transforms.expand import (
    EXPANSIONS,
    Expansion,
    expand,
    expand_cast,
    expand_math,
    expand_sort,
    is_native_cast,
    is_small_float,
    store_as_bits,
    widen_dot,
    widen_elementwise,
    widen_extremum,
    widen_print,
    widen_sign,
)

_WIDEN: dict[type[Op], Expansion] = {
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


def illegal_op(op: Op) -> str | None:
    """What is wrong with an op that the lowering of this backend has no code for."""
    elements = [element_of(v.type) for v in op.operands]
    if type(op) in _WIDEN and any(map(is_small_float, elements)):
        return f"{op.opcode} is computed in 32 bits or more, not in {elements[0]}"
    if isinstance(op, DotOp) and len({*elements}) > 1:
        return f"products have operands and sums of one type, not {elements}"
    if isinstance(op, MathOp) and op.function in EXPANSIONS:
        return f"{op.function} is expanded"
    if isinstance(op, SortOp):
        return "sorts are expanded"
    if isinstance(op, CastOp) and not is_native_cast(op):
        return f"casts from {op.x.type} to {op.type} are expanded"
    return None


@dataclass(frozen=True)
class Legalize(Pass, name="cpu-legalize"):
    """Leave only what the lowering accepts. fma: a * b + c is one instruction of the machine."""

    fma: bool = True

    def run(self, function: Function) -> bool:
        # in this order: widening makes functions of f32 and casts, and functions make casts
        widened = expand(function, _WIDEN | {SortOp: expand_sort})
        expanded = expand(function, {MathOp: partial(expand_math, fma=self.fma)})
        cast_by_hand = expand(function, {CastOp: expand_cast})
        # First in the `or`, which would skip the pass after anything true.
        return store_as_bits(function) or widened or expanded or cast_by_hand
