"""The CPU backend beside torch and NumPy: bandwidth, products, launch, compile and import time.

    python benchmarks/cpu.py [--threads N] [--rounds N] [--json benchmarks/results/cpu.json]

Kernels are compared interleaved on the same threads, both sides writing into arrays that exist.
The costs of compiling and importing are medians over fresh processes with an empty cache; a cold
compile runs from the first launch of the first kernel of a process, after imports, to its return.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness import Case, Work, fix_threads, interleave, print_table, write_results
from rich.console import Console
from rich.table import Table

SOFTMAX_COLUMNS = (256, 781, 1024, 4096)
MATMUL_SIZES = (1024, 1000)


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


def kernel_cases(rounds: int) -> list[Case]:
    """Every comparison of the speed of kernels."""
    import numpy as np
    import torch

    from tilewright import kernels

    rng = np.random.default_rng()

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    cases: list[Case] = []
    x, y, out = normal(1 << 24), normal(1 << 24), np.empty(1 << 24, np.float32)
    tx, ty, t_out = map(torch.from_numpy, (x, y, np.empty_like(out)))
    cases.append(interleave(
        {"tilewright": lambda: kernels.add(x, y, out),
         "torch": lambda: torch.add(tx, ty, out=t_out),
         "numpy": lambda: np.add(x, y, out=t_out.numpy())},
        baseline="torch", name="add 2^24 fp32", work=Work(3 * x.nbytes * 1e-9, "GB"),
        goals={"tilewright": 0.9}, rounds=rounds,
    ))  # fmt: skip
    assert np.array_equal(out, x + y)
    for columns in SOFTMAX_COLUMNS:
        cases.append(_softmax_case(normal(4096, columns), rounds))
    m, m_out = normal(4096, 4096), np.empty((4096, 4096), np.float32)
    tm, tm_out = torch.from_numpy(m), torch.empty(4096, 4096)
    cases.append(interleave(
        {"tilewright": lambda: kernels.transpose(m, m_out),
         "torch": lambda: tm_out.copy_(tm.t()),
         "torch, new array": lambda: tm.t().contiguous()},
        baseline="torch", name="transpose 4096^2 fp32", work=Work(2 * m.nbytes * 1e-9, "GB"),
        goals={"tilewright": 2.0}, rounds=rounds,
    ))  # fmt: skip
    assert np.array_equal(m_out, m.T)
    for size in MATMUL_SIZES:
        cases.append(_matmul_case(normal(size, size), normal(size, size), rounds))
    return cases


def _softmax_case(x, rounds: int) -> Case:
    import numpy as np
    import torch

    from tilewright import kernels

    out, tx = np.full_like(x, np.nan), torch.from_numpy(x)
    t_out = torch.empty_like(tx)
    case = interleave(
        {"tilewright": lambda: kernels.softmax(x, out),
         "torch": lambda: torch.softmax(tx, -1, out=t_out)},
        baseline="torch", name=f"softmax 4096x{x.shape[1]} fp32",
        work=Work(2 * x.nbytes * 1e-9, "GB"), goals={"tilewright": 1.0}, rounds=rounds,
    )  # fmt: skip
    reference = torch.softmax(tx.double(), -1).numpy()
    assert np.allclose(out, reference, rtol=1e-5, atol=0)
    return case


def _matmul_case(a, b, rounds: int) -> Case:
    import numpy as np
    import torch

    from tilewright import kernels

    size = a.shape[0]
    out, ta, tb = np.full_like(a, np.nan), torch.from_numpy(a), torch.from_numpy(b)
    t_out = torch.empty(size, size)
    case = interleave(
        {"tilewright": lambda: kernels.matmul(a, b, out=out),
         "torch": lambda: torch.mm(ta, tb, out=t_out),
         "numpy": lambda: np.matmul(a, b, out=t_out.numpy())},
        baseline="torch", name=f"matmul {size}^3 fp32", work=Work(2 * size**3 * 1e-9, "GFLOP"),
        goals={"tilewright": 0.6}, rounds=rounds,
    )  # fmt: skip
    assert np.allclose(out, a.astype(np.float64) @ b, atol=1e-3)
    return case


_LAUNCH = """
import time, numpy as np, tilewright
from tilewright.kernels import elementwise
@tilewright.jit
def empty_kernel(a, b, c, i, j, k, l):
    pass
arrays = [np.zeros(64, np.float32) for _ in range(3)]
for _ in range(2000): empty_kernel[(1,)](*arrays, 5, 6, 7, 9)
best = []
for _ in range(20):
    start = time.perf_counter()
    for _ in range(1000): empty_kernel[(1,)](*arrays, 5, 6, 7, 9)
    best.append((time.perf_counter() - start) * 1e3)
print(sorted(best)[10])
"""

_COLD = """
import time, numpy as np, tilewright
from importlib import import_module
elementwise, softmax, matmul = (
    import_module("tilewright.kernels." + name) for name in ("elementwise", "softmax", "matmul")
)
x = np.ones((128, 128), np.float32); y = np.empty_like(x)
start = time.perf_counter()
{call}
print((time.perf_counter() - start) * 1e3)
"""

_MATMUL_CALL = (
    "matmul.matmul_kernel[(1,)](x, x, y, 128, 128, 128, 128, 1, 128, 1, 128, 1, 0.0, "
    "BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=1, "
    "bias_ptr=None, ACTIVATION='', PARTS=1, UNITS=None, WIDE=False, WRAP=False)"
)

_IMPORT = """
import time
start = time.perf_counter()
import tilewright
print((time.perf_counter() - start) * 1e3)
"""

COSTS = (
    ("launch, 7 arguments", _LAUNCH, 20.0, "us"),
    ("cold compile, add", _COLD.format(call="elementwise.add(x, x, y)"), 60.0, "ms"),
    ("cold compile, softmax", _COLD.format(call="softmax.softmax(x, y)"), 120.0, "ms"),
    ("cold compile, matmul 128x128x64", _COLD.format(call=_MATMUL_CALL), 400.0, "ms"),
    ("import tilewright", _IMPORT, 150.0, "ms"),
)


def measure_costs(repeats: int) -> list[Cost]:
    """Each cost in fresh processes; the kernels are in files, so that their source is found."""
    costs: list[Cost] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, script, limit, unit in COSTS:
            path = Path(folder) / "cost.py"
            path.write_text(script)
            samples = tuple(_fresh_process(path, Path(folder), i) for i in range(repeats))
            costs.append(Cost(name, samples, limit, unit))
    return costs


def _fresh_process(script: Path, folder: Path, number: int) -> float:
    cache = folder / f"cache-{script.stat().st_mtime_ns}-{number}"
    environment = {**os.environ, "TILEWRIGHT_CACHE_DIR": str(cache)}
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
            cost.name, f"{cost.median:.1f} {cost.unit}", f"{cost.limit:.0f} {cost.unit}",
            "yes" if cost.met else "[red]no",
        )  # fmt: skip
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--repeats", type=int, default=7, help="fresh processes for each cost")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    fix_threads(chosen.threads)
    costs = measure_costs(chosen.repeats)
    show_costs(costs)
    cases = kernel_cases(chosen.rounds)
    print_table(cases)
    if chosen.json is not None:
        write_results(chosen.json, "CPU backend", cases)
        merged = json.loads(chosen.json.read_text())
        merged["costs"] = [
            {"name": c.name, "median": c.median, "limit": c.limit, "unit": c.unit,
             "samples": c.samples, "met": c.met} for c in costs
        ]  # fmt: skip
        chosen.json.write_text(json.dumps(merged, indent=2) + "\n")


if __name__ == "__main__":
    main()
