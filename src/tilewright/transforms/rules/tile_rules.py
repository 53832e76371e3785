"""Identities of ops that create and reshape tiles, and of dots."""

from __future__ import annotations

from typing import cast

from tilewright import ops
from tilewright.ir import Op, Rule, RuleContext, RuleSet, Trait, Value, rule
from tilewright.ir.types import shape_of
from tilewright.ops import (
    AddOp,
    BroadcastOp,
    ConstantOp,
    DotOp,
    ExpandDimsOp,
    HintOp,
    ItemOp,
    JoinOp,
    RangeOp,
    ReshapeOp,
    SplatOp,
    SplitOp,
    TransposeOp,
)
from tilewright.transforms.rules.exact_arithmetic import is_constant
from tilewright.transforms.rules.rebuilt_ops import scalar_of, with_operands

ReshapeLike = SplatOp | BroadcastOp | ExpandDimsOp | ReshapeOp | TransposeOp

# ---- tiles of one repeated value -----------------------------------------------------------------


@rule(SplatOp, BroadcastOp, ExpandDimsOp, ReshapeOp, TransposeOp, ItemOp)
def shape_of_constant(op: ReshapeLike | ItemOp, ctx: RuleContext) -> Value | None:
    """splat(c), broadcast(c), expand_dims(c), reshape(c), transpose(c), item(c) -> c"""
    inner = op.x.op
    # a NaN stays where it is: its payload may matter
    if not isinstance(inner, ConstantOp) or inner.value != inner.value:
        return None
    return ctx.constant(inner.value, op.type)


@rule(BroadcastOp, ExpandDimsOp, ReshapeOp, TransposeOp)
def shape_of_splat(op: ReshapeLike, ctx: RuleContext) -> Value | None:
    """broadcast(splat(x)) -> splat(x), and so on"""
    inner = op.x.op
    if not isinstance(inner, SplatOp):
        return None
    return ctx.splat(inner.x, shape_of(op.type))


@rule(ItemOp)
def item_of_splat(op: ItemOp, ctx: RuleContext) -> Value | None:
    """item(splat(x)) -> x"""
    inner = op.x.op
    return inner.x if isinstance(inner, SplatOp) else None


@rule(ItemOp)
def item_of_reshaped(op: ItemOp, ctx: RuleContext) -> Value | None:
    """item(reshape(x)) -> item(x), also of expand_dims, transpose and broadcast"""
    inner = op.x.op
    if isinstance(inner, ReshapeOp | ExpandDimsOp | TransposeOp | BroadcastOp):
        return ctx.value(ItemOp(inner.x))
    return None


# The tile ops, whatever else was imported before: a rule must not depend on imports.
_UNIFORM: tuple[type[Op], ...] = tuple(
    cls
    for cls in vars(ops).values()
    if isinstance(cls, type)
    and issubclass(cls, Op)
    and Trait.ELEMENTWISE in cls.traits
    and cls.operand_fields
    and all(field.role == "operand" for field in cls.operand_fields)
)


@rule(*_UNIFORM)
def uniform_elementwise(op: Op, ctx: RuleContext) -> Value | None:
    """splat(x) <op> splat(y) -> splat(x <op> y), for element-wise ops; constants count as splats"""
    shape = shape_of(op.type)
    definitions = [value.op for value in op.operands]
    if not shape or not all(isinstance(d, SplatOp | ConstantOp) for d in definitions):
        return None
    # constants alone are left to folding; a splat of them would become a constant again
    if not any(isinstance(d, SplatOp) for d in definitions):
        return None
    scalars = [cast("Value", scalar_of(ctx, value)) for value in op.operands]
    return ctx.splat(ctx.value(with_operands(op, scalars)), shape)


@rule(RangeOp)
def range_of_one(op: RangeOp, ctx: RuleContext) -> Value | None:
    """range(n, n + 1) -> n"""
    return ctx.constant(op.start, op.type) if op.end - op.start == 1 else None


# ---- shape after shape ---------------------------------------------------------------------------


@rule(BroadcastOp, ReshapeOp)
def same_shape(op: BroadcastOp | ReshapeOp, ctx: RuleContext) -> Value | None:
    """broadcast(x), reshape(x) -> x, to the shape it has"""
    return op.x if op.x.type is op.type else None


