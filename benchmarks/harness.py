"""The harness of all benchmarks: contestants interleaved in one run, ratios with their spread.

A ratio of two separate measurements compares two states of a machine: its clock rate, its caches,
its other users. Here all contestants of a case are sampled in every round, in an order shuffled
anew, and a ratio is taken within a round, so that what slows the machine slows both sides. What is
reported is the median of the rounds' ratios, its 95 % bootstrap interval, and the quartiles.

Between two samples the harness sleeps: the worker threads of a library go on spinning for some
milliseconds after a call and would take cores from the next contestant. Each sample is then
preceded by one untimed call, which wakes the contestant's own workers.

Where other programs take the processor away (a thread that waits in a spinning barrier for another
one that is not running loses a whole time slice, a hundred times what a short call takes), the
round is measured again, up to a limit; the rounds with the fewest preemptions count. How many of
them were still preempted is part of the result.

    fix_threads(2)                               # first, before NumPy or torch compute anything
    case = interleave(
        {"tilewright": ours, "torch": theirs}, baseline="torch",
        name="softmax 4096x1024", work=Work(2 * x.nbytes * 1e-9, "GB"), goals={"tilewright": 1.0},
    )
    print_table([case])
    write_results("cpu.json", "CPU kernels", [case])

`keep_results.py` makes one CSV row per case of such a file, for `benchmarks/results/`.
"""

from __future__ import annotations

import json
import math
import os
import platform
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib import metadata
from pathlib import Path
from types import ModuleType

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tilewright.support import usable_cpus
from tilewright.testing import BenchClock, clock_for, step_bar

try:
    import resource as _resource

    resource: ModuleType | None = _resource
except ModuleNotFoundError:  # Windows
    resource = None

Fn = Callable[[], object]

