"""Vector clocks: which accesses of the others each warp knows to be over.

Every access is stamped with the present interval of the warp that makes it, or with the moment at
which an asynchronous engine ended it. What synchronizes hands on what its participants have seen.
Two more tables say up to where writes are also fenced for the asynchronous proxy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

FOREVER = np.iinfo(np.int32).max

SEEN, FENCED, GLOBAL_FENCED = range(3)
"""Tables: accesses that are over; writes to shared and to global memory that are fenced as well."""

Seen = Array
"""(3, actors): by table, the latest stamp of each actor that somebody knows of."""


def joined(x: Seen, y: Seen | None) -> Seen:
    """Both of two, which may be of different times: when there were fewer actors."""
    if y is None:
        return x
    size = max(x.shape[1], y.shape[1])
    padded = (
        np.pad(v, ((0, 0), (0, size - v.shape[1])), constant_values=-1) if v.shape[1] < size else v
        for v in (x, y)
    )
    return np.maximum(*padded)


class Clocks:
    """Actors are the warps, then the engines: the tensor core of each warpgroup, each mbarrier.

    now: the latest stamp. stamp: (warps,) of the accesses that each warp makes at present.
    tables: (3, warps, actors), what each warp has seen of each actor.
    floor: (3, warps), stamps up to which a warp has seen everything of everybody else. It only
    saves looking closer: beyond it, what counts is who made an access.
    """

    def __init__(self, warps: int, start: int = 0) -> None:
        self.warps, self.now = warps, start + 1
        self.stamp = np.full(warps, self.now, np.int32)
        self.tables = np.full((3, warps, warps), start, np.int32)
        self._used = np.ones(warps, bool)
        """Actors that have done anything."""
        self._settle()

    @property
    def seen(self) -> Array:
        """(warps, actors)"""
        return self.tables[SEEN]

    def _settle(self) -> None:
        every = np.arange(self.warps)
        self.tables[SEEN, every, every] = FOREVER
        busy = slice(None) if self._used.all() else self._used
        self.floor = self.tables[:, :, busy].min(2)

    def _tick(self, warps: Array) -> None:
        self.now += 1
        self.stamp[warps] = self.now

    def release(self, warps: Array) -> Seen:
        """What these warps have done and seen so far, all together."""
        tables = self.tables[:, warps]
        tables[SEEN, np.arange(len(warps)), warps] = self.stamp[warps]
        self._tick(warps)
        return tables.max(1)

    def acquire(self, warps: Array, what: Seen) -> None:
        """From now on these warps have seen it too."""
        size = what.shape[1]
        now = self.tables[:, warps, :size]
        self.tables[:, warps, :size] = np.maximum(now, what[:, None])
        self._settle()
        self._tick(warps)

    def pass_on(self, warps: Array) -> None:
        """What the threads of each of these warps did so far is over for its other threads."""
        self._tick(warps)

    def fence(self, warps: Array, table: int) -> None:
        """What these warps have written is fenced for the asynchronous proxy."""
        self.tables[table, warps, warps] = self.stamp[warps]
        self._settle()
        self._tick(warps)

    def engine(self) -> int:
        """A new actor, which has done nothing so far."""
        column = np.full((3, self.warps, 1), self.now, np.int32)
        self.tables = np.concatenate([self.tables, column], axis=2)
        self._used = np.append(self._used, False)
        return len(self._used) - 1

    def act(self, engine: int) -> tuple[int, Seen]:
        """The stamp of what an engine has just ended, and what one must have seen to know of it."""
        self.now += 1
        self._used[engine] = True
        self._settle()
        row = np.full((3, engine + 1), -1, np.int32)
        row[:, engine] = self.now
        return self.now, row
