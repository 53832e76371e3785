"""Broadcasting of values, and the limits of tile shapes."""

from __future__ import annotations

from math import prod

from tilewright.frontend.semantics.semantic_context import Context
from tilewright.ir import Value
from tilewright.ir.types import TileType, shape_of
from tilewright.ops import BroadcastOp, ExpandDimsOp
from tilewright.support import errors

Shape = tuple[int, ...]
Mismatch = type[errors.ShapeMismatch]
"""The error class that reports two shapes that do not fit."""


def check_tile(ctx: Context, shape: Shape) -> Shape:
    """`shape`, checked against the limits of a tile. Errors: NonPowerOfTwo, BlockTooLarge."""
    powers_of_two = ctx.options.triton_limits or ctx.options.strict_triton
    for dim, extent in enumerate(shape):
        if extent < 1 or (powers_of_two and extent & (extent - 1)):
            triton = f"Shape element {dim} must be a power of 2"
            what = f"extent {dim} of a tile of shape {shape}"
            ctx.fail(errors.NonPowerOfTwo, what, extent, triton=triton)
    elements = prod(shape)
    if elements > ctx.options.max_tile_numel:
        ctx.fail(errors.BlockTooLarge, shape, elements, ctx.options.max_tile_numel)
    return shape


def common_shape(
    ctx: Context,
    verb: str,
    left: Shape,
    right: Shape,
    *,
    mismatch: Mismatch = errors.ShapeMismatch,
) -> Shape:
    """The shape that both broadcast to. Errors: `mismatch`, BlockTooLarge."""
    if left == right or not right:
        return left
    if not left:
        return right
    # NumPy's rule: missing dimensions are prepended, then extents of 1 stretch.
    rank = max(len(left), len(right))
    padded = zip((1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right, strict=True)
    shape: list[int] = []
    for a, b in padded:
        if a != b and a != 1 and b != 1:
            ctx.fail(mismatch, verb, left, right)
        shape.append(max(a, b))
    return check_tile(ctx, tuple(shape))


def broadcast_value(
    ctx: Context,
    value: Value,
    shape: Shape,
    verb: str = "broadcast",
    *,
    mismatch: Mismatch = errors.ShapeMismatch,
) -> Value:
    """`value` in exactly `shape`. Errors: `mismatch`."""
    type_ = value.type
    if not isinstance(type_, TileType):
        return ctx.splat(value, shape) if shape else value
    current = type_.shape
    if current == shape:
        return value
    # The common shape may exceed `shape`, but only the value may be stretched, not the target.
    if common_shape(ctx, verb, current, shape, mismatch=mismatch) != shape:
        ctx.fail(mismatch, verb, current, shape)
    for _ in range(len(shape) - len(current)):
        value = ctx.value(ExpandDimsOp(value, 0))
    return value if shape_of(value.type) == shape else ctx.value(BroadcastOp(value, shape))


def broadcast_pair(ctx: Context, verb: str, x: Value, y: Value) -> tuple[Value, Value]:
    """Both values in their common shape."""
    left, right = shape_of(x.type), shape_of(y.type)
    if left == right:
        return x, y
    shape = common_shape(ctx, verb, left, right)
    return broadcast_value(ctx, x, shape, verb), broadcast_value(ctx, y, shape, verb)
