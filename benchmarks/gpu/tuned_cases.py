"""Runs the cases of `matmul.py` and `attention.py`: checks, tuning, bursts, report.

Every configuration is compared with float64 first; the fastest of each contestant, by three
shuffled rounds, is measured. All contestants are sampled in every round, in an order shuffled anew,
in bursts of several milliseconds: the chip is limited by its power, and what runs after a slow
kernel runs at a higher clock. A ratio is taken within rounds.

Where a call is short, the time of the host would count: then several calls of each contestant are
captured in a CUDA graph, and the graph is replayed; "launches" in the parameters says so.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from benchmarks.checks import Check, relative_error
from benchmarks.event_clock import EventClock
from benchmarks.harness import Case, Timing, Work, interleave, print_table, write_results

Config = Mapping[str, int]
Call = Callable[[], object]

TUNING_BURST_MS = 3.0
TUNING_ROUNDS = 3
QUEUED_FROM_MS = 0.5
"""The host issues a call in at most a twentieth of this, so that the device never waits for it."""

GRAPH_MS = 1.0
DRY_DIVISOR = 64


@dataclass(frozen=True)
class Contestant:
    """One way to compute a product.

    candidates: by configuration, of which the fastest is measured; out: what each of them writes,
    or nothing, where they return it;
    error: of the norm of the difference from `reference`, over its norm
    """

    name: str
    candidates: Mapping[str, Call]
    out: Sequence[Any]
    reference: Sequence[Any]
    error: float


@dataclass(frozen=True)
class Sides:
    """Kernels by compiler, then by name."""

    kernels: Mapping[str, Mapping[str, Any]]
    device: str

    def twins(
        self, name: str, kernel: str, configs: Sequence[Config],
        call: Callable[[Any, Config], Call], **rest: Any,
    ) -> Iterator[Contestant]:  # fmt: skip
        """A contestant for each compiler; call(kernel, config) makes the launch."""
        for side, kernels in self.kernels.items():
            candidates = {label(c): call(kernels[kernel], c) for c in configs}
            yield Contestant(side + name, candidates, **rest)


def label(config: Config) -> str:
    """Such as 128x256x64 g8 w8 s4."""
    tile = "x".join(
        str(config[axis]) for axis in ("BLOCK_M", "BLOCK_N", "BLOCK_K") if axis in config
    )
    group = f" g{config['GROUP_M']}" if "GROUP_M" in config else ""
    return f"{tile}{group} w{config['num_warps']} s{config['num_stages']}"


class Measured(Protocol):
    """A case: who takes part, and what is wanted of them.

    goals: least speed over the baseline's, by contestant; shares: least speed of one contestant
    over another's; facts: what its compilations depend on beside kernel and configuration
    """

    @property
    def name(self) -> str: ...
    @property
    def facts(self) -> str: ...
    @property
    def flops(self) -> float: ...
    @property
    def bytes_moved(self) -> float: ...
    @property
    def baseline(self) -> str: ...
    @property
    def goals(self) -> Mapping[str, float]: ...
    @property
    def shares(self) -> Mapping[tuple[str, str], float]: ...
    def smaller(self, divisor: int) -> Measured: ...
    def contestants(self, sides: Sides) -> Iterator[Contestant]: ...


@dataclass(frozen=True)
class Suite:
    """A program: its module, its cases, and its kernels by the compiler.

    summary: further goals, over all cases
    """

    title: str
    program: str
    cases: Sequence[Measured]
    kernels_of: Callable[[str], Mapping[str, Any]]
    burst_ms: float = 6.0
    summary: Callable[[Mapping[str, Case]], list[Check]] = lambda found: []


def estimated_ms(case: Measured) -> float:
    """A guess of a call's time, to choose how calls are sent."""
    return 1e3 * max(case.flops / 600e12, case.bytes_moved / 4e12, 3e-6 * math.sqrt(2))


# --- sending calls --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sender:
    """How the calls of a case are sent; calls_in_graph: 0 where each is launched by the host."""

    calls_in_graph: int = 0

    @property
    def name(self) -> str:
        n = self.calls_in_graph
        return f"CUDA graphs of {n} calls" if n else "by the host, queued"

    def prepare(self, call: Call) -> Call:
        """What is timed in place of the call."""
        return captured(call, self.calls_in_graph) if self.calls_in_graph else call

    def of_one_call(self, case: Case) -> Case:
        """The case with times of single calls."""
        n = max(1, self.calls_in_graph)
        timings = {
            name: Timing(name, t.calls_per_sample * n, tuple(ms / n for ms in t.samples_ms))
            for name, t in case.timings.items()
        }
        return replace(case, timings=timings)


def captured(call: Call, count: int) -> Call:
    """The replay of a CUDA graph of so many calls; the call has run before."""
    import torch

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            call()
    return graph.replay


