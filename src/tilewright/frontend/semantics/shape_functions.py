"""Shapes: broadcast, reshape, transpose, join, split, cat, gather, indexing with None."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright import language as tl
from tilewright.frontend.semantics import constant_arguments
from tilewright.frontend.semantics.broadcasting import (
    broadcast_pair,
    broadcast_value,
    check_tile,
)
from tilewright.frontend.semantics.dtype_casts import cast_value
from tilewright.frontend.semantics.literal_constants import constant, materialize
from tilewright.frontend.semantics.numeric_operators import result_dtype
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import implements
from tilewright.ir import Value
from tilewright.ir.types import TileType, element_of, i32, shape_of
from tilewright.language import tensor
from tilewright.ops import (
    CatOp,
    ExpandDimsOp,
    GatherOp,
    ItemOp,
    JoinOp,
    ReshapeOp,
    SplitOp,
    TransposeOp,
)
from tilewright.support import errors


def expand(ctx: Context, x: tensor, axes: Sequence[int]) -> tensor:
    """`x` with an extent of 1 at each of the ascending `axes` (positions in the result)."""
    value = x.handle
    for axis in axes:
        value = _expanded(ctx, value, axis)
    return tensor(value)


def _expanded(ctx: Context, value: Value, axis: int) -> Value:
    if isinstance(value.type, TileType):
        return ctx.value(ExpandDimsOp(value, axis))
    # ExpandDims takes tiles; a scalar becomes a tile of one element instead.
    return ctx.splat(value, (1,))


@implements(tl.broadcast_to)
def broadcast_to(ctx: Context, input: object, *shape: object) -> tensor:
    extents = constant_arguments.shape(
        ctx, "broadcast_to", constant_arguments.variadic_items(shape)
    )
    return tensor(broadcast_value(ctx, materialize(ctx, input).handle, extents))


@implements(tl.broadcast)
def broadcast(ctx: Context, input: object, other: object) -> tuple[tensor, tensor]:
    x, y = materialize(ctx, input).handle, materialize(ctx, other).handle
    left, right = broadcast_pair(ctx, "broadcast", x, y)
    return tensor(left), tensor(right)


@implements(tl.expand_dims)
def expand_dims(ctx: Context, input: object, axis: object) -> tensor:
    x = materialize(ctx, input)
    axes = constant_arguments.integers(ctx, "expand_dims", "axis", axis)
    rank = len(shape_of(x.handle.type)) + len(axes)
    # Ascending, so that an earlier insertion does not move the later ones.
    dims = sorted(constant_arguments.axis(ctx, "expand_dims", a, rank) for a in axes)
    if len(set(dims)) < len(dims):
        triton = f"expand_dims received duplicate axes, normalized axes = {dims}"
        expected = "free of repetition"
        ctx.fail(errors.InvalidValue, "expand_dims", "axis", expected, axes, triton=triton)
    return expand(ctx, x, dims)


@implements(tl.unsqueeze)
def unsqueeze(ctx: Context, x: object, dim: object) -> tensor:
    return expand_dims(ctx, x, dim)


@implements(tl.squeeze)
def squeeze(ctx: Context, x: object, dim: object) -> tensor:
    tile = constant_arguments.tile(ctx, "squeeze", "x", x)
    shape = shape_of(tile.handle.type)
    axis = constant_arguments.axis(ctx, "squeeze", dim, len(shape), "dim")
    if shape[axis] != 1:
        ctx.fail(errors.InvalidValue, "squeeze", "dim", "a dimension of extent 1", shape[axis])
    return reshaped(ctx, tile, (*shape[:axis], *shape[axis + 1 :]))


def reshaped(ctx: Context, x: tensor, shape: tuple[int, ...]) -> tensor:
    """The same elements in a shape of equal size; () gives a scalar."""
    if shape_of(x.handle.type) == shape:
        return x
    return ctx.tensor(ReshapeOp(x.handle, shape) if shape else ItemOp(x.handle))


@implements(tl.reshape)
def reshape(ctx: Context, input: object, *shape: object, can_reorder: object = False) -> tensor:
    x = materialize(ctx, input)
    extents = constant_arguments.integers(
        ctx, "reshape", "shape", constant_arguments.variadic_items(shape)
    )
    before = shape_of(x.handle.type)
    # No -1 as in NumPy: Triton's reshape has none.
    if prod(extents) != prod(before):
        ctx.fail(errors.ReshapeMismatch, "reshape", before, extents)
    check_tile(ctx, extents)
    return x if not before and not extents else _reshape_any(ctx, x, extents)


def _reshape_any(ctx: Context, x: tensor, extents: tuple[int, ...]) -> tensor:
    if not shape_of(x.handle.type):
        return tensor(ctx.splat(x.handle, extents))
    return reshaped(ctx, x, extents)


@implements(tl.view)
def view(ctx: Context, input: object, *shape: object) -> tensor:
    return reshape(ctx, input, *shape)


@implements(tl.ravel)
def ravel(ctx: Context, x: object, can_reorder: object = False) -> tensor:
    tile = materialize(ctx, x)
    return _reshape_any(ctx, tile, (prod(shape_of(tile.handle.type)),))


@implements(tl.trans)
def trans(ctx: Context, input: object, *dims: object) -> tensor:
    if dims:
        return permute(ctx, input, *dims)
    tile = constant_arguments.tile(ctx, "trans", "input", input)
    rank = len(shape_of(tile.handle.type))
    if rank < 2:
        ctx.fail(errors.InvalidOperation, f"transpose {tile.type}", "it has one dimension")
    # Only the last two dimensions change places; leading ones are a batch, as for dot.
    return ctx.tensor(TransposeOp(tile.handle, (*range(rank - 2), rank - 1, rank - 2)))


@implements(tl.permute)
def permute(ctx: Context, input: object, *dims: object) -> tensor:
    tile = constant_arguments.tile(ctx, "permute", "input", input)
    rank = len(shape_of(tile.handle.type))
    numbers = constant_arguments.integers(
        ctx, "permute", "dims", constant_arguments.variadic_items(dims)
    )
    order = tuple(constant_arguments.axis(ctx, "permute", d, rank, "dims") for d in numbers)
    if sorted(order) != list(range(rank)):
        expected = f"a permutation of the {rank} dimensions"
        ctx.fail(errors.InvalidValue, "permute", "dims", expected, numbers)
    return ctx.tensor(TransposeOp(tile.handle, order))


def _same_kind(ctx: Context, verb: str, a: object, b: object) -> tuple[Value, Value]:
    """Two operands in one shape and their common dtype; pointers must agree already."""
    x, y = materialize(ctx, a).handle, materialize(ctx, b).handle
    if element_of(x.type) is not element_of(y.type):
        common = result_dtype(ctx, "common", a, b, verb)
        x, y = cast_value(ctx, x, common), cast_value(ctx, y, common)
    return broadcast_pair(ctx, verb, x, y)


@implements(tl.join)
def join(ctx: Context, a: object, b: object) -> tensor:
    x, y = _same_kind(ctx, "join", a, b)
    shape = shape_of(x.type)
    check_tile(ctx, (*shape, 2))
    # JoinOp takes tiles; the pair of two scalars is a tile of two.
    if shape:
        return ctx.tensor(JoinOp(x, y))
    pair = ctx.tensor(JoinOp(ctx.splat(x, (1,)), ctx.splat(y, (1,))))
    return reshaped(ctx, pair, (2,))


@implements(tl.split)
def split(ctx: Context, a: object) -> tuple[tensor, tensor]:
    tile = constant_arguments.tile(ctx, "split", "a", a)
    shape = shape_of(tile.handle.type)
    if shape[-1] != 2:
        ctx.fail(errors.InvalidValue, "split", "a", "a tile whose last extent is 2", shape)
    # SplitOp needs an axis that remains; rank 1 gets one, which `reshaped` takes away again.
    value = tile.handle if len(shape) > 1 else ctx.value(ExpandDimsOp(tile.handle, 0))
    halves = [tensor(half) for half in ctx.emitter.emit(SplitOp(value)).results]
    first, second = (reshaped(ctx, half, shape[:-1]) for half in halves)
    return first, second


@implements(tl.interleave)
def interleave(ctx: Context, a: object, b: object) -> tensor:
    joined = join(ctx, a, b)
    shape = shape_of(joined.handle.type)
    return reshaped(ctx, joined, (*shape[:-2], prod(shape[-2:])))


@implements(tl.cat)
def cat(
    ctx: Context, input: object, other: object, can_reorder: object = False, dim: object = 0
) -> tensor:
    tiles = [
        constant_arguments.tile(ctx, "cat", name, value)
        for name, value in (("input", input), ("other", other))
    ]
    x, y = (tile.handle for tile in tiles)
    left, right = shape_of(x.type), shape_of(y.type)
    axis = constant_arguments.axis(ctx, "cat", dim, len(left), "dim")
    # A third tile passed by position would be taken for can_reorder.
    if isinstance(can_reorder, tensor):
        instead = "call it twice: tl.cat(tl.cat(a, b), c)"
        reason = "cat takes two"
        ctx.fail(errors.InvalidOperation, "concatenate more than two tiles", reason, instead)
    if element_of(x.type) is not element_of(y.type):
        # No promotion: `cat` only moves elements.
        ctx.fail(errors.DTypeMismatch, "concatenate", tiles[0].dtype, tiles[1].dtype)
    _check_other_extents(ctx, "concatenate", left, right, axis)
    check_tile(ctx, (*left[:axis], left[axis] + right[axis], *left[axis + 1 :]))
    return ctx.tensor(CatOp(x, y, axis))


def _check_other_extents(
    ctx: Context, verb: str, left: tuple[int, ...], right: tuple[int, ...], axis: int
) -> None:
    """Check that two shapes are equal except along an axis. Errors: ShapeMismatch."""
    if len(left) != len(right):
        reason = f"their ranks are {len(left)} and {len(right)}"
        ctx.fail(errors.ShapeMismatch, verb, left, right, reason)
    for dim, (a, b) in enumerate(zip(left, right, strict=True)):
        if a != b and dim != axis:
            reason = f"dimension {dim} is {a} and {b}, but only axis {axis} may differ"
            ctx.fail(errors.ShapeMismatch, verb, left, right, reason)


@implements(tl.gather)
def gather(ctx: Context, src: object, index: object, axis: object) -> tensor:
    source = constant_arguments.tile(ctx, "gather", "src", src)
    where = constant_arguments.tile(ctx, "gather", "index", index)
    if not where.dtype.is_int():
        ctx.fail(errors.InvalidValue, "gather", "index", "an integer tile", where.type)
    left, right = shape_of(source.handle.type), shape_of(where.handle.type)
    dim = constant_arguments.axis(ctx, "gather", axis, len(left))
    _check_other_extents(ctx, "gather", left, right, dim)
    return ctx.tensor(GatherOp(source.handle, where.handle, dim))


@implements(tl.flip)
def flip(ctx: Context, x: object, dim: object = None) -> tensor:
    tile = constant_arguments.tile(ctx, "flip", "x", x)
    shape = shape_of(tile.handle.type)
    axis = constant_arguments.axis(ctx, "flip", -1 if dim is None else dim, len(shape), "dim")
    extent = shape[axis]
    # Tile IR has no op for reversal; a gather with descending indices reverses.
    last = constant(ctx, extent - 1, TileType((extent,), i32))
    reverse = ctx.sub(last, ctx.arange(0, extent))
    return ctx.tensor(GatherOp(tile.handle, ctx.along(reverse, axis, shape), axis))


def part(ctx: Context, x: tensor, axis: int, start: int, count: int) -> tensor:
    """The elements `start` to `start + count` of a tile along an axis, within its extent."""
    shape = list(shape_of(x.handle.type))
    shape[axis] = count
    index = ctx.arange(start, start + count)
    # A slice is a gather with constant indices: tile IR has no op that slices.
    return ctx.tensor(GatherOp(x.handle, ctx.along(index, axis, tuple(shape)), axis))


def without_axis(ctx: Context, x: tensor, axis: int) -> tensor:
    """A tile without an axis of extent 1; a scalar if that is the only axis."""
    shape = shape_of(x.handle.type)
    return reshaped(ctx, x, (*shape[:axis], *shape[axis + 1 :]))


@implements(tl.item)
def item(ctx: Context, input: object) -> tensor:
    x = constant_arguments.tensor_argument(ctx, "item", "input", input)
    if prod(shape_of(x.handle.type)) != 1:
        ctx.fail(errors.InvalidValue, "item", "input", "a tile of one element", x.type)
    return reshaped(ctx, x, ())
