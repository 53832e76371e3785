"""`tilewright demo`: compile the announcement's kernels for this machine, check and time them.

Each kernel runs on random data, compared with NumPy and, where it is installed, torch; all write
to existing arrays. The reference is computed in float64.
"""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from tilewright import kernels
from tilewright.support.data_class import dataclass
from tilewright.testing import BenchClock, clock_for, do_bench, relative_error, step_bar
from tilewright.tools.command_failure import CommandFailed
from tilewright.tools.command_output import check_writable

Array = np.ndarray[Any, np.dtype[np.float32]]
Call = Callable[[], object]

_BACKEND = "cpu"
"""The backend of kernels on NumPy arrays, whatever other devices the machine has."""

_TOLERANCE = 1e-5
"""Largest relative error of an fp32 result; matmuls of depth 1024 reach about 1e-6."""


@dataclass(frozen=True)
class Case:
    """A row of the demonstration: the kernel, its peer and the reference."""

    kernel: str
    shape: str
    ours: Call
    out: Array
    reference: Callable[[], np.ndarray[Any, np.dtype[np.float64]]]
    peers: dict[str, Call]
    work: float
    unit: str


@dataclass(frozen=True)
class Row:
    """A measured line. rate and peer_rate in `unit`; ratio of ours to the peer's."""

    kernel: str
    shape: str
    backend: str
    error: float
    rate: float
    unit: str
    peer: str
    peer_rate: float
    ratio: float
    correct: bool


def _torch_calls(call: Callable[[Any], Call]) -> dict[str, Call]:
    """The peer `torch`, if it is installed."""
    if find_spec("torch") is None:
        return {}
    return {"torch": call(importlib.import_module("torch"))}


def _add_case(rng: np.random.Generator) -> Case:
    x, y = rng.standard_normal((2, 1 << 24), dtype=np.float32)
    # Initially NaN: an element that the kernel never writes is an error.
    out, spare = np.full_like(x, np.nan), np.empty_like(x)

    def torch_call(torch: Any) -> Call:
        a, b, c = map(torch.from_numpy, (x, y, spare))
        return lambda: torch.add(a, b, out=c)

    peers: dict[str, Call] = {"numpy": lambda: np.add(x, y, out=spare), **_torch_calls(torch_call)}
    return Case(
        "vector add", "16777216", lambda: kernels.add(x, y, out), out,
        lambda: x.astype(np.float64) + y, peers, 3 * x.nbytes * 1e-9, "GB/s",
    )  # fmt: skip


def _softmax_case(rng: np.random.Generator) -> Case:
    x = rng.standard_normal((4096, 1024), dtype=np.float32)
    out, spare = np.full_like(x, np.nan), np.empty_like(x)

    def reference() -> np.ndarray[Any, np.dtype[np.float64]]:
        e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def numpy_call() -> object:
        np.subtract(x, x.max(axis=1, keepdims=True), out=spare)
        np.exp(spare, out=spare)
        return np.divide(spare, spare.sum(axis=1, keepdims=True), out=spare)

    def torch_call(torch: Any) -> Call:
        a, b = torch.from_numpy(x), torch.from_numpy(spare)
        return lambda: torch.softmax(a, -1, out=b)

    peers: dict[str, Call] = {"numpy": numpy_call, **_torch_calls(torch_call)}
    return Case(
        "fused softmax", "4096x1024", lambda: kernels.softmax(x, out), out,
        reference, peers, 2 * x.nbytes * 1e-9, "GB/s",
    )  # fmt: skip


def _matmul_case(rng: np.random.Generator) -> Case:
    a, b = rng.standard_normal((2, 1024, 1024), dtype=np.float32)
    out, spare, slope = np.full_like(a, np.nan), np.empty_like(a), 0.01

    def reference() -> np.ndarray[Any, np.dtype[np.float64]]:
        c: np.ndarray[Any, np.dtype[np.float64]] = np.matmul(a, b, dtype=np.float64)
        return np.where(c >= 0, c, slope * c)

    def numpy_call() -> object:
        np.matmul(a, b, out=spare)
        return np.multiply(spare, slope, out=spare, where=spare < 0)

    def torch_call(torch: Any) -> Call:
        x, y, z = map(torch.from_numpy, (a, b, spare))

        def run() -> object:
            torch.mm(x, y, out=z)
            return torch.nn.functional.leaky_relu_(z, slope)

        return run

    peers: dict[str, Call] = {"numpy": numpy_call, **_torch_calls(torch_call)}
    return Case(
        "matmul+leaky ReLU", "1024^3", lambda: kernels.matmul(a, b, slope, out), out,
        # A multiplication and an addition for each of n^3 products.
        reference, peers, 2 * 1024**3 * 1e-9, "GFLOP/s",
    )  # fmt: skip


