"""The text of functions of the language, which programs read, hash and replace."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

from tilewright.frontend.python import (
    Dependencies,
    dependencies,
    function_of_text,
    source_of,
)
from tilewright.language import DeviceFunction, constexpr_function, constexpr_type
from tilewright.support import cached_property

P = ParamSpec("P")
R = TypeVar("R")


class FunctionText:
    """The text of a function by Triton's names; a base of kernels and compile-time functions."""

    __module__: str

    @property
    def src(self) -> str:
        """The source text, from `def` on, without the indentation of the `def`."""
        return source_of(_function(self)).dedented_text

    @property
    def raw_src(self) -> list[str]:
        """The lines of the file, from the first decorator on."""
        source = source_of(_function(self))
        first = self.starting_line_number
        decorators = source.tree.lineno + source.line_shift - first
        start = first - source.file.first
        return list(source.file.lines[start:][: decorators + len(source.text.splitlines())])

    @property
    def starting_line_number(self) -> int:
        """The line of the file on which the function, or its first decorator, starts."""
        return _function(self).__code__.co_firstlineno

    @property
    def module(self) -> str:
        """The name of the module that contains the function."""
        return self.__module__

    @property
    def type(self) -> constexpr_type:
        """The type of the function as a compile-time value."""
        return constexpr_type(self)

    def parse(self) -> ast.Module:
        """The syntax tree of `src`."""
        return ast.parse(self.src)

    def find_dependencies(self) -> Dependencies:
        """The dependencies of the function's meaning, as of the first use."""
        raise NotImplementedError

    @property
    def cache_key(self) -> str:
        """A hash of the source, of the functions it calls, and of the globals it uses."""
        return self.find_dependencies().hash

    @cached_property  # not a property: programs assign to it
    def used_global_vals(self) -> dict[tuple[str, int], tuple[object, object]]:
        """(name, id of the holder) -> (value, holder) of each constant from outside that the
        function uses."""
        functions = (FunctionText, DeviceFunction, constexpr_function)
        used = [u for u in self.find_dependencies().used if not isinstance(u.value, functions)]
        return {(u.name, id(u.binding.holder)): (u.value, u.binding.holder) for u in used}


def _function(owner: object) -> FunctionType:
    return cast("Any", owner).fn


class ConstexprFunction(FunctionText, constexpr_function[P, R]):
    """A function that kernels call at compile time, and whose text programs may replace."""

    def __init__(self, fn: Callable[P, R]) -> None:
        super().__init__(fn)
        self.hash: str | None = None

    def find_dependencies(self) -> Dependencies:
        """The current dependencies."""
        return dependencies(self)

    def _unsafe_update_src(self, new_src: str) -> None:
        """Become the function that a text defines, from `def` on and under the same name. Kernels
        that have been compiled keep the old one until None is assigned to their `hash`."""
        vars(self).pop("used_global_vals", None)
        self.__init__(function_of_text(new_src, _function(self)))
