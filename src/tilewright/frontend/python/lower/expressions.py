"""Constants, names, attributes, subscripts, tuples, comprehensions, f-strings, `x if c else y`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from enum import Enum
from types import ModuleType
from typing import NoReturn, cast

from tilewright import language
from tilewright.frontend import semantics
from tilewright.frontend.python.environment import MISSING
from tilewright.frontend.python.lower.activation import Activation, expression
from tilewright.frontend.python.lower.iteration import iterate
from tilewright.frontend.python.lower.targets import assign
from tilewright.frontend.python.lower.values import (
    Deferred,
    describe,
    is_static,
    is_tuple,
    on_host,
    static,
    wrap,
)
from tilewright.language import base_value, constexpr, dtype, member_names, unknown_name, unwrap
from tilewright.language import tuple as language_tuple
from tilewright.support import errors

_GLOBAL_CONSTANTS = (bool, int, float, str, bytes, type(None), tuple, constexpr, dtype, Enum)


@expression(ast.Constant)
def constant(act: Activation, node: ast.Constant) -> object:
    """A literal."""
    return constexpr(node.value)


@expression(ast.Name)
def name(act: Activation, node: ast.Name) -> object:
    """A local variable, else a closure variable, global or builtin."""
    identifier = node.id
    value = act.scope.get(identifier, MISSING)
    if value is MISSING:
        return _outside(act, node)
    if isinstance(value, Deferred):
        _report(act, node, value.error)
    return value


def _report(act: Activation, node: ast.Name, error: errors.CompilationError) -> NoReturn:
    """Raise a mistake that using this name completes."""
    if error.loc is None:
        act.fail(node, error)
    error.notes = (f"'{node.id}' is used at {act.loc(node)}",)
    raise error


def _outside(act: Activation, node: ast.Name) -> object:
    identifier = node.id
    if identifier in act.local:
        note = (
            f"the function assigns '{identifier}', so it is a local variable, but not before here"
        )
        act.fail(node, errors.UndefinedName(identifier, act.scope, notes=(note,)))
    value = act.environment.find(identifier)
    if value is MISSING:
        known = [*act.scope, *act.environment.names()]
        act.fail(node, errors.UndefinedName(identifier, known))
    if isinstance(value, _GLOBAL_CONSTANTS):
        return wrap(cast("object", value))
    if callable(value) or isinstance(value, ModuleType):
        return value
    act.fail(node, errors.UnsupportedGlobal(identifier, type(value).__name__))


@expression(ast.NamedExpr)
def walrus(act: Activation, node: ast.NamedExpr) -> object:
    """`name := value`."""
    value = act.expression(node.value)
    assign(act, node.target, value)
    return value


@expression(ast.Attribute)
def attribute(act: Activation, node: ast.Attribute) -> object:
    """`x.name`: of a module, a tensor, a dtype, a named tuple."""
    owner = act.expression(node.value)
    return attribute_of(act, node, owner, node.attr)


def attribute_of(act: Activation, node: ast.expr, owner: object, attr: str) -> object:
    """An attribute of a language value, as a language value."""
    if isinstance(owner, base_value):
        return semantics.getattr_(act.at(node), owner, attr)
    if isinstance(owner, constexpr) and attr not in ("value", "type"):
        owner = cast("object", owner.value)
        if isinstance(owner, bool | int | float) and attr in member_names():
            return wrap(semantics.getattr_(act.at(node), owner, attr))
    found = on_host(f"read attribute '{attr}'", lambda: getattr(owner, attr, MISSING))
    if found is MISSING:
        act.fail(node, _unknown_attribute(owner, attr))
    return wrap(found)


def _unknown_attribute(owner: object, attr: str) -> errors.UnknownAttribute:
    if isinstance(owner, ModuleType):
        if owner is language:
            return unknown_name(owner.__name__, attr, language.__all__)
        return errors.UnknownAttribute(f"'{owner.__name__}'", attr, dir(owner))
    error = errors.UnknownAttribute(describe(owner), attr, dir(owner))
    if is_tuple(owner) and attr in dir(list):
        error = errors.UnknownAttribute("a tuple", attr, dir(owner))
        error.advice = "lists are tuples in a kernel, which do not change: write v = v + [x]"
    return error


@expression(ast.Subscript)
def subscript(act: Activation, node: ast.Subscript) -> object:
    """`x[:, None]`, `items[0]`, `META['BLOCK']`."""
    owner = act.expression(node.value)
    index = _index(act, node.slice)
    if isinstance(owner, base_value):
        return semantics.getitem(act.at(node), owner, index)
    return item_of(act, node, owner, index)


def item_of(act: Activation, node: ast.expr, owner: object, index: object) -> object:
    """An item of a tuple, string or dictionary that is known at compile time."""
    act.at(node)
    if not is_static(index):
        raise errors.NotConstexpr("the index into a tuple", describe(index))
    key = static(index)
    container = cast("object", unwrap(owner))
    if isinstance(container, Mapping):
        known = cast("Mapping[object, object]", container)
        if key not in known:
            note = "it is looked up among the keyword arguments of the launch"
            raise errors.UndefinedName(str(key), [str(k) for k in known], notes=(note,))
        return wrap(known[key])
    if not hasattr(container, "__getitem__") or callable(container):
        reason = "only tuples, strings and tiles have items"
        raise errors.InvalidOperation(f"index {describe(owner)}", reason)
    indexable = cast("list[object]", container)
    operation = f"index a {type(indexable).__name__}"
    return wrap(on_host(operation, lambda: indexable[cast("int", key)]))


def _index(act: Activation, node: ast.expr) -> object:
    if isinstance(node, ast.Slice):
        bounds = [
            None if part is None else act.expression(part)
            for part in (node.lower, node.upper, node.step)
        ]
        return slice(*(static(b) if is_static(b) else b for b in bounds))
    if isinstance(node, ast.Tuple):
        return tuple(_index(act, element) for element in node.elts)
    return act.expression(node)


@expression(ast.Tuple)
def tuple_literal(act: Activation, node: ast.Tuple) -> object:
    """`a, *b`."""
    return language_tuple(items(act, node.elts))


@expression(ast.List)
def list_literal(act: Activation, node: ast.List) -> object:
    """A list is a tuple: kernels cannot change it."""
    return language_tuple(items(act, node.elts))


def items(act: Activation, nodes: list[ast.expr]) -> Iterator[object]:
    """Values of the elements of a list, with `*elements` spread."""
    for node in nodes:
        if isinstance(node, ast.Starred):
            yield from iterate(act, node, act.expression(node.value))
        else:
            yield act.expression(node)


@expression(ast.ListComp)
def comprehension(act: Activation, node: ast.ListComp) -> object:
    """`[f(i) for i in range(4) if c(i)]` over what is known at compile time; gives a tuple."""
    targets = [n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)]
    outer = {target: act.scope[target] for target in targets if target in act.scope}
    found = language_tuple(_generated(act, node.elt, node.generators))
    for target in targets:
        act.scope.pop(target, None)
    act.scope.update(outer)
    return found


def _generated(
    act: Activation, element: ast.expr, generators: list[ast.comprehension]
) -> Iterator[object]:
    if not generators:
        yield act.expression(element)
        return
    first, *others = generators
    for item in iterate(act, first.iter, act.expression(first.iter)):
        assign(act, first.target, item)
        if all(_holds(act, condition) for condition in first.ifs):
            yield from _generated(act, element, others)


def _holds(act: Activation, condition: ast.expr) -> bool:
    value = act.expression(condition)
    if not is_static(value):
        what = "the condition of a comprehension"
        act.fail(condition, errors.NotConstexpr(what, describe(value)))
    return bool(static(value))


@expression(ast.JoinedStr)
def formatted_string(act: Activation, node: ast.JoinedStr) -> object:
    """An f-string of compile-time values."""
    return constexpr("".join(_text(act, part) for part in node.values))


def _text(act: Activation, node: ast.expr) -> str:
    if not isinstance(node, ast.FormattedValue):
        return str(static(act.expression(node)))
    value = act.expression(node.value)
    if not is_static(value):
        what = "a value in an f-string"
        act.fail(node.value, errors.NotConstexpr(what, describe(value)))
    act.at(node)
    plain = static(value)
    if node.conversion in (ord("r"), ord("a")):
        plain = repr(plain) if node.conversion == ord("r") else ascii(plain)
    spec = "" if node.format_spec is None else str(static(act.expression(node.format_spec)))
    return on_host("format a value", lambda: format(plain, spec))


@expression(ast.Lambda)
def lambda_function(act: Activation, node: ast.Lambda) -> object:
    """Not a part of the language."""
    act.unsupported(
        node, "a lambda", "define a function under @jit at module level and name it here"
    )


@expression(ast.GeneratorExp)
def generator(act: Activation, node: ast.GeneratorExp) -> object:
    """Not a part of the language."""
    act.unsupported(node, "a generator expression", "write a list: [... for ... in ...]")


@expression(ast.Dict, ast.DictComp)
def dictionary(act: Activation, node: ast.Dict | ast.DictComp) -> object:
    """Not a part of the language."""
    act.unsupported(node, "a dictionary", "use a tuple, or pass the values as constexpr parameters")


@expression(ast.Set, ast.SetComp)
def set_literal(act: Activation, node: ast.Set | ast.SetComp) -> object:
    """Not a part of the language."""
    act.unsupported(node, "a set", "use a tuple")


@expression(ast.Await, ast.Yield, ast.YieldFrom)
def coroutine(act: Activation, node: ast.Await | ast.Yield | ast.YieldFrom) -> object:
    """Not a part of the language."""
    act.unsupported(node, f"'{type(node).__name__.lower()}'", "a kernel runs to its end at once")


@expression(ast.Starred)
def starred(act: Activation, node: ast.Starred) -> object:
    """Only calls, tuples and assignments know `*x`."""
    act.unsupported(node, "'*' here", "use it in a call, a tuple or an assignment")