# --- one case -------------------------------------------------------------------------------------


@dataclass
class Bench:
    """Runs cases. clock: None on the CPU, where calls are too slow for graphs."""

    sides: Sides
    rounds: int
    clock: EventClock | None
    burst_ms: float

    def run(self, case: Measured) -> Case:
        """Check every candidate, choose the fastest of each contestant, and measure those.

        A candidate that cannot run or is wrong is left out, and named in the parameters.
        """
        failed: dict[str, str] = {}
        everybody = list(case.contestants(self.sides))
        right = {c.name: dict(_right_ones(c, failed)) for c in everybody}
        if not right.get(case.baseline):
            raise RuntimeError(f"{case.baseline} did not run: {failed}")
        missing = [name for name, candidates in right.items() if not candidates]
        sender = self._sender(case)
        ready = {
            (name, config): sender.prepare(call)
            for name, candidates in right.items() for config, call in candidates.items()
        }  # fmt: skip
        tried = self._tuning(case.name, ready, sender)
        chosen = {
            name: min(candidates, key=lambda config: tried[name, config])
            for name, candidates in right.items() if candidates
        }  # fmt: skip
        measured = interleave(
            {name: ready[name, config] for name, config in chosen.items()}, self.rounds,
            self.burst_ms, name=case.name, baseline=case.baseline, settle_ms=0.0, clock=self.clock,
            goals={name: goal for name, goal in case.goals.items() if name in chosen},
            work=Work(case.flops * 1e-12, "TFLOP"),
            parameters={
                "launches": sender.name, "chosen": chosen, "failed": failed, "missing": missing,
                "tried_ms": {" ".join(key): ms for key, ms in tried.items()},
            },
        )  # fmt: skip
        return sender.of_one_call(measured)

    def _sender(self, case: Measured) -> Sender:
        guess = estimated_ms(case)
        if self.clock is None or guess >= QUEUED_FROM_MS:
            return Sender()
        return Sender(math.ceil(GRAPH_MS / guess))

    def _tuning(
        self, name: str, ready: Mapping[tuple[str, str], Call], sender: Sender
    ) -> dict[tuple[str, str], float]:
        """Milliseconds of a call of each candidate; 0 for those without another to choose."""
        names = [key[0] for key in ready]
        several = {" ".join(k): fn for k, fn in ready.items() if names.count(k[0]) > 1}
        tried = dict.fromkeys(ready, 0.0)
        if several:
            found = sender.of_one_call(interleave(
                several, TUNING_ROUNDS, TUNING_BURST_MS, name=f"{name}, configurations",
                settle_ms=0.0, clock=self.clock,
            ))  # fmt: skip
            tried |= {
                k: found.timings[" ".join(k)].spread.median for k in ready
                if " ".join(k) in several
            }  # fmt: skip
        return tried


def _right_ones(contestant: Contestant, failed: dict[str, str]) -> Iterator[tuple[str, Call]]:
    """The candidates that compute the product; what went wrong with the others."""
    for config, call in contestant.candidates.items():
        key = f"{contestant.name} {config}".rstrip()
        for out in contestant.out:
            out.fill_(float("nan") if out.is_floating_point() else 0x55)
        try:
            found = call()
            errors = [
                relative_error(out, reference)
                for out, reference in zip(
                    contestant.out or found, contestant.reference, strict=True
                )
            ]
        except Exception as problem:
            failed[key] = f"{type(problem).__name__}: {str(problem)[:300]}"
            continue
        if max(errors) <= contestant.error:
            yield config, call
        else:
            failed[key] = f"wrong: error {max(errors):.3g}, limit {contestant.error:g}"


# --- caches filled by many processes --------------------------------------------------------------


def compile_ahead(program: str, pattern: str, jobs: int) -> None:
    """Compile what the cases need in several processes, into the caches on disk."""
    command = [sys.executable, "-m", program, "--case", pattern, "--compile"]
    running = [subprocess.Popen([*command, f"{i}/{jobs}"]) for i in range(jobs)]
    for process in running:
        process.wait()


def compile_share(chosen: Sequence[Measured], share: str, sides: Sides) -> None:
    """Launch one in so many of all candidates, each with small operands of the same facts."""
    import torch

    index, of = (int(part) for part in share.split("/"))
    calls: dict[str, Call] = {}
    for case in chosen:
        calls |= _launches_by_facts(case.smaller(DRY_DIVISOR), sides)
    for call in list(calls.values())[index::of]:
        _quietly(call)
    torch.cuda.synchronize()


def _launches_by_facts(case: Measured, sides: Sides) -> dict[str, Call]:
    """The launches of a case by what tells their compilations apart."""
    return {
        f"{case.facts} {contestant.name} {config}": call
        for contestant in case.contestants(sides)
        for config, call in contestant.candidates.items()
        if config
    }


