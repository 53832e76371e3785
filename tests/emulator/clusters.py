"""Clusters: barriers of all their threads, and what blocks do to each other's shared memory.

A block must not end before it knows that the others are done with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.emulator.clocks import Seen, joined
from tests.emulator.lines import END
from tests.emulator.memory import Array, EmulationError
from tests.emulator.waiting import Blocked, Wait


class ClusterBarrier:
    """barrier.cluster: arrive and wait; who has ended counts as arrived."""

    def __init__(self, machine: Any) -> None:
        self._m = machine
        self._arrived = np.zeros(machine.count, bool)
        self._phase = 0
        self._awaited = np.zeros(machine.count, np.int64)
        """The phase of each thread's latest arrival, from 1 on."""
        self._gathered: Seen | None = None
        self._seen: Seen | None = None

    def arrive(self, mask: Array) -> None:
        if (self._arrived & mask).any():
            raise EmulationError("a thread arrives twice at the barrier of its cluster")
        self._arrived |= mask
        self._awaited[mask] = self._phase + 1
        self._gathered = joined(self._m.clocks.release(_warps(mask)), self._gathered)

    def wait(self, mask: Array) -> None:
        """Raises Blocked."""
        if (self._awaited[mask] == 0).any():
            raise EmulationError("a wait for the barrier of a cluster without an arrival")
        waits = {
            w: self._wait(int(self._awaited[32 * w : 32 * w + 32].max()))
            for w in _warps(mask).tolist()
        }
        waits = {w: wait for w, wait in waits.items() if not wait.is_over()}
        if waits:
            raise Blocked(waits)
        assert self._seen is not None
        self._m.clocks.acquire(_warps(mask), self._seen)

    def _wait(self, phase: int) -> Wait:
        def is_over() -> bool:
            self._advance()
            return self._phase >= phase

        return Wait(is_over, lambda: "the barrier of the cluster")

    def _advance(self) -> None:
        if self._arrived.any() and (self._arrived | (self._m.pc == END)).all():
            self._phase += 1
            self._arrived[:] = False
            self._seen, self._gathered = self._gathered, None


class RemoteUses:
    """Of each block, what warps of others have done to it: which warp, and when."""

    def __init__(self, machine: Any) -> None:
        self._m = machine
        self._uses: list[tuple[int, int, int, str]] = []

    def note(self, warp: int, rank: int, what: str) -> None:
        if warp // self._m.kernel.warps != rank:
            self._uses.append((warp, rank, int(self._m.clocks.stamp[warp]), what))

    def finish(self) -> None:
        """All blocks have ended: each must have known of all that others did to it."""
        warps = self._m.kernel.warps
        for warp, rank, stamp, what in self._uses:
            if self._m.clocks.seen[rank * warps : (rank + 1) * warps, warp].max() < stamp:
                raise EmulationError(f"a block may end before {what} of another block")


def _warps(mask: Array) -> Array:
    return np.flatnonzero(mask.reshape(-1, 32).any(1))
