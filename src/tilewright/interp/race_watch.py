"""Finds two programs that use one address, of which one writes, without an atomic between them.

One program of the interpreter runs at any time, so nothing goes wrong there. For each byte of
an array the last program that wrote it, the last that read it and the last that changed it by an
atomic are kept, each with the number of atomics that the program had done. An access of another
program is a race, unless that program has released it to this one: by atomics on one address, as
counters and locks do. Atomics race with plain loads, but not with each other, and neither does
storing what is there already. A volatile load polls: it may read what an atomic changes.

Lanes of one store that store different values to one address are a race within a program.
"""

from __future__ import annotations

from collections import defaultdict
from typing import cast

import numpy as np

from tilewright.interp import access_errors
from tilewright.interp.kernel_memory import Span
from tilewright.interp.numpy_dtypes import Array, as_array, bits_of

_NOBODY, _MANY = 0, -1
"""Instead of a note: of a program's number, from 1 on, and its epoch."""
_EPOCH_BITS = 32

Program = tuple[int, int, int]
Epochs = dict[int, int]
"""Programs by number, and up to which of their epochs something is known to be before it."""


class RaceWatch:
    """The programs that have used each byte, and what orders them.

    An epoch of a program is what it does between two of its atomics.
    """

    def __init__(self) -> None:
        self._notes: dict[tuple[str, int], Array] = {}
        self._numbers: dict[Program, int] = {}
        self._me = _NOBODY
        self._epochs: Epochs = defaultdict(int)
        self._released: dict[int, Epochs] = defaultdict(dict[int, int])
        self._acquired: dict[int, Epochs] = defaultdict(dict[int, int])

    @property
    def _before(self) -> Epochs:
        """What is before the running program."""
        return self._acquired[self._me]

    @property
    def _note(self) -> int:
        """What the running program does now."""
        return (self._me << _EPOCH_BITS) + self._epochs[self._me]

    def enter(self, program: Program) -> None:
        """A program begins, before which nothing is yet, or goes on."""
        self._me = self._numbers.setdefault(program, len(self._numbers) + 1)

    def synchronize(self, addresses: Array) -> None:
        """An atomic at addresses: acquires what others have released there, and releases."""
        places = cast("list[int]", np.unique(addresses).tolist())
        for place in places:
            _join(self._before, self._released[place])
        for place in places:
            _join(self._released[place], self._before)
            _join(self._released[place], {self._me: self._epochs[self._me]})
        self._epochs[self._me] += 1

    def update(self, span: Span, addresses: Array, size: int) -> None:
        """What an atomic of the running program changes. Errors: RaceCondition."""
        readers, places = self._at("readers", span, addresses, size)
        self._check(span, readers[places], addresses, "updates", "read")
        updaters, places = self._at("updaters", span, addresses, size)
        updaters[places] = self._note

    def read(self, span: Span, addresses: Array, size: int, polls: bool) -> None:
        """A load of the running program. Errors: RaceCondition."""
        writers, places = self._at("writers", span, addresses, size)
        self._check(span, writers[places], addresses, "reads", "wrote")
        if polls:
            return
        updaters, places = self._at("updaters", span, addresses, size)
        self._check(span, updaters[places], addresses, "reads", "updated")
        readers, places = self._at("readers", span, addresses, size)
        before = readers[places]
        mine = (before == _NOBODY) | (before >> _EPOCH_BITS == self._me)
        readers[places] = np.where(mine, self._note, _MANY)

    def write(self, span: Span, addresses: Array, size: int) -> None:
        """What a store of the running program changes. Errors: RaceCondition."""
        writers, places = self._at("writers", span, addresses, size)
        self._check(span, writers[places], addresses, "writes", "wrote")
        readers, places = self._at("readers", span, addresses, size)
        self._check(span, readers[places], addresses, "writes", "read")
        writers[places] = self._note

    def compare_lanes(self, span: Span, addresses: Array, values: Array) -> None:
        """The lanes of one store, of which the last one at an address is kept.

        Errors: RaceCondition.
        """
        order = np.argsort(addresses, kind="stable")
        there, bits = addresses[order], bits_of(values)
        last = np.searchsorted(there, addresses, side="right") - 1
        lost = np.flatnonzero(bits != bits[order[last]])
        if lost.size:
            name = list(self._numbers)[self._me - 1]
            raise access_errors.lanes_differ(name, span, int(addresses[lost[0]]))

    def _at(self, kind: str, span: Span, addresses: Array, size: int) -> tuple[Array, Array]:
        """The notes of a range of memory, and where those of elements are."""
        notes = self._notes.get((kind, span.start))
        if notes is None:
            notes = self._notes[kind, span.start] = np.zeros(span.stop - span.start, np.int64)
        first = (addresses - np.uint64(span.start)).astype(np.int64)
        return notes, as_array(first[:, None] + np.arange(size))

    def _check(self, span: Span, notes: Array, addresses: Array, now: str, before: str) -> None:
        found = cast("list[int]", np.unique(notes).tolist())
        unordered = [note for note in found if not self._is_ordered(note)]
        if not unordered:
            return
        lane, byte = (int(i) for i in np.argwhere(np.isin(notes, unordered))[0])
        other, names = int(notes[lane, byte]), list(self._numbers)
        who = None if other == _MANY else names[(other >> _EPOCH_BITS) - 1]
        address = int(addresses[lane])
        raise access_errors.race(names[self._me - 1], span, address, now, before, who)

    def _is_ordered(self, note: int) -> bool:
        """Whether what a note tells of is before the running program, or of it."""
        if note == _MANY:  # who these were is not known: whatever has been acquired may order them
            return any(program != self._me for program in self._before)
        program, epoch = note >> _EPOCH_BITS, note & ((1 << _EPOCH_BITS) - 1)
        return note == _NOBODY or program == self._me or self._before.get(program, -1) >= epoch


def _join(known: Epochs, more: Epochs) -> None:
    """Add to what is known to be before."""
    for program, epoch in more.items():
        known[program] = max(epoch, known.get(program, -1))
