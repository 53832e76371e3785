"""`torch.compile` by Tilewright beside Inductor's own: C++ on CPUs, the installed Triton on GPUs.

    python -m benchmarks.torch.inductor                  every function
    python -m benchmarks.torch.inductor softmax sum-0    some
        [--threads N] [--rounds N] [--processes N] [--json FILE]
        [--packages]    as packages of AOTInductor, which a C++ compiler makes

Each contestant is a process of its own, since one process has one `triton`. They take turns: in
each round both of a pair are sampled, in an order shuffled anew. Calls of some 50 us on a GPU take
what their process takes on the host, which differs by up to a half from core to core of a machine
that is shared: so both of a pair stay on one core for a round, drawn anew, and there are several
pairs, whose rounds alternate; a side's time is the median of its processes', the speed a ratio of
these, and how far the processes of our side are apart is told.
What a call takes on the host, until it returns, and what its kernels take on the device are told
beside it: the longer of the two is what is waited for. Compile times are those of the first call,
with empty caches, the median of the processes; of a package, of loading it and the first call.
Results are compared with eager's in float64 before anything is timed.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import torch._inductor.config as inductor
from rich.console import Console
from rich.table import Table
from torch.utils._pytree import tree_leaves

from benchmarks.harness import write_record
from benchmarks.worker_process import WorkerProcess, serve
from tilewright.triton_alias import install, register_with_inductor

F = torch.nn.functional
WARM_CALLS = 5
SAMPLE_MS = 5.0
PROFILED_CALLS = 20
CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [None]
"""Where the host may be: a launch takes 40 us on one and 70 on another of a shared machine."""
PAIRS = {"cuda": 5, "cpu": 1}
"""Processes of each side, by the device."""
PACKAGED = ("softmax", "layer-norm", "cross-entropy", "gelu-product")
PACKAGE = "package of "
TOLERANCE = 1e-4
"""Largest difference beside float64, over the largest number."""


@dataclass(frozen=True)
class Times:
    """Of one side, in microseconds of a call. processes: those of each process, whose median is
    `call`; host: until a call returns; kernels: what these take on a GPU, 0 elsewhere."""

    call: float
    processes: tuple[float, ...]
    host: float
    kernels: float

    @property
    def spread(self) -> float:
        """Between the slowest process and the fastest, of the median."""
        return (max(self.processes) - min(self.processes)) / self.call


@dataclass(frozen=True)
class Row:
    """One function, ours before theirs; seconds: of the first call."""

    name: str
    times: tuple[Times, Times]
    seconds: tuple[float, float]
    errors: tuple[float, float]

    def ratio(self, what: Callable[[Times], float]) -> float | None:
        """Their time over ours; None where it is not known."""
        ours, theirs = map(what, self.times)
        return theirs / ours if ours else None

    @property
    def speed(self) -> float:
        """Their time of a call over ours."""
        return self.times[1].call / self.times[0].call

    @property
    def compile(self) -> float:
        """Our time of the first call over theirs."""
        return self.seconds[0] / self.seconds[1]


# --- the contestants ------------------------------------------------------------------------------


def attention_scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Of causal attention."""
    scores = q @ k.transpose(-1, -2) / 8
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), -1)


