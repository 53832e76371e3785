"""Vector clocks: which accesses of the others each warp knows to be over.

Every access is stamped with the present interval of the warp that makes it, or with the moment at
which an asynchronous engine ended it. What synchronizes hands on what its participants have seen.
A second table says up to where writes are also fenced for the asynchronous proxy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

FOREVER = np.iinfo(np.int32).max


@dataclass
class Seen:
    """Per actor, the latest stamp that is over, and the latest that is fenced as well."""

    seen: Array
    fenced: Array

    def joined(self, other: Seen) -> Seen:
        return Seen(_maximum(self.seen, other.seen), _maximum(self.fenced, other.fenced))


def _maximum(x: Array, y: Array) -> Array:
    """Of rows that may be of different times, when there were fewer actors."""
    size = max(len(x), len(y))
    return np.maximum(*(np.pad(v, (0, size - len(v)), constant_values=-1) for v in (x, y)))


class Clocks:
    """Actors are the warps, then the engines: the tensor core of each warpgroup, each mbarrier.

    now: the latest stamp. stamp: (warps,) of the accesses that each warp makes at present.
    floor: (warps,) stamps up to which a warp has seen everything of everybody else.
    """

    def __init__(self, warps: int, start: int = 0) -> None:
        self.warps, self.now = warps, start + 1
        self.stamp = np.full(warps, self.now, np.int32)
        self.seen = np.full((warps, warps), start, np.int32)
        self.fenced = self.seen.copy()
        self.global_fenced = np.full(warps, start, np.int32)
        """Up to which stamp each warp has fenced what it wrote to global memory."""
        self._used = np.ones(warps, bool)
        """Actors that have done anything."""
        self._settle()

    def _settle(self) -> None:
        every = np.arange(self.warps)
        self.seen[every, every] = FOREVER
        busy = slice(None) if self._used.all() else self._used
        self.floor = self.seen[:, busy].min(1)
        self.fenced_floor = self.fenced[:, busy].min(1)

    def _tick(self, warps: Array) -> None:
        self.now += 1
        self.stamp[warps] = self.now

    def release(self, warps: Array) -> Seen:
        """What these warps have done and seen so far, all together."""
        seen = self.seen[warps]
        seen[np.arange(len(warps)), warps] = self.stamp[warps]
        self._tick(warps)
        return Seen(seen.max(0), self.fenced[warps].max(0))

    def acquire(self, warps: Array, what: Seen) -> None:
        """From now on these warps have seen it too."""
        size = len(what.seen)
        self.seen[warps, :size] = np.maximum(self.seen[warps, :size], what.seen)
        self.fenced[warps, :size] = np.maximum(self.fenced[warps, :size], what.fenced)
        self._settle()
        self._tick(warps)

    def pass_on(self, warps: Array) -> None:
        """What the threads of each of these warps did so far is over for its other threads."""
        self._tick(warps)

    def fence(self, warps: Array) -> None:
        """What these warps have written to shared memory is fenced for the asynchronous proxy."""
        self.fenced[warps, warps] = self.stamp[warps]
        self._settle()
        self._tick(warps)

    def fence_global(self, warps: Array) -> None:
        self.global_fenced[warps] = self.stamp[warps]
        self._tick(warps)

    def engine(self) -> int:
        """A new actor, which has done nothing so far."""
        column = np.full((self.warps, 1), self.now, np.int32)
        self.seen = np.concatenate([self.seen, column], axis=1)
        self.fenced = np.concatenate([self.fenced, column], axis=1)
        self._used = np.append(self._used, False)
        return len(self._used) - 1

    def act(self, engine: int) -> tuple[int, Seen]:
        """The stamp of what an engine has just ended, and what one must have seen to know of it."""
        self.now += 1
        self._used[engine] = True
        self._settle()
        row = np.full(engine + 1, -1, np.int32)
        row[engine] = self.now
        return self.now, Seen(row, row.copy())
