"""Loads, stores and conditional expressions: `*p`, `*?(mask) p`, `check ? *p : 0`."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import cast

from tilewright import language as tl
from tilewright.frontend import semantics
from tilewright.frontend.c import syntax
from tilewright.frontend.c.lower.branches import lower_choice
from tilewright.frontend.c.lower.declared_conversions import converted, describe
from tilewright.frontend.c.lower.function_frame import FunctionFrame, TypedInteger, call, expression
from tilewright.frontend.c.lower.integer_promotion import (
    as_type,
    common_type,
    integer_types,
    is_number,
    usual_conversions,
)
from tilewright.frontend.c.syntax_queries import has_effects, is_pure, walk
from tilewright.frontend.dtype_promotion import fits
from tilewright.frontend.semantics import erase_ops
from tilewright.frontend.semantics.numeric_operators import result_dtype
from tilewright.ir import Block
from tilewright.ir.types import PointerType, Scalar, element_of, shape_of, with_shape
from tilewright.language import constexpr, tensor, type_of, unwrap
from tilewright.support import errors


@expression(syntax.Dereference)
def dereference(frame: FunctionFrame, node: syntax.Dereference) -> object:
    """Emit a load; its value is undefined where the mask is false."""
    return load(frame, node, pointer_of(frame, node, "load through"))


def load(
    frame: FunctionFrame, node: syntax.Dereference, pointer: tensor, other: object = None
) -> tensor:
    """Emit a load, with `other` where the conditions around it are false."""
    mask = mask_of(frame, node, pointer)
    if mask is None:
        return cast("tensor", call(frame, node, tl.load, pointer))
    args = (pointer, mask) if other is None else (pointer, mask, other)
    return cast("tensor", call(frame, node, tl.load, *args))


def pointer_of(frame: FunctionFrame, node: syntax.Dereference, verb: str) -> tensor:
    """The pointers of an access. Errors: InvalidOperation, ProtectedPointer."""
    pointer = frame.tensor(node.pointer)
    element = element_of(pointer.handle.type)
    if not isinstance(element, PointerType):
        operation, reason = f"dereference {describe(pointer)}", "it is no pointer"
        frame.fail(node, errors.InvalidOperation(operation, reason))
    root = root_name(node.pointer)
    if verb == "store through" and element.const:
        frame.fail(node, errors.ProtectedPointer(verb, root, "const or __readonly"))
    if verb == "load through":
        _check_readable(frame, node, node.pointer, verb)
    return pointer


def check_named_load(frame: FunctionFrame, node: syntax.Call, pointer: syntax.Expression) -> None:
    """Check the restrictions of `load(p)` compared with Python's `tl.load`."""
    _check_readable(frame, node, pointer, "load through")
    # load() has a mask argument; the condition around it is not added to that.
    if frame.guard is not None:
        reason = "load() loads whatever the condition around it says"
        instead = "write *?(mask) p, or pass the mask to load() outside of it"
        frame.fail(node, errors.InvalidOperation("load under this condition", reason, instead))


def _check_readable(
    frame: FunctionFrame, node: syntax.Expression, pointer: syntax.Expression, verb: str
) -> None:
    for inner in walk(pointer):
        if isinstance(inner, syntax.Name):
            variable = frame.find(inner.name)
            if variable is not None and variable.write_only:
                frame.fail(node, errors.ProtectedPointer(verb, inner.name, "__writeonly"))


def root_name(node: syntax.Expression) -> str:
    """The first name in the expression of a pointer, for messages."""
    names = (inner.name for inner in walk(node) if isinstance(inner, syntax.Name))
    return next(names, "the pointer")


def mask_of(frame: FunctionFrame, node: syntax.Dereference, pointer: tensor) -> object:
    """The mask of an access: its own, and the conditions of expressions around it."""
    own = None if node.mask is None else frame.expression(node.mask)
    if own is not None and not isinstance(own, tensor):
        # A mask that is always true is omitted.
        own = None if unwrap(own) else constexpr(False)
    if isinstance(own, tensor):
        own = tensor(semantics.as_condition(frame.at(node), own))
    if frame.guard is None:
        # Conditions around the access are part of its mask, as the access must not happen outside.
        return own
    if shape_of(frame.guard.handle.type) and not shape_of(pointer.handle.type):
        reason = "the condition around it is a tile, the pointer is a scalar"
        frame.fail(node, errors.InvalidOperation("load under this condition", reason))
    return (
        frame.guard if own is None else semantics.logical(frame.at(node), "and", frame.guard, own)
    )


# --- conditional expressions ----------------------------------------------------------------------


@expression(syntax.Conditional)
def conditional(frame: FunctionFrame, node: syntax.Conditional) -> object:
    """`test ? a : b`. Loads in it become masked loads, whether the test is a tile or a scalar."""
    test = frame.expression(node.test)
    if not isinstance(test, tensor):
        sides = (node.then, node.orelse) if unwrap(test) else (node.orelse, node.then)
        # C: the type of `c ? a : b` depends on both sides, even if one is never evaluated.
        return _chosen(frame, node, frame.expression(sides[0]), _unevaluated(frame, sides[1]))
    ctx = frame.at(node.test)
    condition = tensor(semantics.as_condition(ctx, test))
    # A scalar test can branch; a tile test evaluates both sides and selects.
    if not shape_of(condition.handle.type) and (has_effects(node.then) or has_effects(node.orelse)):
        return _branching(frame, node, condition)
    # `c ? *p : 0` needs no select where the load can return the other value.
    masked = _masked(frame, node, condition)
    if masked is not None:
        return masked
    then = _under(frame, node.then, condition)
    orelse = _under(frame, node.orelse, condition, inverted=True)
    return _selected(frame, node, condition, then, orelse)


