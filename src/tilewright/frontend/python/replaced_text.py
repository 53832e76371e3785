"""Functions whose text is replaced: compiles a text in place of an existing function.

Programs that generate kernels take the text of one, edit it, and assign it to the kernel.
The new function has the globals and the closure of the old one. Annotations and defaults that the
text leaves unchanged are not evaluated again: they may use names that the closure lacks, and
globals that have other values by now.
"""

from __future__ import annotations
import __future__

import ast
import linecache
from collections.abc import Iterable, Iterator
from hashlib import sha256
from inspect import signature
from types import FunctionType
from typing import Any, cast

from tilewright.frontend.python.function_source import source_of
from tilewright.support import errors

_AROUND = "<around>"


def function_of_text(text: str, like: FunctionType) -> FunctionType:
    """The function that `text` defines, with the name, globals and closure of `like`.

    It starts on the line on which `like` does. The text is registered for tracebacks and errors.
    Errors: SyntaxError; InvalidValue for a text that defines no function of that name.
    """
    file = f"<text of {like.__name__}, {sha256(text.encode()).hexdigest()[:12]}>"
    above = like.__code__.co_firstlineno - 1
    lines = ["\n"] * above + text.splitlines(keepends=True)
    linecache.cache[file] = (len(text), None, lines, file)
    tree = _parsed(text, file, above)
    definition = _definition(tree, like.__name__)
    annotations = _without_annotations(definition, like)
    defaults = _with_defaults(definition, like)
    cells = dict(zip(like.__code__.co_freevars, like.__closure__ or (), strict=True))
    names: dict[str, Any] = {}
    enclosed = _enclosed(tree, like.__name__, (*cells, *defaults))
    flags = like.__code__.co_flags & __future__.annotations.compiler_flag
    exec(compile(enclosed, file, "exec", flags, dont_inherit=True), like.__globals__, names)
    made: FunctionType = names[_AROUND](*[None] * len(cells), *defaults.values())
    # the cells themselves: their values may change
    closure = tuple(cells[name] for name in made.__code__.co_freevars)
    bound = FunctionType(made.__code__, like.__globals__, like.__name__, made.__defaults__, closure)
    bound.__kwdefaults__ = made.__kwdefaults__
    bound.__annotations__ = {**made.__annotations__, **annotations}
    bound.__module__, bound.__qualname__ = like.__module__, like.__qualname__
    return bound


def _parsed(text: str, file: str, above: int) -> list[ast.stmt]:
    """The statements of a text, which may be indented, preceded by that many lines."""
    if not text[:1].isspace():
        return ast.increment_lineno(ast.parse(text, file), above).body
    block = ast.increment_lineno(ast.parse(f"if 1:\n{text}", file), above - 1).body[0]
    return cast("ast.If", block).body


def _enclosed(tree: list[ast.stmt], name: str, parameters: Iterable[str]) -> ast.Module:
    """`def around(*parameters): <tree>; return name`, in which free variables of the tree are free
    again. The tree keeps its line numbers."""
    made = ast.parse(f"def around(): return {name}")
    around = cast("ast.FunctionDef", made.body[0])
    around.name = _AROUND
    around.args.args = [ast.arg(parameter) for parameter in parameters]
    around.body = [*tree, *around.body]
    return ast.fix_missing_locations(made)


def _definition(tree: list[ast.stmt], name: str) -> ast.FunctionDef:
    for statement in tree:
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            return statement
    expected = f"a text that defines '{name}'"
    raise errors.InvalidValue("_unsafe_update_src", "new_src", expected, "a text without it")


def _without_annotations(made: ast.FunctionDef, like: FunctionType) -> dict[str, object]:
    """Remove the annotations that `like` shares, and return their values by parameter."""
    before = {arg.arg: _dumped(arg.annotation) for arg in _arguments(_tree_of(like))}
    kept: dict[str, object] = {}
    for arg in _arguments(made):
        if arg.annotation and before.get(arg.arg) == _dumped(arg.annotation):
            kept[arg.arg], arg.annotation = like.__annotations__[arg.arg], None
    made.returns = None  # means nothing in a kernel
    return kept


def _with_defaults(made: ast.FunctionDef, like: FunctionType) -> dict[str, object]:
    """Replace the defaults that `like` shares by names; name -> value."""
    before = {name: _dumped(items[index]) for name, items, index in _defaults(_tree_of(like))}
    parameters = signature(like).parameters
    kept: dict[str, object] = {}
    for parameter, items, index in _defaults(made):
        default = items[index]
        if default and before.get(parameter) == _dumped(default):
            name = f"<default of {parameter}>"
            items[index] = ast.copy_location(ast.Name(name, ast.Load()), default)
            kept[name] = parameters[parameter].default
    return kept


def _tree_of(fn: FunctionType) -> ast.FunctionDef:
    """The definition of a function; one without parameters if there is no text."""
    try:
        return source_of(fn).tree
    except errors.SourceNotAvailable:
        return cast("ast.FunctionDef", ast.parse("def unknown(): pass").body[0])


def _dumped(node: ast.expr | None) -> str:
    return "" if node is None else ast.dump(node)


def _arguments(function: ast.FunctionDef) -> Iterator[ast.arg]:
    args = function.args
    yield from (*args.posonlyargs, *args.args, *args.kwonlyargs)
    yield from (arg for arg in (args.vararg, args.kwarg) if arg is not None)


def _defaults(function: ast.FunctionDef) -> Iterator[tuple[str, list[ast.expr | None], int]]:
    """(parameter, list, index of its default in the list)."""
    args = function.args
    positional = [*args.posonlyargs, *args.args]
    defaults = cast("list[ast.expr | None]", args.defaults)
    for index, arg in enumerate(positional[len(positional) - len(defaults) :]):
        yield arg.arg, defaults, index
    for index, arg in enumerate(args.kwonlyargs):
        yield arg.arg, args.kw_defaults, index
