"""Scheduling of programs that wait for each other: one that polls a place yields to others.

Programs run one after the other, each to its end. One that waits, for a lock or for a number that a
later program stores, would never end. So loads of a place with an unchanged number are counted, and
after some of them another program continues: one that has waited before, if anything was stored
since, otherwise the next of the grid, in its own thread. One thread runs at any time.

Another launch, in another thread or process, may store what an atomic with `scope="sys"` polls:
such a wait ends by a timeout only.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import NoReturn

from tilewright.interp.kernel_memory import Span
from tilewright.interp.numpy_dtypes import Array
from tilewright.support import errors, settings

Program = tuple[int, int, int]

PATIENCE = 50
"""Atomic or volatile loads with the same result after which a program counts as waiting."""
PLAIN_PATIENCE = 2000
"""The same for plain loads, which kernels repeat for other reasons."""
PAUSE_SECONDS = 1e-4
"""Time that a program leaves to other launches."""


class _Abandoned(BaseException):
    """Ends a program whose launch has failed; no kernel catches it."""


class _Suspended:
    """A program in its own thread, which runs while `resume` waits for it."""

    def __init__(self, program: Program, run: Callable[[], object]) -> None:
        self.program = program
        self.seen_stores = -1
        self.place = ""
        self.is_done = False
        self.problem: BaseException | None = None
        self._is_abandoned = False
        self._run = run
        self._mine, self._others = threading.Semaphore(0), threading.Semaphore(0)
        work = copy_context().run
        self._thread = threading.Thread(target=work, args=(self._whole,), daemon=True)
        self._thread.start()

    def resume(self) -> None:
        """Run it until it waits again or ends. Errors: those of the kernel."""
        self._mine.release()
        self._others.acquire()
        if self.problem is not None:
            raise self.problem

    def suspend(self) -> None:
        """Wait for the next `resume`; called by the program itself."""
        self._others.release()
        self._mine.acquire()
        if self._is_abandoned:
            raise _Abandoned

    def abandon(self) -> None:
        """End it at its wait."""
        self._is_abandoned = True
        self._mine.release()
        self._thread.join(timeout=1)

    def _whole(self) -> None:
        self._mine.acquire()
        try:
            if not self._is_abandoned:
                self._run()
        except _Abandoned:
            pass
        except BaseException as problem:
            self.problem = problem
        self.is_done = True
        self._others.release()


class ProgramSchedule:
    """Runs the programs of a launch in order, and concurrently where they wait.

    run(): runs the current program to its end; enter(program): makes one the current program
    """

    def __init__(self, run: Callable[[], object], enter: Callable[[Program], object]) -> None:
        self._run, self._enter = run, enter
        self._left: Iterator[Program] = iter(())
        self._waiting: list[_Suspended] = []
        self._running: _Suspended | None = None
        self._program: Program = (0, 0, 0)
        self._stores = 0
        self._seen: dict[tuple[bytes, bytes], int] = {}
        self._timed: set[Program] = set()
        self._outside_since: float | None = None

    def run(self, programs: Iterator[Program]) -> None:
        """Run every program. Errors: Deadlock, and those of the kernel."""
        self._left = programs
        try:
            for program in self._left:
                self._switch(program)
                self._run()
                while self._waiting and self._others_go_on(-1):
                    pass
            if self._waiting:
                self._fail(self._waiting[0].program, self._waiting[0].place)
        finally:
            for waiting in self._waiting:
                waiting.abandon()

    def stored(self) -> None:
        """Record that memory has changed: waiting programs may poll again."""
        self._stores += 1
        self._seen.clear()
        self._outside_since = None

    def timed(self) -> None:
        """Record that the running program has read a clock: it may wait for a time, which comes."""
        self._timed.add(self._program)

    def saw(
        self,
        place: Span | None,
        addresses: Array,
        found: Array,
        *,
        plain: bool,
        outside: bool = False,
    ) -> None:
        """Record a load of the running program. outside: other launches may store there.

        Errors: Deadlock."""
        if not found.size or (plain and found.size > 1):
            return
        if len(self._seen) > PLAIN_PATIENCE:
            self._seen.clear()
        key = addresses.tobytes(), found.tobytes()
        self._seen[key] = count = self._seen.get(key, 0) + 1
        if count >= (PLAIN_PATIENCE if plain else PATIENCE):
            self._seen.clear()
            address = int(addresses.reshape(-1)[0])
            where = "memory" if place is None else place.place(address)
            if outside:
                self._wait_outside(where)
            self._give_way(where)

    def _wait_outside(self, place: str) -> None:
        """Pause for other launches, unless they have had their time since the latest store."""
        now, limit = time.monotonic(), settings().cpu.wait_seconds
        self._outside_since = since = self._outside_since or now
        if limit and now - since > limit:
            self._fail(self._program, place)
        self.timed()
        time.sleep(PAUSE_SECONDS)

    def _give_way(self, place: str) -> None:
        running, program = self._running, self._program
        if running is not None:
            running.seen_stores, running.place = self._stores, place
            running.suspend()
        elif not self._others_go_on(self._stores) and program not in self._timed:
            self._fail(program, place)

    def _others_go_on(self, stores: int) -> bool:
        """Run others, until more was stored than `stores`; False if none can continue."""
        program, went_on = self._program, False
        while (other := self._next()) is not None:
            went_on = True
            self._step(other)
            if self._stores != stores or other.program in self._timed:
                break
        self._switch(program)
        return went_on

    def _next(self) -> _Suspended | None:
        """The program to continue: one whose awaited value may have changed, or the next."""
        for waiting in self._waiting:
            if waiting.seen_stores != self._stores or waiting.program in self._timed:
                return waiting
        program = next(self._left, None)
        if program is None:
            return None
        made = _Suspended(program, self._run)
        self._waiting.append(made)
        return made

    def _step(self, other: _Suspended) -> None:
        self._switch(other.program)
        self._running = other
        try:
            other.resume()
        finally:
            self._running = None
            if other.is_done:
                self._waiting.remove(other)

    def _switch(self, program: Program) -> None:
        self._program = program
        self._seen.clear()
        self._enter(program)

    def _fail(self, program: Program, place: str) -> NoReturn:
        raise errors.Deadlock(program, place)
