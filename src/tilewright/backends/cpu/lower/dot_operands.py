"""Where the operands of matrix products live in scratch memory."""

from __future__ import annotations

from tilewright.backends.cpu.microkernel import DotSpec, VectorUnit, preferred_strides
from tilewright.backends.cpu.ops import Bf16DotOp
from tilewright.ir import Value
from tilewright.ir.types import dtype_of, shape_of
from tilewright.llvm import llvm_type
from tilewright.ops import DotOp


def dot_spec(unit: VectorUnit, op: DotOp) -> DotSpec:
    """The product of one pair of matrices, with the preferred strides."""
    m, k = shape_of(op.a.type)[-2:]
    n = shape_of(op.b.type)[-1]
    return DotSpec(m, n, k, element_of_product(op), unit)


def element_of_product(op: DotOp) -> str:
    """What the micro-kernel multiplies (`DotSpec.element`)."""
    kind = dtype_of(op.a.type)
    if isinstance(op, Bf16DotOp):
        return "bfloat"
    return kind.name if kind.bits == 8 else llvm_type(kind)


def operand_strides(unit: VectorUnit, value: Value) -> tuple[int, ...] | None:
    """Padded strides of a tile that is multiplied, so that its rows do not share cache sets."""
    # The first product decides; any other works with these strides too (see `lower_dot`).
    for user in value.uses:
        if not isinstance(user, DotOp) or value not in (user.a, user.b):
            continue
        shape = shape_of(value.type)
        strides = preferred_strides(dot_spec(unit, user))
        row = strides.lda if value is user.a else strides.ldb
        inner = (row, 1)
        for extent in reversed(shape[1:-1]):
            inner = (inner[0] * extent, *inner)
        return inner if len(shape) > 2 else (row, 1)
    return None
