"""Time users' kernels of the corpus on this GPU: Tilewright versus Triton.

    python -m benchmarks.gpu users [--only REGEX] [--json FILE] [--seconds S] [--rounds N]
                                   [--cache FOLDER] [--processes N] [--validation] [--list]

All cases are compiled first, by processes of both compilers at once. Then each side has one
process; cases come in an order shuffled anew, and in each round both sides are sampled in an order
shuffled anew, with a cold L2 cache. The speed is the median of the rounds' ratios. Results of one
launch are compared by norms and random projections. A run continues where FILE ends; `--seconds`
starts no new case after S. A fifth of the cases is for validation: nobody tunes for them.

All programs of a kernel without a program number write one tile: `one_dot`, `chained`, `backward`,
`low_rank_gates` and others. Its time varies by +-40 % with the addresses of its arrays and proves
nothing: the table marks its row "one tile", and the means leave it out.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.compared_rows import RowsFile, comparison, failures, summary
from benchmarks.worker_process import WorkerEnded, WorkerProcess, Workers, serve

SIDES = ("tilewright", "triton")
FLUSH_BYTES = 512 << 20
GOAL = 0.95
TOLERANCE = 2e-2
"""Error bound of results, relative to their norm: fp16 operands are rounded in other places."""


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
        prepared = workers.ask_all("prepare", name)
        if failed := failures(prepared):
            workers.close()  # an error of the GPU would stay
            return {**record, "failed": failed}
        samples: dict[str, list[float]] = {side: [] for side in SIDES}
        for _ in range(rounds):
            for side in random.sample(SIDES, 2):
                samples[side].append(workers.ask(side, "sample")["ms"])
    except WorkerEnded as problem:
        workers.close()
        return {**record, "failed": {"process": str(problem)}}
    return {
        **record, **comparison(SIDES, samples),
        "differs": differs(*(prepared[side]["digests"] for side in SIDES)),
    }  # fmt: skip


def differs(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> bool:
    """Whether a tensor's norm or projection is another than the other side's."""
    return any(
        abs(a - b) > TOLERANCE * max(mine[0], true[0], 1e-6)
        for mine, true in zip(ours, theirs, strict=True)
        for a, b in zip(mine, true, strict=True)
    )


def uniform_cases() -> set[str]:
    """The cases whose programs all do the same, since their kernel has no program number."""
    from benchmarks.gpu.user_launches import is_uniform
    from tests.corpus.users import FAMILIES

    return {f"{f}/{c.label}" for f, cases in FAMILIES.items() for c in cases if is_uniform(c)}


def is_validation(name: str) -> bool:
    """Whether a case is one of the fifth that nobody looks at while tuning."""
    return zlib.crc32(name.encode()) % 5 == 0


def table_of(records: Sequence[Mapping[str, Any]], uniform: Set[str]) -> Table:
    """The records, slowest first, with summaries that leave out the cases of `uniform`."""
    table = Table(title="Users' kernels: speed compared with Triton's")
    table.add_column("case")
    for heading in ("speed", "95 %", "us", "Triton's", ""):
        table.add_column(heading, justify="right")
    good = sorted((r for r in records if "failed" not in r), key=lambda r: r["speed"])
    for r in good:
        table.add_row(
            r["name"], f"{r['speed']:.3f}", f"{r['low95']:.2f}-{r['high95']:.2f}",
            *(f"{r['ms'][side] * 1e3:.1f}" for side in SIDES),
            _remarks(r, r["name"] in uniform),
        )  # fmt: skip
    for r in records:
        if "failed" in r:
            table.add_row(r["name"], "not run", "", "", "", "; ".join(r["failed"].values())[-60:])
    table.caption = "\n".join(_summary([r for r in good if r["name"] not in uniform]))
    return table


def _remarks(record: Mapping[str, Any], is_uniform: bool) -> str:
    return f"{'one tile' * is_uniform} {'differs' * record['differs']}".strip()


def _summary(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for title, kept in (("tuned for", False), ("validation", True)):
        if speeds := [r["speed"] for r in records if r["validation"] == kept]:
            yield f"{title}: {summary(speeds, GOAL)}"


def run(options: argparse.Namespace, names: list[str]) -> None:
    """Measure the cases that the file does not hold yet, until the time is over."""
    deadline = time.monotonic() + options.seconds
    rows = RowsFile(options.json, "Users' kernels")
    left = rows.missing(names)
    random.shuffle(left)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.cache or Path(temporary)
        began = time.monotonic()
        compile_all(left, folder, options.processes)
        print(f"compiled in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        for record in _until(deadline, left, folder, options.rounds):
            rows.add([record])
    Console(width=120).print(table_of(rows.of(names), uniform_cases()))
    print(f"left for the next run: {len(left)}")


def _until(deadline: float, left: list[str], folder: Path, rounds: int) -> Iterator[dict[str, Any]]:
    """Measure cases, taken from the list, until it is empty or the time is over."""
    with closing(Workers(SIDES, lambda side: started(side, folder))) as workers:
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
