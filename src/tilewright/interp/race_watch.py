"""Detection of races: two programs that access one address without atomics, one of them by a store.

One program of the interpreter runs at any time, so races have no effect there. For each byte of an
array the last programs that wrote, read and atomically changed it are recorded, each with its
number of atomics so far. An access of another program is a race, unless that program has released
the byte to this one: by atomics on one address, as counters and locks do. Atomics race with plain
loads, but not with each other. Storing the present value is no race. A volatile load polls: it may
read a value that an atomic changes.

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
"""In place of a note, which has a program's number, from 1 on, and its epoch."""
_EPOCH_BITS = 32

Program = tuple[int, int, int]
Epochs = dict[int, int]
"""For each program, the number of its epochs that precede the present one."""


class RaceWatch:
    """The programs that have accessed each byte, and their order.

    An epoch of a program is its work between two of its atomics.
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
        """Epochs that precede the running program."""
        return self._acquired[self._me]

    @property
    def _note(self) -> int:
        """The present epoch of the running program."""
        return (self._me << _EPOCH_BITS) + self._epochs[self._me]

    def enter(self, program: Program) -> None:
        """Start a program, which nothing precedes yet, or continue one."""
        self._me = self._numbers.setdefault(program, len(self._numbers) + 1)

    def synchronize(self, addresses: Array) -> None:
        """Acquire other programs' releases at the addresses of an atomic, and release there."""
        places = cast("list[int]", np.unique(addresses).tolist())
        for place in places:
            _join(self._before, self._released[place])
        for place in places:
            _join(self._released[place], self._before)
            _join(self._released[place], {self._me: self._epochs[self._me]})
        self._epochs[self._me] += 1

    def update(self, span: Span, addresses: Array, size: int) -> None:
        """Record elements that an atomic of the running program changes. Errors: RaceCondition."""
        readers, places = self._at("readers", span, addresses, size)
        self._check(span, readers[places], addresses, "updates", "read")
        updaters, places = self._at("updaters", span, addresses, size)
        updaters[places] = self._note

    def read(self, span: Span, addresses: Array, size: int, polls: bool) -> None:
        """Record a load of the running program. Errors: RaceCondition."""
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
        """Record elements that a store of the running program changes. Errors: RaceCondition."""
        writers, places = self._at("writers", span, addresses, size)
        self._check(span, writers[places], addresses, "writes", "wrote")
        readers, places = self._at("readers", span, addresses, size)
        self._check(span, readers[places], addresses, "writes", "read")
        writers[places] = self._note

    def compare_lanes(self, span: Span, addresses: Array, values: Array) -> None:
        """Check the lanes of one store, whose last lane at an address is kept.

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
        """The notes of a range of memory, and the indices of elements in them."""
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
        """Whether the epoch of a note precedes the running program, or is its own."""
        if note == _MANY:  # the programs are unknown: any acquired release may order them
            return any(program != self._me for program in self._before)
        program, epoch = note >> _EPOCH_BITS, note & ((1 << _EPOCH_BITS) - 1)
        return note == _NOBODY or program == self._me or self._before.get(program, -1) >= epoch


def _join(epochs: Epochs, more: Epochs) -> None:
    """Add epochs that precede the running program."""
    for program, epoch in more.items():
        epochs[program] = max(epoch, epochs.get(program, -1))
