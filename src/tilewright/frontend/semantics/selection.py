"""Choosing between values: where, maximum, minimum, clamp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import language as tl
from tilewright.frontend.dtype_promotion import compute_dtype, promoted_dtype
from tilewright.frontend.semantics.broadcasting import broadcast_value, common_shape
from tilewright.frontend.semantics.dtype_casts import cast_value
from tilewright.frontend.semantics.literal_constants import constant, describe, is_pointer
from tilewright.frontend.semantics.numeric_operators import as_condition, operands, result_dtype
from tilewright.frontend.semantics.semantic_context import Context, warn_once
from tilewright.frontend.semantics.semantics_registry import implements
from tilewright.frontend.typed_numbers import joined
from tilewright.ir import Value
from tilewright.ir.types import DType, element_of, i1, shape_of, with_shape
from tilewright.language import PropagateNan, constexpr, tensor, type_of, unwrap
from tilewright.support import errors


def cast_and_broadcast(ctx: Context, operand: Any, dtype: DType, shape: tuple[int, ...]) -> Value:
    """A number, as a tensor or literal, in a dtype and a shape that it broadcasts to."""
    if isinstance(operand, tensor):
        return broadcast_value(ctx, cast_value(ctx, operand.handle, dtype), shape)
    return constant(ctx, operand, with_shape(dtype, shape))


def shape_of_all(ctx: Context, verb: str, operands: Sequence[Any]) -> tuple[int, ...]:
    """The common shape of the tensors among the operands; () if all are scalars or literals."""
    shape: tuple[int, ...] = ()
    for operand in operands:
        if isinstance(operand, tensor):
            shape = common_shape(ctx, verb, shape, shape_of(operand.handle.type))
    return shape


def common_dtype(ctx: Context, verb: str, operands: Sequence[Any]) -> DType:
    """The dtype that all operands promote to, each with the first. Errors: DTypeMismatch."""
    # Each against the first operand, so that a literal in any position adopts a tensor's dtype.
    first, second, *rest = operands
    dtype = result_dtype(ctx, "common", first, second, verb)
    for operand in rest:
        other = result_dtype(ctx, "common", first, operand, verb)
        promoted = promoted_dtype("common", dtype, other)
        if promoted is None:
            ctx.fail(errors.DTypeMismatch, verb, type_of(dtype), type_of(other))
        dtype = promoted
    return dtype


@implements(tl.where)
def where(ctx: Context, condition: object, x: object, y: object) -> tensor:
    _warn_of_numbers(ctx, condition)
    chosen = tensor(as_condition(ctx, condition))
    x, y = unwrap(x), unwrap(y)
    shape = shape_of_all(ctx, "select", (chosen, x, y))
    if is_pointer(x) and is_pointer(y):
        if x.dtype != y.dtype:
            ctx.fail(errors.DTypeMismatch, "select", x.dtype, y.dtype)
        left = broadcast_value(ctx, x.handle, shape)
        right = broadcast_value(ctx, y.handle, shape)
    else:
        # Both pointers or both numbers: a mixture fails in `result_dtype` with its own message.
        dtype = result_dtype(ctx, "common", x, y, "select")
        left, right = (
            cast_and_broadcast(ctx, x, dtype, shape),
            cast_and_broadcast(ctx, y, dtype, shape),
        )
    return tensor(ctx.select(broadcast_value(ctx, chosen.handle, shape), left, right))


def _warn_of_numbers(ctx: Context, condition: object) -> None:
    """Warn of a condition that is no int1: it is compared with 0, perhaps by mistake."""
    if not isinstance(condition, tensor) or element_of(condition.handle.type) is i1:
        return
    message = f"the condition of tl.where is {condition.type}, which is compared with 0"
    warn_once(message, ctx.loc, hint="write the comparison: tl.where(x != 0, ...)")


@implements(tl.maximum)
def maximum(ctx: Context, x: object, y: object, propagate_nan: object = PropagateNan.NONE) -> Any:
    return extremum(ctx, "maximum", x, y, _propagates(ctx, "maximum", propagate_nan))


@implements(tl.minimum)
def minimum(ctx: Context, x: object, y: object, propagate_nan: object = PropagateNan.NONE) -> Any:
    return extremum(ctx, "minimum", x, y, _propagates(ctx, "minimum", propagate_nan))


def extremum(ctx: Context, name: str, x: object, y: object, nan: bool) -> Any:
    """The larger ("maximum") or smaller ("minimum") operand; compile-time values fold."""
    x, y = unwrap(x), unwrap(y)
    if not isinstance(x, tensor) and not isinstance(y, tensor):
        return _fold_extremum(ctx, name, x, y)
    dtype = result_dtype(ctx, "common", x, y, f"take the {name} of")
    left, right = operands(ctx, f"take the {name} of", x, y, compute_dtype(dtype))
    return tensor(cast_value(ctx, extremum_value(ctx, name, left, right, nan), dtype))


def extremum_value(ctx: Context, name: str, x: Value, y: Value, nan: bool = False) -> Value:
    """Maximum or minimum of two values of one type."""
    if element_of(x.type) is i1:
        # int1 as False < True; MaxOp is for numbers.
        return ctx.bit_or(x, y) if name == "maximum" else ctx.bit_and(x, y)
    return ctx.max(x, y, nan) if name == "maximum" else ctx.min(x, y, nan)


def _fold_extremum(ctx: Context, name: str, x: Any, y: Any) -> Any:
    for operand in (x, y):
        if not isinstance(operand, int | float):
            what = f"take the {name} of {describe(x)} and {describe(y)}"
            reason = f"{describe(operand)} is no number"
            ctx.fail(errors.InvalidOperation, what, reason)
    # Python's max and min, so that a NaN or a tie folds as it does in Python.
    return constexpr(joined(max(x, y) if name == "maximum" else min(x, y), (x, y)))


@implements(tl.clamp)
def clamp(
    ctx: Context, x: object, min: object, max: object, propagate_nan: object = PropagateNan.NONE
) -> tensor:
    nan = _propagates(ctx, "clamp", propagate_nan)
    dtype = common_dtype(ctx, "clamp", (x, min, max))
    shape = shape_of_all(ctx, "clamp", (x, min, max))
    value, low, high = (
        cast_and_broadcast(ctx, v, compute_dtype(dtype), shape) for v in (x, min, max)
    )
    # Lower bound first: min > max gives max; Triton leaves that case undefined.
    raised = extremum_value(ctx, "maximum", value, low, nan)
    return tensor(cast_value(ctx, extremum_value(ctx, "minimum", raised, high, nan), dtype))


def _propagates(ctx: Context, function: str, choice: object) -> bool:
    if not isinstance(choice, PropagateNan):
        expected = "tl.PropagateNan.NONE or tl.PropagateNan.ALL"
        ctx.fail(errors.InvalidValue, function, "propagate_nan", expected, describe(choice))
    return choice is PropagateNan.ALL
