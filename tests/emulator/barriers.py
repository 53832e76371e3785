"""Named barriers of blocks: bar.sync, bar.arrive and bar.red, with or without a count."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.emulator.clocks import Seen, joined
from tests.emulator.memory import Array, EmulationError
from tests.emulator.waiting import Blocked, Wait


@dataclass
class _Barrier:
    """One that some warps have reached. count: threads that it waits for."""

    count: int
    arrived: list[int] = field(default_factory=list[int])
    waiting: list[int] = field(default_factory=list[int])
    seen: Seen | None = None


class Barriers:
    """agreed: how many threads voted yes at the latest bar.red of each warp."""

    def __init__(self, machine: Any) -> None:
        self._m = machine
        self._open: dict[tuple[int, int], _Barrier] = {}
        """By block and number."""
        self._threads = 32 * machine.kernel.warps
        self._released = set[int]()
        self._waits = set[int]()
        self._votes = np.zeros(machine.count, bool)
        self.agreed = np.zeros(machine.warps, np.int64)

    def vote(self, mask: Array, votes: Array) -> None:
        self._votes[mask] = votes[mask]

    def sync(self, mask: Array, idents: Array, counts: Array | None = None) -> None:
        """Warps wait for a barrier each. idents, counts: (threads,); raises Blocked."""
        for warps, ident, count in self._groups(mask, idents, counts):
            fresh = [w for w in warps if w not in self._waits]
            self._arrive(fresh, ident, count, do_wait=True)
        active = np.flatnonzero(mask.reshape(-1, 32).any(1)).tolist()
        waits = {w: self._wait(w, int(idents[32 * w])) for w in active if w not in self._released}
        if waits:
            raise Blocked(waits)
        self._released -= set(active)
        self._waits -= set(active)

    def arrive(self, mask: Array, idents: Array, counts: Array) -> None:
        for warps, ident, count in self._groups(mask, idents, counts):
            self._arrive(warps, ident, count, do_wait=False)

    def _groups(self, mask: Array, idents: Array, counts: Array | None) -> Any:
        """(warps, barrier, threads) that come together."""
        warps = np.flatnonzero(self._m.whole_warps("a barrier", mask))
        if counts is None:
            counts = np.full(self._m.count, self._threads)
        groups: dict[tuple[int, int, int], list[int]] = {}
        for w in warps.tolist():
            lanes = slice(32 * w, 32 * w + 32)
            if len(set(idents[lanes].tolist())) > 1 or len(set(counts[lanes].tolist())) > 1:
                raise EmulationError("a barrier whose number or count differs within a warp")
            key = self._block(w), int(idents[32 * w]), int(counts[32 * w])
            groups.setdefault(key, []).append(w)
        return [(warps, *key[1:]) for key, warps in groups.items()]

    def _block(self, warp: int) -> int:
        return 32 * warp // self._threads

    def _arrive(self, warps: list[int], ident: int, count: int, do_wait: bool) -> None:
        if not warps:
            return
        self._check(ident, count)
        key = self._block(warps[0]), ident
        barrier = self._open.setdefault(key, _Barrier(count))
        if barrier.count != count:
            raise EmulationError(f"barrier {ident} with different counts of threads")
        if set(warps) & set(barrier.arrived):
            raise EmulationError(f"a warp reaches barrier {ident} twice before it opens")
        barrier.arrived += warps
        if do_wait:
            barrier.waiting += warps
            self._waits |= set(warps)
        barrier.seen = joined(self._m.clocks.release(np.array(warps)), barrier.seen)
        if 32 * len(barrier.arrived) > count:
            raise EmulationError(f"more threads than the {count} that barrier {ident} counts")
        if 32 * len(barrier.arrived) == count:
            self._complete(self._open.pop(key))

    def _check(self, ident: int, count: int) -> None:
        if not 0 <= ident < 16:
            raise EmulationError(f"there is no barrier {ident}")
        if count % 32 or not 0 < count <= self._threads:
            raise EmulationError(f"barrier {ident} for {count} of {self._threads} threads")

    def _complete(self, barrier: _Barrier) -> None:
        assert barrier.seen is not None
        if barrier.waiting:
            self._m.clocks.acquire(np.array(barrier.waiting), barrier.seen)
        votes = self._votes.reshape(-1, 32)[barrier.arrived]
        self.agreed[barrier.waiting] = votes.sum()
        self._released |= set(barrier.waiting)

    def _wait(self, warp: int, ident: int) -> Wait:
        def describe() -> str:
            barrier = self._open[self._block(warp), ident]
            here = f"{32 * len(barrier.arrived)} of {barrier.count}"
            return f"barrier {ident} that not all threads reach ({here})"

        return Wait(lambda: warp in self._released, describe)
