"""The chosen configurations of an autotuner, on which launches in machine code rely."""

from __future__ import annotations

from typing import Any

from tilewright.runtime.launch.used_globals import GlobalCheck
from tilewright.runtime.tuning.tuning_config import Config

_STATE = "state"


class Choices(dict[tuple[object, ...], Config]):
    """Key -> chosen Config. A choice that changes makes `check` fail, which native dispatch reads
    instead of looking up the key; a new one does not."""

    def __init__(self) -> None:
        super().__init__()
        self._state: dict[object, object] = {_STATE: object()}

    @property
    def check(self) -> GlobalCheck:
        """The condition that all choices are those of now."""
        return self._state.get, _STATE, self._state[_STATE]

    def _change(self) -> None:
        self._state[_STATE] = object()

    def __setitem__(self, key: tuple[object, ...], config: Config) -> None:
        if key in self:
            self._change()
        super().__setitem__(key, config)

    def __delitem__(self, key: tuple[object, ...]) -> None:
        self._change()
        super().__delitem__(key)

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def update(self, *args: Any, **choices: Config) -> None:
        """As of a dictionary."""
        self._change()
        super().update(*args, **choices)

    def clear(self) -> None:
        """As of a dictionary."""
        self._change()
        super().clear()

    def pop(self, *args: Any) -> Any:
        """As of a dictionary."""
        self._change()
        return super().pop(*args)

    def popitem(self) -> tuple[tuple[object, ...], Config]:
        """As of a dictionary."""
        self._change()
        return super().popitem()
