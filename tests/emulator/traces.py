"""Who touched each byte last, and when: conflicts are accesses that nothing orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.emulator.clocks import Clocks

Array = np.ndarray[Any, Any]

_NOBODY, _SEVERAL = -1, -(1 << 20)


class WarpTrace:
    """Accesses of one kind to shared memory, by warps and engines.

    who, when: the latest access of each byte; where several are not ordered, `_exact` knows each.
    """

    def __init__(self, clocks: Clocks, size: int) -> None:
        self._clocks = clocks
        self.who = np.full(size, _NOBODY, np.int16)
        self.when = np.zeros(size, np.int32)
        self._stamps = np.zeros((clocks.warps, size), np.int32)
        self._engines: dict[int, Array] = {}
        self._several = np.iinfo(np.int16).min

    def unseen(self, places: Array, warps: Array) -> Array:
        """Where the accesses of others are not over for a warp. places: (n, bytes); warps: (n,)."""
        return self._later(places, warps, self._clocks.seen, self._clocks.floor)

    def unfenced(self, places: Array, warps: Array) -> Array:
        """Where accesses are not over or not fenced for what a warp starts in the other proxy."""
        return self._later(places, warps, self._clocks.fenced, self._clocks.fenced_floor)

    def _later(self, places: Array, warps: Array, table: Array, floor: Array) -> Array:
        when = self.when[places]
        late: Array = np.asarray(when > floor[warps][:, None])
        if not np.count_nonzero(late):
            return late
        rows, columns = np.nonzero(late)
        at, warps = places[rows, columns], warps[rows]
        who = self.who[at].astype(np.int64)
        bad = np.asarray(when[rows, columns] > table[warps, np.maximum(who, 0)])
        several = who == self._several
        if several.any():
            bad[several] = self._exact(at[several], warps[several], table)
        late[rows, columns] = bad
        return late

    def _exact(self, at: Array, warps: Array, table: Array) -> Array:
        count = self._clocks.warps
        bad = np.asarray((self._stamps[:, at] > table[warps, :count].T).any(0))
        for engine, stamps in self._engines.items():
            bad = np.asarray(bad | (stamps[at] > table[warps, engine]))
        return bad

    def note(self, places: Array, warps: Array) -> None:
        """Warps make an access. places: (n, bytes); warps: (n,)."""
        concurrent = self.unseen(places, warps)
        mine = np.empty(places.shape, self.who.dtype)
        mine[...] = warps[:, None]
        stamps = self._clocks.stamp[warps][:, None]
        self._stamps[mine, places] = stamps
        self.when[places] = stamps
        self.who[places] = mine
        mixed = concurrent | (self.who[places] != mine)
        if np.count_nonzero(mixed):
            self.who[places[mixed]] = self._several
            latest = self._stamps[:, places[mixed]].max(0)
            for engine in self._engines.values():
                latest = np.maximum(latest, engine[places[mixed]])
            self.when[places[mixed]] = latest

    # -- in pieces of 16 bytes, by number: (n,) ---------------------------------------------------

    def pieces_unseen(self, pieces: Array, warp: int) -> bool:
        return self._any_later(pieces, warp, self.unseen, self._clocks.floor)

    def pieces_unfenced(self, pieces: Array, warp: int) -> bool:
        return self._any_later(pieces, warp, self.unfenced, self._clocks.fenced_floor)

    def _any_later(
        self, pieces: Array, warp: int, later: Callable[[Array, Array], Array], floor: Array
    ) -> bool:
        """Mostly all bytes of a piece were touched at once; then one byte will do."""
        when = in_pieces(self.when)[pieces]
        if int(when.max(initial=0)) <= floor[warp]:
            return False
        who = in_pieces(self.who)[pieces]
        alike = (when == when[:, :1]).all() and (who == who[:, :1]).all()
        places = pieces[:, None] * 16 + np.arange(1 if alike else 16)
        return bool(np.count_nonzero(later(places, np.full(len(pieces), warp))))

    def note_engine(self, pieces: Array, engine: int, stamp: int, alone: bool) -> None:
        """An engine has ended an access. alone: everything before is ordered before it."""
        if engine not in self._engines:
            self._engines[engine] = np.zeros(len(self.who), np.int32)
        in_pieces(self._engines[engine])[pieces] = stamp
        before, who = in_pieces(self.who)[pieces], np.int16(engine)
        if not alone:
            who = np.where((before == engine) | (before == _NOBODY), who, self._several)
        in_pieces(self.who)[pieces] = who
        in_pieces(self.when)[pieces] = stamp


def in_pieces(of: Array) -> Array:
    """Something of each byte, as (pieces, 16)."""
    return of.reshape(-1, 16)


class ThreadTrace:
    """Accesses of one kind to global memory, by threads.

    Several threads of one warp are known as such; several of different warps are taken to be over
    only for who has seen everything.
    """

    def __init__(self, size: int) -> None:
        self.who = np.full(size, _NOBODY, np.int32)
        self.when = np.zeros(size, np.int32)

    def unseen(self, places: Array, threads: Array, clocks: Clocks) -> Array:
        """Where accesses of other threads are not over. places: (n, bytes); threads: (n,)."""
        warps = (threads >> 5).astype(np.int64)
        when = self.when[places]
        late: Array = when > np.minimum(clocks.floor, clocks.stamp - 1)[warps][:, None]
        if not np.count_nonzero(late):
            return late
        rows, columns = np.nonzero(late)
        who, warps = self.who[places[rows, columns]], warps[rows]
        others = np.where(who < _NOBODY, -2 - who, who >> 5)
        several = who == _SEVERAL
        others[several] = 0
        over = np.where(others == warps, clocks.stamp[warps] - 1, clocks.seen[warps, others])
        bad = (who != threads[rows]) & (when[rows, columns] > over)
        late[rows, columns] = bad | several
        return late

    def unfenced(self, places: Array, clocks: Clocks) -> bool:
        """Whether accesses are not fenced for the asynchronous proxy."""
        who, when = self.who[places], self.when[places]
        warps = np.where(who == _SEVERAL, 0, _warp_of(who))
        fenced = np.where(who == _SEVERAL, clocks.global_fenced.min(), clocks.global_fenced[warps])
        return bool((when > fenced).any())

    def note(self, places: Array, threads: Array, clocks: Clocks) -> None:
        """Threads make an access."""
        mine = np.empty(places.shape, np.int32)
        mine[...] = threads[:, None]
        before = self.who[places]
        concurrent = self.unseen(places, threads, clocks)
        self.who[places] = mine
        self.when[places] = clocks.stamp[threads >> 5][:, None]
        double = self.who[places] != mine
        if np.count_nonzero(concurrent):
            same = _warp_of(before) == mine >> 5
            self.who[places[concurrent & same]] = -2 - (mine >> 5)[concurrent & same]
            self.who[places[concurrent & ~same]] = _SEVERAL
        if np.count_nonzero(double):
            self._note_double(places[double], mine[double])

    def _note_double(self, places: Array, mine: Array) -> None:
        """Several threads of one instruction."""
        differ = _warp_of(self.who[places]) != mine >> 5
        self.who[places[~differ]] = np.where(
            self.who[places[~differ]] == _SEVERAL, _SEVERAL, -2 - (mine[~differ] >> 5)
        )
        self.who[places[differ]] = _SEVERAL


def _warp_of(who: Array) -> Array:
    return np.where(who < _NOBODY, -2 - who, who >> 5)