def rotary(x: torch.Tensor, c: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Rotated pairs, of which one half stands in front of the other."""
    return x * c + torch.cat([-x[..., 32:], x[..., :32]], -1) * s


def gradients(x: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Of the weights of two layers behind a norm."""
    y = F.layer_norm(x, x.shape[-1:])
    loss = (F.gelu(y @ up) @ down + x).square().mean()
    return torch.autograd.grad(loss, [up, down])


def optimizer_step(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> Any:
    """Of Adam, without the corrections of the first steps."""
    m, v = m.lerp(g, 0.1), v * 0.99 + g * g * 0.01
    return p - 1e-3 * m / (v.sqrt() + 1e-8), m, v


def functions(device: str) -> dict[str, Callable[[], tuple[Any, ...]]]:
    """Name -> what makes (function, *arguments)."""
    scale = 4 if device == "cuda" else 1
    rows, columns = 2048 * scale, 1024 * scale

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device=device)

    def labels(end: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, end, shape, device=device)

    def matrix() -> torch.Tensor:
        return normal(rows, columns)

    def square() -> torch.Tensor:
        return normal(columns, columns)

    def weight(*shape: int) -> torch.Tensor:
        return (normal(*shape) / 32).requires_grad_()

    return {
        "pointwise": lambda: (lambda x, y: torch.sin(x) * y + torch.exp(x), matrix(), matrix()),
        "gelu": lambda: (F.gelu, matrix()),
        "softmax": lambda: (lambda x: torch.softmax(x, -1), matrix()),
        "layer-norm": lambda: (
            lambda x, w, b: F.layer_norm(x, (columns,), w, b),
            matrix(), normal(columns), normal(columns),
        ),
        "rms-norm": lambda: (lambda x, w: F.rms_norm(x, (columns,), w), matrix(), normal(columns)),
        "batch-norm": lambda: (
            lambda x: F.batch_norm(x, None, None, training=True), normal(16 * scale, 32, 56, 56)
        ),
        "sum": lambda: (lambda x: x.sum(), matrix()),
        "sum-0": lambda: (lambda x: x.sum(0), normal(2 * rows, columns // 2)),
        "sum-1": lambda: (lambda x: x.sum(1), matrix()),
        "variance": lambda: (lambda x: torch.var_mean(x, 1), matrix()),
        "argmax": lambda: (lambda x: x.argmax(1), matrix()),
        "transposed-add": lambda: (lambda x, y: x.t() + y, square(), square()),
        "cumsum": lambda: (lambda x: x.cumsum(-1), matrix()),
        "cross-entropy": lambda: (F.cross_entropy, normal(rows, 4096), labels(4096, rows)),
        "embedding": lambda: (
            lambda w, i: F.embedding(i, w) * 2, normal(5000, 256), labels(5000, rows)
        ),
        "max-pool": lambda: (lambda x: F.max_pool2d(x, 3, 2), normal(8 * scale, 16, 56, 56)),
        "rotary": lambda: (
            rotary, normal(4 * scale, 8, 512, 64), normal(512, 64), normal(512, 64)
        ),
        "gelu-product": lambda: (
            lambda x, w, b: F.gelu(x @ w + b), normal(512, 512), normal(512, 512), normal(512)
        ),
        "attention": lambda: (attention_scores, normal(4, 8, 256, 64), normal(4, 8, 256, 64)),
        "gradients": lambda: (gradients, normal(512, 256), weight(256, 512), weight(512, 256)),
        "optimizer": lambda: (optimizer_step, matrix(), matrix(), matrix(), matrix().abs()),
        "small": lambda: (lambda x: x * 2 + 1, normal(100)),
    }  # fmt: skip


class Program(torch.nn.Module):
    """A function as what can be exported."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Its results."""
        return self.function(*inputs)


def packaged(function: Callable[..., Any], inputs: Sequence[torch.Tensor], folder: Path) -> str:
    """The path of a package of AOTInductor below a folder."""
    if not torch.cuda.is_available():
        if inductor.cpu_backend == "triton":
            register_with_inductor()
    else:
        # C++ has nobody who hears of a kernel's assertions, and a compiler without a shared C++
        # library puts a second one into the package: PyTorch's for all
        inductor.assert_indirect_indexing = False
        if sys.platform == "linux":
            ctypes.CDLL("libstdc++.so.6", ctypes.RTLD_GLOBAL)
    exported = torch.export.export(Program(function), tuple(inputs))
    path = str(folder / "program.pt2")
    return torch._inductor.aoti_compile_and_package(exported, package_path=path)


class Contestant:
    """The side of the child: answers the parent's requests, one a line of JSON."""

    def __init__(self, backend: str, device: str, threads: int) -> None:
        self.device = device
        torch.set_num_threads(threads)
        inductor.cpu_backend = backend
        self.functions = functions(device)
        self.call: Callable[[], Any] = lambda: None
        self.calls = 1
        # pays for what only the first compile does
        torch.compile(lambda x: x.cos() + 2)(torch.ones(64, device=device))

    def synchronize(self) -> None:
        """Wait for the device."""
        if self.device == "cuda":
            torch.cuda.synchronize()

    def compile(self, name: str) -> dict[str, float]:
        """Compile a function and compare it. -> seconds of the first call, error."""
        torch._dynamo.reset()
        torch.manual_seed(0)
        function, *inputs = self.functions[name.removeprefix(PACKAGE)]()
        if name.startswith(PACKAGE):
            path = packaged(function, inputs, Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]))
            began = time.perf_counter()
            compiled = torch._inductor.aoti_load_package(path)
        else:
            began = time.perf_counter()
            compiled = torch.compile(function, dynamic=False)
        self.call = lambda: compiled(*inputs)
        found = self.call()
        self.synchronize()
        seconds = time.perf_counter() - began
        doubled = [
            x.detach().double().requires_grad_(x.requires_grad) if x.is_floating_point() else x
            for x in inputs
        ]
        error = self._error(found, function(*doubled))
        for _ in range(WARM_CALLS):
            self.call()
        self.calls = 1
        self.calls = max(1, int(SAMPLE_MS * 1e3 / self.sample()["microseconds"]))
        return {"seconds": seconds, "error": error}

    def _error(self, found: Any, exact: Any) -> float:
        errors = [
            (a.double() - b).abs().max() / b.double().abs().max().clamp(min=1)
            for a, b in zip(tree_leaves(found), tree_leaves(exact), strict=True)
        ]
        return max(float(error) for error in errors)

    def sample(self, core: int | None = None) -> dict[str, float]:
        """The mean time of some calls, and what of it is the host's; core: where to stay for it."""
        if core is not None:
            os.sched_setaffinity(0, {core})
        self.call()
        self.synchronize()
        began = time.perf_counter()
        for _ in range(self.calls):
            self.call()
        returned = time.perf_counter()
        self.synchronize()
        times = {"microseconds": time.perf_counter() - began, "host": returned - began}
        if core is not None:
            os.sched_setaffinity(0, CORES)
        return {name: seconds / self.calls * 1e6 for name, seconds in times.items()}

    def kernel_time(self) -> dict[str, float]:
        """What kernels and copies take of a call on a GPU."""
        if self.device != "cuda":
            return {"microseconds": 0.0}
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for _ in range(PROFILED_CALLS):
                self.call()
            self.synchronize()
        events = [each for each in profile.events() or () if each.device_type.name == "CUDA"]
        total = sum(each.time_range.elapsed_us() for each in events)
        return {"microseconds": total / PROFILED_CALLS}

    def serve(self) -> None:
        """Answer until the parent is done."""
        print(json.dumps({"device": self.device}), flush=True)
        serve({"compile": self.compile, "sample": self.sample, "kernels": self.kernel_time})


# --- the parent -----------------------------------------------------------------------------------


class Child(WorkerProcess):
    """The process of a contestant, with caches of its own below a folder."""

    def __init__(self, folder: Path, packages: Path | None, backend: str, threads: int) -> None:
        path = [str(packages)] if packages else []
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*path, *sys.path]),
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
            "TILEWRIGHT_CACHE_DIR": str(folder / "tilewright"),
            "OMP_NUM_THREADS": str(threads),
            # else each launch after a profile takes 3 us more of the host
            "TEARDOWN_CUPTI": "1",
        }
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "benchmarks.torch.inductor",
            "--serve",
            backend,
            str(threads),
        ]
        super().__init__(command, environment)

    @cached_property
    def device(self) -> str:
        """The device it computes on; waits until the process has started."""
        return self.answer()["device"]


