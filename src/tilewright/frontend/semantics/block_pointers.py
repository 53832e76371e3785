"""Block pointers: windows into strided arrays, expanded to tiles of pointers with masks.

    p = make_block_ptr(base, shape=(M, K), strides=(sm, 1), offsets=(m, 0), block_shape=(BM, BK),
    ...) load(p, boundary_check=(0,))
        index_0 = m + arange(BM)[:, None]           # int64, as the strides
        index_1 = 0 + arange(BK)[None, :]
        load(base + index_0 * sm + index_1 * 1, mask=(0 <= index_0) & (index_0 < M))

A dimension that is not checked adds no mask, so that its accesses stay plainly contiguous.
"""

from __future__ import annotations

from typing import NamedTuple

from tilewright import language as tl
from tilewright.frontend.semantics import constant_arguments
from tilewright.frontend.semantics.broadcasting import broadcast_value
from tilewright.frontend.semantics.dtype_casts import cast_to
from tilewright.frontend.semantics.literal_constants import constant, describe, is_pointer
from tilewright.frontend.semantics.numeric_operators import binary
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import implements
from tilewright.ir import Value
from tilewright.ir.types import PointerType, i64, shape_of, with_shape
from tilewright.language import block_pointer, tensor
from tilewright.ops import OffsetOp
from tilewright.support import errors

PADDING = ("", "zero", "nan")


class Window(NamedTuple):
    """A block pointer as a masked access."""

    pointer: Value
    mask: Value | None
    other: Value | None


@implements(tl.make_block_ptr)
def make_block_ptr(
    ctx: Context,
    base: object,
    shape: object,
    strides: object,
    offsets: object,
    block_shape: object,
    order: object,
) -> block_pointer:
    if not is_pointer(base) or not isinstance(base.handle.type, PointerType):
        actual = describe(base)
        ctx.fail(errors.InvalidValue, "make_block_ptr", "base", "a scalar pointer", actual)
    window = constant_arguments.shape(ctx, "make_block_ptr", block_shape)
    # Shape and strides of 64 bits: a product of index and stride may exceed int32.
    whole = _scalars(ctx, "shape", shape, tl.int64)
    steps = _scalars(ctx, "strides", strides, tl.int64)
    start = _scalars(ctx, "offsets", offsets, tl.int32)
    dims = constant_arguments.integers(ctx, "make_block_ptr", "order", order)
    rank = len(window)
    for name, items in (("shape", whole), ("strides", steps), ("offsets", start), ("order", dims)):
        if len(items) != rank:
            expected = f"of length {rank}, as block_shape"
            ctx.fail(errors.InvalidValue, "make_block_ptr", name, expected, len(items))
    if sorted(dims) != list(range(rank)):
        expected = f"a permutation of the {rank} dimensions"
        ctx.fail(errors.InvalidValue, "make_block_ptr", "order", expected, dims)
    return block_pointer(base, whole, steps, start, window, dims)


def _scalars(ctx: Context, name: str, values: object, dtype: tl.dtype) -> list[tensor]:
    scalars: list[tensor] = []
    for item in constant_arguments.sequence(ctx, "make_block_ptr", name, values):
        number = cast_to(ctx, item, dtype)
        if shape_of(number.handle.type):
            ctx.fail(errors.InvalidValue, "make_block_ptr", name, "of scalars", number.type)
        scalars.append(number)
    return scalars


@implements(tl.advance)
def advance(ctx: Context, base: object, offsets: object) -> block_pointer:
    if not isinstance(base, block_pointer):
        ctx.fail(errors.InvalidValue, "advance", "base", "a block pointer", describe(base))
    steps = constant_arguments.sequence(ctx, "advance", "offsets", offsets)
    if len(steps) != len(base.offsets):
        expected = f"of length {len(base.offsets)}, as the block pointer"
        ctx.fail(errors.InvalidValue, "advance", "offsets", expected, len(steps))
    moved = [
        # Back to the int32 of `make_block_ptr`, so that a window carried by a loop keeps its type.
        cast_to(ctx, binary(ctx, "add", o, s), tl.int32)
        for o, s in zip(base.offsets, steps, strict=True)
    ]
    return block_pointer(base.base, base.whole, base.strides, moved, base.block_shape, base.order)


def load_window(ctx: Context, p: block_pointer, boundary_check: object, padding: object) -> Window:
    """Pointers, mask and padding of a load. Errors: InvalidValue."""
    option = constant_arguments.choice(ctx, "load", "padding_option", padding, PADDING, "")
    window = store_window(ctx, p, boundary_check, "load")
    # Without a mask nothing is out of bounds, so a padding would never be read.
    if not option or window.mask is None:
        return window
    assert isinstance(p.base.handle.type, PointerType)
    element = p.base.handle.type.element
    if option == "nan" and not element.is_float:
        ctx.fail(errors.InvalidValue, "load", "padding_option", "zero for integers", '"nan"')
    pad = float("nan") if option == "nan" else 0
    return window._replace(other=constant(ctx, pad, with_shape(element, p.block_shape)))


def store_window(
    ctx: Context, p: block_pointer, boundary_check: object, function: str = "store"
) -> Window:
    """Pointers and mask of an access. Errors: InvalidValue."""
    shape = p.block_shape
    # None means no check; an axis may be listed twice, hence the set.
    dims = constant_arguments.integers(ctx, function, "boundary_check", boundary_check or ())
    checked = {
        constant_arguments.axis(ctx, function, dim, len(shape), "boundary_check") for dim in dims
    }
    distance = mask = None
    for dim in range(len(shape)):
        index = _index(ctx, p, dim)
        # The product is formed on the rank-1 tile, before broadcasting: fewer multiplications.
        step = ctx.mul(index, ctx.splat(p.strides[dim].handle, (shape[dim],)))
        part = ctx.along(step, dim, shape)
        distance = part if distance is None else ctx.add(distance, part)
        if dim in checked:
            inside = ctx.along(_inside(ctx, p, dim, index), dim, shape)
            mask = inside if mask is None else ctx.bit_and(mask, inside)
    assert distance is not None
    pointer = ctx.value(OffsetOp(broadcast_value(ctx, p.base.handle, shape), distance))
    return Window(pointer, mask, None)


def _index(ctx: Context, p: block_pointer, dim: int) -> Value:
    """Positions of the window along one dimension, as int64."""
    extent = p.block_shape[dim]
    counted = ctx.arange(0, extent)
    # Without int64 here, `offset + range` could wrap before the bounds are compared.
    counted = ctx.cast(counted, with_shape(i64, (extent,)))
    offset = ctx.cast(p.offsets[dim].handle, i64)
    return ctx.add(ctx.splat(offset, (extent,)), counted)


def _inside(ctx: Context, p: block_pointer, dim: int, index: Value) -> Value:
    """Whether positions are inside the array along one dimension."""
    extent = ctx.splat(p.whole[dim].handle, (p.block_shape[dim],))
    # Below zero as well: `advance` with a negative step may leave the array at its start.
    zero = constant(ctx, 0, index.type)
    below = ctx.lt(index, extent)
    return ctx.bit_and(ctx.ge(index, zero), below)
