"""Pickling and copying of the objects that decorators return."""

from __future__ import annotations

import importlib
import pickle
from typing import Any, Self

__all__ = ["PickledByName"]


class PickledByName:
    """An object that replaces a function under its name, perhaps wrapped by others that do so.

    It is pickled as a function is, by module and qualified name, and a copy of it is itself.
    Those inside others are reached through their attributes `fn`.
    """

    __qualname__: str

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        depth = 0
        # Decorators may be stacked: the name then leads to the outermost object.
        try:
            named = _named(self.__module__, self.__qualname__)
        except (ImportError, AttributeError):
            named = None
        while isinstance(named, PickledByName) and named is not self:
            named, depth = getattr(named, "fn", None), depth + 1
        if named is self:
            return _inside, (self.__module__, self.__qualname__, depth)
        # The name leads to another object (a local function): pickled by its contents.
        return self.reduce_by_value()

    def reduce_by_value(self) -> tuple[Any, ...]:
        """As `__reduce__`, where the name leads to something else, as for local functions.

        Raises PicklingError where that cannot be.
        """
        name = f"{self.__module__}.{self.__qualname__}"
        raise pickle.PicklingError(f"Can't pickle {self!r}: it is not found as {name}")


def _named(module: str, qualname: str) -> object:
    value: object = importlib.import_module(module)
    for part in qualname.split("."):
        value = getattr(value, part)
    return value


def _inside(module: str, qualname: str, depth: int) -> Any:
    """The object `depth` levels inside the one of that name."""
    value: Any = _named(module, qualname)
    for _ in range(depth):
        value = value.fn
    return value
