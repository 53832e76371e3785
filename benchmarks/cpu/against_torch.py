"""The CPU backend beside torch and beside what this machine can do, in one run.

    python -m benchmarks.cpu                        everything
    python -m benchmarks.cpu limits                 bandwidths, peaks, and what launches cost
    python -m benchmarks.cpu scaling                speedups by threads, modelled up to 64
    python -m benchmarks.cpu elementwise matmul     some groups of kernels
        [--threads 1 2] [--rounds N] [--quick] [--json FILE] [--plot FILE] [--predict FILE]

FILE of a plot gets the number of threads in its name.

Limits come first; every other figure is printed as a fraction of its limit and as a ratio to torch.
Kernels are compared twice: `turns`, where each waits until the other's threads sleep, all threads
on CPUs of their own, and `mixed`, one right behind the other, as a program that uses both has them.
FILE gets this run behind those that it holds: all runs are kept, with the machine's state before
and after each. `--predict` says what the machine of another file would do: the same fraction of its
limits.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.harness import (
    Case,
    as_json,
    describe_machine,
    fix_threads,
    interleave,
    thread_counts,
    threads_apart,
    versions,
)
from tilewright.support import thread_count

GROUPS = ("elementwise", "rows", "math", "matmul", "attention")
_ALL = ("limits", "costs", *GROUPS)
SETTLE_MS = {"turns": 30.0, "mixed": 0.0}
MIN_SAMPLE_MS = 4.0


@dataclasses.dataclass(frozen=True)
class Figure:
    """A case, in one mode, and the limit of its rate."""

    case: Case
    group: str
    mode: str
    threads: int
    limit: float
    bytes: int
    operations: float
    limit_of: Callable[[Any, int], float]
    """What it is on a machine, by its limits and threads."""

    def fraction(self, contestant: str) -> float:
        """Of the limit that a contestant's best sample reaches."""
        timing, work = self.case.timings[contestant], self.case.work
        assert work is not None
        return work.rate(min(timing.samples_ms)) / self.limit

    def as_json(self) -> dict[str, object]:
        samples = {name: t.samples_ms for name, t in self.case.timings.items()}
        return {
            **as_json(self.case), "group": self.group, "mode": self.mode, "threads": self.threads,
            "limit": self.limit, "bytes": self.bytes, "operations": self.operations,
            "fractions": {name: self.fraction(name) for name in self.case.timings},
            "samples_ms": samples,
        }  # fmt: skip


def measure_group(group: str, limits, threads: int, rounds: int, quick: bool) -> list[Figure]:
    """All figures of a group; prints each when it is known."""
    from benchmarks.cpu.cases import GROUPS as CASES

    figures: list[Figure] = []
    for comparison in CASES[group](quick):
        comparison.check()
        limit_of = partial(_limit_of, comparison)
        for mode, settle in SETTLE_MS.items():
            if threads == 1 and mode == "mixed":
                continue  # with one thread nothing spins
            for contestant in comparison.contestants.values():
                contestant()  # its threads are there now
            with threads_apart() if mode == "turns" and threads > 1 else nullcontext():
                case = interleave(
                    comparison.contestants, rounds, MIN_SAMPLE_MS, name=comparison.name,
                    baseline="torch", work=comparison.work, parameters=comparison.parameters,
                    settle_ms=settle if threads > 1 else 0.0,
                )  # fmt: skip
            figures.append(
                Figure(case, group, mode, threads, limit_of(limits, threads), comparison.bytes,
                       comparison.operations, limit_of)
            )  # fmt: skip
            show(figures[-1])
    return figures


def _limit_of(comparison, limits, threads: int) -> float:
    """Of the multiply-adds that the machine has for it, or of the memory that its data lives in."""
    from benchmarks.cpu.cases import peak_names

    names = peak_names(comparison)
    found = [limits.peak(n, threads) for n in names if (n, threads) in limits.peaks]
    return found[0] if found else limits.bandwidth(comparison.limit, threads, comparison.bytes)


