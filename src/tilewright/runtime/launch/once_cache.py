"""A cache whose values are made once each, also when several threads ask for one at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from tilewright.support import ForkLock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Once(Generic[K, V]):
    """Values by key. Different keys are made in parallel; a failure is raised and not kept."""

    def __init__(self) -> None:
        self.made: dict[K, V] = {}
        self._guard = ForkLock()
        self._locks: dict[K, ForkLock] = {}

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of `key`, made by `make` if this is the first time."""
        found = self.made.get(key)
        if found is not None:
            return found
        with self._guard:
            lock = self._locks.setdefault(key, ForkLock())
        with lock:
            found = self.made.get(key)
            if found is None:
                found = self.made[key] = make()
            with self._guard:
                self._locks.pop(key, None)
            return found
