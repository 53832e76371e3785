"""Asynchronous copies from global to shared memory: groups of each warp, until they are waited for.

A copy may read and write at any time from its issue to the wait of its group. So what it reads must
not change meanwhile, and nobody may touch what it writes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.emulator.memory import Array, EmulationError, Global, Shared


@dataclass
class _Copy:
    """Of some threads of one warp. data: what the first read gave; taken: what is not masked."""

    target: Array
    source: Array
    taken: Array
    data: Array
    threads: Array


class Copies:
    """The copies that are on their way, by warp, in groups."""

    def __init__(self, shared: Shared, memory: Global, warps: int) -> None:
        self._shared, self._memory = shared, memory
        self._groups: list[list[list[_Copy]]] = [[[]] for _ in range(warps)]

    def begin(self, target: Array, source: Array, taken: Array, size: int, mask: Array) -> None:
        """mask: the threads that issue; the other arguments have a row for each of these."""
        threads = np.flatnonzero(mask)
        warps = threads >> 5
        self._shared.begin_copy(target, size, warps)
        data = self._read(source, taken, threads, size)
        for warp in np.unique(warps):
            of = warps == warp
            copy = _Copy(target[of], source[of], taken[of], data[of], threads[of])
            self._groups[warp][-1].append(copy)

    def _read(self, source: Array, taken: Array, threads: Array, size: int) -> Array:
        data = np.zeros((len(source), size), np.uint8)
        data[taken] = self._memory.load(source[taken], size, threads[taken])
        return data

    def commit(self, mask: Array) -> None:
        """The warps of these threads end a group."""
        for warp in np.unique(np.flatnonzero(mask) >> 5):
            self._groups[warp].append([])

    def wait(self, mask: Array, pending: int) -> None:
        """All but the latest `pending` groups of these warps have arrived."""
        by_size: dict[int, list[_Copy]] = {}
        for warp in np.unique(np.flatnonzero(mask) >> 5):
            groups = self._groups[warp]
            while len(groups) - 1 > pending:
                for copy in groups.pop(0):
                    by_size.setdefault(copy.data.shape[1], []).append(copy)
        for size, copies in by_size.items():
            self._arrive(copies, size)

    def _arrive(self, copies: list[_Copy], size: int) -> None:
        """No two of them write one place, so they may be looked at together."""
        source, taken = _joined(copies, "source"), _joined(copies, "taken")
        data, threads = _joined(copies, "data"), _joined(copies, "threads")
        if np.count_nonzero(self._read(source, taken, threads, size) != data):
            raise EmulationError("what a copy reads was changed while it was on its way")
        self._shared.end_copy(_joined(copies, "target"), data, threads >> 5)


def _joined(copies: list[_Copy], name: str) -> Array:
    """A field of all."""
    return np.concatenate([getattr(copy, name) for copy in copies])
