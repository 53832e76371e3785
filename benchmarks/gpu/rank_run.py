"""A rank of the benchmark of kernels over several devices: its results, checks and times."""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "distributed"))

KB, MB = 1 << 10, 1 << 20
WAIT_SECONDS = 10.0
CALLS = 20
"""Calls in a graph."""

_CAPTURES = threading.Lock()
"""Threads capture one after the other."""

Call = Callable[[], object]


class Run:
    """A rank: its group, device, options, and rows of results."""

    def __init__(self, group: Any, device: str, options: argparse.Namespace) -> None:
        self.group, self.device, self.options = group, device, options
        self.rank, self.world = group.rank, group.size
        self.on_gpu = device != "cpu"
        self.has_nccl = not options.threads
        self.rows: list[dict[str, object]] = []

    def agreed(self, value: float) -> list[float]:
        """A number of each rank."""
        return [float(text) for text in self.group.exchange(repr(float(value)))]

    def report(
        self, case: str, contestant: str, value: object, unit: str, ratio: object = ""
    ) -> None:
        """Keep a row, and let rank 0 print it."""
        if self.rank:
            return
        row = {"case": case, "contestant": contestant, "value": value, "unit": unit, "ratio": ratio}
        self.rows.append(row)
        shown = f"{value:.1f}" if isinstance(value, float) else value
        ratio = f"{ratio:.3f}" if isinstance(ratio, float) else ratio
        print(f"{case:38} {contestant:22} {shown:>10} {unit:6} {ratio}", flush=True)

    def together(self, call: Call) -> Any:
        """The result of a call whose kernels wait for peers.

        Ranks that are threads share CUDA's locks: an allocation waits for kernels that run, so all
        have allocated before the first one launches, and all launch before one allocates again."""
        if self.options.threads:
            self.group.exchange("")
        result = call()
        if self.options.threads:
            self.group.exchange("")
        return result

    def synchronize(self) -> None:
        """Wait for this rank's device."""
        if self.on_gpu:
            torch().cuda.synchronize(self.device)


def torch() -> Any:
    """The module, which only a run imports."""
    import torch

    return torch


def example(module: str) -> Any:
    """A module of examples/distributed."""
    return import_module(module)


def noise(run: Run, seed: int, shape: tuple[int, ...], dtype: Any) -> Any:
    """Random numbers, equal on all ranks for one seed."""
    t = torch()
    source = t.Generator(run.device).manual_seed(seed)
    return t.randn(shape, generator=source, device=run.device).to(dtype)


def difference(found: Any, exact: Any, tolerance: float) -> float:
    """The largest difference, as a multiple of the tolerance; relative above 1."""
    if not found.numel():
        return 0.0
    wrong = ((found.float() - exact).abs() / exact.abs().clamp(min=1)).max().item() / tolerance
    return wrong if wrong == wrong else float("inf")


def captured(run: Run, call: Call) -> Any:
    """A CUDA graph of a call, which has run before."""
    t = torch()
    call()
    run.synchronize()
    run.group.exchange("")
    graph = t.cuda.CUDAGraph()
    # A stream of its own: torch's default one belongs to the device that captured first.
    stream = t.cuda.Stream(run.device)
    with _CAPTURES, t.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        call()
    run.synchronize()
    run.group.exchange("")
    return graph


def timed(run: Run, contestants: dict[str, Call], calls: int = CALLS) -> dict[str, float]:
    """Microseconds of a call: the median of rounds in random order, on the slower rank."""
    t = torch()
    graphs = {
        name: captured(run, lambda call=call: [call() for _ in range(calls)])
        for name, call in contestants.items()
    }
    events = [t.cuda.Event(enable_timing=True) for _ in range(2)]
    chance, samples = random.Random(1), {name: list[float]() for name in graphs}
    for _ in range(run.options.rounds):
        names = list(graphs)
        chance.shuffle(names)
        for name in names:
            graphs[name].replay()  # both ranks start the next one together
            events[0].record()
            graphs[name].replay()
            events[1].record()
            run.synchronize()
            samples[name].append(1e3 * events[0].elapsed_time(events[1]) / calls)
    return {name: max(run.agreed(statistics.median(times))) for name, times in samples.items()}


def show(run: Run, case: str, times: dict[str, float], baseline: str) -> None:
    """Report times, and their ratios to the baseline's."""
    for name, value in times.items():
        run.report(case, name, value, "us", value / times[baseline] if baseline in times else "")
