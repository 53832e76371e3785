"""The registers of one piece of inline assembly."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.emulator import values
from tests.emulator.memory import EmulationError
from tests.emulator.pending import Pending


@dataclass
class Operand:
    """text: as LLVM has it: a name or a constant."""

    read: Callable[[Any], Any]
    type: str
    text: str


class Registers:
    """By name as in the assembly ($0 or done), as bits; predicate: threads that take part.

    written: the event of the latest ordinary write here. names: LLVM's names of operands.
    skipping: per thread, the line that it has jumped to.
    at: the line at hand. start: event of the first.
    """

    def __init__(self, m: Any) -> None:
        self.m = m
        self.values: dict[str, Any] = {}
        self.predicate = m.mask
        self.written: dict[str, int] = {}
        self.names: dict[str, str] = {}
        self.skipping: Any = None
        self.at = 0
        self.start = m.event

    def copy(self) -> Registers:
        """For some of the threads, who go on by themselves."""
        new = Registers(self.m)
        new.values, new.written = dict(self.values), dict(self.written)
        new.names, new.at, new.start = self.names, self.at, self.start
        new.skipping = None if self.skipping is None else self.skipping.copy()
        return new

    def take_part(self, guard: str | None) -> None:
        """Who executes the line at hand."""
        self.predicate = self.m.mask
        if self.skipping is not None:
            self.predicate = self.predicate & (self.skipping <= self.at)
        if guard is not None:
            is_not = guard.startswith("!")
            taken = self.get(guard.removeprefix("!")).astype(bool)
            self.predicate = self.predicate & (~taken if is_not else taken)

    def raw(self, token: str) -> Any:
        return self.values[token.strip()]

    def get(self, token: str) -> Any:
        """A register or a number, one row for each thread."""
        token = token.strip()
        value = self.values.get(token)
        if value is None:
            return self._constant(token)
        if type(value) is Pending:
            value = value.read(self.predicate)
        return values.rows(value, self.m.count)

    def _constant(self, token: str) -> Any:
        """A number, the bits of a float (0f and eight digits), or a register and a distance."""
        if "+" in token:
            base, distance = token.split("+")
            value = self.get(base)
            return value + value.dtype.type(int(distance, 0))
        if token in ("%globaltimer", "%smid"):
            return np.full(self.m.count, time.monotonic_ns() if token[1] == "g" else 0, np.uint64)
        number = int(token[2:], 16) if token.startswith("0f") else int(token, 0)
        return np.full(self.m.count, number & 0xFFFFFFFF, np.uint32)

    def uniform(self, token: str, what: str) -> Any:
        """Like `get`, but all threads of each warp that take part must agree."""
        value = self.get(token)
        lanes, rows = self.predicate.reshape(-1, 32), value.reshape(-1, 32)
        first = np.take_along_axis(rows, lanes.argmax(1)[:, None], axis=1)
        if ((rows != first) & lanes).any():
            raise EmulationError(f"{what} that differs within a warp")
        return value

    def put(self, token: str, new: Any) -> None:
        token = token.strip()
        if token == "_":
            return
        old = self.values.get(token)
        if type(old) is Pending:
            old.read(self.predicate)  # may not be on its way
        elif self.predicate is self.m.mask and self.m.is_full:
            old = None
        else:
            old = np.full(self.m.count, 0xA5) if old is None else old
            old = old.astype(new.dtype)
        self.m.tensor.check_free(self, token)
        self.values[token] = (
            values.rows(new, self.m.count)
            if old is None
            else values.merge(self.predicate, new, old)
        )
        self.written[token] = self.m.event

    def spread(self, active: Any) -> Any:
        """Rows of the threads that take part as rows of all."""
        whole = np.zeros((self.m.count, *active.shape[1:]), active.dtype)
        whole[self.predicate] = active
        return whole
