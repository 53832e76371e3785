"""Loads, stores and conditional expressions: `*p`, `*?(mask) p`, `check ? *p : 0`."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import cast

from tilewright import language as tl
from tilewright.frontend import semantics
from tilewright.frontend.c import syntax
from tilewright.frontend.c.jumps import has_effects, is_plain, walk
from tilewright.frontend.c.lower.activation import Activation, Integer, call, expression
from tilewright.frontend.c.lower.arithmetic import (
    as_type,
    common_type,
    integer_type,
    is_number,
    unified,
)
from tilewright.frontend.c.lower.branches import choose
from tilewright.frontend.c.lower.conversion import converted, describe
from tilewright.frontend.promotion import fits
from tilewright.frontend.semantics.arithmetic import result_dtype
from tilewright.ir import Block, Rewriter
from tilewright.ir.types import PointerType, Scalar, element_of, shape_of, with_shape
from tilewright.language import constexpr, tensor, type_of, unwrap
from tilewright.support import errors


@expression(syntax.Dereference)
def dereference(act: Activation, node: syntax.Dereference) -> object:
    """A load; where the mask does not hold the value is undefined."""
    return load(act, node, pointer_of(act, node, "load through"))


def load(
    act: Activation, node: syntax.Dereference, pointer: tensor, other: object = None
) -> tensor:
    """A load, with `other` where the conditions around it do not hold."""
    mask = mask_of(act, node, pointer)
    if mask is None:
        return cast("tensor", call(act, node, tl.load, pointer))
    args = (pointer, mask) if other is None else (pointer, mask, other)
    return cast("tensor", call(act, node, tl.load, *args))


def pointer_of(act: Activation, node: syntax.Dereference, verb: str) -> tensor:
    """The pointers of an access. Errors: InvalidOperation, ProtectedPointer."""
    pointer = act.tensor(node.pointer)
    element = element_of(pointer.handle.type)
    if not isinstance(element, PointerType):
        operation, reason = f"dereference {describe(pointer)}", "it is no pointer"
        act.fail(node, errors.InvalidOperation(operation, reason))
    root = root_name(node.pointer)
    if verb == "store through" and element.const:
        act.fail(node, errors.ProtectedPointer(verb, root, "const or __readonly"))
    if verb == "load through":
        _check_readable(act, node, node.pointer, verb)
    return pointer


def check_named_load(act: Activation, node: syntax.Call, pointer: syntax.Expression) -> None:
    """What `load(p)` may not do, though `tl.load` of Python may."""
    _check_readable(act, node, pointer, "load through")
    if act.guard is not None:
        reason = "load() loads whatever the condition around it says"
        instead = "write *?(mask) p, or pass the mask to load() outside of it"
        act.fail(node, errors.InvalidOperation("load under this condition", reason, instead))


def _check_readable(
    act: Activation, node: syntax.Expression, pointer: syntax.Expression, verb: str
) -> None:
    for inner in walk(pointer):
        if isinstance(inner, syntax.Name):
            variable = act.find(inner.name)
            if variable is not None and variable.write_only:
                act.fail(node, errors.ProtectedPointer(verb, inner.name, "__writeonly"))


def root_name(node: syntax.Expression) -> str:
    """The first name in the expression of a pointer, as messages call it."""
    names = (inner.name for inner in walk(node) if isinstance(inner, syntax.Name))
    return next(names, "the pointer")


def mask_of(act: Activation, node: syntax.Dereference, pointer: tensor) -> object:
    """Where an access is done: its own mask, and the conditions of expressions around it."""
    own = None if node.mask is None else act.expression(node.mask)
    if own is not None and not isinstance(own, tensor):
        own = None if unwrap(own) else constexpr(False)
    if isinstance(own, tensor):
        own = tensor(semantics.as_condition(act.at(node), own))
    if act.guard is None:
        return own
    if shape_of(act.guard.handle.type) and not shape_of(pointer.handle.type):
        reason = "the condition around it is a tile, the pointer is a scalar"
        act.fail(node, errors.InvalidOperation("load under this condition", reason))
    return act.guard if own is None else semantics.logical(act.at(node), "and", act.guard, own)


# --- conditional expressions ----------------------------------------------------------------------


@expression(syntax.Conditional)
def conditional(act: Activation, node: syntax.Conditional) -> object:
    """`test ? a : b`. Loads in it become masked loads, whether the test is a tile or a scalar."""
    test = act.expression(node.test)
    if not isinstance(test, tensor):
        sides = (node.then, node.orelse) if unwrap(test) else (node.orelse, node.then)
        return _chosen(act, node, act.expression(sides[0]), _unevaluated(act, sides[1]))
    ctx = act.at(node.test)
    condition = tensor(semantics.as_condition(ctx, test))
    if not shape_of(condition.handle.type) and (has_effects(node.then) or has_effects(node.orelse)):
        return _branching(act, node, condition)
    masked = _masked(act, node, condition)
    if masked is not None:
        return masked
    then = _under(act, node.then, condition)
    orelse = _under(act, node.orelse, condition, inverted=True)
    return _selected(act, node, condition, then, orelse)


def _chosen(act: Activation, node: syntax.Conditional, value: object, other: object) -> object:
    """The side that a constant condition chooses, in the type that both sides have together."""
    act.at(node)
    a, b = integer_type(value), integer_type(other)
    if a is not None and b is not None:
        return as_type(act, value, common_type(a, b))
    if not isinstance(value, tensor) and not isinstance(other, tensor):
        number = unwrap(value)
        to_float = isinstance(number, int) and isinstance(unwrap(other), float)
        return constexpr(float(number)) if to_float else value
    if not is_number(value) or not is_number(other):
        return value
    dtype = result_dtype(act.at(node), "common", unwrap(value), unwrap(other), "select")
    return semantics.cast_to(act.ctx, value, type_of(dtype))


def _selected(
    act: Activation, node: syntax.Conditional, condition: tensor, then: object, orelse: object
) -> object:
    """One value or the other, element by element, in their common type."""
    then, orelse = unified(act, node, then, orelse)
    if isinstance(then, Integer):
        then = act.run_time(node, then)
    return call(act, node, tl.where, condition, then, orelse)


def _masked(act: Activation, node: syntax.Conditional, condition: tensor) -> object:
    """`c ? *p : 0` as one load, where the other side is a constant; None where it is not."""
    then, orelse = node.then, node.orelse
    if not isinstance(then, syntax.Dereference) or not is_plain(orelse):
        return None
    other = act.expression(orelse)
    if isinstance(other, tensor):
        return None
    with _guarded(act, node, condition):
        pointer = pointer_of(act, then, "load through")
        if _holds(element_of(pointer.handle.type), other):
            return unified(act, node, load(act, then, pointer, other), other)[0]
        loaded = load(act, then, pointer)
    return _selected(act, node, condition, loaded, other)


def _holds(pointer: Scalar, other: object) -> bool:
    """Whether a constant is a value of what is loaded, so that the load can give it."""
    assert isinstance(pointer, PointerType)
    number = unwrap(other)
    if pointer.element.is_float:
        return isinstance(number, int | float)
    return isinstance(number, int) and fits(number, pointer.element)


def _unevaluated(act: Activation, node: syntax.Expression) -> object:
    """What an expression would be; what it does is forgotten."""
    before = act.values
    act.values = dict(before)
    block = Block()
    with act.into(block):
        value = act.expression(node)
    act.values = before
    for op in reversed(block):
        Rewriter.drop(op)
    return value


def _under(
    act: Activation, node: syntax.Expression, condition: tensor, inverted: bool = False
) -> object:
    """The value of an expression whose loads are done only where a condition holds, or not."""
    if is_plain(node):
        return act.expression(node)
    if inverted:
        condition = semantics.unary(act.at(node), "not", condition)
    with _guarded(act, node, condition):
        return act.expression(node)


@contextmanager
def _guarded(act: Activation, node: syntax.Node, condition: tensor) -> Generator[None]:
    """A block in which loads are done only where a condition holds, too."""
    outer = act.guard
    if outer is not None:
        condition = cast("tensor", semantics.logical(act.at(node), "and", outer, condition))
    act.guard = condition
    try:
        yield
    finally:
        act.guard = outer


def _branching(act: Activation, node: syntax.Conditional, condition: tensor) -> object:
    """Both sides may do something, so only one is evaluated."""
    return choose(
        act,
        node,
        condition.handle,
        lambda: act.tensor(node.then),
        lambda: act.tensor(node.orelse),
    )


# --- stores ---------------------------------------------------------------------------------------


def store(act: Activation, node: syntax.Dereference, evaluate: Callable[[], object]) -> object:
    """`*p = value`: the pointer comes first, then the value, then the mask; gives the value."""
    pointer = pointer_of(act, node, "store through")
    value = evaluate()
    mask = mask_of(act, node, pointer)
    value = _stored(act, node, pointer, value)
    args = (pointer, value) if mask is None else (pointer, value, mask)
    call(act, node, tl.store, *args)
    return value


def _stored(act: Activation, node: syntax.Dereference, pointer: tensor, value: object) -> object:
    """A value in the type that is pointed to. Errors: InvalidOperation."""
    element = element_of(pointer.handle.type)
    assert isinstance(element, PointerType)
    if not isinstance(value, tensor):
        return converted(act, node, value, element.element)
    if shape_of(value.handle.type) and not shape_of(pointer.handle.type):
        operation = f"store {describe(value)} through one pointer"
        instead = "add a tile of offsets to it: *(p + 0 ... 16) = x"
        act.fail(node, errors.InvalidOperation(operation, "each element needs its own", instead))
    return converted(act, node, value, with_shape(element.element, shape_of(value.handle.type)))
