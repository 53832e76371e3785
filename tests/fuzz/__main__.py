"""Run random kernels on several devices, and write those that fail as test files.

    python -m tests.fuzz --minutes 60 --devices interpreter,cpu,nvidia

Program number n is the same everywhere. Each failure is made small and written to `--out` as a test
that runs by itself; a process that crashes or hangs is a failure too. Ctrl-C and SIGTERM end early;
the summary of what was done is printed, and written to `--out`, too.
The package's docstring describes the parts.
"""

from __future__ import annotations

import argparse
import math
import signal
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from tests.fuzz import Fleet, Plan, Result, save
from tests.guarded_devices import available_devices
from tilewright.tools.command_arguments import natural, positive

SECONDS_BETWEEN_SUMMARIES = 20.0
FAILED = 1


class Summary:
    """Counts of a run."""

    def __init__(self) -> None:
        self.features: Counter[str] = Counter()
        self.undefined: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.runs: Counter[str] = Counter()
        self.failures: dict[tuple[str, str, str], list[Result]] = defaultdict(list)
        self.files: dict[Path, None] = {}
        self.programs = 0
        self._written = -math.inf

    def add(self, result: Result, out: Path) -> None:
        if result.failure is not None:
            known = self.failures[result.failure.signature]
            if all(r.seed != result.seed for r in known):
                known.append(result)
            if result.smaller is not None:
                self.files[save(out, result.smaller, result.failure)] = None
        if not result.seconds and result.smaller is not None:
            return  # the reduction of a program that was counted when it crashed
        self.programs += 1
        self.features.update(result.features)
        if result.undefined:
            self.undefined[result.undefined] += 1
        for step, seconds in result.seconds.items():
            self.seconds[step] += seconds
            self.runs[step] += 1

    def line(self, wall: float) -> str:
        """What was done, in a few words."""
        failing = sum(map(len, self.failures.values()))
        rate = self.programs / max(wall, 1e-9)
        return f"{self.programs} programs, {rate:.1f} a second, {failing or 'no'} failures"

    def print(self, console: Console, wall: float) -> None:
        table = Table("feature", "programs", title=f"{self.programs} programs in {wall:.0f} s, "
                      f"{self.programs / max(wall, 1e-9):.1f} a second")  # fmt: skip
        for feature, count in self.features.most_common():
            table.add_row(feature, str(count))
        console.print(table)
        steps = Table("step", "runs", "ms each", "a second and process")
        for step, seconds in self.seconds.items():
            each = seconds / self.runs[step]
            steps.add_row(step, str(self.runs[step]), f"{1000 * each:.1f}", f"{1 / each:.1f}")
        console.print(steps)
        for reason, count in self.undefined.most_common():
            console.print(f"without a meaning: {count} x {reason}", markup=False)
        self._print_failures(console)

    def write(self, folder: Path, wall: float) -> Path:
        """Write what `print` shows."""
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / "summary.txt"
        with place.open("w", encoding="utf-8") as file:
            self.print(Console(file=file, width=160), wall)
        self._written = wall
        return place

    def write_now_and_then(self, folder: Path, wall: float) -> None:
        """So that little is lost to a kill."""
        if wall > self._written + SECONDS_BETWEEN_SUMMARIES:
            self.write(folder, wall)

    def _print_failures(self, console: Console) -> None:
        if not self.failures:
            console.print("no failures")
            return
        table = Table("device", "failure", "programs", "seeds")
        for (device, kind, words), results in self.failures.items():
            seeds = ", ".join(str(r.seed) for r in results[:6])
            table.add_row(device, f"{kind} {words}", str(len(results)), seeds)
        console.print(table)
        for place in self.files:
            console.print(str(place), markup=False)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="stop after so long (1)")
    parser.add_argument("--seed", type=natural, default=0, help="number of the first program (0)")
    parser.add_argument("--count", type=natural, default=sys.maxsize, help="programs (any number)")
    parser.add_argument(
        "--devices", help="some of interpreter, cpu, emulated, nvidia, with commas (all there are)"
    )
    parser.add_argument("--processes", type=positive, default=1, help="at one time (1)")
    parser.add_argument(
        "--out", type=Path, default=Path("fuzzed"), help="folder for failing tests (fuzzed)"
    )
    parser.add_argument(
        "--limit", type=float, default=60.0, help="seconds for one device and program (60)"
    )
    parser.add_argument(
        "--reduce", type=float, default=60.0, help="seconds to make a failure small (60)"
    )
    chosen = parser.parse_args()
    chosen.devices = devices_of(parser, chosen.devices)
    return chosen


class Stop:
    """Whether to end: after some seconds, or on SIGINT or SIGTERM. The second one kills.

    The handlers are set although a shell may have told its background jobs to ignore SIGINT.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.deadline = time.monotonic() + seconds
        self.told = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._tell)

    def _tell(self, number: int, frame: object) -> None:
        self.told = True
        signal.signal(number, signal.SIG_DFL)

    def __call__(self) -> bool:
        return self.told or time.monotonic() > self.deadline


def run(chosen: argparse.Namespace) -> int:
    """Run programs until time or count is reached. The exit status is 1 if one failed."""
    count = min(chosen.count, sys.maxsize - chosen.seed)
    plan = Plan(chosen.devices, chosen.limit, chosen.reduce, chosen.seed, count, chosen.processes)
    console, summary, start = Console(), Summary(), time.monotonic()
    stop = Stop(60 * chosen.minutes)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=stop.seconds)
        for result in Fleet(plan).results(stop):
            summary.add(result, chosen.out)
            seconds = time.monotonic() - start
            progress.update(task, completed=seconds, description=summary.line(seconds))
            summary.write_now_and_then(chosen.out, seconds)
    summary.print(console, time.monotonic() - start)
    console.print(str(summary.write(chosen.out, time.monotonic() - start)), markup=False)
    return FAILED if summary.failures else 0


def devices_of(parser: argparse.ArgumentParser, names: str | None) -> tuple[str, ...]:
    """The named devices, all that are available without names."""
    available = available_devices()
    devices = tuple(names.split(",")) if names else available
    for name in devices:
        if name not in available:
            parser.error(f"there is no device {name!r} here, only {', '.join(available)}")
    return devices


if __name__ == "__main__":
    sys.exit(run(arguments()))
