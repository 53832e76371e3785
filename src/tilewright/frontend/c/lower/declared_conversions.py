"""Conversions to declared types, and compile-time integers."""

from __future__ import annotations

from math import isfinite, trunc
from typing import NoReturn

from tilewright.frontend.c import syntax
from tilewright.frontend.c.c_types import c_spelling, scalar_type
from tilewright.frontend.c.lower.function_frame import FunctionFrame, null
from tilewright.frontend.semantics import cast_to, constant, truth
from tilewright.frontend.semantics.broadcasting import broadcast_value, check_tile
from tilewright.ir import Value
from tilewright.ir.types import (
    DType,
    PointerType,
    Scalar,
    TileType,
    Type,
    element_of,
    shape_of,
    with_element,
)
from tilewright.language import tensor, type_of, unwrap
from tilewright.support import errors


def describe(value: object) -> str:
    """A value's type as C spells it, or a literal."""
    if not isinstance(value, tensor):
        return f"the constant {unwrap(value)!r}"
    type_ = value.handle.type
    extents = ", ".join(map(str, shape_of(type_)))
    return c_spelling(element_of(type_)) + (f"[{extents}]" if extents else "")


def named_type(frame: FunctionFrame, name: syntax.TypeName, read_only: bool = False) -> Scalar:
    """A type without extents, where `void` makes no sense. Errors: CSyntaxError."""
    try:
        type_ = scalar_type(name, read_only)
    except errors.CSyntaxError as problem:
        frame.fail(name, problem)
    if type_ is None:
        frame.fail(name, errors.CSyntaxError("a type with values", "'void'"))
    return type_


def declared_type(frame: FunctionFrame, node: syntax.Variable | syntax.Parameter) -> Type:
    """The type of a declared variable. Errors: NotConstexpr, NonPowerOfTwo, BlockTooLarge."""
    element = named_type(frame, node.type)
    if not node.extents:
        return element
    shape = tuple(
        constant_integer(frame, extent, "the extent of a tile") for extent in node.extents
    )
    return TileType(check_tile(frame.at(node.extents[0]), shape), element)


def constant_integer(frame: FunctionFrame, node: syntax.Expression, what: str) -> int:
    """An integer that is known at compile time. Errors: NotConstexpr, InvalidValue."""
    if isinstance(node, syntax.Name):
        variable = frame.find(node.name)
        if variable is not None and variable.number is not None:
            return variable.number
    value = unwrap(frame.expression(node))
    if isinstance(value, tensor):
        error = errors.NotConstexpr(what, describe(value))
        error.advice = "use literals and macros: -DTM=64, or defines={...}"
        frame.fail(node, error)
    # bool is an int in Python, but no extent.
    if isinstance(value, bool) or not isinstance(value, int):
        frame.fail(node, errors.InvalidValue("declaration", what, "an integer", repr(value)))
    return value


def converted(frame: FunctionFrame, node: syntax.Node, value: object, type_: Type) -> tensor:
    """`value` as an assignment to a variable of type `type_` converts and broadcasts it.

    A constant that is too large wraps, as in C. Errors: ShapeMismatch, DTypeMismatch,
    LiteralOutOfRange.
    """
    target = element_of(type_)
    if isinstance(target, PointerType):
        return _converted_pointer(frame, node, value, target, type_)
    ctx = frame.at(node)
    if not isinstance(value, tensor):
        number = (
            # Constants wrap when they are assigned in C; the shared `constant` would reject them.
            wrapped_integer(frame, node, value, target)
            if target.is_integer
            else _number(frame, node, value)
        )
        return tensor(constant(ctx, number, type_))
    if isinstance(element_of(value.handle.type), PointerType):
        # C converts pointers to integers by a cast only.
        _refuse(frame, node, value, target)
    element = cast_to(ctx, value, type_of(target)).handle
    return tensor(broadcast_value(ctx, element, shape_of(type_), "assign"))


def wrapped_integer(frame: FunctionFrame, node: syntax.Node, value: object, target: DType) -> int:
    """Convert a compile-time number to an integer type: wrapped, floats truncated.

    Errors: LiteralOutOfRange for a float that the type cannot hold, which C leaves undefined.
    """
    number = _number(frame, node, value)
    if isinstance(number, int):
        return target.wrap(number)
    if not (isfinite(number) and target.min_int <= trunc(number) <= target.max_int):
        error = errors.LiteralOutOfRange(number, c_spelling(target))
        error.advice = f"it holds integers from {target.min_int} to {target.max_int}"
        frame.fail(node, error)
    return trunc(number)


def _number(frame: FunctionFrame, node: syntax.Node, value: object) -> int | float:
    number = unwrap(value)
    if not isinstance(number, int | float):
        frame.fail(node, errors.InvalidOperation(f"use {number!r} as a number", "it is none"))
    return number


def _converted_pointer(
    frame: FunctionFrame, node: syntax.Node, value: object, target: PointerType, type_: Type
) -> tensor:
    ctx = frame.at(node)
    if not isinstance(value, tensor):
        # 0 is C's null pointer constant; other integers are no addresses.
        if unwrap(value) != 0:
            _refuse(frame, node, value, target)
        return tensor(null(ctx, type_))
    source = element_of(value.handle.type)
    # Both C and the accesses need the element type: there is no implicit pointer cast.
    if not isinstance(source, PointerType) or source.element is not target.element:
        _refuse(frame, node, value, target)
    if source.const and not target.const:
        frame.fail(node, _drops_const(value))
    handle = value.handle
    # The bits are the same; only the type in the IR gains `const`.
    if source.const is not target.const:
        handle = ctx.bitcast(handle, target)
    return tensor(broadcast_value(ctx, handle, shape_of(type_), "assign"))


def _drops_const(value: tensor) -> errors.CompilationError:
    reason = "the pointer assigned points to constant data"
    operation = f"convert {describe(value)} to a pointer that may be stored through"
    return errors.InvalidOperation(operation, reason, "declare the variable const as well")


def _refuse(frame: FunctionFrame, node: syntax.Node, value: object, target: Scalar) -> NoReturn:
    operation = f"convert {describe(value)} to {c_spelling(target)}"
    instead = f"cast it: ({c_spelling(target)}) ..."
    frame.fail(node, errors.InvalidOperation(operation, "this needs a cast", instead))


def condition(frame: FunctionFrame, node: syntax.Expression, value: tensor) -> Value:
    """A scalar as i1, for control flow. Errors: InvalidOperation for a tile."""
    if shape_of(value.handle.type):
        reason = "the whole program instance takes one branch"
        instead = "select with c ? a : b, or reduce it: (x > 0)[|]"
        operation = f"use {describe(value)} as a condition"
        frame.fail(node, errors.InvalidOperation(operation, reason, instead))
    return truth(frame.at(node), value)


def with_constness_of(type_: Type, value: object) -> Type:
    """The type of a declaration whose initial value may point to constant data: then it does too.

    `float *p[16] = x + i` thus needs no `const` for a parameter `const float *x`.
    """
    target = element_of(type_)
    if isinstance(target, DType) or not isinstance(value, tensor):
        return type_
    source = element_of(value.handle.type)
    if isinstance(source, PointerType) and source.const and source.element is target.element:
        return with_element(type_, source)
    return type_