def _chosen(frame: FunctionFrame, node: syntax.Conditional, value: object, other: object) -> object:
    """The side that a constant condition selects, in the common type of both sides."""
    frame.at(node)
    types = integer_types(value, other)
    if types is not None:
        return as_type(frame, value, common_type(*types))
    if not isinstance(value, tensor) and not isinstance(other, tensor):
        number = unwrap(value)
        # `1 ? 1 : 2.0` is 1.0: floats win.
        to_float = isinstance(number, int) and isinstance(unwrap(other), float)
        return constexpr(float(number)) if to_float else value
    if not is_number(value) or not is_number(other):
        return value
    dtype = result_dtype(frame.at(node), "common", unwrap(value), unwrap(other), "select")
    return semantics.cast_to(frame.ctx, value, type_of(dtype))


def _selected(
    frame: FunctionFrame, node: syntax.Conditional, condition: tensor, then: object, orelse: object
) -> object:
    """Select elements of two values in their common type."""
    then, orelse = usual_conversions(frame, node, then, orelse)
    if isinstance(then, TypedInteger):
        then = frame.run_time(node, then)
    return call(frame, node, tl.where, condition, then, orelse)


def _masked(frame: FunctionFrame, node: syntax.Conditional, condition: tensor) -> object:
    """`c ? *p : 0` as one load, where the other side is a constant; None where it is not."""
    then, orelse = node.then, node.orelse
    if not isinstance(then, syntax.Dereference) or not is_pure(orelse):
        return None
    # It is pure, so evaluating it before the load changes nothing.
    other = frame.expression(orelse)
    if isinstance(other, tensor):
        # A run-time value would need a select after the load anyway.
        return None
    with _guarded(frame, node, condition):
        pointer = pointer_of(frame, then, "load through")
        if _holds(element_of(pointer.handle.type), other):
            return usual_conversions(frame, node, load(frame, then, pointer, other), other)[0]
        loaded = load(frame, then, pointer)
    return _selected(frame, node, condition, loaded, other)


def _holds(pointer: Scalar, other: object) -> bool:
    """Whether a constant is a value of the loaded type, so that the load can return it."""
    assert isinstance(pointer, PointerType)
    # -1 and 300 are not values of an unsigned char: they need a select in int.
    # An integer literal takes a float type; a float would have to be rounded to an integer.
    number = unwrap(other)
    if pointer.element.is_float:
        return isinstance(number, int | float)
    return isinstance(number, int) and fits(number, pointer.element)


def _unevaluated(frame: FunctionFrame, node: syntax.Expression) -> object:
    """The value, and so the type, that an expression would have; its ops and effects are erased."""
    before = frame.values
    # A copy: assignments in the untaken side must have no effect.
    frame.values = dict(before)
    block = Block()
    with frame.into(block):
        value = frame.expression(node)
    frame.values = before
    erase_ops(block)
    return value


def _under(
    frame: FunctionFrame, node: syntax.Expression, condition: tensor, inverted: bool = False
) -> object:
    """The value of an expression whose loads are masked by a condition or its negation."""
    # No loads, calls or assignments: such a side needs no guard.
    if is_pure(node):
        return frame.expression(node)
    if inverted:
        condition = semantics.unary(frame.at(node), "not", condition)
    with _guarded(frame, node, condition):
        return frame.expression(node)


@contextmanager
def _guarded(frame: FunctionFrame, node: syntax.Node, condition: tensor) -> Generator[None]:
    """A context in which loads are also masked by a condition."""
    outer = frame.guard
    if outer is not None:
        condition = cast("tensor", semantics.logical(frame.at(node), "and", outer, condition))
    frame.guard = condition
    try:
        yield
    finally:
        frame.guard = outer


def _branching(frame: FunctionFrame, node: syntax.Conditional, condition: tensor) -> object:
    """A branch, since both sides may have effects."""
    return lower_choice(
        frame,
        node,
        condition.handle,
        lambda: frame.tensor(node.then),
        lambda: frame.tensor(node.orelse),
    )


# --- stores ---------------------------------------------------------------------------------------


def store(frame: FunctionFrame, node: syntax.Dereference, evaluate: Callable[[], object]) -> object:
    """`*p = value`: evaluates the pointer, the value and the mask, in this order; returns the
    value."""
    pointer = pointer_of(frame, node, "store through")
    value = evaluate()
    mask = mask_of(frame, node, pointer)
    value = _stored(frame, node, pointer, value)
    args = (pointer, value) if mask is None else (pointer, value, mask)
    call(frame, node, tl.store, *args)
    # C: the value of an assignment is that of the target.
    return value


def _stored(
    frame: FunctionFrame, node: syntax.Dereference, pointer: tensor, value: object
) -> object:
    """A value in the type that is pointed to. Errors: InvalidOperation."""
    element = element_of(pointer.handle.type)
    assert isinstance(element, PointerType)
    if not isinstance(value, tensor):
        return converted(frame, node, value, element.element)
    if shape_of(value.handle.type) and not shape_of(pointer.handle.type):
        operation = f"store {describe(value)} through one pointer"
        instead = "add a tile of offsets to it: *(p + 0 ... 16) = x"
        frame.fail(node, errors.InvalidOperation(operation, "each element needs its own", instead))
    return converted(frame, node, value, with_shape(element.element, shape_of(value.handle.type)))