ROUNDS = 31
MIN_SAMPLE_MS = 20.0
# OpenBLAS's workers spin for 2**26 cycles, which is 26 ms at 2.6 GHz; OpenMP's for less.
SETTLE_MS = 30.0
# Other programs' use of the machine, before this one adds its own; where it can be asked.
LOAD_AT_START = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
# A round disturbed by other programs is measured again until this many times the rounds were
# measured.
MAX_TRIES = 3
# A kernel's own threads take the core a few times a second; another program's thread, which shares
# it in slices of about 4 ms, hundreds of times.
QUIET_PREEMPTIONS_PER_SECOND = 50
MAX_CALLS = 1 << 24
BOOTSTRAP_RESAMPLES = 1000
BOOTSTRAP_SEED = 20210728
RESULTS_SCHEMA = 1
VERSIONED_PACKAGES = ("tilewright", "numpy", "torch", "triton", "llvmlite", "ml_dtypes")
# What the thread pools of the contestants read: ours, OpenMP's, and those of the BLAS libraries.
THREAD_VARIABLES = (
    "TILEWRIGHT_CPU_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


# --- what is measured -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Work:
    """What one call does: `amount` in `unit`, such as GB or GFLOP."""

    amount: float
    unit: str

    def rate(self, ms: float) -> float:
        """Units per second."""
        return self.amount / (ms * 1e-3)


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, quartiles, and the 95 % bootstrap interval of the median."""

    median: float
    q1: float
    q3: float
    low: float
    high: float


@dataclass(frozen=True)
class Timing:
    """The samples of one contestant: milliseconds per call, one sample a round that counts."""

    name: str
    calls_per_sample: int
    samples_ms: tuple[float, ...]

    @cached_property
    def spread(self) -> Spread:
        """Of milliseconds per call."""
        return spread_of(self.samples_ms)


@dataclass(frozen=True)
class Case:
    """One comparison. `goals` holds, for some contestants, the least ratio they should reach."""

    name: str
    baseline: str
    timings: Mapping[str, Timing]
    work: Work | None = None
    goals: Mapping[str, float] = field(default_factory=dict[str, float])
    parameters: Mapping[str, object] = field(default_factory=dict[str, object])
    preempted_rounds: int = 0

    @cached_property
    def ratios(self) -> dict[str, Spread]:
        """Speed of each contestant over the baseline's, taken within rounds; above 1 is faster."""
        base = self.timings[self.baseline].samples_ms
        return {
            name: spread_of([b / t for b, t in zip(base, timing.samples_ms, strict=True)])
            for name, timing in self.timings.items()
            if name != self.baseline
        }

    def met(self, name: str) -> bool | None:
        """Whether a contestant reached its goal; None if it has none."""
        if name not in self.goals:
            return None
        return self.ratios[name].median >= self.goals[name]


def spread_of(samples: Sequence[float]) -> Spread:
    """Summarize samples; the same samples always give the same interval."""
    rng = random.Random(BOOTSTRAP_SEED)
    medians = sorted(
        statistics.median(rng.choices(samples, k=len(samples))) for _ in range(BOOTSTRAP_RESAMPLES)
    )
    tail = round(0.025 * BOOTSTRAP_RESAMPLES)
    q1, median, q3 = (
        statistics.quantiles(samples, n=4, method="inclusive")
        if len(samples) > 1
        else (samples[0],) * 3
    )
    return Spread(median, q1, q3, low=medians[tail], high=medians[-1 - tail])


# --- measuring ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Round:
    """One sample of every contestant, and how often the process was taken off a core meanwhile."""

    samples_ms: Mapping[str, float]
    seconds: float
    preemptions: int

    @property
    def quiet(self) -> bool:
        """Whether this process had its cores about to itself."""
        return self.preemptions <= QUIET_PREEMPTIONS_PER_SECOND * self.seconds


@dataclass(frozen=True, slots=True)
class Sampler:
    """Takes samples: sleep, one untimed call, then `calls` timed ones."""

    clock: BenchClock[object]
    settle_ms: float
    flush_cache: bool

    def round(self, contestants: Mapping[str, Fn], calls: Mapping[str, int]) -> Round:
        """Sample the contestants in the given order."""
        before, start = _preemptions(), time.perf_counter()
        samples = {name: self._sample(fn, calls[name]) for name, fn in contestants.items()}
        return Round(samples, time.perf_counter() - start, _preemptions() - before)

    def _sample(self, fn: Fn, calls: int) -> float:
        time.sleep(self.settle_ms * 1e-3)
        fn()
        if self.flush_cache:
            self.clock.flush_cache()
        return self._span(fn, calls) / calls

    def _span(self, fn: Fn, calls: int) -> float:
        start = self.clock.record()
        for _ in range(calls):
            fn()
        end = self.clock.record()
        self.clock.synchronize()
        return self.clock.elapsed_ms(start, end)

    def calibrate(self, fn: Fn, min_sample_ms: float) -> int:
        """How many calls a sample needs to last `min_sample_ms`, by the fastest of three tries."""
        fn()
        calls = 1
        while (span := min(self._span(fn, calls) for _ in range(3))) < min_sample_ms / 2:
            if calls >= MAX_CALLS:
                return calls
            calls *= 2
        return max(1, math.ceil(calls * min_sample_ms / span)) if span > 0 else calls


def _preemptions() -> int:
    """How often a thread of this process was taken off its core so far; 0 where nobody counts."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw if resource else 0


def interleave(
    contestants: Mapping[str, Fn],
    rounds: int = ROUNDS,
    min_time: float = MIN_SAMPLE_MS,
    *,
    name: str = "case",
    baseline: str | None = None,
    work: Work | None = None,
    goals: Mapping[str, float] | None = None,
    parameters: Mapping[str, object] | None = None,
    seed: int = 0,
    settle_ms: float = SETTLE_MS,
    flush_cache: bool = False,
    device: object = None,
    clock: BenchClock[object] | None = None,
) -> Case:
    """Measure the contestants against each other.

    rounds: samples of each contestant. min_time: milliseconds that a sample lasts at least; short
        functions are called several times in one sample.
    baseline: the contestant that ratios are taken to; the last one if not given.
    flush_cache: time single calls from cold caches, one a sample, whatever min_time says.
    device, clock: as for `tilewright.testing.do_bench`.
    Raises ValueError for fewer than two contestants, no rounds, or a name that nobody has.
    """
    names = list(contestants)
    baseline = names[-1] if baseline is None and names else baseline
    _check_names(names, baseline, goals or {}, rounds)
    calls: dict[str, int] = {}
    used = closing(clock_for(device)) if clock is None else nullcontext(clock)
    with used as chosen, step_bar(name, len(names) + rounds) as start:
        sampler = Sampler(chosen, settle_ms, flush_cache)
        for contestant, fn in contestants.items():
            start(f"calibrating {contestant}")
            calls[contestant] = sampler.calibrate(fn, 0.0 if flush_cache else min_time)
        kept = _measure_rounds(sampler, contestants, calls, rounds, random.Random(seed), start)
    return Case(
        name=name,
        baseline=str(baseline),
        timings={c: Timing(c, calls[c], tuple(r.samples_ms[c] for r in kept)) for c in names},
        work=work,
        goals=dict(goals or {}),
        parameters=dict(parameters or {}),
        preempted_rounds=sum(not r.quiet for r in kept),
    )


def _measure_rounds(
    sampler: Sampler,
    contestants: Mapping[str, Fn],
    calls: Mapping[str, int],
    rounds: int,
    rng: random.Random,
    start: Callable[[str], None],
) -> list[Round]:
    """As many undisturbed rounds as asked for, or the least disturbed ones of a limited number."""
    measured: list[Round] = []
    quiet = 0
    while quiet < rounds and len(measured) < MAX_TRIES * rounds:
        if len(measured) < rounds:
            start("measuring")
        order = rng.sample(list(contestants), len(contestants))
        measured.append(sampler.round({name: contestants[name] for name in order}, calls))
        quiet += measured[-1].quiet
    return sorted(measured, key=lambda one: (not one.quiet, one.preemptions))[:rounds]


def _check_names(
    names: Sequence[str], baseline: str | None, goals: Mapping[str, float], rounds: int
) -> None:
    if len(names) < 2 or rounds < 1:
        raise ValueError(
            f"a comparison needs two contestants and a round, not {len(names)} and {rounds}"
        )
    unknown = {str(baseline), *goals} - set(names)
    if unknown or baseline in goals:
        raise ValueError(
            f"contestants are {', '.join(names)}; unknown: {', '.join(sorted(unknown)) or 'none'};"
            f" the baseline {baseline!r} cannot have a goal"
        )


# --- threads --------------------------------------------------------------------------------------


def fix_threads(count: int) -> None:
    """Give every contestant `count` threads. Call this first.

    Libraries read their thread count when they are loaded, so where a variable differs the process
    starts itself again with the right ones.
    """
    wanted = dict.fromkeys(THREAD_VARIABLES, str(count))
    if any(os.environ.get(variable) != value for variable, value in wanted.items()):
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(sys.executable, sys.orig_argv, os.environ | wanted)
    try:
        import torch
    except ModuleNotFoundError:
        return
    torch.set_num_threads(count)


@contextmanager
def threads_apart(tasks: Path = Path("/proc/self/task")) -> Iterator[None]:
    """Meanwhile this thread has a CPU, and all others that there are have the rest, on Linux.

    After a pause a kernel may wake a library's thread on the CPU of its caller though others are
    idle: they take turns of some milliseconds then, which measures the kernel, not the library.
    """
    cpus = usable_cpus()
    if len(cpus) < 2 or not tasks.exists():
        yield
        return
    threads = [int(task.name) for task in tasks.iterdir()]
    before = {thread: os.sched_getaffinity(thread) for thread in threads}
    own = threading.get_native_id()
    wanted = {thread: cpus[:1] if thread == own else cpus[1:] for thread in threads}
    try:
        _allow(wanted)
        yield
    finally:
        _allow(before)


def _allow(cpus: Mapping[int, Sequence[int] | set[int]]) -> None:
    """Of threads; some may have ended."""
    for thread, allowed in cpus.items():
        with suppress(ProcessLookupError):
            os.sched_setaffinity(thread, allowed)


def thread_counts() -> dict[str, int | None]:
    """What each pool was told; None where nothing was fixed."""
    counts: dict[str, int | None] = {}
    for variable in THREAD_VARIABLES:
        text = os.environ.get(variable, "")
        counts[variable] = int(text) if text.isdigit() else None
    torch = sys.modules.get("torch")
    counts["torch"] = torch.get_num_threads() if torch is not None else None
    return counts


# --- the machine and the versions -----------------------------------------------------------------


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name, from Linux's list, macOS's sysctl, or what Python knows."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in {"model name", "Model", "cpu model"} and value.strip():
            return value.strip()
    if sys.platform == "darwin":
        return _output_of("sysctl", "-n", "machdep.cpu.brand_string") or platform.machine()
    return platform.processor() or platform.machine()


def describe_machine() -> dict[str, object]:
    """Where the numbers come from."""
    return {
        "cpu": cpu_model(),
        "architecture": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "usable_cores": len(usable_cpus()),
        "gpu": _gpu_name(),
        "load_at_start": LOAD_AT_START,
    }


def versions() -> dict[str, str | None]:
    """Python's version and those of the packages that take part; None for what is not installed."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in VERSIONED_PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    torch = sys.modules.get("torch")
    return found if torch is None else {**found, "cuda": torch.version.cuda}


def _gpu_name() -> str | None:
    torch = sys.modules.get("torch")
    if torch is None or not (torch.cuda.is_available() and torch.cuda.is_initialized()):
        return None
    return torch.cuda.get_device_name()


def _output_of(*command: str) -> str | None:
    folder = Path(__file__).resolve().parent
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


# --- results --------------------------------------------------------------------------------------


def print_table(cases: Sequence[Case], title: str = "", console: Console | None = None) -> None:
    """A row for each contestant; ratios with their interval, and whether goals were met."""
    console = console or Console()
    table = Table("case", title=title or None, box=box.SIMPLE_HEAD)
    for heading in ("ms", "rate", "ratio", "95 %", "goal"):
        table.add_column(heading, justify="right", no_wrap=True)
    for case in cases:
        table.add_row(Text(case.name, style="bold"))
        for name in case.timings:
            table.add_row(Text(f"  {name}"), *_cells(case, name))
    console.print(table)
    disturbed = [case for case in cases if case.preempted_rounds]
    if disturbed:
        console.print(
            f"Other programs took the processor away in {len(disturbed)} of {len(cases)} cases;"
            " their figures are not those of a quiet machine:"
        )
    for case in disturbed:
        rounds = len(case.timings[case.baseline].samples_ms)
        console.print(f"  {case.name}: {case.preempted_rounds} of {rounds} rounds", markup=False)


def _cells(case: Case, name: str) -> tuple[str, str, str, str, str]:
    ms = case.timings[name].spread.median
    rate = f"{case.work.rate(ms):.1f} {case.work.unit}/s" if case.work else ""
    if name == case.baseline:
        return f"{ms:.4g}", rate, "1", "", ""
    ratio = case.ratios[name]
    met = case.met(name)
    goal = "" if met is None else f"{case.goals[name]:g} {'met' if met else 'MISSED'}"
    return f"{ms:.4g}", rate, f"{ratio.median:.3f}", f"{ratio.low:.2f}-{ratio.high:.2f}", goal


def as_json(case: Case) -> dict[str, object]:
    """A case as plain data."""
    return {
        "name": case.name,
        "parameters": dict(case.parameters),
        "baseline": case.baseline,
        "rounds": len(case.timings[case.baseline].samples_ms),
        "preempted_rounds": case.preempted_rounds,
        "work": None if case.work is None else {"amount": case.work.amount, "unit": case.work.unit},
        "contestants": {name: _contestant_json(case, name) for name in case.timings},
    }


def _contestant_json(case: Case, name: str) -> dict[str, object]:
    timing = case.timings[name]
    entry: dict[str, object] = {
        "ms": _spread_json(timing.spread) | {"best": min(timing.samples_ms)},
        "calls_per_sample": timing.calls_per_sample,
    }
    if case.work is not None:
        entry["rate_per_s"] = case.work.rate(timing.spread.median)
    if name != case.baseline:
        entry["ratio"] = _spread_json(case.ratios[name])
    if name in case.goals:
        entry |= {"goal": case.goals[name], "met": case.met(name)}
    return entry


def _spread_json(spread: Spread) -> dict[str, float]:
    return {
        "median": spread.median,
        "q1": spread.q1,
        "q3": spread.q3,
        "low95": spread.low,
        "high95": spread.high,
    }


def write_results(path: str | Path, title: str, cases: Sequence[Case], **more: object) -> None:
    """Write cases and what more there is, as `write_record`."""
    write_record(path, title, cases=[as_json(case) for case in cases], **more)


def write_record(path: str | Path, title: str, **body: object) -> None:
    """Write results, machine, versions and date as JSON, whole or not at all."""
    record = {
        "schema": RESULTS_SCHEMA,
        "title": title,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _output_of("git", "describe", "--always", "--dirty"),
        "machine": describe_machine(),
        "threads": thread_counts(),
        "versions": versions(),
        **body,
    }
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    partial.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    partial.replace(target)