def _transpose_case(rng: np.random.Generator) -> Case:
    x = rng.standard_normal((4096, 4096), dtype=np.float32)
    out, spare = np.full_like(x, np.nan), np.empty_like(x)

    def torch_call(torch: Any) -> Call:
        a, b = torch.from_numpy(x), torch.from_numpy(spare)
        return lambda: b.copy_(a.t())

    peers: dict[str, Call] = {"numpy": lambda: np.copyto(spare, x.T), **_torch_calls(torch_call)}
    return Case(
        "transpose", "4096x4096", lambda: kernels.transpose(x, out), out,
        lambda: x.T.astype(np.float64), peers, 2 * x.nbytes * 1e-9, "GB/s",
    )  # fmt: skip


CASES = (_add_case, _softmax_case, _matmul_case, _transpose_case)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the table as JSON")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="also write bar charts as PNG")


def run(chosen: argparse.Namespace) -> int:
    """Run the command: exit status 1 if a result is wrong, or if anything fails."""
    if chosen.plot is not None and find_spec("matplotlib") is None:
        raise CommandFailed("--plot needs matplotlib: pip install 'tilewright[plot]'")
    if chosen.json is not None:
        check_writable(chosen.json)
    rows = measure_all(CASES)
    Console().print(table_of(rows))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    if chosen.plot is not None:
        plot(rows, chosen.plot)
    return 0 if all(row.correct for row in rows) else 1


def measure_all(makers: Sequence[Callable[[np.random.Generator], Case]]) -> list[Row]:
    """Measure every case, on random data that differs from run to run."""
    rng = np.random.default_rng()
    rows: list[Row] = []
    # one clock: creating the buffer that flushes a large server's caches takes long
    clock = clock_for(_BACKEND)
    with step_bar("demo", len(makers)) as start, closing(clock):
        for make in makers:
            case = make(rng)
            start(case.kernel)
            rows.append(measure(case, clock))
    return rows


def measure(case: Case, clock: BenchClock[object]) -> Row:
    """Run, check and time one case; the peer is the fastest that is installed.

    The result is checked after the first run, which compiles, and again after the last one.
    """
    reference = case.reference()
    case.ours()
    error = relative_error(case.out, reference)
    ours = _seconds(case.ours, clock)
    error = max(error, relative_error(case.out, reference))
    times = {name: _seconds(call, clock) for name, call in case.peers.items()}
    peer = min(times, key=times.__getitem__)
    return Row(
        case.kernel, case.shape, _BACKEND, error, case.work / ours, case.unit,
        peer, case.work / times[peer], times[peer] / ours, error <= _TOLERANCE,
    )  # fmt: skip


def _seconds(call: Call, clock: BenchClock[object]) -> float:
    return float(do_bench(call, warmup=40, rep=160, return_mode="median", clock=clock)) * 1e-3


def table_of(rows: Sequence[Row]) -> Table:
    """The rows, in 80 columns."""
    table = Table(
        title="Tilewright on this machine", box=None, padding=(0, 1), pad_edge=False,
        caption="error: largest relative error against float64; ratio: our speed to the peer's",
    )  # fmt: skip
    for name in ("kernel", "shape", "on"):
        table.add_column(name, no_wrap=True)
    for name in ("error", "speed", "fastest peer", "ratio"):
        table.add_column(name, no_wrap=True, justify="right")
    for row in rows:
        verdict = f"{row.ratio:.2f}" if row.correct else "[bold red]WRONG"
        table.add_row(
            row.kernel, row.shape, row.backend, f"{row.error:.1e}", f"{row.rate:.4g} {row.unit}",
            f"{row.peer} {row.peer_rate:.4g}", verdict,
        )  # fmt: skip
    return table


def plot(rows: Sequence[Row], folder: Path) -> None:
    """One bar chart for each unit."""
    figure_class: Any = importlib.import_module("matplotlib.figure").Figure
    folder.mkdir(parents=True, exist_ok=True)
    for unit in dict.fromkeys(row.unit for row in rows):
        chosen = [row for row in rows if row.unit == unit]
        figure = figure_class(figsize=(1.5 + 2 * len(chosen), 4), layout="tight")
        axes = figure.subplots()
        positions = np.arange(len(chosen))
        axes.bar(positions - 0.2, [row.rate for row in chosen], 0.4, label="tilewright")
        axes.bar(positions + 0.2, [row.peer_rate for row in chosen], 0.4, label="fastest peer")
        axes.set_xticks(positions, [f"{row.kernel}\n{row.shape}\nvs {row.peer}" for row in chosen])
        axes.set_ylabel(unit)
        axes.legend()
        figure.savefig(folder / f"demo-{unit.replace('/', '-per-').lower()}.png", dpi=120)
