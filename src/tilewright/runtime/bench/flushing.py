"""What is emptied before a timed call: of a CPU's caches only what the calls use, if that is known.

Emptying all caches of a large server takes a hundred milliseconds. A kernel that takes a tenth of
one uses a few megabytes, which can be dropped from the caches by address in less time than it
takes. So the first two calls are watched: the arrays that their launches are given are what is
dropped before each later call. Where the calls launch no kernel, or make new arrays each time,
everything is emptied.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, cast

from tilewright.runtime.arguments.memory_spans import Span, spans_of
from tilewright.runtime.arguments.specialization import HANDLERS
from tilewright.runtime.bench.clocks import BenchClock
from tilewright.runtime.launch_hooks import LaunchMetadata, launch_enter

__all__ = ["Flushing"]


class _DropsMemory(Protocol):
    """A clock of a device whose caches can drop memory by address."""

    def drop_memory(self, spans: Sequence[Span]) -> bool:
        """Drop memory from the caches; False if that cannot be, or would take too long."""
        ...


class Flushing:
    """Empties the caches of a clock's device for the calls of one function."""

    def __init__(self, clock: BenchClock[object], wanted: bool) -> None:
        self._clock = clock
        self._wanted = wanted
        self._drops = hasattr(clock, "drop_memory") and wanted
        self._watched = 0
        self._arrays: list[Any] = []
        """Of the first call; kept, so that their memory is not given back."""
        self._addresses: list[object] = []
        self._spans: list[Span] = []

    def call(self, fn: Callable[[], object]) -> None:
        """Call the function; the first two times, see which arrays it uses."""
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
            self._forget()  # an array was moved: its old memory may not be there any more
        clock = cast("_DropsMemory", self._clock)
        if not (self._spans and clock.drop_memory(self._spans)):
            self._clock.flush_cache()

    def _forget(self) -> None:
        self._drops, self._arrays, self._addresses, self._spans = False, [], [], []


def _addresses(arrays: Sequence[Any]) -> list[object]:
    return [HANDLERS.key_and_value(array)[1] for array in arrays]


@contextmanager
def _watching() -> Generator[list[Any]]:
    """The arrays of the host that launches are given in a block."""
    arrays: list[Any] = []

    def note(launch: LaunchMetadata) -> None:
        arrays.extend(launch.arrays())

    launch_enter.add(note)
    try:
        yield arrays
    finally:
        launch_enter.remove(note)
