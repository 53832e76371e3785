"""The command of `scripts/fuzz_kernels.py`: arguments, a progress bar, a summary."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from tests.fuzz.save import save
from tests.fuzz.workers import Fleet, Plan, Result

SECONDS_BETWEEN_SUMMARIES = 20.0
DEVICES = ("interpreter", "cpu", "emulated", "nvidia")


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


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fuzz whole kernels on several devices.")
    parser.add_argument("--seed", type=int, default=0, help="number of the first program")
    parser.add_argument("--count", type=int, default=1000, help="programs")
    parser.add_argument(
        "--devices", default="interpreter,cpu,emulated", help="of " + ",".join(DEVICES)
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("fuzzed"), help="folder for failing tests")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a step of a program")
    parser.add_argument(
        "--reduce", type=float, default=60.0, help="seconds to make a failure small"
    )
    parser.add_argument("--seconds", type=float, default=0.0, help="stop after so long; 0: never")
    return parser.parse_args(words)


class Stop:
    """Whether to end early: after some seconds, or on SIGINT or SIGTERM. The second one kills.

    The handlers are set although a shell may have told its background jobs to ignore SIGINT.
    """

    def __init__(self, seconds: float) -> None:
        self.deadline = time.monotonic() + (seconds or math.inf)
        self.told = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._tell)

    def _tell(self, number: int, frame: object) -> None:
        self.told = True
        signal.signal(number, signal.SIG_DFL)

    def __call__(self) -> bool:
        return self.told or time.monotonic() > self.deadline


def main(words: list[str]) -> int:
    """The exit status is 1 if a program failed."""
    given = arguments(words)
    devices = tuple(given.devices.split(","))
    unknown = set(devices) - set(DEVICES)
    if unknown:
        sys.exit(f"unknown devices {sorted(unknown)}; there are {', '.join(DEVICES)}")
    plan = Plan(devices, given.limit, given.reduce, given.seed, given.count, given.processes)
    console, summary, start = Console(), Summary(), time.monotonic()
    stop = Stop(given.seconds)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TextColumn("{task.fields[rate]:.1f}/s"), TimeRemainingColumn())  # fmt: skip
    with tempfile.TemporaryDirectory() as cache, Progress(*columns, console=console) as progress:
        os.environ["TILEWRIGHT_CACHE_DIR"] = cache  # of the workers, which write what they compile
        task = progress.add_task("no failures", total=plan.count, rate=0.0)
        for result in Fleet(plan).results(stop):
            summary.add(result, given.out)
            _show(progress, task, summary, time.monotonic() - start)
            summary.write_now_and_then(given.out, time.monotonic() - start)
    summary.print(console, time.monotonic() - start)
    console.print(str(summary.write(given.out, time.monotonic() - start)), markup=False)
    return 1 if summary.failures else 0


def _show(progress: Progress, task: TaskID, summary: Summary, seconds: float) -> None:
    failing = sum(map(len, summary.failures.values()))
    progress.update(
        task,
        completed=summary.programs,
        rate=summary.programs / max(seconds, 1e-9),
        description=f"{failing} failures" if failing else "no failures",
    )
