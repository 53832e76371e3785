"""Maximum and minimum along an axis, with their index.

With indices, pairs (value, index) fold by

    first wins if  first > second  or  second is NaN  or  (first == second and first's index is
    lower)

which is associative and commutative up to the index of a tile that is all NaN. Where the index
alone is wanted, NaNs become the least number once, so that no step tests for them.
"""

from __future__ import annotations

from math import inf, prod
from typing import Any

from tilewright import language as tl
from tilewright.frontend.dtype_promotion import accumulator_dtype
from tilewright.frontend.semantics import constant_arguments
from tilewright.frontend.semantics.dtype_casts import cast_value
from tilewright.frontend.semantics.reductions import (
    Combine,
    extremum_along,
    reduce_tiles,
    reduction_arguments,
)
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import implements
from tilewright.ir import Value
from tilewright.ir.types import dtype_of, shape_of
from tilewright.language import tensor
from tilewright.ops import ReshapeOp


def _register(name: str) -> None:
    @implements(getattr(tl, name))
    def extremum(  # pyright: ignore[reportUnusedFunction]
        ctx: Context,
        input: object,
        axis: object = None,
        return_indices: object = False,
        return_indices_tie_break_left: object = True,
        keep_dims: object = False,
    ) -> Any:
        if not constant_arguments.flag(ctx, name, "return_indices", return_indices):
            return extremum_along(ctx, f"{name}imum", input, axis, keep_dims)
        # Triton calls the flag return_indices_tie_break_left here, tie_break_left in argmax.
        tie = constant_arguments.flag(ctx, name, "tie_break_left", return_indices_tie_break_left)
        return tl.tuple(extremum_with_index(ctx, name, input, axis, tie, keep_dims))

    @implements(getattr(tl, f"arg{name}"))
    def place(  # pyright: ignore[reportUnusedFunction]
        ctx: Context,
        input: object,
        axis: object,
        tie_break_left: object = True,
        keep_dims: object = False,
    ) -> tensor:
        tie = constant_arguments.flag(ctx, f"arg{name}", "tie_break_left", tie_break_left)
        return extremum_with_index(ctx, f"arg{name}", input, axis, tie, keep_dims)[1]


for _name in ("max", "min"):
    _register(_name)


def extremum_with_index(
    ctx: Context,
    function: str,
    input: object,
    axis: object,
    tie_break_left: bool,
    keep_dims: object,
) -> list[tensor]:
    """The extremum in the dtype of the input, and its int32 index (flattened without axis)."""
    value, element, dim, keep = reduction_arguments(ctx, function, input, axis, keep_dims)
    rank = len(shape_of(value.type))
    if dim is None and rank > 1:
        # Without an axis the index counts in row-major order over the whole tile.
        value = ctx.value(ReshapeOp(value, (prod(shape_of(value.type)),)))
    # fp16 and bf16 compare in fp32, which has the same order and which every backend supports.
    value = cast_value(ctx, value, accumulator_dtype(element))
    shape = shape_of(value.type)
    # int32 suffices: tiles have far fewer than 2^31 elements.
    index = ctx.along(ctx.arange(0, shape[dim or 0]), dim or 0, shape)
    predicate = "gt" if function.endswith("max") else "lt"
    has_nans = dtype_of(value.type).is_float
    if has_nans and function.startswith("arg"):
        value, has_nans = _without_nans(ctx, value, predicate), False
    combine = _better_pair(ctx, predicate, tie_break_left, has_nans)
    best, where = reduce_tiles(ctx, [value, index], dim or 0, combine, keep and dim is not None)
    # A flattened tile folds to one scalar; keep_dims restores the original rank.
    if keep and dim is None:
        best, where = (tensor(ctx.splat(part.handle, (1,) * rank)) for part in (best, where))
    return [tensor(cast_value(ctx, best.handle, element)), where]


def _without_nans(ctx: Context, value: Value, predicate: str) -> Value:
    """The elements, with the number that no other loses against instead of NaNs."""
    least = ctx.constant(-inf if predicate == "gt" else inf, value.type)
    return ctx.max(value, least) if predicate == "gt" else ctx.min(value, least)


def _better_pair(ctx: Context, predicate: str, tie_break_left: bool, has_nans: bool) -> Combine:
    def combine(pairs: list[tensor]) -> list[tensor]:
        x, i, y, j = (scalar.handle for scalar in pairs)
        wins = ctx.compare(x, y, predicate)
        if has_nans:
            # NaN differs from itself: a second operand that is NaN always loses.
            wins = ctx.bit_or(wins, ctx.ne(y, y))
        if tie_break_left:
            # Ties go to the lower index, whichever order the backend folds in.
            same = ctx.eq(x, y)
            tie = ctx.bit_and(same, ctx.lt(i, j))
            wins = ctx.bit_or(wins, tie)
        return [tensor(ctx.select(wins, x, y)), tensor(ctx.select(wins, i, j))]

    return combine
