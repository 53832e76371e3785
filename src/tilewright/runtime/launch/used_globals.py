"""The globals that the code of a kernel relies on, and the check that they are unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.frontend.python import CONTAINERS, Dependencies, UsedGlobal
from tilewright.language import Constexpr, watch
from tilewright.support import errors

GlobalCheck = tuple[Callable[[Any], object], object, object]
"""(get, name, value): `get(name)` must still be `value` when a variant is launched."""


class UsedGlobals:
    """The globals of a kernel and of the functions that it calls, shared by its variants.

    checks: one for each global, for Python and for native dispatch.
    """

    __slots__ = ("_dependencies", "checks")

    def __init__(self, dependencies: Dependencies, forget: Callable[[], object]) -> None:
        """forget: drops the variants; called when the value of a constexpr is assigned."""
        self._dependencies = dependencies
        self.checks: tuple[GlobalCheck, ...] = tuple(map(_check, dependencies.used))
        for used in dependencies.used:
            if isinstance(used.original, Constexpr):
                watch(used.original, forget)

    def check(self, kernel: str) -> None:
        """Raise ChangedGlobal if one has another value than when `kernel` was first compiled."""
        for used in self._dependencies.changed():
            raise errors.ChangedGlobal(used.name, kernel, used.value, used.binding.read())


def _check(used: UsedGlobal) -> GlobalCheck:
    binding = used.binding
    value: object = used.original
    if isinstance(used.value, CONTAINERS):  # not the global itself but a copy of its contents
        return lambda _name: None if used.changed() else value, binding.key, value
    if isinstance(binding.holder, dict):
        return binding.holder.get, binding.key, value
    # a closure's cell has no bound method that reads it by name, as a dictionary's `get` does
    return lambda _name: binding.read(), binding.key, value
