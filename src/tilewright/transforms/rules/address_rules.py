"""Identities that move the uniform part of an address into its base pointer."""

from __future__ import annotations

from tilewright.ir import Rule, RuleContext, RuleSet, Value, rule
from tilewright.ir.types import shape_of
from tilewright.ops import ConstantOp, OffsetOp, SplatOp
from tilewright.transforms.rules.rebuilt_ops import scalar_of


@rule(OffsetOp)
def uniform_offset_to_base(op: OffsetOp, ctx: RuleContext) -> Value | None:
    """(splat(p) + b) + splat(a) -> splat(p + a) + b, where b is not uniform"""
    inner = op.pointer.op
    if not isinstance(inner, OffsetOp) or not isinstance(op.offset.op, SplatOp | ConstantOp):
        return None
    base = inner.pointer.op
    if not isinstance(base, SplatOp) or isinstance(inner.offset.op, SplatOp | ConstantOp):
        return None
    amount = scalar_of(ctx, op.offset)
    assert amount is not None
    moved = ctx.value(OffsetOp(base.x, amount))
    return ctx.value(OffsetOp(ctx.splat(moved, shape_of(op.type)), inner.offset))


ADDRESSES = RuleSet(item for item in globals().values() if isinstance(item, Rule))
"""All of the above, in this order."""
