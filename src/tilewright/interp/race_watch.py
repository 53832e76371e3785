"""Finds two programs that use one address, of which one writes, without an atomic between them.

One program of the interpreter runs at any time, so nothing goes wrong there. For each byte of
an array the last program that wrote it and the last that read it are kept. An access of another
program is a race, unless that program has released what this one has acquired: by atomics on one
address, as counters and locks do. Atomics themselves race with nothing, and neither does storing
what is there already.
"""

from __future__ import annotations

from collections import defaultdict
from typing import cast

import numpy as np

from tilewright.interp import access_errors
from tilewright.interp.kernel_memory import Span
from tilewright.interp.numpy_dtypes import Array

_NOBODY, _MANY = 0, -1
"""Instead of the number of a program, from 1 on."""

Program = tuple[int, int, int]


class RaceWatch:
    """The programs that have used each byte, and what orders them."""

    def __init__(self) -> None:
        self._writers: dict[int, Array] = {}
        self._readers: dict[int, Array] = {}
        self._numbers: dict[Program, int] = {}
        self._me = _NOBODY
        self._released: dict[int, set[int]] = defaultdict(set[int])
        self._acquired: dict[int, set[int]] = defaultdict(set[int])

    @property
    def _ordered(self) -> set[int]:
        """What is before the running program."""
        return self._acquired[self._me]

    def enter(self, program: Program) -> None:
        """A program begins, before which nothing is yet, or goes on."""
        self._me = self._numbers.setdefault(program, len(self._numbers) + 1)

    def synchronize(self, addresses: Array) -> None:
        """An atomic at addresses: acquires what others have released there, and releases."""
        places = cast("list[int]", np.unique(addresses).tolist())
        for place in places:
            self._ordered.update(self._released[place])
        for place in places:
            self._released[place] |= self._ordered | {self._me}

    def read(self, span: Span, addresses: Array, size: int) -> None:
        """A load of the running program. Errors: RaceCondition."""
        writers, readers, places = self._at(span, addresses, size)
        self._check(span, writers[places], addresses, size, "reads", "wrote")
        before, me = readers[places], self._me
        readers[places] = np.where((before == _NOBODY) | (before == me), me, _MANY)

    def write(self, span: Span, addresses: Array, size: int) -> None:
        """A store of the running program. Errors: RaceCondition."""
        writers, readers, places = self._at(span, addresses, size)
        self._check(span, writers[places], addresses, size, "writes", "wrote")
        self._check(span, readers[places], addresses, size, "writes", "read")
        writers[places] = self._me

    def _at(self, span: Span, addresses: Array, size: int) -> tuple[Array, Array, Array]:
        count = span.stop - span.start
        for table in (self._writers, self._readers):
            if span.start not in table:
                table[span.start] = np.zeros(count, np.int32)
        first = (addresses - np.uint64(span.start)).astype(np.int64)
        places = first[:, None] + np.arange(size)
        return self._writers[span.start], self._readers[span.start], places

    def _check(
        self, span: Span, others: Array, addresses: Array, size: int, now: str, before: str
    ) -> None:
        # Who the many were is not known: whatever has been acquired may order them.
        known = [self._me, _NOBODY, *self._ordered, *([_MANY] if self._ordered else [])]
        wrong = ~np.isin(others, known)
        if not wrong.any():
            return
        lane, byte = (int(i) for i in np.argwhere(wrong)[0])
        other = int(others[lane, byte])
        names = list(self._numbers)
        who = None if other == _MANY else names[other - 1]
        address = int(addresses[lane])
        raise access_errors.race(names[self._me - 1], span, address, now, before, who)