def predict(figures: list[Figure], run: dict[str, Any]) -> list[dict[str, Any]]:
    """Rates on the machine of another run, beside those that were measured there."""
    from benchmarks.cpu.machine_limits import Limits

    limits = Limits.of_json(run["limits"])
    predictions: list[dict[str, Any]] = []
    for figure in figures:
        threads = min(limits.threads, key=lambda t, f=figure: abs(t - f.threads))
        rate = figure.fraction("tilewright") * figure.limit_of(limits, threads)
        key = figure.case.name, figure.mode, threads
        same = [f for f in run["figures"] if (f["name"], f["mode"], f["threads"]) == key]
        measured = [f["work"]["amount"] / f["contestants"]["tilewright"]["ms"]["best"] * 1e3
                    for f in same]  # fmt: skip
        predictions.append({"name": figure.case.name, "mode": figure.mode, "threads": threads,
                            "predicted": rate, "measured": measured})  # fmt: skip
    return predictions


def show_predictions(predictions: list[dict[str, Any]], run: dict[str, Any]) -> None:
    """A line for each, with what was measured over what is predicted."""
    out = Console(highlight=False, soft_wrap=True)
    out.print(f"Predicted for {run['machine']['cpu']}:")
    for p in predictions:
        ratios = " ".join(f"{m:.1f} measured, {m / p['predicted']:.2f} x" for m in p["measured"])
        out.print(f"{p['name']:38} {p['mode']:6} {p['threads']:3} threads "
                  f"{p['predicted']:9.1f}/s  {ratios}")  # fmt: skip


def show(figure: Figure) -> None:
    """A line for each contestant but torch."""
    case, work = figure.case, figure.case.work
    assert work is not None
    for name in case.timings:
        if name != "torch":
            ratio = case.ratios[name]
            mark = "" if ratio.median >= 1.0 else "  [red]below torch"
            Console(highlight=False, soft_wrap=True).print(
                f"{case.name:38} {name:20} {figure.mode:6} "
                f"{case.timings[name].spread.median * 1e3:10.2f} us "
                f"{work.rate(case.timings[name].spread.median):7.1f} {work.unit}/s "
                f"{figure.fraction(name):5.2f} of limit (torch {figure.fraction('torch'):5.2f}) "
                f"{ratio.median:5.2f} x torch{mark}"
            )


def show_limits(limits, threads: list[int]) -> None:
    """Clock, peaks, and bandwidth by size."""
    from benchmarks.cpu.machine_limits import cache_levels, level_of

    levels = cache_levels()
    out = Console(highlight=False, width=140)
    out.print("clock", ", ".join(f"{g:.2f} GHz" for g in limits.clock_ghz))
    for (name, count), sample in limits.peaks.items():
        out.print(f"peak {name}, {count} threads: {sample.best:.0f} G operations/s")
    flows = sorted({flow for flow, _, _ in limits.bandwidths})
    for count in threads:
        out.print(f"GB/s of {count} threads: {', '.join(flows)}")
        for size in sorted({b for _, _, b in limits.bandwidths}):
            rates = [limits.bandwidths[flow, count, size].best for flow in flows]
            place = level_of(size, count, levels)
            columns = " ".join(f"{rate:8.1f}" for rate in rates)
            out.print(f"{size >> 10:10} KiB {place:5}{columns}")


