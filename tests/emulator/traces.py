"""Who touched each byte last, and when: conflicts are accesses that nothing orders.

As in FastTrack (Flanagan and Freund, PLDI 2009), a byte has one epoch, an actor and a stamp, while
its accesses are ordered: who has seen the latest has seen those before. Where accesses are not
ordered, the byte has a vector, a stamp of each actor, until an access comes after all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.emulator.clocks import FENCED, GLOBAL_FENCED, SEEN, Clocks

Array = np.ndarray[Any, Any]

_NOBODY = -1


class WarpTrace:
    """Accesses of one kind to shared memory, by warps and engines.

    who, when: the epoch of each byte, or `_several` and the latest stamp of its vector.
    """

    _several = np.iinfo(np.int16).min

    def __init__(self, clocks: Clocks, size: int) -> None:
        self._clocks = clocks
        self.who = np.full(size, _NOBODY, np.int16)
        self.when = np.zeros(size, np.int32)
        self._stamps = np.zeros((clocks.warps, size), np.int32)
        """Vectors, one row for each actor of `_actors`."""
        self._actors = np.arange(clocks.warps)

    def unseen(self, places: Array, warps: Array) -> Array:
        """Where the accesses of others are not over for a warp. places: (n, bytes); warps: (n,)."""
        return self._later(places, warps, SEEN)

    def unfenced(self, places: Array, warps: Array) -> Array:
        """Where accesses are not over or not fenced for what a warp starts in the other proxy."""
        return self._later(places, warps, FENCED)

    def _later(self, places: Array, warps: Array, kind: int) -> Array:
        table = self._clocks.tables[kind]
        when = self.when[places]
        late: Array = np.asarray(when > self._clocks.floor[kind, warps][:, None])
        if not np.count_nonzero(late):
            return late
        rows, columns = np.nonzero(late)
        at, warps = places[rows, columns], warps[rows]
        who = self.who[at].astype(np.int64)
        bad = np.asarray(when[rows, columns] > table[warps, np.maximum(who, 0)])
        several = who == self._several
        if several.any():
            limits = table[warps[several]][:, self._actors].T
            bad[several] = (self._stamps[:, at[several]] > limits).any(0)
        late[rows, columns] = bad
        return late

    def note(self, places: Array, warps: Array) -> None:
        """Warps make an access. places: (n, bytes); warps: (n,)."""
        concurrent = self.unseen(places, warps)
        before, since = self.who[places], self.when[places]
        mine = np.empty(places.shape, self.who.dtype)
        mine[...] = warps[:, None]
        self.who[places] = mine
        self.when[places] = self._clocks.stamp[warps][:, None]
        mixed = np.asarray(concurrent | (self.who[places] != mine))
        if np.count_nonzero(mixed):
            self.who[places[mixed]] = self._several
            every = self.who[places] == self._several
            at, mine = places[every], mine[every]
            self.who[at[~concurrent[every]]] = _NOBODY
            before = np.where(self.who[at] == _NOBODY, _NOBODY, before[every])
            self._begin_vectors(at, before, since[every])
            self._stamps[mine, at] = self._clocks.stamp[mine]
            self.when[at] = self._stamps[:, at].max(0)

    def _begin_vectors(self, at: Array, before: Array, since: Array) -> None:
        """Vectors of the epochs that bytes had, or had vectors already; before: `_NOBODY` where an
        access comes after all of them. at, before, since: (n,)."""
        self.who[at] = self._several
        fresh = before != self._several
        at, before, since = at[fresh], before[fresh], since[fresh]
        self._stamps[:, at] = 0
        known = before != _NOBODY
        rows = self._rows(before[known])
        self._stamps[rows, at[known]] = since[known]

    def _rows(self, actors: Array) -> Array:
        """Of vectors, for engines made when these need them."""
        for actor in np.setdiff1d(actors, self._actors):
            self._actors = np.append(self._actors, actor)
            self._stamps = np.pad(self._stamps, ((0, 1), (0, 0)))
        order = np.argsort(self._actors)
        return order[np.searchsorted(self._actors[order], actors)]

    # -- in pieces of 16 bytes, by number: (n,) ---------------------------------------------------

    def pieces_unseen(self, pieces: Array, warp: int) -> bool:
        return self._any_later(pieces, warp, SEEN)

    def pieces_unfenced(self, pieces: Array, warp: int) -> bool:
        return self._any_later(pieces, warp, FENCED)

    def _any_later(self, pieces: Array, warp: int, kind: int) -> bool:
        """Mostly all bytes of a piece have one epoch; then one byte will do."""
        when = in_pieces(self.when)[pieces]
        if int(when.max(initial=0)) <= self._clocks.floor[kind, warp]:
            return False
        who = in_pieces(self.who)[pieces]
        alike = (when == when[:, :1]) & (who == who[:, :1]) & (who != self._several)
        places = pieces[:, None] * 16 + np.arange(1 if alike.all() else 16)
        return bool(np.count_nonzero(self._later(places, np.full(len(pieces), warp), kind)))

    def note_engine(self, pieces: Array, engine: int, stamp: int, alone: bool) -> None:
        """An engine has ended an access. alone: everything before is ordered before it."""
        who, when = in_pieces(self.who), in_pieces(self.when)
        if alone:
            who[pieces], when[pieces] = engine, stamp
            return
        before = who[pieces]
        mixed = (before != engine) & (before != _NOBODY)
        since = when[pieces][mixed]
        who[pieces], when[pieces] = engine, stamp
        if np.count_nonzero(mixed):
            at = (pieces[:, None] * 16 + np.arange(16))[mixed]
            self._begin_vectors(at, before[mixed], since)
            row = self._rows(np.array([engine]))
            self._stamps[row, at] = stamp


def in_pieces(of: Array) -> Array:
    """Something of each byte, as (pieces, 16)."""
    return of.reshape(-1, 16)


_MANY = -2
"""Several threads of a warp, where one would have its number."""
_SEVERAL = np.iinfo(np.int32).min
"""What is about to have a vector."""


class ThreadTrace:
    """Accesses of one kind to global memory, by threads.

    who, when: the epoch of each byte, a thread and its stamp; below `_NOBODY`, who is -2 minus the
    number of a vector, and when its latest stamp. Few bytes have vectors, and only those that have
    take memory for one: of each warp, the stamp and the thread that made the access, or `_MANY`.
    """

    def __init__(self, size: int) -> None:
        self.who = np.full(size, _NOBODY, np.int32)
        self.when = np.zeros(size, np.int32)
        self._stamps, self._threads = (np.zeros(0, np.int32) for _ in range(2))
        self._count = 0

    def unseen(self, places: Array, threads: Array, clocks: Clocks) -> Array:
        """Where accesses of other threads are not over. places: (n, bytes); threads: (n,)."""
        warps = (threads >> 5).astype(np.int64)
        when = self.when[places]
        late: Array = when > np.minimum(clocks.floor[SEEN], clocks.stamp - 1)[warps][:, None]
        if not np.count_nonzero(late):
            return late
        rows, columns = np.nonzero(late)
        who, threads, warps = self.who[places[rows, columns]], threads[rows], warps[rows]
        others = np.maximum(who >> 5, 0)
        over = np.where(others == warps, clocks.stamp[warps] - 1, clocks.seen[warps, others])
        bad = (who != threads) & (when[rows, columns] > over)
        several = who < _NOBODY
        if several.any():
            numbers, warps, threads = _number(who[several]), warps[several], threads[several]
            own = np.arange(len(numbers)), warps
            limits = clocks.seen[warps, : clocks.warps]
            limits[own] = clocks.stamp[warps] - 1
            meets = self._stamps[numbers] > limits
            meets[own] &= self._threads[numbers, warps] != threads
            bad[several] = meets.any(1)
        late[rows, columns] = bad
        return late

    def unfenced(self, places: Array, warp: int, clocks: Clocks) -> bool:
        """Whether accesses are not fenced for what a warp starts in the asynchronous proxy."""
        who, limits = self.who[places], clocks.tables[GLOBAL_FENCED, warp]
        late = self.when[places] > limits[np.maximum(who >> 5, 0)]
        several = who < _NOBODY
        if several.any():
            stamps = self._stamps[_number(who[several])]
            late[several] = (stamps > limits[: clocks.warps]).any(1)
        return bool(late.any())

    def note(self, places: Array, threads: Array, clocks: Clocks) -> None:
        """Threads make an access."""
        concurrent = self.unseen(places, threads, clocks)
        before, since = self.who[places], self.when[places]
        mine = np.empty(places.shape, np.int32)
        mine[...] = threads[:, None]
        self.who[places] = mine
        self.when[places] = clocks.stamp[threads >> 5][:, None]
        mixed = np.asarray(concurrent | (self.who[places] != mine))
        if np.count_nonzero(mixed):
            self.who[places[mixed]] = _SEVERAL
            every = self.who[places] == _SEVERAL
            at = places[every]
            self.who[at[~concurrent[every]]] = _NOBODY
            self._begin_vectors(at, before[every], since[every], clocks.warps)
            numbers = _number(self.who[at])
            self._add(numbers, mine[every], clocks.stamp)
            self.when[at] = self._stamps[numbers].max(1)

    def _begin_vectors(self, at: Array, before: Array, since: Array, warps: int) -> None:
        """As of shared memory, but `_NOBODY` is in `who`."""
        at, first = np.unique(at, return_index=True)
        before, since = before[first], since[first]
        is_over, numbers = self.who[at] == _NOBODY, _number(before)
        new = before >= _NOBODY
        numbers[new] = self._new_vectors(int(new.sum()), warps)
        self._stamps[numbers[new | is_over]] = 0
        known = (before >= 0) & ~is_over
        self._stamps[numbers[known], before[known] >> 5] = since[known]
        self._threads[numbers[known], before[known] >> 5] = before[known]
        self.who[at] = _number(numbers)

    def _new_vectors(self, count: int, warps: int) -> Array:
        """Their numbers."""
        first, self._count = self._count, self._count + count
        if self._count > len(self._stamps):
            more = np.zeros((2 * self._count - len(self._stamps), warps), np.int32)
            self._stamps = np.concatenate([self._stamps.reshape(-1, warps), more])
            self._threads = np.concatenate([self._threads.reshape(-1, warps), more])
        return np.arange(first, self._count)

    def _add(self, numbers: Array, threads: Array, stamp: Array) -> None:
        """Threads make an access that their vectors have. numbers, threads: (n,)."""
        own = numbers, threads >> 5
        now = stamp[threads >> 5]
        others = np.where(self._stamps[own] == now, self._threads[own], threads)
        self._stamps[own], self._threads[own] = now, threads
        many = (others != threads) | (self._threads[own] != threads)
        self._threads[numbers[many], threads[many] >> 5] = _MANY


def _number(who: Array) -> Array:
    """Of a vector, and back."""
    return -2 - who
