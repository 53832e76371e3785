"""Liger-Kernel's operators, forward and backward: Tilewright versus Triton, on CPUs versus torch.

    python -m benchmarks.torch.liger [--only REGEX] [--json FILE] [--seconds S] [--rounds N]
    python -m benchmarks.torch.liger --list
    python -m benchmarks.torch.liger --fla ...        # fla-core's linear attention as well
    python -m benchmarks.torch.liger --fla --configurations 6 ...     # tuned among six of them
    python -m benchmarks.torch.liger --cpu ...        # small shapes, beside torch's eager formulas

The package is the one on PyPI, unmodified; wheels on PYTHONPATH are unpacked first. Each compiler
has a process of its own, since one process has one `triton`. In each round both are sampled, in an
order shuffled anew; the speed is the median of the rounds' ratios. Before a sample the inputs are
copied anew, since some operators overwrite theirs, the L2 cache is overwritten, and a kernel that
sleeps is launched, so that the host has launched everything when the clock starts. `.item()` would
wait for it: it returns the value of an untimed call. "host" marks what waits nevertheless.

fla-core's kernels have up to 108 configurations each. `--configurations N` keeps at most N of each
kernel, evenly spread and the same for both compilers, so that tuning ends within minutes.

"copy" is the time of torch's copy of as many bytes as inputs and results hold, over ours. An error
is the largest of the relative errors (by the 2-norm) of results or of gradients, compared with
torch's formula in fp64. A run continues where FILE ends; `--seconds` starts no new row after S.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import importlib
import math
import os
import random
import re
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.compared_rows import RowsFile, comparison, failures, summary
from benchmarks.worker_process import WorkerEnded, WorkerProcess, Workers, serve

OURS = "tilewright"
DIRECTIONS = ("forward", "backward")
FLUSH_BYTES = 512 << 20
SLEEP_CYCLES = 2_000_000
LONGEST_SLEEP_CYCLES = 64 * SLEEP_CYCLES
GOAL = 0.97


# --- the worker -----------------------------------------------------------------------------------


class Items:
    """The values of `.item()`: recorded in one call, returned without waiting in later ones."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Keep the values that `.item()` returns in the block."""
        self._values = []

        def item(tensor: Any) -> Any:
            self._values.append(original(tensor))
            return self._values[-1]

        with _replaced_item(item) as original:
            yield

    @contextmanager
    def replayed(self) -> Iterator[None]:
        """Return what was recorded."""
        left = iter(self._values)
        with _replaced_item(lambda _: next(left)):
            yield


@contextmanager
def _replaced_item(item: Callable[[Any], Any]) -> Iterator[Callable[[Any], Any]]:
    import torch

    original = torch.Tensor.item
    torch.Tensor.item = item
    try:
        yield original
    finally:
        torch.Tensor.item = original


