"""Time users' kernels of the corpus on this GPU: Tilewright versus Triton.

    python -m benchmarks.gpu users [--only REGEX] [--json FILE] [--seconds S] [--rounds N]
                                   [--cache FOLDER] [--processes N] [--validation] [--list]

All cases are compiled first, by processes of both compilers at once. Then each side has one
process; cases come in an order shuffled anew, and in each round both sides are sampled in an order
shuffled anew, with a cold L2 cache. The speed is the median of the rounds' ratios. Results of one
launch are compared by norms and random projections. A run continues where FILE ends; `--seconds`
starts no new case after S. A fifth of the cases is for validation: nobody tunes for them.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.harness import spread_of, write_record
from benchmarks.worker_process import WorkerEnded, WorkerProcess, serve

SIDES = ("tilewright", "triton")
FLUSH_BYTES = 512 << 20
GOAL = 0.95
TOLERANCE = 2e-2
"""Of results, relative to their norm: fp16 operands are rounded in other places."""


# --- the worker -----------------------------------------------------------------------------------


class Worker:
    """Answers the parent's requests, by the compiler that its command line names."""

    def __init__(self) -> None:
        import torch

        from benchmarks.gpu.compile_users import IS_TRITON, OPTIONS  # names the compiler
        from tests.corpus.users import FAMILIES

        self._torch, self._is_triton, self._options = torch, IS_TRITON, OPTIONS
        self._cases = {f"{f}/{case.label}": case for f, cases in FAMILIES.items() for case in cases}
        self._junk = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
        self._call: Any = None

    def prepare(self, name: str) -> dict[str, Any]:
        """Compile, launch once. -> a norm and a projection of each tensor; or failed."""
        from benchmarks.gpu.compile_users import for_cuda
        from benchmarks.gpu.user_launches import launch_of
        from benchmarks.gpu.user_tensors import digest, tensors_of

        self._call = None
        case = self._cases[name]
        try:
            launch = launch_of(case)
            arguments = tensors_of(launch.arguments, case.types)
            words = dict(case.words)
            if self._is_triton:
                known = (*case.kernel.arg_names, *self._options)
                words = {key: for_cuda(value) for key, value in words.items() if key in known}
            call = lambda: case.kernel[launch.grid](*arguments, **words)  # noqa: E731
            call()
            digests = [digest(x) for x in arguments if isinstance(x, self._torch.Tensor)]
            self._call = call
        except Exception as problem:
            return {"failed": f"{type(problem).__name__}: {str(problem).strip()[-200:]}"}
        return {"digests": digests}

    def sample(self) -> dict[str, float]:
        """Milliseconds of one launch."""
        cuda = self._torch.cuda
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        self._junk.zero_()  # while it runs, the launch is queued: the host is not timed
        start.record()
        self._call()
        end.record()
        end.synchronize()
        return {"ms": start.elapsed_time(end)}


# --- the parent -----------------------------------------------------------------------------------


class Workers:
    """One process for each side; started again after one has failed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, WorkerProcess] = {}

    def ask_both(self, *request: object) -> dict[str, dict[str, Any]]:
        """The answers by side; both compute at once."""
        for side in SIDES:
            if side not in self._running:
                self._running[side] = started(side, self._folder)
            self._running[side].send(*request)
        return {side: self._running[side].answer() for side in SIDES}

    def ask(self, side: str, *request: object) -> dict[str, Any]:
        """One side's answer."""
        return self._running[side].ask(*request)

    def close(self) -> None:
        """End both."""
        for worker in self._running.values():
            worker.close()
        self._running = {}