@rule(BroadcastOp)
def broadcast_of_broadcast(op: BroadcastOp, ctx: RuleContext) -> Value | None:
    """broadcast(broadcast(x)) -> broadcast(x)"""
    inner = op.x.op
    return ctx.value(BroadcastOp(inner.x, op.shape)) if isinstance(inner, BroadcastOp) else None


@rule(ReshapeOp)
def reshape_of_reshape(op: ReshapeOp, ctx: RuleContext) -> Value | None:
    """reshape(reshape(x)) -> reshape(x); expand_dims counts as a reshape"""
    inner = op.x.op
    if not isinstance(inner, ReshapeOp | ExpandDimsOp):
        return None
    return ctx.value(ReshapeOp(inner.x, op.shape))


@rule(ReshapeOp)
def reshape_to_expand_dims(op: ReshapeOp, ctx: RuleContext) -> Value | None:
    """reshape(x) -> expand_dims(x), where the shapes differ by one extent of 1"""
    source = shape_of(op.x.type)
    for axis in range(len(op.shape)):
        if op.shape[axis] == 1 and (*op.shape[:axis], *op.shape[axis + 1 :]) == source:
            return ctx.value(ExpandDimsOp(op.x, axis))
    return None


@rule(TransposeOp)
def transpose_of_nothing(op: TransposeOp, ctx: RuleContext) -> Value | None:
    """transpose(x) -> x, with the dimensions in order"""
    return op.x if op.order == tuple(range(len(op.order))) else None


@rule(TransposeOp)
def transpose_of_transpose(op: TransposeOp, ctx: RuleContext) -> Value | None:
    """transpose(transpose(x)) -> transpose(x)"""
    inner = op.x.op
    if not isinstance(inner, TransposeOp):
        return None
    return ctx.value(TransposeOp(inner.x, tuple(inner.order[k] for k in op.order)))


@rule(SplitOp)
def split_of_join(op: SplitOp, ctx: RuleContext) -> tuple[Value, Value] | None:
    """split(join(x, y)) -> x, y"""
    inner = op.x.op
    return (inner.lhs, inner.rhs) if isinstance(inner, JoinOp) else None


@rule(JoinOp)
def join_of_split(op: JoinOp, ctx: RuleContext) -> Value | None:
    """join(split(x)) -> x"""
    inner = op.lhs.op
    if not isinstance(inner, SplitOp) or inner is not op.rhs.op:
        return None
    return inner.x if (op.lhs.index, op.rhs.index) == (0, 1) else None


# ---- promises ------------------------------------------------------------------------------------


@rule(HintOp)
def empty_hint(op: HintOp, ctx: RuleContext) -> Value | None:
    """hint(x) -> x, without a promise, or if x is a constant"""
    promises = (*op.divisibility, *op.contiguity, *op.constancy)
    if any(p > 1 for p in promises) and not isinstance(op.x.op, ConstantOp):
        return None
    return op.x


@rule(HintOp)
def repeated_hint(op: HintOp, ctx: RuleContext) -> Value | None:
    """hint(hint(x)) -> hint(x), if both promise the same"""
    inner = op.x.op
    return op.x if isinstance(inner, HintOp) and inner.attrs == op.attrs else None


# ---- dots ----------------------------------------------------------------------------------------


@rule(AddOp)
def add_to_dot(op: AddOp, ctx: RuleContext) -> Value | None:
    """acc + dot(a, b, 0) -> dot(a, b, acc), on either side, if the product has no other use"""
    for product, acc in ((op.rhs, op.lhs), (op.lhs, op.rhs)):
        dot = product.op
        if isinstance(dot, DotOp) and _only_use(product, op) and is_constant(dot.acc, 0):
            return ctx.value(type(dot)(dot.a, dot.b, acc, dot.precision, dot.max_imprecise))
    return None


def _only_use(value: Value, op: Op) -> bool:
    """Whether `op` uses a value once, in the block of its definition, and nothing else does."""
    definition = value.op
    alone = len(value.uses) == 1 and value.uses.get(op) == 1
    return alone and definition is not None and definition.parent is op.parent


TILE = RuleSet(item for item in globals().values() if isinstance(item, Rule))
"""All of the above, in this order."""
