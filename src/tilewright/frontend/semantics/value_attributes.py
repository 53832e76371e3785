"""Attributes of values, and scalars as conditions."""

from __future__ import annotations

from typing import Any

from tilewright.frontend.semantics.literal_constants import describe, materialize
from tilewright.frontend.semantics.numeric_operators import as_condition
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.shape_functions import item, trans
from tilewright.ir import Value
from tilewright.ir.types import DType, TileType, i1, i64
from tilewright.language import (
    Constexpr,
    member_names,
    tensor,
)
from tilewright.support import errors


def getattr_(ctx: Context, x: object, name: str) -> Any:
    """`x.name`: facts of a tensor, its methods bound to it, else Python's attribute.

    A compile-time number has the methods of tensors: `1 .to(tl.int64)`.

    Errors: UnknownAttribute, with the closest names.
    """
    # T is a property in Triton, so it emits an op without being called.
    if isinstance(x, tensor) and name == "T":
        return trans(ctx, x)
    # These four belong to constexpr itself; all other names are looked up on the number.
    if isinstance(x, Constexpr) and name not in ("value", "type", "logical_and", "logical_or"):
        x = x.value
    if isinstance(x, bool | int | float) and name in member_names():
        x = materialize(ctx, x)
    try:
        return getattr(x, name)
    except errors.UnknownAttribute as error:
        raise error.with_loc(ctx.loc) from None
    except AttributeError:
        owner = "a tensor" if isinstance(x, tensor) else describe(x)
        names = member_names() if isinstance(x, tensor) else _public_names(x)
        ctx.fail(errors.UnknownAttribute, owner, name, names)


def _public_names(x: object) -> list[str]:
    return [name for name in dir(x) if not name.startswith("_")]


def truth(ctx: Context, x: object) -> Value:
    """A scalar as i1, for `if`, `while`, `assert`. Errors: InvalidOperation for a tile."""
    if isinstance(x, tensor):
        type_ = x.handle.type
        if isinstance(type_, TileType):
            if type_.numel != 1:
                ctx.fail(
                    errors.InvalidOperation,
                    f"use a tile of shape {type_.shape} as a condition",
                    "the whole program instance takes one branch",
                    "select with tl.where, or reduce it, for example tl.max(x, axis=None) != 0",
                )
            x = item(ctx, x)
            type_ = x.handle.type
        if not isinstance(type_, DType):
            # There is no op from pointers to i1; the address is compared with 0 instead.
            return ctx.cast(ctx.cast(x.handle, i64), i1)
    return as_condition(ctx, x)
