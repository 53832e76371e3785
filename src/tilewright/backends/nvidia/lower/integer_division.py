"""Quotients and remainders of integers.

%q = arith.div %x, %n         %d = select %n == 0, 1, %n      zero divides as one
                         ->   %q = sdiv %x, %d                no test for -1: n is not negative
%r = arith.rem %x, %n         %r = %x - %q * %d               one division for both
"""

from __future__ import annotations

from tilewright.analysis import integer_range
from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering, in_body
from tilewright.ir import Value
from tilewright.ir.types import dtype_of
from tilewright.llvm import Val, divide_integers, integer_literal
from tilewright.ops import DivOp, RemOp


def divide(state: GpuLowering, op: DivOp | RemOp, operands: list[Val]) -> Val:
    """One element of a division of integers."""
    lhs, rhs = operands
    # Names of values are unique, and their definitions dominate the later ops of their block.
    quotients = state.quotients.setdefault(op.parent, {})
    # By a constant, LLVM divides without a division.
    if isinstance(op, RemOp) and rhs.constant is None and (lhs.text, rhs.text) in quotients:
        zero, one = integer_literal(0, rhs.type), integer_literal(1, rhs.type)
        divisor = state.code.select(state.code.compare("icmp eq", rhs, zero), one, rhs)
        whole = state.code.binary("mul", quotients[lhs.text, rhs.text], divisor)
        return in_body(state.code.binary("sub", lhs, whole))
    what = "div" if isinstance(op, DivOp) else "rem"
    kind, natural = dtype_of(op.result.type), _is_natural(state, op.rhs)
    result = in_body(divide_integers(state.code, kind, what, lhs, rhs, natural=natural))
    if isinstance(op, DivOp):
        quotients[lhs.text, rhs.text] = result
    return result


def _is_natural(state: GpuLowering, divisor: Value) -> bool:
    """Whether no element of a divisor is negative; one query serves all registers."""
    if divisor not in state.natural:
        limits = integer_range(divisor)
        state.natural[divisor] = limits is not None and limits.low >= 0
    return state.natural[divisor]
