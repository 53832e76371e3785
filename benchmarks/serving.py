"""A serving loop under `on_miss="generic"`: what its launches cost while variants are compiled.

    python -m benchmarks.serving [--launches 20000] [--device cpu|cuda]

Only variants without facts are compiled before. The loop launches random sizes; each variant that
they need is compiled by the worker and replaces the one without facts. Times of each launch are the
thread's processor time and wall time; events count compilations, reads of the disk cache and loads
by thread.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import random
import sys
import tempfile
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kernels.served_kernel import scale_rows
from tilewright import settings
from tilewright.aot.misses import LaunchMisses
from tilewright.runtime import JITFunction
from tilewright.support import kernel_hooks

BLOCKS = (16, 64)
SIZES = range(1, 4096)
ROWS = 2
SECONDS = 20.0


class Events:
    """Compilations, reads of the disk cache and loads, by kind and whether this thread did it."""

    def __init__(self) -> None:
        self.me = threading.get_ident()
        self.found: Counter[tuple[str, bool]] = Counter()

    def listen(self, cache_hit: bool, **_: Any) -> None:
        """Note a compilation, or a read."""
        self._note("read" if cache_hit else "compiled")

    def load(self, *_: Any) -> None:
        """Note a load."""
        self._note("loaded")

    def _note(self, kind: str) -> None:
        self.found[kind, threading.get_ident() == self.me] += 1

    def text(self, here: bool) -> str:
        """The counts of this thread, or of the others."""
        kinds = ("compiled", "read", "loaded")
        return ", ".join(f"{self.found[kind, here]} {kind}" for kind in kinds)


def arrays(device: str) -> tuple[Any, Any]:
    """Input and output, which are aligned, with room for misaligned views."""
    shape = (ROWS * 4096 + 4,)
    if device == "cuda":
        torch: Any = importlib.import_module("torch")
        return torch.ones(shape, device="cuda"), torch.zeros(shape, device="cuda")
    return np.ones(shape, np.float32), np.zeros(shape, np.float32)


def launches(count: int, device: str) -> list[tuple[Any, ...]]:
    """The arguments of random launches."""
    chance, (x, out) = random.Random(5), arrays(device)
    views = [(x, out), (x[1:], out[1:])]
    return [
        (*chance.choice(views), chance.choice(SIZES), chance.choice((1, 4096)), 2.0, block)
        for block in (chance.choice(BLOCKS) for _ in range(count))
    ]


def measure(kernel: JITFunction, work: Sequence[tuple[Any, ...]], sync: Callable[[], object]):
    """(processor time, wall time) of each launch in nanoseconds."""
    # arrays, since new objects would cost page faults inside the times
    cpus, walls = (array("q", bytes(8 * len(work))) for _ in range(2))
    end = time.monotonic() + SECONDS
    number = 0
    for number, (x, out, n, stride, factor, block) in enumerate(work):
        cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
        kernel[(ROWS,)](x, out, n, stride, factor, BLOCK=block)
        cpus[number] = time.thread_time_ns() - cpu
        walls[number] = time.perf_counter_ns() - wall
        if number % 256 == 0:
            sync()
            if time.monotonic() > end:
                break
    return np.array([cpus[: number + 1], walls[: number + 1]])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the loop and print a table; the status is 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description="A serving loop under on_miss='generic'.")
    parser.add_argument("--launches", type=int, default=20_000)
    parser.add_argument("--device", default="cpu")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, settings().cache.scope(dir=Path(folder)):
        return run(chosen.launches, chosen.device)


def run(count: int, device: str) -> int:
    """Run the loop on a device."""
    kernel = JITFunction(scale_rows.fn, on_miss="generic")
    work = launches(count, device)
    sync: Callable[[], object] = lambda: None  # noqa: E731
    if device == "cuda":
        torch: Any = importlib.import_module("torch")
        sync = torch.cuda.synchronize
    # one class that the loop rarely has; its variants without facts serve all others
    kernel.precompile(x=work[0][0], out=work[0][1], n=range(3, 4), stride=range(3, 4),
                      factor="fp32", BLOCK=list(BLOCKS))  # fmt: skip
    for block in BLOCKS * 3:
        kernel[(ROWS,)](work[0][0], work[0][1], 3, 3, 2.0, BLOCK=block)
    events = Events()
    kernel_hooks.listener = events.listen
    kernel_hooks.load_start.add(events.load)
    gc.collect()
    gc.freeze()
    times = measure(kernel, work, sync)
    pending = wait(kernel)
    later = measure(kernel, work, sync)
    return report(device, times, later, events, pending)


def wait(kernel: JITFunction) -> int:
    """Wait until the worker has made all variants; the number that it has not."""
    misses, end = kernel.variant_cache.misses, time.monotonic() + 20
    assert isinstance(misses, LaunchMisses)
    while misses.pending and time.monotonic() < end:
        time.sleep(0.05)
    return misses.pending


def report(device: str, times: Any, later: Any, events: Events, pending: int) -> int:
    """Print a table."""
    print(f"serving loop on {device}: {times.shape[1]} launches, on_miss=generic")
    print(f"  events on the launching thread: {events.text(True)}")
    print(f"  events elsewhere: {events.text(False)}; {pending} variants pending")
    print(f"  {'microseconds':<34}{'p50':>8}{'p99':>8}{'p99.9':>8}{'max':>9}")
    missed = any(events.found[kind, True] for kind in ("compiled", "read", "loaded"))
    for title, rows in (("loop", times), ("loop, all variants loaded", later)):
        for column, kind in enumerate(("thread CPU", "wall")):
            values = rows[column] / 1000
            p50, p99, p999 = np.percentile(values, (50, 99, 99.9))
            label = f"{title}: {kind}"
            print(f"  {label:<34}{p50:>8.1f}{p99:>8.1f}{p999:>8.1f}{values.max():>9.1f}")
            if column == 0 and rows is times:
                missed |= bool(p99 > 2 * p50 or values.max() > 1000)
    print(f"  goals (thread CPU: p99 <= 2 x p50, max <= 1000; no event here): "
          f"{'missed' if missed else 'met'}")  # fmt: skip
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
