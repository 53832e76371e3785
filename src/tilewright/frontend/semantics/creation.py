"""The grid, and creation of tiles: program_id, arange, full, zeros."""

from __future__ import annotations

from tilewright.frontend.dtype_promotion import Literal
from tilewright.frontend.semantics import constant_arguments
from tilewright.frontend.semantics.broadcasting import broadcast_value, check_tile
from tilewright.frontend.semantics.dtype_casts import as_offset, cast_value, number_type
from tilewright.frontend.semantics.literal_constants import constant, dtype_of_literal, materialize
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import implements
from tilewright.ir.types import DType, element_of, i32, shape_of, with_shape
from tilewright.language import (
    arange,
    full,
    num_programs,
    program_id,
    tensor,
    to_tensor,
    zeros,
    zeros_like,
)
from tilewright.ops import NumProgramsOp, ProgramIdOp
from tilewright.support import errors


@implements(program_id)
def program_id_semantics(ctx: Context, axis: object) -> tensor:
    return as_offset(ctx, ctx.tensor(ProgramIdOp(_grid_axis(ctx, "program_id", axis))))


@implements(num_programs)
def num_programs_semantics(ctx: Context, axis: object) -> tensor:
    return as_offset(ctx, ctx.tensor(NumProgramsOp(_grid_axis(ctx, "num_programs", axis))))


def _grid_axis(ctx: Context, function: str, value: object) -> int:
    axis = constant_arguments.integer(ctx, function, "axis", value)
    if axis not in (0, 1, 2):
        triton = f"{function} axis must be 0, 1, or 2 but got {axis}"
        ctx.fail(errors.InvalidValue, function, "axis", "0, 1 or 2", axis, triton=triton)
    return axis


@implements(arange)
def arange_semantics(ctx: Context, start: object, end: object = None) -> tensor:
    # One argument is the end, as for Python's range.
    if end is None:
        start, end = 0, start
    first = constant_arguments.integer(ctx, "arange", "start", start)
    last = constant_arguments.integer(ctx, "arange", "end", end)
    if last <= first:
        ctx.fail(errors.InvalidValue, "arange", "end", f"above 'start', which is {first}", last)
    # arange is int32 in Triton whatever its ends; the last element, not `end`, must fit.
    if first < i32.min_int or last - 1 > i32.max_int:
        ctx.fail(errors.LiteralOutOfRange, last if first >= i32.min_int else first, "int32")
    # n & (n - 1) is 0 for powers of two only.
    powers_of_two = ctx.options.triton_limits or ctx.options.strict_triton
    if powers_of_two and (last - first) & (last - first - 1):
        triton = "arange's range must be a power of 2"
        ctx.fail(errors.NonPowerOfTwo, "the length of arange", last - first, triton=triton)
    check_tile(ctx, (last - first,))
    return as_offset(ctx, tensor(ctx.arange(first, last)))


@implements(full)
def full_semantics(
    ctx: Context, shape: object, value: tensor | Literal, dtype: object = None
) -> tensor:
    extents = constant_arguments.shape(ctx, "full", shape)
    if isinstance(value, tensor):
        scalar = value.handle
        if dtype is not None:
            scalar = cast_value(ctx, scalar, number_type(ctx, "full", dtype))
        return tensor(broadcast_value(ctx, scalar, extents))
    element = number_type(ctx, "full", dtype) if dtype else dtype_of_literal(ctx, value)
    return filled(ctx, extents, value, element)


def filled(ctx: Context, shape: tuple[int, ...], value: Literal, element: DType) -> tensor:
    """A literal in every element of a shape, () for a scalar."""
    return tensor(constant(ctx, value, with_shape(element, shape)))


@implements(zeros)
def zeros_semantics(ctx: Context, shape: object, dtype: object) -> tensor:
    extents = constant_arguments.shape(ctx, "zeros", shape)
    return filled(ctx, extents, 0, number_type(ctx, "zeros", dtype))


@implements(zeros_like)
def zeros_like_semantics(ctx: Context, input: object) -> tensor:
    like = constant_arguments.tensor_argument(ctx, "zeros_like", "input", input)
    element = element_of(like.handle.type)
    # A pointer type has no literal 0.
    if not isinstance(element, DType):
        ctx.fail(errors.InvalidOperation, "make zeros like a pointer", "it is not a number")
    return filled(ctx, shape_of(like.handle.type), 0, element)


@implements(to_tensor)
def to_tensor_semantics(ctx: Context, x: object) -> tensor:
    return materialize(ctx, x)
