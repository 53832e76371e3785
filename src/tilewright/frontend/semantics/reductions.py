"""Reductions and scans.

Each becomes one op per reduced axis whose region combines two scalars. Sums of floats below 32 bits
are accumulated in fp32 and rounded once, so that a tile of 4096 bf16 numbers has a useful sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from tilewright import language as tl
from tilewright.frontend.dtype_promotion import accumulator_dtype, extremum_dtype, sum_dtype
from tilewright.frontend.semantics import constant_arguments
from tilewright.frontend.semantics.broadcasting import broadcast_value
from tilewright.frontend.semantics.combines_with_effects import reduce_in_pairs, scan_in_halves
from tilewright.frontend.semantics.dtype_casts import cast_value, number_type
from tilewright.frontend.semantics.literal_constants import materialize
from tilewright.frontend.semantics.selection import extremum_value
from tilewright.frontend.semantics.semantic_context import Context, erase_ops
from tilewright.frontend.semantics.semantics_registry import call, implements
from tilewright.ir import Block, Op, Value
from tilewright.ir.types import DType, Type, element_of, shape_of
from tilewright.language import tensor, type_of, unwrap
from tilewright.ops import (
    AddOp,
    AndOp,
    ExpandDimsOp,
    MulOp,
    OrOp,
    ReduceOp,
    ScanOp,
    XorOp,
    op_with_effects,
)
from tilewright.support import errors

Combine = Callable[[list[tensor]], Sequence[tensor]]
"""A function of left values and then right values, as scalars, that returns the combined ones."""


def reduce_tiles(
    ctx: Context, inputs: Sequence[Value], axis: int | None, combine: Combine, keep_dims: bool
) -> list[tensor]:
    """Tiles of one shape folded along `axis`; None folds all axes, the last first."""
    rank = len(shape_of(inputs[0].type))
    values = list(inputs)
    # The last axis first, so that the numbers of the others do not change.
    for dim in (axis,) if axis is not None else reversed(range(rank)):
        values = _reduce_axis(ctx, values, dim, combine)
    if keep_dims:
        values = [_restore_dims(ctx, value, axis, rank) for value in values]
    return [tensor(value) for value in values]


def _reduce_axis(ctx: Context, values: list[Value], axis: int, combine: Combine) -> list[Value]:
    elements = [element_of(value.type) for value in values]
    # The region combines scalars: the backend chooses how often and on how many lanes it runs.
    region, effect = _region(ctx, [*elements, *elements], combine)
    if effect is None:
        return list(ctx.emitter.emit(ReduceOp(tuple(values), region, axis)).results)
    erase_ops(region)
    tiles = reduce_in_pairs(ctx, [*map(tensor, values)], axis, combine)
    return [tile.handle for tile in tiles]


def function_region(
    ctx: Context,
    arg_types: Sequence[Type],
    body: Callable[[list[tensor]], Sequence[tensor]],
    what: tuple[str, str],
) -> Block:
    """A region without effects. Errors: InvalidOperation for an op with effects in it.

    what: a name of the function for the error, and why it may have no effects
    """
    region, effect = _region(ctx, arg_types, body)
    if effect is not None:
        name, reason = what
        doing = f"access memory, print, or assert in {name}"
        raise errors.InvalidOperation(doing, reason, loc=effect.loc or ctx.loc)
    return region


def _region(
    ctx: Context, arg_types: Sequence[Type], body: Callable[[list[tensor]], Sequence[tensor]]
) -> tuple[Block, Op | None]:
    """A region, and an op with effects in it."""
    outer = ctx.options
    # A check of overflow is an assertion, an effect, which no such region may have.
    ctx.options = replace(outer, sanitize_overflow=False)
    try:
        region = ctx.region(arg_types, body)
    finally:
        ctx.options = outer
    return region, op_with_effects(region)


def _restore_dims(ctx: Context, value: Value, axis: int | None, rank: int) -> Value:
    """A folded value with extent 1 along the folded axis."""
    if axis is None or rank == 1:
        return broadcast_value(ctx, value, (1,) * rank)
    return ctx.value(ExpandDimsOp(value, axis))


def combine_by_op(ctx: Context, op: Callable[[Value, Value], Any]) -> Combine:
    """The combination of one pair by one op."""
    return lambda pair: [ctx.tensor(op(pair[0].handle, pair[1].handle))]


def user_combine(ctx: Context, function: str, fn: object, inputs: Sequence[Value]) -> Combine:
    """A device function as a combination; its results must have the dtypes of the inputs."""
    elements = [element_of(value.type) for value in inputs]

    def combine(scalars: list[tensor]) -> list[tensor]:
        returned = unwrap(call(ctx, fn, scalars, {}))
        items = cast("Sequence[Any]", returned if isinstance(returned, tuple) else (returned,))
        if len(items) != len(elements):
            ctx.fail(errors.ArgumentCount, f"{function}: the result of combine_fn", 1, len(items))
        # constexpr results count as tensors here: the region needs run-time values to yield.
        results = [materialize(ctx, item) for item in items]
        for result, element in zip(results, elements, strict=True):
            # No implicit conversion: each partial result is fed back as an operand.
            if element_of(result.handle.type) is not element:
                expected, actual = type_of(element), result.type
                ctx.fail(errors.DTypeMismatch, f"{function}: combine", expected, actual)
        return results

    return combine


def tiles_argument(
    ctx: Context, function: str, value: object, axis: object
) -> tuple[list[Value], bool]:
    """One tile or a tuple of tiles of one shape; and whether it was a tuple."""
    if isinstance(value, tensor):
        return [_as_tile(ctx, function, value, axis).handle], False
    items = constant_arguments.sequence(ctx, function, "input", value)
    tiles = [_as_tile(ctx, function, item, axis).handle for item in items]
    for tile in tiles[1:]:
        if shape_of(tile.type) != shape_of(tiles[0].type):
            shapes, reason = (shape_of(tiles[0].type), shape_of(tile.type)), "they must be equal"
            ctx.fail(errors.ShapeMismatch, function, *shapes, reason)
    return tiles, True


def _as_tile(ctx: Context, function: str, value: object, axis: object) -> tensor:
    """The tile to fold along `axis`; without one, a scalar is a tile of one element."""
    # Triton reduces scalars without an axis; with one, the axis does not exist.
    if isinstance(value, tensor) and not value.shape and unwrap(axis) is None:
        return tensor(ctx.splat(value.handle, (1,)))
    return constant_arguments.tile(ctx, function, "input", value)


def optional_axis(ctx: Context, function: str, axis: object, tile: Value) -> int | None:
    """An axis of a tile; None for all."""
    rank = len(shape_of(tile.type))
    return None if unwrap(axis) is None else constant_arguments.axis(ctx, function, axis, rank)


@implements(tl.reduce)
def reduce(
    ctx: Context, input: object, axis: object, combine_fn: object, keep_dims: object = False
) -> Any:
    tiles, many = tiles_argument(ctx, "reduce", input, axis)
    dim = optional_axis(ctx, "reduce", axis, tiles[0])
    combine = user_combine(ctx, "reduce", combine_fn, tiles)
    keep = constant_arguments.flag(ctx, "reduce", "keep_dims", keep_dims)
    results = reduce_tiles(ctx, tiles, dim, combine, keep)
    return tl.tuple(results) if many else results[0]


@implements(tl.associative_scan)
def associative_scan(
    ctx: Context, input: object, axis: object, combine_fn: object, reverse: object = False
) -> Any:
    tiles, many = tiles_argument(ctx, "associative_scan", input, axis)
    combine = user_combine(ctx, "associative_scan", combine_fn, tiles)
    results = scan(ctx, "associative_scan", tiles, axis, combine, reverse)
    return tl.tuple(results) if many else results[0]


def scan(
    ctx: Context,
    function: str,
    tiles: Sequence[Value],
    axis: object,
    combine: Combine,
    reverse: object,
) -> list[tensor]:
    """The inclusive scan of tiles of one shape."""
    dim = constant_arguments.axis(ctx, function, axis, len(shape_of(tiles[0].type)))
    elements = [element_of(tile.type) for tile in tiles]
    backwards = constant_arguments.flag(ctx, function, "reverse", reverse)
    region, effect = _region(ctx, [*elements, *elements], combine)
    if effect is not None:
        erase_ops(region)
        return scan_in_halves(ctx, [*map(tensor, tiles)], dim, combine, backwards)
    op = ctx.emitter.emit(ScanOp(tuple(tiles), region, dim, backwards))
    return [tensor(result) for result in op.results]


def number_tile(ctx: Context, function: str, input: object) -> tuple[Value, DType]:
    """A tile of numbers and its dtype. Errors: InvalidValue."""
    tile = constant_arguments.tile(ctx, function, "input", input)
    value = tile.handle
    element = element_of(value.type)
    if not isinstance(element, DType):
        ctx.fail(errors.InvalidValue, function, "input", "a tile of numbers", tile.type)
    return value, element


class ReductionArguments(NamedTuple):
    """Arguments of a reduction: a tile, its dtype, the axis (None: all), whether dims are kept."""

    value: Value
    element: DType
    axis: int | None
    keep_dims: bool


def reduction_arguments(
    ctx: Context, function: str, input: object, axis: object, keep_dims: object
) -> ReductionArguments:
    """The arguments of a reduction."""
    keep = constant_arguments.flag(ctx, function, "keep_dims", keep_dims)
    # A scalar has no dimension to keep.
    keep = keep and isinstance(input, tensor) and bool(input.shape)
    value, element = number_tile(ctx, function, _as_tile(ctx, function, input, axis))
    return ReductionArguments(value, element, optional_axis(ctx, function, axis, value), keep)


def _sum_operand(
    ctx: Context, function: str, value: Value, element: DType, dtype: object
) -> tuple[Value, DType]:
    """A tile in the accumulator dtype, and the dtype of the result."""
    result = sum_dtype(element) if dtype is None else number_type(ctx, function, dtype)
    # Sum in the wide type and round once: bf16 sums would stop growing after 256 equal terms.
    return cast_value(ctx, value, accumulator_dtype(result)), result


@implements(tl.sum)
def sum(
    ctx: Context,
    input: object,
    axis: object = None,
    keep_dims: object = False,
    dtype: object = None,
) -> tensor:
    what = reduction_arguments(ctx, "sum", input, axis, keep_dims)
    value, result = _sum_operand(ctx, "sum", what.value, what.element, dtype)
    (total,) = reduce_tiles(ctx, [value], what.axis, combine_by_op(ctx, AddOp), what.keep_dims)
    return tensor(cast_value(ctx, total.handle, result))


def _register_scan(name: str, op: type[AddOp | MulOp]) -> None:
    @implements(getattr(tl, name))
    def function(  # pyright: ignore[reportUnusedFunction]
        ctx: Context, input: object, axis: object = 0, reverse: object = False, dtype: object = None
    ) -> tensor:
        value, result = _sum_operand(ctx, name, *number_tile(ctx, name, input), dtype)
        (totals,) = scan(ctx, name, [value], axis, combine_by_op(ctx, op), reverse)
        return tensor(cast_value(ctx, totals.handle, result))


_register_scan("cumsum", AddOp)
_register_scan("cumprod", MulOp)


def extremum_along(
    ctx: Context, name: str, input: object, axis: object, keep_dims: object
) -> tensor:
    """Maximum or minimum along an axis, in its widened dtype."""
    # "maximum" and "minimum" by the names of the language, "max" and "min".
    function = name[:3]
    what = reduction_arguments(ctx, function, input, axis, keep_dims)
    value = cast_value(ctx, what.value, extremum_dtype(what.element))

    def combine(pair: list[tensor]) -> list[tensor]:
        return [tensor(extremum_value(ctx, name, pair[0].handle, pair[1].handle))]

    return reduce_tiles(ctx, [value], what.axis, combine, what.keep_dims)[0]


def _bitwise(
    ctx: Context,
    function: str,
    op: Callable[[Value, Value], Any],
    input: object,
    axis: object,
    keep: object,
) -> tensor:
    what = reduction_arguments(ctx, function, input, axis, keep)
    if what.element.is_float:
        ctx.fail(
            errors.InvalidOperation,
            f"compute {function} of {type_of(what.element)}",
            "it takes integers",
        )
    return reduce_tiles(ctx, [what.value], what.axis, combine_by_op(ctx, op), what.keep_dims)[0]


@implements(tl.xor_sum)
def xor_sum(ctx: Context, input: object, axis: object = None, keep_dims: object = False) -> tensor:
    return _bitwise(ctx, "xor_sum", XorOp, input, axis, keep_dims)


@implements(tl.reduce_or)
def reduce_or(ctx: Context, input: object, axis: object, keep_dims: object = False) -> tensor:
    return _bitwise(ctx, "reduce_or", OrOp, input, axis, keep_dims)


def reduce_by(ctx: Context, name: str, input: tensor, axis: int) -> tensor:
    """A tile folded along an axis, for front ends that name the operator.

    name: sum, prod, and, or, xor, max, min; the dtypes of results are those of `sum` and `max`.
    """
    if name == "sum":
        return sum(ctx, input, axis)
    if name in ("max", "min"):
        return extremum_along(ctx, f"{name}imum", input, axis, False)
    if name == "prod":
        value, result = _sum_operand(ctx, name, *number_tile(ctx, name, input), None)
        (total,) = reduce_tiles(ctx, [value], axis, combine_by_op(ctx, MulOp), False)
        return tensor(cast_value(ctx, total.handle, result))
    op = {"and": AndOp, "or": OrOp, "xor": XorOp}[name]
    return _bitwise(ctx, f"the reduction by {name}", op, input, axis, False)
