"""Constructors that are written as text when a class has its first instance.

Compiling one takes 0.1 ms, and most classes that a process imports never have an instance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class InitAtFirstUse:
    """The `__init__` of a class until it is looked up: then what `write` makes of the class."""

    def __init__(self, write: Callable[[type], Callable[..., None]]) -> None:
        self._write = write
        self._made: Any = None

    def __get__(self, instance: object, owner: type) -> Any:
        if self._made is None:  # else another thread has replaced it since it was looked up
            # `inspect.signature` of Python 3.13 passes the class as the instance.
            classes = instance.__mro__ if isinstance(instance, type) else owner.__mro__
            cls: Any = next(cls for cls in classes if cls.__dict__.get("__init__") is self)
            self._made = cls.__init__ = self._write(cls)
        return self._made.__get__(instance, owner)
