"""Time limits of tests in CPU seconds, so that a loaded machine fails none.

A test may use `CPU_SECONDS` of its process and of all processes that it starts. A test that hangs
uses none: after `IDLE_SECONDS` of wall time without progress it fails too. Both are generous; they
exist for hangs, and subprocesses of tests need no timeout of their own.

A timer raises in the main thread. Native code that never returns would not let it: if no Python
runs for twice `IDLE_SECONDS`, all stacks are printed and the process exits, which pytest-xdist
reports as a failure of the test.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest

CPU_SECONDS = 300.0
IDLE_SECONDS = 300.0
FIRST_CHECK_SECONDS, CHECK_SECONDS = 20.0, 5.0
PROGRESS_SECONDS = 0.5
"""CPU time that counts as progress: more than the checks use themselves."""
_HAS_TIMER = hasattr(signal, "setitimer")


class TimeLimit:
    """The limit of one test. It counts from the first check on, since most tests need none."""

    def __init__(self, cpu: float = CPU_SECONDS, idle: float = IDLE_SECONDS) -> None:
        self._cpu, self._idle = cpu, idle
        self._start: float | None = None
        self._progress = self._time = 0.0

    def check(self) -> str | None:
        """The reason why the test has to end, if any."""
        used, now = cpu_seconds(), monotonic()
        if self._start is None:
            self._start = used
        if used - self._start > self._cpu:
            return f"the test used more than {self._cpu:g} s of CPU time"
        if abs(used - self._progress) > PROGRESS_SECONDS:
            self._progress, self._time = used, now
        if now - self._time > self._idle:
            return f"the test used no CPU time for {self._idle:g} s"
        return None


class NativeWatch:
    """Exits with all stacks if no Python code of the main thread runs for `2 * IDLE_SECONDS`."""

    def __init__(self) -> None:
        self._stderr, self._armed = -1, 0.0

    def open(self) -> None:
        """Take the file for stacks, while pytest does not capture it."""
        self._stderr = os.dup(2)

    def arm(self) -> None:
        """Start the wait anew; without effect soon after the last time, since it costs a thread."""
        if self._stderr >= 0 and monotonic() - self._armed > CHECK_SECONDS:
            self._armed = monotonic()
            faulthandler.dump_traceback_later(2 * IDLE_SECONDS, file=self._stderr, exit=True)

    def disarm(self) -> None:
        """Stop watching."""
        faulthandler.cancel_dump_traceback_later()
        self._armed = 0.0


WATCH = NativeWatch()


def cpu_seconds() -> float:
    """CPU time of this process and its descendants, living and waited for."""
    times = os.times()
    own = times.user + times.system + times.children_user + times.children_system
    return own + sum(_descendants())


def _descendants() -> Iterator[float]:
    """CPU seconds of each living descendant, where the system has /proc."""
    children: dict[int, list[tuple[int, float]]] = {}
    for pid, parent, seconds in _processes():
        children.setdefault(parent, []).append((pid, seconds))
    waiting = [os.getpid()]
    while waiting:
        for pid, seconds in children.get(waiting.pop(), ()):
            waiting.append(pid)
            yield seconds


def _processes() -> Iterator[tuple[int, int, float]]:
    """(id, parent, CPU seconds) of each process; the parts are those of proc_pid_stat(5)."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parts = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        ticks = sum(map(int, parts[11:15]))
        yield int(folder.name), int(parts[1]), ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def limited(limit: TimeLimit, first: float = FIRST_CHECK_SECONDS) -> Generator[None]:
    """Fail the test that runs when it exceeds the limit. first: seconds until the first check"""
    if not _HAS_TIMER:
        yield
        return

    def check(number: int, frame: object) -> None:
        WATCH.arm()
        reason = limit.check()
        if reason is not None:
            pytest.fail(reason)

    before = signal.signal(signal.SIGALRM, check)
    signal.setitimer(signal.ITIMER_REAL, first, min(first, CHECK_SECONDS))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def unlimited() -> Generator[None]:
    """No limit inside, for waits for other processes that run tests."""
    left = signal.setitimer(signal.ITIMER_REAL, 0) if _HAS_TIMER else (0.0, 0.0)
    WATCH.disarm()
    try:
        yield
    finally:
        WATCH.arm()
        if left[0]:
            signal.setitimer(signal.ITIMER_REAL, *left)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Limit each test with its fixtures."""
    WATCH.arm()
    with limited(TimeLimit()):
        return (yield)


def pytest_enter_pdb() -> None:
    """Limit no test that is being debugged."""
    WATCH.disarm()
    if _HAS_TIMER:
        signal.setitimer(signal.ITIMER_REAL, 0)


def pytest_configure() -> None:
    """Open the file for stacks."""
    WATCH.open()


def pytest_unconfigure() -> None:
    """Stop watching the process, which has run its tests."""
    WATCH.disarm()
