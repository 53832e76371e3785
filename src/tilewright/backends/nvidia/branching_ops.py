"""Element-wise ops that become a branch for each element."""

from __future__ import annotations

from tilewright.ir import Op
from tilewright.ir.types import dtype_of, f32
from tilewright.ops import DivOp, RemOp

RARE = "arith.rare"


def has_branch(op: Op) -> bool:
    """Whether values before an op are live across a branch for each element.

    Such ops are a rare form, a remainder, or a correctly rounded quotient or root of fp32.
    """
    if op.opcode == RARE or isinstance(op, RemOp):
        return True
    if isinstance(op, DivOp):
        return dtype_of(op.type) is f32 and op.rounding == "nearest"
    return op.attrs.get("function") == "sqrt_rn" and dtype_of(op.results[0].type) is f32
