"""Reading of compile-time arguments: integers, shapes, axes, choices."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex, cast

from tilewright.frontend.semantics.broadcasting import check_tile
from tilewright.frontend.semantics.literal_constants import describe
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.language import tensor, unwrap
from tilewright.support import errors


def integer(ctx: Context, function: str, name: str, value: object) -> int:
    """A compile-time integer. Errors: NotConstexpr, InvalidValue."""
    value = unwrap(value)
    if isinstance(value, tensor):
        ctx.fail(errors.NotConstexpr, f"'{name}' of {function}", value.type)
    # bool is an int in Python, but an extent or axis of True is a mistake.
    if not isinstance(value, bool) and isinstance(value, SupportsIndex):
        try:
            return int(operator.index(value))  # `index` returns subclasses of int unchanged
        except TypeError:  # arrays have the method, but an index only if they hold one integer
            pass
    ctx.fail(errors.InvalidValue, function, name, "an integer", describe(value))


def choice(
    ctx: Context, function: str, name: str, value: object, choices: tuple[str, ...], default: str
) -> str:
    """One of `choices`; None means `default`. Errors: InvalidValue."""
    value = unwrap(value)
    if value is None:
        return default
    if not isinstance(value, str) or value not in choices:
        expected = "one of " + ", ".join(f'"{choice}"' for choice in choices)
        ctx.fail(errors.InvalidValue, function, name, expected, describe(value))
    return value


def flag(ctx: Context, function: str, name: str, value: object) -> bool:
    """A compile-time condition. Errors: NotConstexpr."""
    value = unwrap(value)
    if isinstance(value, tensor):
        ctx.fail(errors.NotConstexpr, f"'{name}' of {function}", value.type)
    return bool(value)


def sequence(ctx: Context, function: str, name: str, value: object) -> list[Any]:
    """The items of a tuple or list, unwrapped; one item by itself counts as a sequence of one."""
    value = unwrap(value)
    # A string is a Sequence, but its characters are no extents.
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [unwrap(item) for item in cast("Sequence[Any]", value)]
    if isinstance(value, tensor | int):
        return [value]
    ctx.fail(errors.InvalidValue, function, name, "a tuple", describe(value))


def integers(ctx: Context, function: str, name: str, value: object) -> tuple[int, ...]:
    """A sequence of compile-time integers."""
    items = sequence(ctx, function, name, value)
    return tuple(integer(ctx, function, f"{name}[{i}]", item) for i, item in enumerate(items))


def shape(ctx: Context, function: str, value: object) -> tuple[int, ...]:
    """A tile shape; empty for a scalar. Errors: NonPowerOfTwo, BlockTooLarge."""
    return check_tile(ctx, integers(ctx, function, "shape", value))


def variadic_items(values: Sequence[Any]) -> Any:
    """`*shape` parameters: a sequence, or its items as arguments."""
    # tl.reshape(x, 4, 8) and tl.reshape(x, (4, 8)) are both written in Triton kernels.
    if len(values) == 1 and not isinstance(unwrap(values[0]), int | tensor):
        return values[0]
    return values


def axis(ctx: Context, function: str, value: object, rank: int, name: str = "axis") -> int:
    """A dimension of something with `rank` of them; negative counts from the end."""
    number = integer(ctx, function, name, value)
    if not -rank <= number < rank:
        triton = f"invalid axis {number}. Expected {-rank} <= axis < {rank}"
        expected = f"in [{-rank}, {rank})"
        ctx.fail(errors.InvalidValue, function, name, expected, number, triton=triton)
    return number % rank


def tile(ctx: Context, function: str, name: str, value: object) -> tensor:
    """A tensor with a shape. Errors: InvalidValue."""
    argument = tensor_argument(ctx, function, name, value)
    if not argument.shape:
        ctx.fail(errors.InvalidValue, function, name, "a tile", f"a scalar {argument.type}")
    return argument


def tensor_argument(ctx: Context, function: str, name: str, value: object) -> tensor:
    """A run-time value. Errors: InvalidValue."""
    value = unwrap(value)
    if not isinstance(value, tensor):
        error = errors.InvalidValue(function, name, "a tensor", describe(value), loc=ctx.loc)
        if isinstance(value, tuple | list):
            error.advice = "it takes one tile: make one with tl.join or tl.cat, or call it for each"
        raise error
    return value
