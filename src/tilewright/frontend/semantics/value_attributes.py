"""Attributes, conditions, and making two values one type where control flow joins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tilewright.frontend.dtype_promotion import fits, is_weak
from tilewright.frontend.semantics.literal_constants import constant, describe, materialize
from tilewright.frontend.semantics.numeric_operators import as_condition
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.shape_functions import item, trans
from tilewright.ir import Value
from tilewright.ir.types import DType, TileType, element_of, i1, i64
from tilewright.language import (
    block_pointer,
    constexpr,
    constexpr_type,
    member_names,
    tensor,
)
from tilewright.ops import CastOp
from tilewright.support import errors


def getattr_(ctx: Context, x: Any, name: str) -> Any:
    """`x.name`: facts of a tensor, its methods bound to it, else Python's attribute.

    A number that is known at compile time has what tensors have: `1 .to(tl.int64)`.

    Errors: UnknownAttribute, with the closest names.
    """
    if isinstance(x, tensor) and name == "T":
        return trans(ctx, x)
    if isinstance(x, constexpr) and name not in ("value", "type", "logical_and", "logical_or"):
        x = x.value
    if isinstance(x, bool | int | float) and name in member_names():
        x = materialize(ctx, x)
    try:
        return getattr(x, name)
    except errors.UnknownAttribute as error:
        raise error.with_loc(ctx.loc) from None
    except AttributeError:
        owner = "a tensor" if isinstance(x, tensor) else describe(x)
        known = member_names() if isinstance(x, tensor) else _public_names(x)
        ctx.fail(errors.UnknownAttribute, owner, name, known)


def _public_names(x: object) -> list[str]:
    return [name for name in dir(x) if not name.startswith("_")]


def truth(ctx: Context, x: Any) -> Value:
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
            return ctx.value(CastOp(ctx.value(CastOp(x.handle, i64)), i1))
    return as_condition(ctx, x)


def unify(ctx: Context, x: object, y: object) -> tuple[Any, Any]:
    """Both values with one type, as the arms of an `if` need it; literals adapt to tensors.

    Equal compile-time values stay compile-time. Errors: DTypeMismatch, ShapeMismatch,
    InvalidOperation.
    """
    if isinstance(x, tensor) or isinstance(y, tensor):
        return _unify_tensors(ctx, x, y)
    if isinstance(x, block_pointer) and isinstance(y, block_pointer):
        return _unify_windows(ctx, x, y)
    if all(isinstance(side, tuple) for side in (x, y)):
        return _unify_tuples(ctx, cast("Sequence[Any]", x), cast("Sequence[Any]", y))
    left, right = constexpr(x).value, constexpr(y).value
    if type(left) is type(right) and (left is right or left == right):
        return x, y
    if isinstance(left, int | float) and isinstance(right, int | float):
        first = materialize(ctx, left)
        second = materialize(ctx, right)
        return _unify_tensors(ctx, *_widest(ctx, (left, first), (right, second)))
    ctx.fail(
        errors.InvalidOperation,
        f"join {describe(x)} and {describe(y)}",
        "the two sides of a branch must agree",
    )


def _widest(ctx: Context, x: tuple[Any, tensor], y: tuple[Any, tensor]) -> tuple[Any, Any]:
    """Two different literals: the one of lower kind, or smaller range, adapts to the other."""
    a, b = (cast("DType", pair[1].handle.type) for pair in (x, y))
    if is_weak(x[0], b) and fits(x[0], b):
        return x[0], y[1]
    if is_weak(y[0], a) and fits(y[0], a):
        return x[1], y[0]
    return x[1], y[1]


def _unify_tensors(ctx: Context, x: Any, y: Any) -> tuple[Any, Any]:
    if isinstance(x, tensor) and isinstance(y, tensor):
        a, b = x.handle.type, y.handle.type
        if a is b:
            return x, y
        if element_of(a) is element_of(b):
            left, right = (t.shape if isinstance(t, TileType) else () for t in (a, b))
            ctx.fail(errors.ShapeMismatch, "join", left, right)
        ctx.fail(errors.DTypeMismatch, "join", x.type, y.type)
    if isinstance(x, tensor):
        return x, _adapted(ctx, y, x)
    return _adapted(ctx, x, y), y


def _adapted(ctx: Context, literal: Any, like: tensor) -> tensor:
    value = constexpr(literal).value
    element = element_of(like.handle.type)
    weak = isinstance(value, int | float) and isinstance(element, DType) and is_weak(value, element)
    if not weak:
        ctx.fail(
            errors.InvalidOperation,
            f"join {describe(literal)} and {like.type}",
            "the two sides of a branch must have one type",
            "convert one side with .to(...), or start with tl.full(...)",
        )
    return tensor(constant(ctx, value, like.handle.type))


def _unify_windows(ctx: Context, x: block_pointer, y: block_pointer) -> tuple[Any, Any]:
    if x.block_shape != y.block_shape or x.dtype != y.dtype:
        ctx.fail(errors.ShapeMismatch, "join", x.block_shape, y.block_shape)
    return x, y


def _unify_tuples(ctx: Context, x: Sequence[Any], y: Sequence[Any]) -> tuple[Any, Any]:
    if len(x) != len(y):
        ctx.fail(
            errors.InvalidOperation,
            f"join tuples of {len(x)} and {len(y)} items",
            "the two sides of a branch must agree",
        )
    pairs = [unify(ctx, a, b) for a, b in zip(x, y, strict=True)]
    return _like(x, [p[0] for p in pairs]), _like(y, [p[1] for p in pairs])


def _like(original: Any, items: list[Any]) -> Any:
    return type(original)(*items) if hasattr(original, "_fields") else type(original)(items)


def type_in_words(x: Any) -> str:
    """What a variable holds, for `InconsistentType` messages."""
    if isinstance(x, tensor):
        return str(x.type)
    if isinstance(x, block_pointer):
        return repr(x)
    return str(constexpr_type(constexpr(x).value)) if not isinstance(x, tuple) else "a tuple"
