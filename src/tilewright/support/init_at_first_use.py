"""Constructors that are written as text, and compiled when a class has had a few instances.

Compiling one takes as long as 100 instances by a loop over the fields, and few classes have that
many (ADR 0056).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

__all__ = ["Fill", "InitAtFirstUse", "bound_arguments"]

FEW_INSTANCES = 30
"""Instances of a class before its constructor is compiled."""


class Fill(Protocol):
    """Do the work of the written constructor, by a loop over the fields."""

    def __call__(self, instance: Any, args: tuple[Any, ...], named: Mapping[str, Any], /) -> bool:
        """False, without any effect, for arguments that do not fit."""
        ...


class InitAtFirstUse:
    """Descriptor for the `__init__` of a class until its first lookup.

    The lookup replaces it by a function that fills the first instances; later the result of `write`
    replaces that.
    """

    def __init__(self, write: Callable[[type], Callable[..., None]], fill: Fill) -> None:
        self._write = write
        self._fill = fill
        self._made: Any = None

    def __get__(self, instance: object, owner: type) -> Any:
        if self._made is None:  # otherwise another thread has replaced it since the lookup
            cls: Any = next(cls for cls in owner.__mro__ if cls.__dict__.get("__init__") is self)
            self._made = self._first_form(cls)
            cls.__init__ = self._made
        return self._made.__get__(instance, owner)

    def _first_form(self, cls: Any) -> Callable[..., None]:
        left, fill = FEW_INSTANCES, self._fill

        def init(instance: Any, /, *args: Any, **named: Any) -> None:
            nonlocal left
            left -= 1
            if left < 0 or not fill(instance, args, named):
                cls.__init__ = written = self._write(cls)
                written(instance, *args, **named)

        return init


def bound_arguments(
    names: tuple[str, ...], args: tuple[Any, ...], named: Mapping[str, Any], by_name: frozenset[str]
) -> dict[str, Any] | None:
    """Arguments by parameter; None for too many or unknown ones.

    names: the parameters that may be passed by position; by_name: all parameters
    """
    values = dict(zip(names, args, strict=False))
    if len(args) > len(names):
        return None
    if named:
        if not named.keys() <= by_name or not values.keys().isdisjoint(named):
            return None
        values.update(named)
    return values
