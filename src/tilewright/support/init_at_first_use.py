"""Constructors that are written as text, and compiled when the first instance is made: 0.05 ms that
most classes of a process never cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["InitAtFirstUse"]


class InitAtFirstUse:
    """Stands for the `__init__` of a class until that is looked up, and is then replaced by what
    `write` makes of the class."""

    def __init__(self, write: Callable[[type], Callable[..., None]]) -> None:
        self._write = write
        self._made: Any = None

    def __get__(self, instance: object, owner: type) -> Any:
        if self._made is None:  # else another thread has replaced it since it was looked up
            cls: Any = next(cls for cls in owner.__mro__ if cls.__dict__.get("__init__") is self)
            self._made = self._write(cls)
            cls.__init__ = self._made
        return self._made.__get__(instance, owner)
