"""Compile-time numbers as IR constants."""

from __future__ import annotations

from typing import TypeGuard

from tilewright.frontend.dtype_promotion import Literal, fits, literal_dtype
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.ir import Value
from tilewright.ir.types import DType, PointerType, Type, dtype_of, element_of
from tilewright.language import Constexpr, aggregate_value, dtype, tensor, type_of
from tilewright.support import errors


def constant(ctx: Context, value: Literal, type_: Type) -> Value:
    """`value` in every element of `type_`. Errors: LiteralOutOfRange."""
    element = dtype_of(type_)
    if element.is_float:
        return ctx.constant(float(value), type_)
    # Truth, not wrapping: int1 of 2 is True.
    if element.is_bool:
        return ctx.constant(bool(value), type_)
    # A silent wrap of a literal would hide a typing mistake; explicit casts wrap instead.
    if not fits(value, element):
        ctx.fail(errors.LiteralOutOfRange, value, type_of(element))
    return ctx.constant(int(value), type_)


def dtype_of_literal(ctx: Context, value: Literal) -> DType:
    """As `literal_dtype`; an integer beyond 64 bits is LiteralOutOfRange."""
    dtype_ = literal_dtype(value)
    if dtype_ is None:
        ctx.fail(errors.LiteralOutOfRange, value, "any integer dtype")
    return dtype_


def is_literal(value: object) -> TypeGuard[Literal]:
    """Whether an unwrapped operand is a Python number."""
    return isinstance(value, int | float)


def materialize(ctx: Context, value: object) -> tensor:
    """A tensor unchanged; a compile-time number as a scalar of its own dtype.

    Errors: InvalidOperation for anything else.
    """
    if isinstance(value, tensor):
        return value
    if isinstance(value, Constexpr):
        value = value.value
    if not isinstance(value, int | float):
        ctx.fail(
            errors.InvalidOperation, f"use {describe(value)} as a number", "it is not a number"
        )
    return tensor(constant(ctx, value, dtype_of_literal(ctx, value)))


def describe(value: object) -> str:
    """A description of a value for messages."""
    if isinstance(value, tensor):
        return str(value.type)
    if isinstance(value, aggregate_value):
        return value.description
    if isinstance(value, Constexpr):
        value = value.value
    if isinstance(value, int | float | str):
        return repr(value)
    if value is None or isinstance(value, dtype):
        return str(value)
    # Not isinstance: named tuples are described by the name of their class.
    if isinstance(value, list) or type(value) is tuple:
        return "a tuple"
    return f"a {type(value).__name__}"


def is_pointer(value: object) -> TypeGuard[tensor]:
    """Whether a value is a scalar pointer or a tile of pointers."""
    return isinstance(value, tensor) and isinstance(element_of(value.handle.type), PointerType)
