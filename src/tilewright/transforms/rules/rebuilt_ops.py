"""Helpers of rules: ops with other operands, scalars of tiles."""

from __future__ import annotations

from tilewright.ir import Op, RuleContext, Value
from tilewright.ir.types import TileType, element_of, shape_of
from tilewright.ops import ConstantOp, SplatOp


def with_operands(op: Op, operands: list[Value]) -> Op:
    """An op of the same class and attributes on other operands; its types are inferred anew.

    A declared result type keeps its element and takes the shape of the first operand.
    """
    fields = dict(op.attrs)
    declared = fields.get("result_type")
    if isinstance(declared, TileType):
        shape = shape_of(operands[0].type)
        element = element_of(declared)
        fields["result_type"] = TileType(shape, element) if shape else element
    for field, value in zip(op.operand_fields, operands, strict=False):
        assert field.role != "variadic"
        fields[field.name] = value
    return type(op)(**fields)


def scalar_of(ctx: RuleContext, value: Value) -> Value | None:
    """The scalar that a tile repeats, if it is a splat or a constant."""
    op = value.op
    if isinstance(op, SplatOp):
        return op.x
    if isinstance(op, ConstantOp):
        return ctx.constant(op.value, element_of(op.result_type))
    return None
