"""Bulk copies between global and shared memory, by an engine that works in the asynchronous proxy.

To shared memory they end a phase of an mbarrier, from it they come in groups of each thread. What
they read is read early and late and must not differ; what they write is there as late as allowed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.emulator import values
from tests.emulator.memory import Array, EmulationError
from tests.emulator.tensor_maps import Pieces
from tests.emulator.traces import in_pieces

_CHUNK = 16


@dataclass
class Load:
    """To shared memory. target: its pieces of 16 bytes there; filling: of elements outside."""

    machine: Any
    thread: int
    pieces: Pieces
    target: Array
    filling: Array
    early: Array = field(default_factory=lambda: np.zeros(0, np.uint8))

    @property
    def size(self) -> int:
        return _CHUNK * len(self.target)

    def begin(self) -> None:
        shared = self.machine.shared
        shared.begin_late_write(self.target, self.thread >> 5, "a bulk copy")
        inside = self.pieces.addresses[self.pieces.inside]
        self.machine.memory.check_fenced(inside, self.pieces.size, self.thread >> 5)
        self.early = self._read()

    def _read(self) -> Array:
        """The bytes of the box in its order."""
        pieces = self.pieces
        count = len(pieces.addresses)
        data = np.empty((count, pieces.size), np.uint8)
        if not pieces.inside.all():
            data[:] = np.resize(self.filling, pieces.size)
        threads = np.full(int(pieces.inside.sum()), self.thread, np.uint32)
        data[pieces.inside] = self.machine.memory.load(
            pieces.addresses[pieces.inside], pieces.size, threads
        )
        return data.reshape(-1, _CHUNK)

    def land(self, engine: int, stamp: int) -> None:
        late = self._read()
        if (late != self.early).any():
            raise EmulationError("what a bulk copy reads was changed while it was on its way")
        self.machine.shared.end_late_write(self.target, late, engine, stamp)


@dataclass
class Store:
    """To global memory. source: its pieces of 16 bytes in shared memory.

    kind: what is done with what is there ("" for nothing); dtype: for that.
    """

    machine: Any
    thread: int
    pieces: Pieces
    source: Array
    kind: str
    dtype: Any
    data: Array | None = None

    def begin(self) -> None:
        self.machine.shared.begin_late_read(self.source, self.thread >> 5, "a bulk copy")
        pieces = self.pieces
        inside = pieces.addresses[pieces.inside]
        self.machine.memory.begin_late_write(inside, pieces.size, self.thread >> 5, self.kind)

    def read(self, engine: int, stamp: int) -> None:
        """Its source may be used again."""
        if self.data is None:
            shared = self.machine.shared
            self.data = in_pieces(shared.data)[self.source].reshape(-1, self.pieces.size)
            shared.end_late_read(self.source, engine, stamp)

    def write(self) -> None:
        assert self.data is not None
        pieces, memory = self.pieces, self.machine.memory
        inside = pieces.inside
        data, addresses = self.data[inside], pieces.addresses[inside]
        threads = np.full(len(data), self.thread, np.uint32)
        if not self.kind:
            memory.end_late_write(addresses, data, threads, "a store")
            return
        old = memory.load(addresses, pieces.size).view(self.dtype)
        new = _combined(self.kind, old, np.ascontiguousarray(data).view(self.dtype))
        new = np.ascontiguousarray(new).view(np.uint8)
        memory.end_late_write(addresses, new, threads, "an atomic")


def _combined(kind: str, old: Array, new: Array) -> Array:
    if old.dtype.kind in "iu":
        functions = {"add": np.add, "min": np.minimum, "max": np.maximum}
        return functions[kind](old, new) if kind in functions else values.combined(kind, old, new)
    return {"add": np.add, "min": np.fmin, "max": np.fmax}[kind](old, new).astype(old.dtype)


class BulkCopies:
    """Stores are in groups of each thread; the last group is still open."""

    def __init__(self, machine: Any) -> None:
        self._m = machine
        self._groups: dict[int, list[list[Store]]] = {}
        self._engines: dict[int, int] = {}
        """Of each thread that stores: its waits say nothing of the others."""

    def load(self, copy: Load, barrier: int) -> None:
        self._m.mbarriers.issue(barrier, copy.thread >> 5, copy)
        copy.begin()

    def store(self, copy: Store) -> None:
        copy.begin()
        self._groups.setdefault(copy.thread, [[]])[-1].append(copy)

    def commit(self, mask: Array) -> None:
        for thread, groups in self._groups.items():
            if mask[thread]:
                groups.append([])

    def wait(self, mask: Array, pending: int, only_read: bool) -> None:
        """All but the latest groups of these threads have read, and unless only_read, written."""
        for thread, groups in self._groups.items():
            if not mask[thread]:
                continue
            count = max(len(groups) - 1 - pending, 0)
            over = [copy for group in groups[:count] for copy in group]
            self._read(over, thread)
            if not only_read:
                del groups[:count]
                for copy in over:
                    copy.write()

    def _read(self, copies: list[Store], thread: int) -> None:
        if not copies:
            return
        if thread not in self._engines:
            self._engines[thread] = self._m.clocks.engine()
        engine = self._engines[thread]
        stamp, seen = self._m.clocks.act(engine)
        for copy in copies:
            copy.read(engine, stamp)
        self._m.clocks.acquire(np.array([thread >> 5]), seen)

    def finish(self) -> None:
        """The program ends: what was stored arrives."""
        for groups in self._groups.values():
            copies = [copy for group in groups for copy in group]
            if any(copy.data is None for copy in copies):
                raise EmulationError(
                    "the program ends while a bulk copy may read its shared memory"
                )
            for copy in copies:
                copy.write()
        self._groups = {}
