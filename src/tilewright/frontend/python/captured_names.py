"""Names from outside of a function: closure variables, globals, builtins."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from types import CellType, FunctionType

from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass

_BUILTINS = vars(builtins)

MISSING = object()
"""Result of a look-up of a name that does not exist; None may be a value."""


@dataclass(frozen=True, slots=True)
class Binding:
    """Storage of an outside name: a key of a dictionary, a closure cell, a class attribute."""

    holder: dict[str, object] | CellType | type
    key: str

    def read(self) -> object:
        """The current value, or MISSING."""
        if isinstance(self.holder, dict):
            return self.holder.get(self.key, MISSING)
        if isinstance(self.holder, type):
            return getattr(self.holder, self.key, MISSING)
        try:
            return self.holder.cell_contents
        except synchronous(ValueError):  # the enclosing function has not assigned it yet
            return MISSING


class Environment:
    """Looks up the names that a function does not assign itself."""

    __slots__ = ("_cells", "_globals")

    def __init__(self, fn: FunctionType) -> None:
        self._globals = fn.__globals__
        # co_freevars and __closure__ are parallel: the n-th name is in the n-th cell.
        self._cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))

    def binding(self, name: str) -> Binding | None:
        """The storage of a name of an enclosing function or of the module; None for any other."""
        # Closure cells before globals, as Python resolves names. Builtins are not tracked.
        cell = self._cells.get(name)
        if cell is not None:
            return Binding(cell, name)
        return Binding(self._globals, name) if name in self._globals else None

    def find(self, name: str) -> object:
        """The value of a closure variable, global or builtin, or MISSING."""
        if name in self._cells:
            return Binding(self._cells[name], name).read()
        # Globals before builtins, as Python looks them up.
        value = self._globals.get(name, MISSING)
        return _BUILTINS.get(name, MISSING) if value is MISSING else value

    def around(self, name: str) -> object:
        """The value of a local variable of a function around this one, or MISSING."""
        return MISSING

    def names(self) -> Iterator[str]:
        """Closure variables and globals, for suggestions."""
        yield from self._cells
        yield from self._globals
