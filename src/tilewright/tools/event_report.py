"""Reports of the event stream: a table of times, and the IR after each pass."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table

from tilewright.support import Event, PassEnded, RuleFired, Timing
from tilewright.support.data_class import dataclass


@dataclass(slots=True)
class Line:
    """Total time of a stage or pass."""

    name: str
    calls: int = 0
    seconds: float = 0.0
    changed: int = 0


def times_table(events: Iterable[Event]) -> Table:
    """A table of stages and passes in the order of their first run; passes are parts of a stage.

    The share is of the time of all stages. A pass counts as changed once for each function that it
    has changed.
    """
    events = list(events)
    stages = _totals(events, Timing)
    passes = _totals(events, PassEnded)
    # Passes are parts of stages; without stages (`opt`) they are the whole.
    whole = sum(line.seconds for line in stages) or sum(line.seconds for line in passes)
    table = Table(title="Where the time went", box=box.SIMPLE_HEAD)
    table.add_column("work")
    for name in ("runs", "changed", "ms", "share"):
        table.add_column(name, justify="right")
    for line in stages:
        table.add_row(line.name, str(line.calls), "", *_time(line.seconds, whole))
    if stages and passes:
        table.add_section()
    for line in passes:
        name = f"pass {line.name}"
        table.add_row(name, str(line.calls), str(line.changed), *_time(line.seconds, whole))
    rules = sum(isinstance(event, RuleFired) for event in events)
    if rules:
        table.caption = f"rules fired: {rules}"
    return table


def _time(seconds: float, whole: float) -> tuple[str, str]:
    return f"{seconds * 1e3:.2f}", f"{seconds / whole:.0%}" if whole else ""


def _totals(events: Iterable[Event], kind: type[Timing] | type[PassEnded]) -> list[Line]:
    lines: dict[str, Line] = {}
    for event in events:
        if isinstance(event, Timing | PassEnded) and isinstance(event, kind):
            name = event.name if isinstance(event, Timing) else event.pass_name
            line = lines.setdefault(name, Line(name))
            line.calls += 1
            line.seconds += event.seconds
            line.changed += isinstance(event, PassEnded) and event.changed
    return list(lines.values())


@dataclass(frozen=True, slots=True)
class PassPrinter:
    """A recorder that prints the IR after each pass that has changed it.

    only: names of the passes to print after; empty for all
    """

    console: Console
    only: tuple[str, ...] = ()

    def record(self, event: Event) -> None:
        """Print the IR if the event ends a selected pass that changed it."""
        if not isinstance(event, PassEnded):
            return
        # The text of a pass may carry options: `name{X=1}`.
        if self.only and event.pass_name.partition("{")[0] not in self.only:
            return
        head = f"// after {event.pass_name} on @{event.function}"
        if not event.changed:
            head += ": no change"
        self._print(head)
        if event.changed:
            self._print(event.text())

    def _print(self, text: str) -> None:
        self.console.out(text.rstrip("\n"), highlight=False)