Pair = tuple[Child, Child]
"""Ours, theirs."""


def started(folder: Path, count: int | None, threads: int, stack: ExitStack) -> list[Pair]:
    """Pairs of contestants, which end with `stack`; by default as many as the device calls for."""
    packages = folder / "packages"
    install(packages)

    def pair(number: int) -> Pair:
        own = folder / str(number)
        ours = Child(own / "ours", packages, "triton", threads)
        theirs = Child(own / "theirs", None, "cpp", threads)
        for child in (ours, theirs):
            stack.callback(child.close)
        return ours, theirs

    first = pair(0)
    pairs = [first, *map(pair, range(1, count or PAIRS[first[0].device]))]
    assert len({child.device for each in pairs for child in each}) == 1
    return pairs


def measured(name: str, pairs: Sequence[Pair], rounds: int) -> Row:
    """Compiled by all, compared and sampled in turns."""
    first = [[child.ask("compile", name) for child in pair] for pair in pairs]
    samples: dict[Child, list[dict[str, Any]]] = {child: [] for pair in pairs for child in pair}
    for number in range(rounds):
        core = random.choice(CORES) if pairs[0][0].device == "cuda" else None
        for child in random.sample(pairs[number % len(pairs)], 2):
            samples[child].append(child.ask("sample", core))
    times = [
        _times([(child, samples[child]) for child in side]) for side in zip(*pairs, strict=True)
    ]
    answers = [list(side) for side in zip(*first, strict=True)]
    seconds = [statistics.median(answer["seconds"] for answer in side) for side in answers]
    errors = [max(answer["error"] for answer in side) for side in answers]
    return Row(name, (times[0], times[1]), (seconds[0], seconds[1]), (errors[0], errors[1]))


