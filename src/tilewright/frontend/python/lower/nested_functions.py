"""Nested functions and lambdas: inlined where they are called, as those under `@jit`.

def kernel(x, n):
    def inside(i):                    # reads n of the kernel, as it is when inside is called
        return i < n
    tl.store(x + i, 1, mask=inside(i))
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import cast

from tilewright.frontend.python.captured_names import MISSING, Binding, Environment
from tilewright.frontend.python.function_source import FunctionSource
from tilewright.frontend.python.lower.function_frame import (
    FunctionFrame,
    Outcome,
    expression,
    statement,
)
from tilewright.language import DeviceFunction


class EnclosingNames(Environment):
    """The names in the scope of a nested function: those of enclosing functions come first."""

    __slots__ = ("_frame",)

    def __init__(self, frame: FunctionFrame) -> None:
        self._frame = frame

    def binding(self, name: str) -> Binding | None:
        """The storage of a name of the module; names of enclosing frames are values."""
        return self._frame.environment.binding(name)

    def find(self, name: str) -> object:
        """The value of a name from outside of all functions, or MISSING."""
        return self._frame.environment.find(name)

    def around(self, name: str) -> object:
        """The current value of the name in the enclosing functions, or MISSING."""
        value = self._frame.scope.get(name, MISSING)
        return self._frame.environment.around(name) if value is MISSING else value

    def names(self) -> Iterator[str]:
        """Names around the function, for suggestions."""
        yield from self._frame.scope
        yield from self._frame.environment.names()


class NestedFunction(DeviceFunction):
    """A function that a kernel defines. defaults: of its last parameters; named_defaults: of those
    that are passed by name only."""

    def __init__(
        self,
        frame: FunctionFrame,
        tree: ast.FunctionDef,
        defaults: tuple[object, ...],
        named_defaults: dict[str, object],
    ) -> None:
        outer = frame.source
        key = ("nested", tree)
        source = outer.facts.get(key)
        # One source for all activations: it caches the facts of its tree.
        if source is None:
            source = FunctionSource(outer.file, tree.name, outer.text, tree, outer.line_shift)
            outer.facts[key] = source
        self.__name__ = tree.name
        self.source = cast("FunctionSource", source)
        self.environment = EnclosingNames(frame)
        self.defaults = defaults
        self.named_defaults = named_defaults

    @property
    def __defaults__(self) -> tuple[object, ...]:
        return self.defaults

    @property
    def __kwdefaults__(self) -> dict[str, object]:
        return self.named_defaults


@statement(ast.FunctionDef)
def nested_function(frame: FunctionFrame, node: ast.FunctionDef) -> Outcome:
    """`def` inside a kernel; its only decorator may be `jit`, which has no effect."""
    for decorator in node.decorator_list:
        if not ast.unparse(decorator).partition("(")[0].endswith("jit"):
            frame.unsupported(decorator, "a decorator of a function inside a function")
    frame.scope[node.name] = _made(frame, node)
    return None


@expression(ast.Lambda)
def lambda_function(frame: FunctionFrame, node: ast.Lambda) -> object:
    """`lambda x: x + 1`."""
    key = ("lambda", node)
    tree = frame.source.facts.get(key)
    if tree is None:
        result = ast.copy_location(ast.Return(node.body), node.body)
        tree = ast.FunctionDef("<lambda>", node.args, [result], [], None)
        frame.source.facts[key] = ast.copy_location(tree, node)
    return _made(frame, cast("ast.FunctionDef", tree))


def _made(frame: FunctionFrame, tree: ast.FunctionDef) -> NestedFunction:
    arguments = tree.args
    defaults = tuple(map(frame.expression, arguments.defaults))
    named = {
        parameter.arg: frame.expression(default)
        for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    }
    return NestedFunction(frame, tree, defaults, named)