def _quietly(call: Call) -> None:
    """Errors show up again where the candidate is checked."""
    try:
        call()
    except Exception as problem:
        print(f"  {type(problem).__name__}: {str(problem)[:100]}", file=sys.stderr)


# --- goals ----------------------------------------------------------------------------------------


def checks_of(case: Measured, found: Case) -> Iterator[Check]:
    """The goals of a case."""
    for name, goal in case.goals.items():
        ratio = found.ratios[name].median if name in found.ratios else 0.0
        yield Check(f"{case.name}: {name} / {case.baseline}", ratio, goal)
    for (name, other), goal in case.shares.items():
        yield Check(f"{case.name}: {name} / {other}", speed_over(found, name, other), goal)


def speed_over(case: Case, name: str, other: str) -> float:
    """Median over the rounds of one contestant's speed over another's; 0 if one is missing."""
    if not {name, other} <= case.timings.keys():
        return 0.0
    times = case.timings
    pairs = zip(times[other].samples_ms, times[name].samples_ms, strict=True)
    return statistics.median(b / a for b, a in pairs)


# --- the run --------------------------------------------------------------------------------------


@dataclass
class Report:
    """What was measured so far; written after every case, so that a run cut short leaves it."""

    suite: Suite
    path: Path | None
    cases: dict[str, Case] = field(default_factory=dict[str, Case])
    checks: list[Check] = field(default_factory=list[Check])
    cold: Mapping[str, object] = field(default_factory=dict[str, object])

    def add(self, case: Measured, found: Case) -> None:
        self.cases[case.name] = found
        self.checks += checks_of(case, found)
        print_table([found])
        for key in ("chosen", "failed"):
            print(f"{key}:", json.dumps(found.parameters[key], indent=1))
        sys.stdout.flush()
        self.write()

    def show_checks(self) -> None:
        for c in [*self.checks, *self.suite.summary(self.cases)]:
            sign, verdict = "<=" if c.at_most else ">=", "met" if c.met else "MISSED"
            print(f"{c.name:64} {c.value:7.3f} {sign} {c.limit:.3g} {verdict}")

    def write(self) -> None:
        if self.path is None:
            return
        goals = [
            {"name": c.name, "value": c.value, "limit": c.limit, "at_most": c.at_most,
             "met": c.met} for c in [*self.checks, *self.suite.summary(self.cases)]
        ]  # fmt: skip
        found = list(self.cases.values())
        write_results(self.path, self.suite.title, found, first_launch_ms=self.cold, goals=goals)


def run_cases(chosen: Sequence[Measured], bench: Bench, report: Report, deadline: float) -> None:
    """One after the other until the deadline, by `time.monotonic`."""
    import torch

    for number, case in enumerate(chosen, 1):
        if time.monotonic() > deadline:
            print("no time left for:", ", ".join(c.name for c in chosen[number - 1 :]))
            return
        print(f"[{number}/{len(chosen)}] {case.name}", flush=True)
        start = time.monotonic()
        try:
            report.add(case, bench.run(case))
        except Exception as problem:  # the next case may still succeed
            print(f"{case.name} FAILED: {type(problem).__name__}: {str(problem)[:500]}")
        print(f"{time.monotonic() - start:.1f} s", flush=True)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def options_of(description: str) -> argparse.ArgumentParser:
    """What the programs are told."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--case", default="", metavar="REGEX", help="only cases that it matches")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=math.inf, help="no new case after them")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--jobs", type=int, default=min(12, os.cpu_count() or 1),
                        help="processes that compile ahead; 0: compile as needed")  # fmt: skip
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--dry-run", action="store_true", help="small, on the CPU, no Triton")
    parser.add_argument("--compile", metavar="I/N", help="one of the processes that compile")
    return parser


def run_suite(suite: Suite, options: argparse.Namespace, report: Report) -> None:
    """List the cases that are asked for, or compile ahead and run them, or one process's share."""
    import torch

    deadline = time.monotonic() + options.seconds
    chosen = [case for case in suite.cases if re.search(options.case, case.name)]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return
    torch.backends.cuda.matmul.allow_tf32 = True
    names = ("tilewright",) if options.dry_run else ("tilewright", "triton")
    sides = Sides({name: suite.kernels_of(name) for name in names},
                  "cpu" if options.dry_run else "cuda")  # fmt: skip
    if options.compile:
        compile_share(chosen, options.compile, sides)
        return
    if options.dry_run:
        chosen = [case.smaller(DRY_DIVISOR) for case in chosen]
    elif options.jobs:
        compile_ahead(suite.program, options.case, options.jobs)
        print(f"compiled after {time.monotonic() - deadline + options.seconds:.0f} s", flush=True)
    clock = None if options.dry_run else EventClock()
    run_cases(chosen, Bench(sides, options.rounds, clock, suite.burst_ms), report, deadline)
    report.show_checks()
    report.write()