def _times(side: Sequence[tuple[Child, Sequence[dict[str, Any]]]]) -> Times:
    """Of the processes of one side, with the samples of each."""

    def medians(what: str) -> tuple[float, ...]:
        return tuple(statistics.median(row[what] for row in rows) for _, rows in side)

    calls = medians("microseconds")
    kernels = statistics.median(child.ask("kernels")["microseconds"] for child, _ in side)
    return Times(statistics.median(calls), calls, statistics.median(medians("host")), kernels)


PARTS: dict[str, Callable[[Times], float]] = {
    "speed": lambda times: times.call,
    "host": lambda times: times.host,
    "kernels": lambda times: times.kernels,
}
"""What is compared, by the heading of the column."""


def table_of(rows: Sequence[Row]) -> Table:
    """The rows, and what holds for all."""
    table = Table(title="torch.compile: speed and compile time beside Inductor's own")
    table.add_column("function")
    parts = [heading for part in PARTS for heading in (part, "us", "theirs")]
    for heading in (*parts, "spread", "compile", "s", "theirs", "error"):
        table.add_column(heading, justify="right")
    for row in rows:
        compared = [
            text
            for part in PARTS.values()
            for text in (f"{row.ratio(part) or 0:.2f}", *(f"{part(x):.1f}" for x in row.times))
        ]
        table.add_row(
            row.name, *compared, f"{row.times[0].spread:.0%}", f"{row.compile:.2f}",
            *(f"{s:.2f}" for s in row.seconds), f"{row.errors[0]:.0e}",
        )  # fmt: skip
    wrong = [row.name for row in rows if row.errors[0] > TOLERANCE]
    table.caption = "; ".join(
        [
            *(_summary(name, rows, part) for name, part in PARTS.items()),
            f"compile time {statistics.geometric_mean(row.compile for row in rows):.2f}",
            f"wrong: {', '.join(wrong) or 'none'}",
        ]
    )
    return table


def _summary(name: str, rows: Sequence[Row], part: Callable[[Times], float]) -> str:
    """The mean of the functions, and the last of them."""
    ratios = {row.name: ratio for row in rows if (ratio := row.ratio(part))}
    if not ratios:
        return f"{name}: not known"
    least = min(ratios, key=lambda function: ratios[function])
    mean = statistics.geometric_mean(ratios.values())
    return f"{name}: geometric mean {mean:.2f}, least {ratios[least]:.2f} ({least})"


def main() -> None:
    """Measure what the command line names."""
    if sys.argv[1:2] == ["--serve"]:
        device = "cuda" if torch.cuda.is_available() else "cpu"
        Contestant(sys.argv[2], device, int(sys.argv[3])).serve()
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="FUNCTION")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--processes", type=int)
    parser.add_argument("--packages", action="store_true")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as text, ExitStack() as stack:
        pairs = started(Path(text), chosen.processes, chosen.threads, stack)
        device = pairs[0][0].device
        rows: list[Row] = []
        names = chosen.names or (PACKAGED if chosen.packages else functions(device))
        for name in [PACKAGE * chosen.packages + name for name in names]:
            rows.append(measured(name, pairs, chosen.rounds))
            print(rows[-1], file=sys.stderr)
    Console(width=160).print(table_of(rows))
    if chosen.json:
        title = f"torch.compile on {device}, {chosen.threads} threads"
        records = [asdict(row) | {"speed": row.speed, "compile": row.compile} for row in rows]
        write_record(chosen.json, title, rows=records)


if __name__ == "__main__":
    main()