def plot(figures: list[Figure], limits, threads: int, path: Path) -> None:
    """Operations a second by operations a byte, under the roofs of memory and of multiply-adds."""
    from matplotlib import pyplot

    from benchmarks.cpu.machine_limits import SIZES, cache_levels

    picture, axes = pyplot.subplots(figsize=(9, 6))
    intensities = [2.0 ** (p / 4) for p in range(-20, 44)]
    peak = limits.peak("fp32", threads)
    held = cache_levels()
    shared = {name: size * (1 if name == max(held) else threads) for name, size in held.items()}
    levels = {**{name: size // 2 for name, size in shared.items()}, "DRAM": SIZES[-1]}
    for label, size in levels.items():
        roof = limits.bandwidth("triad", threads, size)
        rates = [min(peak, roof * x) for x in intensities]
        axes.loglog(intensities, rates, label=f"{label}, {roof:.0f} GB/s")
    axes.axhline(peak, linestyle=":", label=f"fp32, {peak:.0f} G/s")
    for group in dict.fromkeys(f.group for f in figures):
        chosen = [f for f in figures if f.group == group and f.operations and f.mode == "turns"]
        places = [f.operations / f.bytes for f in chosen]
        best = [min(f.case.timings["tilewright"].samples_ms) for f in chosen]
        rates = [f.operations / ms * 1e-6 for f, ms in zip(chosen, best, strict=True)]
        axes.scatter(places, rates, s=12, label=group)
    axes.set(xlabel="operations per byte", ylabel="G operations/s", title=f"{threads} threads")
    axes.legend()
    picture.savefig(path.with_stem(f"{path.stem}-{threads}-threads"))


def append_run(path: Path, run: dict[str, object]) -> None:
    """Add a run to those in a file, which is replaced whole."""
    runs = json.loads(path.read_text())["runs"] if path.exists() else []
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_text(json.dumps({"schema": 2, "runs": [*runs, run]}, indent=1) + "\n")
    partial.replace(path)


def _last_run_with_limits(path: Path) -> dict[str, Any]:
    runs = json.loads(path.read_text())["runs"]
    return next(run for run in reversed(runs) if "limits" in run)


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent)
    return done.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("groups", nargs="*", choices=["limits", "costs", "scaling", *GROUPS, []])
    parser.add_argument("--threads", type=int, nargs="+")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--repeats", type=int, default=7, help="fresh processes for each cost")
    parser.add_argument("--quick", action="store_true", help="fewer sizes")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--predict", type=Path, help="results of another machine")
    chosen = parser.parse_args()
    if "scaling" in chosen.groups or not chosen.groups:
        run_scaling(chosen)
        chosen.groups = [group for group in chosen.groups or _ALL if group != "scaling"]
    if not chosen.groups:
        return
    threads = chosen.threads or sorted({1, thread_count()})
    if len(threads) > 1:  # pools have one size in a process
        rest = [a for a in sys.argv[1:] if a not in ("scaling", *_ALL)]
        if "--threads" in rest:
            at = rest.index("--threads")
            del rest[at : at + 1 + len(chosen.threads)]
        rest = [*chosen.groups, *rest]
        for count in threads:
            subprocess.run(
                [sys.executable, "-m", "benchmarks.cpu", *rest, "--threads", str(count)], check=True
            )
        return
    run_once(chosen, threads[0])


def run_scaling(chosen: argparse.Namespace) -> None:
    """Speedups by numbers of threads, each measured in a process of its own."""
    from benchmarks.cpu.machine_limits import machine_state
    from benchmarks.cpu.scaling import counts_to_measure, measure_scaling, show_scaling

    before = machine_state()
    scalings = measure_scaling(chosen.threads or counts_to_measure())
    show_scaling(scalings)
    if chosen.json is not None:
        run = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"), "commit": _commit(),
            "machine": describe_machine(), "versions": versions(),
            "state": {"before": before, "after": machine_state()},
            "scaling": [s.as_json() for s in scalings],
        }  # fmt: skip
        append_run(chosen.json, run)


def run_once(chosen: argparse.Namespace, threads: int) -> None:
    """One run with one number of threads."""
    fix_threads(threads)
    from benchmarks.cpu.costs import COSTS, OF_LAUNCHES, measure_costs, show_costs
    from benchmarks.cpu.machine_limits import cache_levels, machine_state, measure_limits

    groups = chosen.groups
    before, limits = machine_state(), measure_limits((threads,))
    show_limits(limits, [threads])
    wanted = COSTS if "costs" in groups else OF_LAUNCHES
    costs = []
    if "costs" in groups or "limits" in groups:
        costs = measure_costs(wanted, chosen.repeats)
        show_costs(costs)
    figures: list[Figure] = []
    for group in GROUPS:
        if group in groups:
            figures += measure_group(group, limits, threads, chosen.rounds, chosen.quick)
    if chosen.plot is not None:
        plot(figures, limits, threads, chosen.plot)
    other = None if chosen.predict is None else _last_run_with_limits(chosen.predict)
    predictions = predict(figures, other) if other is not None else []
    if other is not None:
        show_predictions(predictions, other)
    if chosen.json is not None:
        run = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"), "commit": _commit(),
            "machine": {**describe_machine(), "caches": cache_levels()}, "threads": thread_counts(),
            "versions": versions(), "state": {"before": before, "after": machine_state()},
            "limits": limits.as_json(), "costs": [c.as_json() for c in costs],
            "figures": [f.as_json() for f in figures],
            "predictions": {"of": other and other["machine"]["cpu"], "figures": predictions},
        }  # fmt: skip
        append_run(chosen.json, run)


if __name__ == "__main__":
    main()
