"""Constants, names, attributes, subscripts, tuples, comprehensions, f-strings, `x if c else y`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from types import ModuleType
from typing import NoReturn, cast

from tilewright import language
from tilewright.frontend import semantics
from tilewright.frontend.python.captured_names import MISSING
from tilewright.frontend.python.lower.assignment_targets import assign
from tilewright.frontend.python.lower.function_frame import FunctionFrame, expression
from tilewright.frontend.python.lower.host_calls import call_python
from tilewright.frontend.python.lower.iterables import iterate
from tilewright.frontend.python.lower.language_values import (
    DeferredError,
    describe,
    is_static,
    is_tuple,
    on_host,
    static_value,
    type_of_value,
    variable_value,
    wrap,
)
from tilewright.frontend.python.read_order import early_reads
from tilewright.language import (
    Constexpr,
    base_value,
    dtype,
    member_names,
    unknown_name,
    unwrap,
    user_aggregate,
)
from tilewright.language import tuple as language_tuple
from tilewright.support import errors

# Values whose changes `source_dependencies` detects.
_GLOBAL_CONSTANTS = (
    bool, int, float, str, bytes, type(None), tuple, list, dict, Constexpr, dtype, Enum,
)  # fmt: skip


@expression(ast.Constant)
def constant(frame: FunctionFrame, node: ast.Constant) -> object:
    """A literal."""
    return Constexpr(node.value)


@expression(ast.Name)
def name(frame: FunctionFrame, node: ast.Name) -> object:
    """A local variable, else a closure variable, global or builtin."""
    identifier = node.id
    value = frame.scope.get(identifier, MISSING)
    if value is MISSING and identifier not in frame.local:
        value = frame.environment.around(identifier)
    if value is MISSING:
        return _outside(frame, node)
    if isinstance(value, DeferredError):
        _report(frame, node, value.error)
    return value


def _report(frame: FunctionFrame, node: ast.Name, error: errors.CompilationError) -> NoReturn:
    """Raise the deferred error of a name."""
    if error.loc is None:
        frame.fail(node, error)
    # The error keeps the location of the join; the note adds where the name is read.
    error.notes = (f"'{node.id}' is used at {frame.loc(node)}",)
    raise error


def _outside(frame: FunctionFrame, node: ast.Name) -> object:
    identifier = node.id
    # Python's rule: assignment anywhere makes a name local; a global of that name is not seen.
    value = frame.environment.find(identifier)
    if identifier in frame.local and not _is_shadowed_later(frame, identifier, value):
        frame.fail(node, undefined_local(identifier, frame.scope))
    if value is MISSING:
        visible = [*frame.scope, *frame.environment.names()]
        frame.fail(node, errors.UndefinedName(identifier, visible))
    if isinstance(value, _GLOBAL_CONSTANTS):
        return wrap(cast("object", value))
    # A change of any other global would not be detected.
    if callable(value) or isinstance(value, ModuleType):
        return value
    frame.fail(node, errors.UnsupportedGlobal(identifier, type(value).__name__))


def _is_shadowed_later(frame: FunctionFrame, name: str, value: object) -> bool:
    """Whether a name refers to a global constexpr until it is assigned, as in Triton."""
    return isinstance(value, Constexpr) and name in early_reads(frame.source)


def undefined_local(name: str, names: Iterable[str]) -> errors.UndefinedName:
    """The error for a local variable that has no value yet. names: those that have one."""
    note = f"the function assigns '{name}', so it is a local variable, but not before here"
    return errors.UndefinedName(name, names, notes=(note,))


@expression(ast.NamedExpr)
def walrus(frame: FunctionFrame, node: ast.NamedExpr) -> object:
    """`name := value`."""
    value = variable_value(frame.expression(node.value))
    assign(frame, node.target, value)
    return value


@expression(ast.Attribute)
def attribute(frame: FunctionFrame, node: ast.Attribute) -> object:
    """`x.name`: of a module, a tensor, a dtype, a named tuple."""
    owner = frame.expression(node.value)
    return attribute_of(frame, node, owner, node.attr)


def attribute_of(frame: FunctionFrame, node: ast.expr, owner: object, attr: str) -> object:
    """An attribute of a language value, as a language value."""
    if isinstance(owner, user_aggregate):
        frame.at(node)
        return call_python(frame.session, getattr, (owner, attr), {})
    if isinstance(owner, base_value):
        return semantics.getattr_(frame.at(node), owner, attr)
    if attr == "type" and (is_tuple(owner) or isinstance(owner, Constexpr)):
        return type_of_value(owner)
    # These are attributes of the constexpr itself; others are those of the number inside.
    if isinstance(owner, Constexpr) and attr not in ("value", "type"):
        owner = cast("object", owner.value)
        if isinstance(owner, bool | int | float) and attr in member_names():
            return wrap(semantics.getattr_(frame.at(node), owner, attr))
    value = on_host(f"read attribute '{attr}'", lambda: getattr(owner, attr, MISSING))
    if value is MISSING:
        frame.fail(node, unknown_attribute(owner, attr))
    return wrap(value)


def unknown_attribute(owner: object, attr: str) -> errors.UnknownAttribute:
    """The error for an attribute that an object lacks."""
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
def subscript(frame: FunctionFrame, node: ast.Subscript) -> object:
    """`x[:, None]`, `items[0]`, `META['BLOCK']`."""
    owner = frame.expression(node.value)
    index = _index(frame, node.slice)
    if isinstance(owner, user_aggregate):
        frame.at(node)
        return call_python(frame.session, operator.getitem, (owner, index), {})
    if isinstance(owner, base_value):
        return semantics.getitem(frame.at(node), owner, index)
    return item_of(frame, node, owner, index)


def item_of(frame: FunctionFrame, node: ast.expr, owner: object, index: object) -> object:
    """An item of a compile-time tuple, string or dictionary."""
    frame.at(node)
    if not is_static(index):
        raise errors.NotConstexpr("the index into a tuple", describe(index))
    key = static_value(index)
    container = cast("object", unwrap(owner))
    if isinstance(container, Mapping):
        mapping = cast("Mapping[object, object]", container)
        if key not in mapping:
            note = "it is looked up among the keyword arguments of the launch"
            raise errors.UndefinedName(str(key), [str(k) for k in mapping], notes=(note,))
        return wrap(mapping[key])
    # Modules and classes may also have `__getitem__`, as generic aliases.
    if not hasattr(container, "__getitem__") or callable(container):
        reason = "only tuples, strings and tiles have items"
        raise errors.InvalidOperation(f"index {describe(owner)}", reason)
    indexable = cast("list[object]", container)
    operation = f"index a {type(indexable).__name__}"
    return wrap(on_host(operation, lambda: indexable[cast("int", key)]))


def _index(frame: FunctionFrame, node: ast.expr) -> object:
    if isinstance(node, ast.Slice):
        bounds = [
            None if part is None else frame.expression(part)
            for part in (node.lower, node.upper, node.step)
        ]
        return slice(*(static_value(b) if is_static(b) else b for b in bounds))
    if isinstance(node, ast.Tuple):
        return tuple(_index(frame, element) for element in node.elts)
    return frame.expression(node)


@expression(ast.Tuple)
def tuple_literal(frame: FunctionFrame, node: ast.Tuple) -> object:
    """`a, *b`."""
    return language_tuple(items(frame, node.elts))


@expression(ast.List)
def list_literal(frame: FunctionFrame, node: ast.List) -> object:
    """A list is a tuple: kernels cannot change it."""
    return language_tuple(items(frame, node.elts))


def items(frame: FunctionFrame, nodes: list[ast.expr]) -> Iterator[object]:
    """Values of the elements of a list, with `*elements` spread."""
    for node in nodes:
        if isinstance(node, ast.Starred):
            yield from iterate(frame, node, frame.expression(node.value))
        else:
            yield frame.expression(node)


@expression(ast.ListComp)
def comprehension(frame: FunctionFrame, node: ast.ListComp) -> object:
    """`[f(i) for i in range(4) if c(i)]` over compile-time items; the value is a tuple."""
    targets = [n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)]
    # Comprehensions have a scope of their own in Python 3: targets are restored afterwards.
    outer = {target: frame.scope[target] for target in targets if target in frame.scope}
    result = language_tuple(_generated(frame, node.elt, node.generators))
    for target in targets:
        frame.scope.pop(target, None)
    frame.scope.update(outer)
    return result


def _generated(
    frame: FunctionFrame, element: ast.expr, generators: list[ast.comprehension]
) -> Iterator[object]:
    if not generators:
        yield frame.expression(element)
        return
    first, *others = generators
    for item in iterate(frame, first.iter, frame.expression(first.iter)):
        assign(frame, first.target, item)
        if all(_holds(frame, condition) for condition in first.ifs):
            yield from _generated(frame, element, others)


def _holds(frame: FunctionFrame, condition: ast.expr) -> bool:
    value = frame.expression(condition)
    if not is_static(value):
        what = "the condition of a comprehension"
        frame.fail(condition, errors.NotConstexpr(what, describe(value)))
    return bool(static_value(value))


@expression(ast.JoinedStr)
def formatted_string(frame: FunctionFrame, node: ast.JoinedStr) -> object:
    """An f-string of compile-time values."""
    return Constexpr("".join(_text(frame, part) for part in node.values))


def _text(frame: FunctionFrame, node: ast.expr) -> str:
    if not isinstance(node, ast.FormattedValue):
        return str(static_value(frame.expression(node)))
    value = frame.expression(node.value)
    if not is_static(value):
        what = "a value in an f-string"
        advice = 'format a compile-time value, or print this one by tl.device_print("text", value)'
        frame.fail(node.value, errors.NotConstexpr(what, describe(value), advice=advice))
    frame.at(node)
    plain = static_value(value)
    # Python's f-string conversions: !r and !a; !s is the default.
    if node.conversion in (ord("r"), ord("a")):
        plain = repr(plain) if node.conversion == ord("r") else ascii(plain)
    spec = "" if node.format_spec is None else str(static_value(frame.expression(node.format_spec)))
    return on_host("format a value", lambda: format(plain, spec))


@expression(ast.GeneratorExp)
def generator(frame: FunctionFrame, node: ast.GeneratorExp) -> object:
    """Not a part of the language."""
    frame.unsupported(node, "a generator expression", "write a list: [... for ... in ...]")


@expression(ast.Dict, ast.DictComp)
def dictionary(frame: FunctionFrame, node: ast.Dict | ast.DictComp) -> object:
    """Not a part of the language."""
    frame.unsupported(
        node, "a dictionary", "use a tuple, or pass the values as constexpr parameters"
    )


@expression(ast.Set, ast.SetComp)
def set_literal(frame: FunctionFrame, node: ast.Set | ast.SetComp) -> object:
    """Not a part of the language."""
    frame.unsupported(node, "a set", "use a tuple")


@expression(ast.Await, ast.Yield, ast.YieldFrom)
def coroutine(frame: FunctionFrame, node: ast.Await | ast.Yield | ast.YieldFrom) -> object:
    """Not a part of the language."""
    frame.unsupported(node, f"'{type(node).__name__.lower()}'", "a kernel runs to its end at once")


@expression(ast.Starred)
def starred(frame: FunctionFrame, node: ast.Starred) -> object:
    """`*x` outside of calls, tuples and assignments."""
    frame.unsupported(node, "'*' here", "use it in a call, a tuple or an assignment")
