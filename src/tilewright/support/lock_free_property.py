"""`cached_property` without a lock.

The one of functools locks in Python 3.11: one lock for each property of a class, held while a value
is computed. Threads would wait for each other, and a child that is forked in that time would wait
for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """A property that is computed once and then stored in the object's `__dict__`.

    Two threads that read it at the same time may both compute it.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        """Compute the value, unless the object's `__dict__` has it, which hides this method."""
        if instance is None:
            return self
        # without a __set__, the entry in __dict__ precedes this descriptor from now on
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