def started(side: str, folder: Path) -> WorkerProcess:
    """A process of one compiler, with caches below a folder."""
    environment = {
        **os.environ,
        "TILEWRIGHT_CACHE_DIR": str(folder / "tilewright"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
    }
    return WorkerProcess(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.gpu.users", side], environment
    )


def compile_all(names: Sequence[str], folder: Path, processes: int) -> None:
    """Fill the caches of both sides, by so many processes of each."""
    shares = {side: list(range(processes)) for side in SIDES}

    def work(side: str) -> None:
        worker = started(side, folder)
        own = names[shares[side].pop() :: processes]
        with closing(worker):
            for name in own:
                try:
                    worker.ask("prepare", name)
                except WorkerEnded:
                    worker = started(side, folder)

    with ThreadPoolExecutor(2 * processes) as pool:
        for done in [pool.submit(work, side) for side in SIDES for _ in range(processes)]:
            done.result()


def measured(name: str, workers: Workers, rounds: int) -> dict[str, Any]:
    """The record of a case; with "failed", where a side did not run."""
    record: dict[str, Any] = {"name": name, "validation": is_validation(name)}
    try:
        prepared = workers.ask_both("prepare", name)
        failed = {side: a["failed"] for side, a in prepared.items() if "failed" in a}
        if failed:
            workers.close()  # an error of the GPU would stay
            return {**record, "failed": failed}
        samples: dict[str, list[float]] = {side: [] for side in SIDES}
        for _ in range(rounds):
            for side in random.sample(SIDES, 2):
                samples[side].append(workers.ask(side, "sample")["ms"])
    except WorkerEnded as problem:
        workers.close()
        return {**record, "failed": {"process": str(problem)}}
    ours, theirs = (samples[side] for side in SIDES)
    spread = spread_of([b / a for a, b in zip(ours, theirs, strict=True)])
    return {
        **record, "sides": SIDES, "speed": spread.median, "low95": spread.low,
        "high95": spread.high, "samples_ms": samples,
        "ms": {side: statistics.median(times) for side, times in samples.items()},
        "differs": differs(*(prepared[side]["digests"] for side in SIDES)),
    }  # fmt: skip


def differs(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> bool:
    """Whether a tensor's norm or projection is another than the other side's."""
    return any(
        abs(a - b) > TOLERANCE * max(mine[0], true[0], 1e-6)
        for mine, true in zip(ours, theirs, strict=True)
        for a, b in zip(mine, true, strict=True)
    )


def is_validation(name: str) -> bool:
    """Whether a case is one of the fifth that nobody looks at while tuning."""
    return zlib.crc32(name.encode()) % 5 == 0


def table_of(records: Sequence[Mapping[str, Any]]) -> Table:
    """The records, slowest first, and what holds for all."""
    table = Table(title="Users' kernels: speed compared with Triton's")
    table.add_column("case")
    for heading in ("speed", "95 %", "us", "Triton's", ""):
        table.add_column(heading, justify="right")
    good = sorted((r for r in records if "failed" not in r), key=lambda r: r["speed"])
    for r in good:
        table.add_row(
            r["name"], f"{r['speed']:.3f}", f"{r['low95']:.2f}-{r['high95']:.2f}",
            *(f"{r['ms'][side] * 1e3:.1f}" for side in SIDES), "differs" if r["differs"] else "",
        )  # fmt: skip
    for r in records:
        if "failed" in r:
            table.add_row(r["name"], "not run", "", "", "", "; ".join(r["failed"].values())[-60:])
    table.caption = "\n".join(_summary(good))
    return table


def _summary(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for title, kept in (("tuned for", False), ("validation", True)):
        speeds = [r["speed"] for r in records if r["validation"] == kept]
        if speeds:
            mean, missed = statistics.geometric_mean(speeds), sum(s < GOAL for s in speeds)
            yield (
                f"{title}: {len(speeds)} rows, geometric mean {mean:.3f}, least "
                f"{min(speeds):.3f}, {missed} below {GOAL}"
            )


def run(options: argparse.Namespace, names: list[str]) -> None:
    """Measure the cases that the file does not hold yet, until the time is over."""
    deadline = time.monotonic() + options.seconds
    path: Path | None = options.json
    records: list[dict[str, Any]] = []
    if path is not None and path.exists():
        records = json.loads(path.read_text(encoding="utf-8"))["rows"]
    done = {record["name"] for record in records}
    left = [name for name in names if name not in done]
    random.shuffle(left)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.cache or Path(temporary)
        began = time.monotonic()
        compile_all(left, folder, options.processes)
        print(f"compiled in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        for record in _until(deadline, left, folder, options.rounds):
            records.append(record)
            if path is not None:
                write_record(path, "Users' kernels", rows=records)
    Console(width=120).print(table_of([r for r in records if r["name"] in names]))
    print(f"left for the next run: {len(left)}")


def _until(deadline: float, left: list[str], folder: Path, rounds: int) -> Iterator[dict[str, Any]]:
    """Measure cases, taken from the list, until it is empty or the time is over."""
    with closing(Workers(folder)) as workers:
        while left and time.monotonic() < deadline:
            yield measured(left.pop(), workers, rounds)


def main(arguments: Sequence[str]) -> None:
    """Measure what the command line names, or serve as one of the workers."""
    if arguments[:1] and arguments[0] in SIDES:
        worker = Worker()
        serve({request.__name__: request for request in (worker.prepare, worker.sample)})
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="only cases that it matches")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=540, help="start no case after so many")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--cache", type=Path, help="folder for compiled kernels, kept afterwards")
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--validation", action="store_true", help="only cases for validation")
    options = parser.parse_args(arguments)
    from tests.corpus.users import FAMILIES

    names = [f"{f}/{case.label}" for f, cases in FAMILIES.items() for case in cases]
    names = [name for name in names if re.search(options.only, name)]
    if options.validation:
        names = [name for name in names if is_validation(name)]
    if options.list:
        print("\n".join(names))
        return
    run(options, names)


if __name__ == "__main__":
    main(sys.argv[1:])
