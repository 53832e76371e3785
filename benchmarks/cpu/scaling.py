"""How the CPU back end scales with threads: measured as far as the machine goes, modelled beyond.

The model is N. Gunther's universal scalability law ("Guerrilla Capacity Planning", 2007):
t threads are t / (1 + c (t - 1) + k t (t - 1)) times as fast as one, c for what is done in order
or shared (the bandwidth of memory above all), k for what threads do for each other.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product

from rich.console import Console

from tilewright.support import thread_count

MODELLED = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Scaling:
    """A kernel's best milliseconds by number of threads, and the law fitted to them."""

    name: str
    milliseconds: Mapping[int, float]
    contention: float
    coherence: float

    def speedup(self, threads: int) -> float:
        """Of so many threads over one, by the law."""
        return threads / (
            1 + self.contention * (threads - 1) + self.coherence * threads * (threads - 1)
        )

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "modelled": {t: self.speedup(t) for t in MODELLED}}


def fitted(name: str, milliseconds: Mapping[int, float]) -> Scaling:
    """The law with the least squares of relative errors, of c and k from 0 up, on a grid."""
    one = milliseconds[1]
    # fewer than three numbers of threads do not tell c from k
    coherences = [0.0, *(10 ** (e / 4) for e in range(-24, -3))] if len(milliseconds) > 2 else [0.0]
    contentions = [0.0, *(10 ** (e / 16) for e in range(-64, 1))]

    def error(law: Scaling) -> float:
        return sum((law.speedup(t) * ms / one - 1) ** 2 for t, ms in milliseconds.items())

    laws = (Scaling(name, milliseconds, c, k) for c, k in product(contentions, coherences))
    return min(laws, key=error)


def counts_to_measure() -> list[int]:
    """Powers of two below the threads of this process, and those."""
    most = thread_count()
    return [*(t for t in MODELLED if t < most), most]


def measure_scaling(counts: Sequence[int]) -> list[Scaling]:
    """Each number of threads in a process of its own, which has one pool."""
    found: dict[str, dict[int, float]] = {}
    for count in counts:
        command = [sys.executable, "-m", "benchmarks.cpu.scaling", str(count)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        for name, milliseconds in json.loads(done.stdout).items():
            found.setdefault(name, {})[count] = milliseconds
    return [fitted(name, times) for name, times in found.items()]


def show_scaling(scalings: Sequence[Scaling]) -> None:
    """Speedups measured and modelled."""
    out = Console(highlight=False, soft_wrap=True)
    for s in scalings:
        one = s.milliseconds[1]
        measured = " ".join(f"{t}: {one / ms:.2f}" for t, ms in s.milliseconds.items())
        model = " ".join(f"{t}: {s.speedup(t):.1f}" for t in MODELLED)
        out.print(f"{s.name:24} {one:8.3f} ms on one thread; times as fast by threads {measured}; "
                  f"law (c {s.contention:.4f}, k {s.coherence:.6f}) {model}")  # fmt: skip


def measured_here(threads: int) -> dict[str, float]:
    """Best milliseconds of kernels that memory, arithmetic, and uneven programs bound."""
    from benchmarks.harness import fix_threads

    fix_threads(threads)
    import torch

    from benchmarks.kernels import memory_kernels as mk
    from tilewright import kernels

    x, y = torch.randn(1 << 24), torch.randn(1 << 24)
    small, a = x[: 1 << 20], torch.randn(1024, 1024)
    out, small_out, product_out = torch.empty_like(x), torch.empty_like(small), torch.empty_like(a)
    cases = {
        "add 2^24 fp32": lambda: kernels.add(x, y, out),
        "gelu 2^20 fp32": lambda: mk.gelu_kernel[(1024,)](small, small_out, 1 << 20, BLOCK=1024),
        "matmul 1024^3 fp32": lambda: kernels.matmul(a, a, out=product_out),
        "uneven programs": lambda: mk.triangle_kernel[(512,)](a, small_out, 1024, BLOCK=1024),
    }
    return {name: _best(call) for name, call in cases.items()}


def _best(call, rounds: int = 15) -> float:
    call()
    taken: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.fmean(sorted(taken)[:3]) * 1e3


if __name__ == "__main__":
    print(json.dumps(measured_here(int(sys.argv[1]))))
