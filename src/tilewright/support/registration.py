"""Tables that decorators fill.

_HANDLERS: dict[type[Op], Handler] = {}
_handles = Registration(_HANDLERS)

@_handles(LoadOp, StoreOp)
def _masked(op: LoadOp | StoreOp) -> None: ...
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry")


class Registration(Generic[Key]):
    """The decorator that enters a function into a table under some keys, each of which has one."""

    __slots__ = ("_table",)

    def __init__(self, table: dict[Key, Any]) -> None:
        self._table = table

    def __call__(self, *keys: Key) -> Callable[[Entry], Entry]:
        def register(entry: Entry) -> Entry:
            for key in keys:
                assert key not in self._table, f"two entries for {key}"
                self._table[key] = entry
            return entry

        return register
