"""Binding of values to names: `x = v`, `a, (b, *c) = v`, loop targets, `x := v`."""

from __future__ import annotations

import ast

from tilewright.frontend.python.lower.function_frame import FunctionFrame
from tilewright.frontend.python.lower.iterables import iterate
from tilewright.frontend.python.lower.language_values import cannot_unpack
from tilewright.language import tensor, user_aggregate
from tilewright.language import tuple as language_tuple


def assign(frame: FunctionFrame, target: ast.expr, value: object) -> None:
    """Bind `value` to a target; a run-time value without a name takes the variable's."""
    if isinstance(target, ast.Name):
        bind(frame, target.id, value)
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(frame, target, value)
    elif isinstance(target, ast.Attribute) and _is_constructed(frame, target):
        setattr(frame.expression(target.value), target.attr, value)
    elif isinstance(target, ast.Subscript):
        instead = "store through a pointer with tl.store, or select with tl.where"
        frame.unsupported(target, "assigning to an element", instead)
    else:
        frame.unsupported(target, "assigning to an attribute", "assign to a variable")


def _is_constructed(frame: FunctionFrame, target: ast.Attribute) -> bool:
    """Whether a target is a field of the aggregate that this function constructs."""
    owner = target.value
    if not isinstance(owner, ast.Name) or frame.source.name != "__init__":
        return False
    return isinstance(frame.scope.get(owner.id), user_aggregate)


def bind(frame: FunctionFrame, name: str, value: object) -> None:
    """Bind a local variable to a value."""
    frame.scope[name] = value
    if isinstance(value, tensor):
        handle = value.handle
        # The first name wins: a value bound to two variables keeps the name of the first in the IR.
        if not handle.name:
            handle.name = name


def _unpack(frame: FunctionFrame, target: ast.Tuple | ast.List, value: object) -> None:
    items = list(iterate(frame, target, value))
    stars = [i for i, element in enumerate(target.elts) if isinstance(element, ast.Starred)]
    extra = len(items) - len(target.elts)
    # A starred target takes the remaining items, perhaps none (-1: one item fewer than targets).
    if stars and extra >= -1:
        first = stars[0]
        # extra + 1 items remain for the star; they become one, so that the lengths agree.
        middle = language_tuple(items[first : first + extra + 1])
        items[first : first + extra + 1] = [middle]
    elif extra:
        frame.fail(target, cannot_unpack(value, len(items), len(target.elts)))
    for element, item in zip(target.elts, items, strict=True):
        inner = element.value if isinstance(element, ast.Starred) else element
        assign(frame, inner, item)
