"""Emptying of caches before a timed call: on a CPU only of the data of the calls, if it is known.

Emptying all caches of a large server takes much longer than a short kernel, whose few megabytes can
be dropped from the caches by address. The first two calls therefore record the arrays that are
passed to their launches, and these are dropped before each later call. If the calls launch no
kernel, or create new arrays each time, all caches are emptied.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, cast

from tilewright.runtime.arguments.key_rules import HANDLERS
from tilewright.runtime.arguments.memory_spans import Span, spans_of
from tilewright.runtime.bench.clocks import BenchClock
from tilewright.runtime.launch_hooks import LaunchMetadata, launch_enter


class _DropsMemory(Protocol):
    """A clock of a device whose caches can drop memory by address."""

    def drop_memory(self, spans: Sequence[Span]) -> bool:
        """Drop memory from the caches; False if that is impossible, or would take too long."""
        ...


class Flushing:
    """Emptying of the caches of a clock's device for the calls of one function."""

    def __init__(self, clock: BenchClock[object], wanted: bool) -> None:
        self._clock = clock
        self._wanted = wanted
        self._drops = hasattr(clock, "drop_memory") and wanted
        self._watched = 0
        self._arrays: list[Any] = []
        """Arrays of the first call, kept alive so that their memory is not released."""
        self._addresses: list[object] = []
        self._spans: list[Span] = []

    def call(self, fn: Callable[[], object]) -> None:
        """Call the function; record its arrays at the first two calls."""
        if not self._drops or self._watched == 2:
            fn()
            return
        with _watching() as arrays:
            fn()
        self._watched += 1
        if self._watched == 1:
            self._arrays, self._addresses = arrays, _addresses(arrays)
            self._spans = spans_of(arrays) or []
        elif spans_of(arrays) != self._spans:
            self._forget()

    def __call__(self) -> None:
        if not self._wanted:
            return
        if self._spans and _addresses(self._arrays) != self._addresses:
            self._forget()  # an array was moved: its old memory may have been released
        clock = cast("_DropsMemory", self._clock)
        if not (self._spans and clock.drop_memory(self._spans)):
            self._clock.flush_cache()

    def _forget(self) -> None:
        self._drops, self._arrays, self._addresses, self._spans = False, [], [], []


def _addresses(arrays: Sequence[Any]) -> list[object]:
    return [HANDLERS.key_and_value(array)[1] for array in arrays]


@contextmanager
def _watching() -> Generator[list[Any]]:
    """The arrays of the host that are passed to launches in a block."""
    arrays: list[Any] = []

    def note(launch: LaunchMetadata) -> None:
        arrays.extend(launch.arrays())

    launch_enter.add(note)
    try:
        yield arrays
    finally:
        launch_enter.remove(note)
