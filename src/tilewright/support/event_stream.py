"""The event stream: events that the compiler reports about its own work.

One stream serves every tool: print-after-pass, time report, inspector, crash reproducer. It is off
unless a recorder is installed, and then costs one context-variable read for each pipeline::

    events = ListRecorder()
    with recording(events):
        compile(kernel)

A producer reads the recorder once, then tests it for None, so that tracing costs nothing when off::

    recorder = current_recorder()
    if recorder is not None:
        recorder.record(RuleFired("add_zero", "rules/arith_rules.py", "arith.add"))
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import Protocol, TypeVar

from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class PassStarted:
    """A pass begins on a function. `text` gives the IR before it; call it only if needed."""

    pass_name: str
    function: str
    text: Callable[[], str]


@dataclass(frozen=True, slots=True)
class PassEnded:
    """A pass is done. `text` gives the IR after it; call it at once, the next pass changes it."""

    pass_name: str
    function: str
    seconds: float
    changed: bool
    text: Callable[[], str]


@dataclass(frozen=True, slots=True)
class RuleFired:
    """A rewrite rule replaced an operation."""

    rule: str
    file: str
    """Where the rule is written."""
    op: str
    """Opcode of the operation that it matched."""


@dataclass(frozen=True, slots=True)
class StageText:
    """The text of a kernel after a stage, named by the artifact's extension (`ttir`, `llir`)."""

    stage: str
    kernel: str
    text: str


@dataclass(frozen=True, slots=True)
class Timing:
    """Wall-clock seconds that a named piece of work took."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class VariantAdded:
    """A launch needs a variant of a kernel that is not in memory: it is compiled, or loaded."""

    kernel: str
    reason: str
    """Which arguments or options differ from the closest variant before, and how."""


Event = PassStarted | PassEnded | RuleFired | StageText | Timing | VariantAdded


class Recorder(Protocol):
    """Receives every event while it is installed; must not change what it is shown."""

    def record(self, event: Event) -> None:
        """Take note of `event`."""
        ...


_EventT = TypeVar("_EventT", bound=Event)


@dataclass(slots=True)
class ListRecorder:
    """Keeps every event, in order."""

    events: list[Event] = field(default_factory=list[Event])

    def record(self, event: Event) -> None:
        """Append `event`."""
        self.events.append(event)

    def of(self, kind: type[_EventT]) -> list[_EventT]:
        """The events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]


@dataclass(frozen=True, slots=True)
class TeeRecorder:
    """Passes each event on to several recorders, in order."""

    recorders: tuple[Recorder, ...]

    def record(self, event: Event) -> None:
        """Pass `event` on."""
        for recorder in self.recorders:
            recorder.record(event)


_current: ContextVar[Recorder | None] = ContextVar("tilewright_recorder", default=None)


def current_recorder() -> Recorder | None:
    """The recorder installed by the innermost `recording`, or None when tracing is off."""
    return _current.get()


@contextmanager
def recording(recorder: Recorder | None) -> Generator[None]:
    """Install `recorder` for the duration of the block; None turns tracing off inside it.

    The recorder is held in a context variable, so other threads are not recorded unless they run
    in a copy of this context.
    """
    token = _current.set(recorder)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def timed(name: str) -> Generator[None]:
    """Record how long the block took as a `Timing`, also when it raises.

    Without a recorder nothing is measured.
    """
    recorder = _current.get()
    if recorder is None:
        yield
        return
    start = time.perf_counter()
    try:
        yield
    finally:
        recorder.record(Timing(name, time.perf_counter() - start))