class Worker:
    """Answers the parent's requests. side: "tilewright", "triton" or "torch", the formulas."""

    def __init__(self, side: str, device: str, configurations: str = "0") -> None:
        import torch

        from benchmarks.torch import liger_cases

        self._torch = torch
        self._side, self._device = side, device
        self._rows = {row.name: row for row in liger_cases.ROWS}
        self._ops: Any = None
        if side != "torch":
            import liger_kernel.ops

            self._ops = liger_kernel.ops
            if device == "cpu":
                liger_cases.without_a_gpu()
        self._gpu = device == "cuda"
        self._configurations = int(configurations)
        if self._gpu:
            self._junk = torch.empty(FLUSH_BYTES, dtype=torch.int8, device=device)
        self._items = Items()
        self._sleep = SLEEP_CYCLES
        self.release()

    def release(self) -> dict[str, Any]:
        """Drop the tensors of the latest row."""
        self._operator: Any = None
        self._inputs: tuple[Any, ...] = ()
        self._weights: list[Any] = []
        self._copied: Any = None
        if self._gpu:
            self._torch.cuda.empty_cache()
        return {}

    def prepare(self, name: str) -> dict[str, Any]:
        """Compile a row, compare it with fp64, make its inputs. -> errors, kernels; or failed."""
        from benchmarks.torch.liger_cases import SMALL, Shape

        row, shape = self._rows[name], Shape() if self._gpu else SMALL
        self._operator = row.operator
        before = _kernels()
        try:
            _load(row.module)
            _thin_out(self._configurations)
            self._inputs = row.inputs(shape, self._device)
            results = self._forward(self._given())
            self._weights = [self._torch.randn_like(r) for r in results if r.requires_grad]
            # Autotuners choose at the first call: in the sizes that are timed.
            self._call("backward")()
            tokens = min(shape.tokens, row.checked)
            errors = self._errors(row.inputs(Shape(tokens, shape.divisor), self._device))
        except Exception as problem:
            return {"failed": f"{type(problem).__name__}: {str(problem)[:300]}"}
        kernels = {key: each for key, each in _kernels().items() if key not in before}
        return {"errors": errors, "kernels": [_described(*each) for each in kernels.values()]}

    def _errors(self, inputs: Sequence[Any]) -> dict[str, float]:
        """Of results and of gradients, by the direction."""
        from tests.kernels.liger_operators import prepared, results_and_gradients, tuple_of

        operator = self._operator
        wide = prepared(tuple(inputs), operator.constant, widen=True)
        expected = tuple_of(operator.reference(*wide))
        weights = [self._torch.randn_like(r) for r in expected if r.requires_grad]
        wanted = results_and_gradients(expected, wide, weights)
        wanted = [value.detach() for value in wanted]
        own = prepared(tuple(inputs), operator.constant, widen=False)
        results = self._forward(self._copies(own))
        found = results_and_gradients(results, own, weights)
        parts = zip(found, wanted, strict=True)
        errors = [_relative_error(mine, true) for mine, true in parts]
        return {
            "forward": max(errors[: len(expected)]),
            "backward": max(errors[len(expected) :]),
        }

    def _forward(self, given: Sequence[Any]) -> tuple[Any, ...]:
        from tests.kernels.liger_operators import tuple_of

        if self._side == "torch":
            return tuple_of(self._operator.reference(*given))
        return tuple_of(self._operator.liger(self._ops, *given))

    def _copies(self, values: Iterable[Any]) -> list[Any]:
        """Copies of tensors with gradients, which an operator may overwrite."""
        return [
            v.clone() if isinstance(v, self._torch.Tensor) and v.requires_grad else v
            for v in values
        ]

    def _given(self) -> list[Any]:
        from tests.kernels.liger_operators import prepared

        return self._copies(prepared(self._inputs, self._operator.constant, widen=False))

    def _call(self, direction: str) -> Callable[[], Any]:
        """A call on inputs of its own: the operator, or the gradients of its results."""
        given = self._given()
        if direction == "forward":
            return lambda: self._forward(given)
        results = [r for r in self._forward(given) if r.requires_grad]
        inputs = [v for v in given if isinstance(v, self._torch.Tensor) and v.requires_grad]
        weights = [w.clone() for w in self._weights]
        return lambda: self._torch.autograd.grad(results, inputs, weights)

    def start(self, direction: str) -> dict[str, Any]:
        """Choose how long to sleep. -> hidden: whether the host is ahead; bytes moved at least."""
        call = self._call(direction)
        with self._items.recorded():
            made = call()
        tensors = [v for v in (*self._inputs, *made) if isinstance(v, self._torch.Tensor)]
        if direction == "backward":
            tensors += self._weights
        size = sum(v.numel() * v.element_size() for v in tensors)
        self._copied = None
        if self._gpu:
            self._copied = self._torch.empty(size // 2, dtype=self._torch.int8, device=self._device)
        self._sleep = SLEEP_CYCLES
        while self._gpu and not self._timed(self._call(direction))[1]:
            if self._sleep >= LONGEST_SLEEP_CYCLES:
                return {"hidden": False, "bytes": size}
            self._sleep *= 2
        return {"hidden": True, "bytes": size}

    def sample(self, direction: str) -> dict[str, float]:
        """Milliseconds of one call."""
        return {"ms": self._timed(self._call(direction))[0]}

    def copy(self) -> dict[str, float]:
        """Milliseconds of a copy of as many bytes as the call reads and writes; 0 on a CPU."""
        if not self._gpu:
            return {"ms": 0.0}
        return {"ms": self._timed(self._copied.clone)[0]}

    def _timed(self, call: Callable[[], Any]) -> tuple[float, bool]:
        """Milliseconds, and whether the host had launched everything when the clock started."""
        if not self._gpu:
            began = time.perf_counter()
            call()
            return (time.perf_counter() - began) * 1e3, True
        cuda = self._torch.cuda
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        cuda.synchronize()
        self._junk.zero_()
        cuda._sleep(self._sleep)
        start.record()
        with self._items.replayed():
            kept = call()
        end.record()
        hidden = not start.query()
        cuda.synchronize()
        del kept
        return start.elapsed_time(end), hidden


def _relative_error(found: Any, true: Any) -> float:
    error = (found.double() - true.double()).norm() / true.double().norm().clamp(min=1e-30)
    return float(error)


def _values_of_libraries() -> list[Any]:
    modules = [m for name, m in list(sys.modules.items())
               if name.partition(".")[0] in ("liger_kernel", "fla")]  # fmt: skip
    return [value for module in modules for value in vars(module).values()]


def _kernels() -> dict[int, tuple[str, Any]]:
    """The compiled kernels of the libraries by identity, with the functions' names."""
    functions = {id(f): f for f in map(_function, _values_of_libraries()) if f}
    return {
        id(kernel): (function.__name__, kernel)
        for function in functions.values()
        for caches in function.device_caches.values()
        for kernel in caches[0].values()
    }


def _function(value: Any) -> Any:
    """The compiled function below autotuners and heuristics; None for anything else."""
    while not hasattr(value, "device_caches"):
        value = vars(value).get("fn") if hasattr(value, "__dict__") else None
        if value is None:
            return None
    return value


def _load(module: str) -> None:
    """Import a library's module. fla-core refuses the backward pass of gated chunks with Triton
    3.4 to 3.7.0 on Hopper, where their results were wrong: measured here, with the error."""
    if not module:
        return
    importlib.import_module(module)
    refusing: Any = sys.modules.get("fla.ops.common.chunk_o")
    if refusing is not None:
        refusing.TRITON_ABOVE_3_7_1 = True


def _thin_out(kept: int) -> None:
    """Keep evenly spread configurations of the libraries' autotuners."""
    if not kept:
        return
    for value in _values_of_libraries():
        while value is not None and not isinstance(value, type):
            configurations = getattr(value, "configs", None)
            if isinstance(configurations, list) and len(configurations) > kept:
                step = len(configurations) / kept
                configurations[:] = [configurations[int(i * step)] for i in range(kept)]
            value = getattr(value, "fn", None)


def _described(name: str, kernel: Any) -> dict[str, Any]:
    return {
        "name": name,
        "warps": getattr(kernel.metadata, "num_warps", 0),
        "registers": getattr(kernel, "n_regs", 0) or 0,
        "spills": getattr(kernel, "n_spills", 0) or 0,
    }


# --- the parent -----------------------------------------------------------------------------------


def workers_of(folder: Path, cpu: bool, configurations: int) -> Workers:
    """Ours, and Triton's or torch's."""
    device = "cpu" if cpu else "cuda"

    def start(side: str) -> WorkerProcess:
        return _started(side, folder, device, configurations)

    return Workers((OURS, "torch" if cpu else "triton"), start)


def _started(side: str, folder: Path, device: str, configurations: int) -> WorkerProcess:
    from tilewright.triton_alias import install

    paths = [_unpacked(Path(path), folder) for path in sys.path if path]
    if side == OURS:
        alias = folder / "alias"
        if not alias.exists():
            install(alias)
        paths.insert(0, str(alias))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "TILEWRIGHT_CACHE_DIR": str(folder / "tilewright"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
    }
    command = [
        sys.executable, "-W", "ignore", "-m", "benchmarks.torch.liger", "--serve", side, device,
        str(configurations),
    ]  # fmt: skip
    return WorkerProcess(command, environment)


def _unpacked(path: Path, folder: Path) -> str:
    """A folder with the modules of a wheel; any other path as it is."""
    if path.suffix != ".whl":
        return str(path)
    target = folder / path.name.partition("-")[0]
    if not target.exists():
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(target)
    return str(target)


def measured(name: str, workers: Workers, rounds: int) -> list[dict[str, Any]]:
    """The records of a row, one for each direction; with "failed", where a side did not run."""
    try:
        prepared = workers.ask_all("prepare", name)
        if failed := failures(prepared):
            workers.close()  # an error of the GPU would stay
            return [{"name": name, "failed": failed}]
        found = [_direction(name, d, prepared, workers, rounds) for d in DIRECTIONS]
        workers.ask_all("release")
    except WorkerEnded as problem:
        workers.close()
        return [{"name": name, "failed": {"process": str(problem)}}]
    return found


def _direction(
    name: str, direction: str, prepared: Mapping[str, Any], workers: Workers, rounds: int
) -> dict[str, Any]:
    ours, theirs = workers.sides
    started = {side: workers.ask(side, "start", direction) for side in workers.sides}
    samples: dict[str, list[float]] = {ours: [], theirs: [], "copy": []}
    for _ in range(rounds):
        for side in random.sample(workers.sides, 2):
            samples[side].append(workers.ask(side, "sample", direction)["ms"])
        samples["copy"].append(workers.ask(ours, "copy")["ms"])
    return {
        "name": name, "direction": direction, **comparison(workers.sides, samples),
        "bytes": started[ours]["bytes"],
        "hidden": all(each["hidden"] for each in started.values()),
        "errors": {side: prepared[side]["errors"][direction] for side in workers.sides},
        "kernels": {side: prepared[side]["kernels"] for side in workers.sides},
    }  # fmt: skip


def table_of(records: Sequence[Mapping[str, Any]]) -> Table:
    """The records, and what holds for all."""
    table = Table(title="Liger-Kernel: speed compared with the other side")
    table.add_column("operator")
    for heading in ("direction", "speed", "95 %", "us", "theirs", "copy", "error", "theirs", ""):
        table.add_column(heading, justify="right")
    good = [record for record in records if "failed" not in record]
    for r in good:
        ours, theirs = r["sides"]
        table.add_row(
            r["name"], r["direction"], f"{r['speed']:.3f}", f"{r['low95']:.2f}-{r['high95']:.2f}",
            *(f"{r['ms'][side] * 1e3:.1f}" for side in r["sides"]),
            f"{r['ms']['copy'] / r['ms'][ours]:.2f}",
            *(f"{r['errors'][side]:.1e}" for side in (ours, theirs)), _remarks(r),
        )  # fmt: skip
    for r in records:
        if "failed" in r:
            table.add_row(r["name"], "not run", *[""] * 7, "; ".join(r["failed"].values())[:60])
    if good:
        table.caption = summary([r["speed"] for r in good], GOAL)
    return table


def _remarks(record: Mapping[str, Any]) -> str:
    """Where the host is timed too, and where our results are less exact."""
    ours, theirs = (record["errors"][side] for side in record["sides"])
    host = "" if record["hidden"] else "host"
    return f"{host} {'less exact' if not ours <= 1.05 * theirs else ''}".strip()


def run(options: argparse.Namespace, names: Sequence[str]) -> None:
    """Measure the rows that the file does not hold yet, until the time is over."""
    rows = RowsFile(options.json, "Liger-Kernel")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.cache or Path(temporary)
        with closing(workers_of(folder, options.cpu, options.configurations)) as workers:
            for found in _until_deadline(rows.missing(names), workers, options):
                rows.add(found)
    Console(width=160).print(table_of(rows.of(names)))
    print("left for the next run:", ", ".join(rows.missing(names)) or "nothing")


def _until_deadline(
    names: Sequence[str], workers: Workers, options: argparse.Namespace
) -> Iterator[list[dict[str, Any]]]:
    deadline = time.monotonic() + options.seconds
    for name in names:
        if time.monotonic() > deadline:
            return
        began = time.monotonic()
        yield measured(name, workers, options.rounds)
        print(f"{name}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)


def main() -> None:
    """Measure what the command line names, or serve as one of the workers."""
    if sys.argv[1:2] == ["--serve"]:
        worker = Worker(*sys.argv[2:])
        requests = (worker.prepare, worker.start, worker.sample, worker.copy, worker.release)
        serve({request.__name__: request for request in requests})
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="only rows that it matches")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--cpu", action="store_true", help="small shapes, on the CPU")
    parser.add_argument("--fla", action="store_true", help="fla-core's operators as well")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--seconds", type=float, default=math.inf, help="no new row after them")
    parser.add_argument("--configurations", type=int, default=0, metavar="N")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--cache", type=Path, help="folder for compiled kernels, kept afterwards")
    options = parser.parse_args()
    from benchmarks.torch.liger_cases import ROWS

    libraries = ("liger_kernel", "fla") if options.fla else ("liger_kernel",)
    rows = [row for row in ROWS if row.library in libraries]
    names = [row.name for row in rows if re.search(options.only, row.name)]
    if options.list:
        print("\n".join(names))
        return
    run(options, names)


if __name__ == "__main__":
    main()
