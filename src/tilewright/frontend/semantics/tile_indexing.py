"""`x[...]`: new dimensions, and elements, rows and slices at compile-time positions.

x[1:4, None]        tile.gather %x at 1, 2, 3; tile.expand_dims
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard, cast

from tilewright.frontend.semantics.broadcasting import check_tile
from tilewright.frontend.semantics.literal_constants import constant, describe, is_pointer
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.shape_functions import expand
from tilewright.ir import Value
from tilewright.ir.types import shape_of
from tilewright.language import tensor, unwrap
from tilewright.ops import GatherOp, ItemOp, ReshapeOp
from tilewright.support import errors


def getitem(ctx: Context, x: object, index: object) -> Any:
    """`x[index]`. A tensor takes `None` (a new extent of 1), `:`, `...`, and for each dimension a
    compile-time integer or slice; anything else is Python's indexing."""
    x, index = unwrap(x), unwrap(index)
    if not isinstance(x, tensor):
        return _python_item(ctx, x, index)
    entries = [unwrap(e) for e in index] if _is_tuple(index) else [index]
    return _indexed(ctx, x, entries)


def _is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    """Whether a value is a tuple."""
    return isinstance(value, tuple)


def _indexed(ctx: Context, x: tensor, entries: Sequence[object]) -> tensor:
    rank = len(shape_of(x.handle.type))
    # As in Triton, `:` of a scalar adds no dimension: c[:, None] has one.
    entries = entries if rank else [entry for entry in entries if not _is_full(entry)]
    kept = sum(entry is not None and entry is not ... for entry in entries)
    if kept > rank:
        what = f"index {x.type} with {kept} indices"
        triton = f"unsupported tensor index: {entries}"
        reason, instead = f"its rank is {rank}", ""
        if is_pointer(x) and not rank:
            what, reason = f"index {x.type}", "a pointer is one address"
            instead = "load through it: tl.load(pointer + offsets)"
        ctx.fail(errors.InvalidOperation, what, reason, instead, triton=triton)
    missing = [slice(None)] * (rank - kept)
    # `...` is the dimensions without an index; without it they are the last ones.
    at = next((i for i, entry in enumerate(entries) if entry is ...), len(entries))
    whole = [*entries[:at], *missing, *entries[at + 1 :]]
    value = x.handle
    dim = 0
    for entry in whole:
        if entry is not None:
            value = _selected(ctx, value, dim, entry)
            dim += 1
    integers = [i for i, entry in enumerate(_without_none(whole)) if isinstance(entry, int)]
    axes = [i for i, entry in enumerate(_without_integers(whole)) if entry is None]
    return expand(ctx, tensor(_dropped(ctx, value, integers)), axes)


def _without_none(entries: Sequence[object]) -> list[object]:
    return [entry for entry in entries if entry is not None]


def _without_integers(entries: Sequence[object]) -> list[object]:
    return [entry for entry in entries if not isinstance(entry, int)]


def _selected(ctx: Context, value: Value, dim: int, entry: object) -> Value:
    """The elements at an index or slice of one dimension; an index leaves an extent of 1."""
    if _is_full(entry):
        return value
    extent = shape_of(value.type)[dim]
    numbers = _positions(ctx, dim, extent, entry)
    ctx.refuse_extension("an index or slice of a tile")
    if not numbers:
        reason = f"it is empty: dimension {dim} has the extent {extent}"
        ctx.fail(errors.InvalidOperation, "take this slice of a tile", reason)
    check_tile(ctx, (len(numbers),))
    if len(numbers) == extent and numbers[0] == 0:
        return value
    shape = list(shape_of(value.type))
    shape[dim] = len(numbers)
    positions = ctx.arange(0, len(numbers))
    if numbers.step != 1:
        positions = ctx.mul(positions, constant(ctx, numbers.step, positions.type))
    positions = ctx.add(positions, constant(ctx, numbers.start, positions.type))
    index = ctx.along(positions, dim, tuple(shape))
    return ctx.value(GatherOp(value, index, dim))


def _positions(ctx: Context, dim: int, extent: int, entry: object) -> range:
    """The positions in a dimension of an index or slice. Errors: NotConstexpr ..."""
    if isinstance(entry, int) and not isinstance(entry, bool):
        if not -extent <= entry < extent:
            expected = f"{-extent} to {extent - 1}, the positions of dimension {dim}"
            ctx.fail(errors.InvalidValue, "[]", "index", expected, entry)
        return range(entry % extent, entry % extent + 1)
    if not isinstance(entry, slice):
        if isinstance(entry, tensor):
            error = errors.NotConstexpr("an index of a tile", str(entry.type))
            error.advice = "tl.gather takes elements at run-time positions"
            raise error.with_loc(ctx.loc)
        ctx.fail(
            errors.UnsupportedLanguageConstruct,
            f"indexing a tensor with {describe(entry)}",
            "integers, slices, ':', '...' and None index a tensor",
            triton=f"unsupported tensor index: {describe(entry)}",
        )
    parts = cast("Any", entry)
    bounds: list[object] = [unwrap(part) for part in (parts.start, parts.stop, parts.step)]
    for bound in bounds:
        if bound is not None and not isinstance(bound, int):
            ctx.fail(errors.NotConstexpr, "a bound of this slice", describe(bound))
    if bounds[2] == 0:
        ctx.fail(errors.InvalidValue, "[]", "step", "a number other than 0", 0)
    return range(*slice(*cast("list[int | None]", bounds)).indices(extent))


def _dropped(ctx: Context, value: Value, dims: Sequence[int]) -> Value:
    """A value without dimensions of extent 1."""
    if not dims:
        return value
    shape = tuple(n for i, n in enumerate(shape_of(value.type)) if i not in dims)
    return ctx.value(ReshapeOp(value, shape) if shape else ItemOp(value))


def _is_full(entry: object) -> bool:
    if type(entry) is not slice:
        return False
    parts: list[Any] = [entry.start, entry.stop, entry.step]
    return all(unwrap(part) is None for part in parts)


def _python_item(ctx: Context, x: Any, index: object) -> Any:
    try:
        if isinstance(index, tensor):
            ctx.fail(errors.NotConstexpr, f"an index into {describe(x)}", index.type)
        return x[index]
    except (TypeError, IndexError, KeyError) as error:
        what = f"index {describe(x)} with {describe(index)}"
        ctx.fail(errors.InvalidOperation, what, str(error))
