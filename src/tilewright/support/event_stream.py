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
    """Start of a pass on a function. `text` gives the IR before it; call it only if needed."""

    pass_name: str
    function: str
    text: Callable[[], str]


@dataclass(frozen=True, slots=True)
class PassEnded:
    """End of a pass. `text` gives the IR after it; call it at once, the next pass changes it."""

    pass_name: str
    function: str
    seconds: float
    changed: bool
    text: Callable[[], str]


@dataclass(frozen=True, slots=True)
class RuleFired:
    """Replacement of an operation by a rewrite rule."""

    rule: str
    file: str
    """The file that contains the rule."""
    op: str
    """Opcode of the matched operation."""


@dataclass(frozen=True, slots=True)
class StageText:
    """Text of a kernel after a stage. stage: the artifact's extension (`ttir`, `llir`); located: of
    tile IR, the text with source locations, else the same"""

    stage: str
    kernel: str
    text: str
    located: str


@dataclass(frozen=True, slots=True)
class Timing:
    """Wall-clock seconds of a named piece of work."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class VariantAdded:
    """A launch that needs a variant which is not in memory: it is compiled, or loaded."""

    kernel: str
    reason: str
    """The arguments or options that differ from the closest earlier variant."""


@dataclass(frozen=True, slots=True)
class VariantMissed:
    """A launch whose variant is not in memory, where `on_miss` is not "compile". served: by a
    variant without facts, which was in memory or had to be compiled; or not at all"""

    kernel: str
    mode: str
    served: bool
    reason: str
    """As of `VariantAdded`."""


Event = PassStarted | PassEnded | RuleFired | StageText | Timing | VariantAdded | VariantMissed


class Recorder(Protocol):
    """Receiver of every event while it is installed; it must not change the objects in events."""

    def record(self, event: Event) -> None:
        """Receive an event."""
        ...


_EventT = TypeVar("_EventT", bound=Event)


@dataclass(slots=True)
class ListRecorder:
    """A recorder that stores every event, in order."""

    events: list[Event] = field(default_factory=list[Event])

    def record(self, event: Event) -> None:
        """Append `event`."""
        self.events.append(event)

    def of(self, kind: type[_EventT]) -> list[_EventT]:
        """The events of one class, in order."""
        return [event for event in self.events if isinstance(event, kind)]


@dataclass(frozen=True, slots=True)
class TeeRecorder:
    """A recorder that passes each event to several recorders, in order."""

    recorders: tuple[Recorder, ...]

    def record(self, event: Event) -> None:
        """Pass the event on."""
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
    """Record the wall-clock time of the block as a `Timing`, even if it raises.

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
