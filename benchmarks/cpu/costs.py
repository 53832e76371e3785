"""What a launch, a first compile and an import cost: medians over fresh processes.

Each process has an empty cache. A cold compile runs from the first launch of the first kernel of a
process, after imports, to its return; those that the first launch itself makes, of LLVM and of the
back end, are a cost of their own, as `import tilewright` makes none of them. Launches are compared
with `torch.add` in one process.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Cost:
    """A cost with a limit, in `unit`; samples from repeated runs."""

    name: str
    samples: tuple[float, ...]
    limit: float
    unit: str

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def met(self) -> bool:
        return self.median <= self.limit

    def as_json(self) -> dict[str, object]:
        return {"name": self.name, "median": self.median, "limit": self.limit, "unit": self.unit,
                "samples": self.samples, "met": self.met}  # fmt: skip


_EMPTY = """
import time, tilewright, tilewright.language as tl
@tilewright.jit
def empty_kernel(a, b, c, i, j, k, l):
    pass
@tilewright.jit
def working_kernel(a, steps):
    at = a + tl.program_id(0) * 32
    x = tl.load(at)
    for _ in range(steps):  # each waits for the one before it
        x = x * 0.5 + 1.0
    tl.store(at, x)
def best(call, calls, samples=20):
    taken = []
    for _ in range(samples):
        start = time.perf_counter()
        for _ in range(calls): call()
        taken.append((time.perf_counter() - start) / calls * 1e6)
    return min(taken)
"""

_LAUNCH = (
    _EMPTY
    + """
import torch
arrays = [torch.zeros(64) for _ in range(3)]
x, y, out = arrays
ratios = []
for _ in range(5):
    ours = best(lambda: empty_kernel[(1,)](x, y, out, 5, 6, 7, 9), 2000)
    ratios.append(ours / best(lambda: torch.add(x, y, out=out), 2000))
print(sorted(ratios)[2])
"""
)

_WAKE = (
    "import os; os.environ['TILEWRIGHT_CPU_THREADS'] = '2'"
    + _EMPTY
    + """
import numpy as np
x = np.zeros(64, np.float32)
# programs of some 20 us: two on two threads take as long as one, and what it takes to wake one
one, two = (lambda n=n: working_kernel[(n,)](x, 10000) for n in (1, 2))
for _ in range(100): one(), two()
print(best(two, 200) - best(one, 200))
"""
)

# What the call imports is known from the process before, whose time does not count. As a launch
# does, it imports while collection is paused: what it makes then is kept.
_COLD = """
import sys, time, numpy as np, tilewright
from importlib import import_module
from pathlib import Path
from tilewright.support import collection_paused
elementwise, softmax, matmul = (
    import_module("tilewright.kernels." + name) for name in ("elementwise", "softmax", "matmul")
)
x = np.ones((128, 128), np.float32); y = np.empty_like(x)
listed = Path(__file__).with_suffix(".modules")
start = time.perf_counter()
with collection_paused():
    for name in listed.read_text().split() if listed.exists() else ():
        import_module(name)
imported = time.perf_counter()
{call}
end = time.perf_counter()
ours = [name for name in sys.modules if name.split(".")[0] == "tilewright"]
listed.write_text("\\n".join(ours))
print(({end} - {start}) * 1e3)
"""

_MATMUL_CALL = (
    "matmul.matmul_kernel[(1,)](x, x, y, 128, 128, 128, 128, 1, 128, 1, 128, 1, 0.0, "
    "BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=1, "
    "bias_ptr=None, ACTIVATION='', PARTS=1, UNITS=None, WIDE=False, WRAP=False)"
)

_IMPORT = """
import time, numpy, {before}
start = time.perf_counter()
{imported}
print((time.perf_counter() - start) * 1e3)
"""
_ADD, _ADD_CALL = "tilewright.kernels.elementwise", "elementwise.add(x, x, y)"


def _cold(call: str) -> str:
    return _COLD.format(call=call, start="imported", end="end")


COSTS = (
    ("launch, 7 arguments, of torch.add", _LAUNCH, 1.0, "x"),
    ("waking a second thread", _WAKE, 3.0, "us"),
    ("cold compile, add", _cold(_ADD_CALL), 30.0, "ms"),
    ("cold compile, softmax", _cold("softmax.softmax(x, y)"), 35.0, "ms"),
    ("cold compile, matmul 128x128x64", _cold(_MATMUL_CALL), 50.0, "ms"),
    ("import tilewright", _IMPORT.format(before="sys", imported="import tilewright"), 150.0, "ms"),
    (
        "import a module of kernels",
        _IMPORT.format(before="sys", imported=f"import {_ADD}"),
        150.0,
        "ms",
    ),
    (
        "what a first launch imports",
        _COLD.format(call=_ADD_CALL, start="start", end="imported"),
        75.0,
        "ms",
    ),
)


OF_LAUNCHES = COSTS[:2]


def measure_costs(wanted: Sequence[tuple[str, str, float, str]], repeats: int) -> list[Cost]:
    """Each cost in fresh processes; the kernels are in files, so that their source is found."""
    costs: list[Cost] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, script, limit, unit in wanted:
            path = Path(folder) / "cost.py"
            path.with_suffix(".modules").unlink(missing_ok=True)
            path.write_text(script)
            _fresh_process(path, Path(folder), -1)  # writes the bytecode of what is imported
            samples = tuple(_fresh_process(path, Path(folder), i) for i in range(repeats))
            costs.append(Cost(name, samples, limit, unit))
    return costs


def _fresh_process(script: Path, folder: Path, number: int) -> float:
    cache = folder / f"cache-{script.stat().st_mtime_ns}-{number}"
    environment = {**os.environ, "TILEWRIGHT_CACHE_DIR": str(cache)}
    # modules that are compiled anew in each process are no user's case
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def show_costs(costs: list[Cost]) -> None:
    table = Table(title="Costs (median of fresh processes)")
    for name in ("cost", "median", "limit", "met"):
        table.add_column(name, justify="left" if name == "cost" else "right")
    for cost in costs:
        table.add_row(
            cost.name, f"{cost.median:.2f} {cost.unit}", f"{cost.limit:.0f} {cost.unit}",
            "yes" if cost.met else "[red]no",
        )  # fmt: skip
    Console().print(table)
