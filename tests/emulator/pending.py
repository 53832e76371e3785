"""Values of registers that a tensor core may not have written yet."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.emulator.memory import Array, EmulationError


class Pending:
    """A register that is an accumulator of a wgmma on its way, in some warps.

    data: rows of the threads of the other warps. sources: per warp, the operation that writes it,
    and the number of the register among its accumulators.
    """

    __slots__ = ("data", "sources")

    def __init__(self, data: Array, sources: dict[int, tuple[Any, int]]) -> None:
        self.data, self.sources = data, sources

    def read(self, mask: Array) -> Array:
        """What these threads find in it."""
        if mask.reshape(-1, 32)[list(self.sources)].any():
            raise EmulationError("an accumulator is read while its wgmma may be on its way")
        return self.data

    def with_data(self, data: Array) -> Pending:
        return Pending(data, self.sources)


def merged(mask: Array, new: Any, old: Any) -> Any:
    """`new` for the threads of a mask, where one of the two is pending."""
    active: Array = np.asarray(mask.reshape(-1, 32).any(1))
    if (active != mask.reshape(-1, 32).all(1)).any():
        raise EmulationError("threads of a warp part over an accumulator that is on its way")
    sources = {w: s for w, s in _sources(new).items() if active[w]}
    sources |= {w: s for w, s in _sources(old).items() if not active[w]}
    data = np.where(mask, _data(new), _data(old))
    return Pending(data, sources) if sources else data


def _sources(value: Any) -> dict[int, tuple[Any, int]]:
    return value.sources if isinstance(value, Pending) else {}


def _data(value: Any) -> Any:
    return value.data if isinstance(value, Pending) else value
