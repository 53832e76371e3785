"""Ranks under torchrun that tune a kernel for several keys; each prints one line of JSON.

    torchrun --nproc-per-node 4 -m tests.unit.distributed.agreeing_ranks --buckets 20 --slow 3
    torchrun --nproc-per-node 2 -m tests.unit.distributed.agreeing_ranks --backend nccl

--slow RANK: its timings are five times as long. --fail raise|exit|sleep RANK BUCKET: this rank
raises, exits, or sleeps for too long in the tuning of that key; the others report the longest time
of a launch in seconds.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tilewright as tw
import tilewright.language as tl
from tilewright.runtime import do_bench
from tilewright.support import settings

torch: Any = importlib.import_module("torch")
dist: Any = importlib.import_module("torch.distributed")
CONFIGS = [
    tw.Config({"BLOCK": block}, num_warps=warps)
    for block in (32, 64, 128, 256, 512, 1024, 2048)
    for warps in (2, 4)
]


class Planted(Exception):
    """A failure that a test has planted."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--buckets", type=int, default=20)
    parser.add_argument("--slow", type=int, default=-1)
    parser.add_argument("--fail", nargs=3, action="append", default=[])
    parser.add_argument("--timeout", type=float, default=25.0)
    parser.add_argument("--cache", default=None)
    return parser.parse_args()


class Bench:
    """Measures; slower, or failing, on one rank."""

    def __init__(self, args: argparse.Namespace, rank: int) -> None:
        self.slowness = 5.0 if rank == args.slow else 1.0
        self.failures = {int(n): kind for kind, failing, n in args.fail if rank == int(failing)}
        self.timeout = args.timeout
        self.now = 0
        self.calls = 0

    def __call__(self, fn: Callable[[], object], *, quantiles: Sequence[float]) -> list[float]:
        self.calls += 1
        self.fail(self.failures.pop(self.now, ""))
        times: Any = do_bench(fn, warmup=1, rep=3, quantiles=quantiles)
        return [ms * self.slowness for ms in times]

    def fail(self, kind: str) -> None:
        if kind == "raise":
            raise Planted("planted")
        if kind == "sleep":
            time.sleep(2 * self.timeout)
        if kind == "exit":
            os._exit(0)  # with 0, since torchrun ends all ranks after a failure


def tuned(bench: Bench) -> Any:
    @tw.autotune(CONFIGS, key=["n"], do_bench=bench)
    @tw.jit
    def double(x, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, 2 * tl.load(x + i, i < n), i < n)

    return double


def launch(kernel: Any, bucket: int, device: str) -> str:
    """Launch for one key, check the result, and return the configuration."""
    n = 1000 + 500 * bucket
    x = torch.arange(n, dtype=torch.float32, device=device)
    out = torch.zeros_like(x)
    kernel[lambda meta: (tw.cdiv(n, meta["BLOCK"]),)](x, out, n)
    assert torch.equal(out, 2 * x)
    return str(kernel.best_config)


def tune(bench: Bench, buckets: int, device: str) -> dict[str, Any]:
    """The choice for each key, how many configurations were measured, and the longest launch."""
    kernel = tuned(bench)
    chosen: list[str] = []
    measured: list[int] = []
    longest, problem = 0.0, ""
    for bench.now in range(buckets):
        before, start = bench.calls, time.monotonic()
        try:
            chosen.append(launch(kernel, bench.now, device))
        except Planted as error:
            problem = repr(error)
            chosen.append("raised")
        measured.append(bench.calls - before)
        longest = max(longest, time.monotonic() - start)
    row = {"chosen": chosen, "measured": measured, "longest": round(longest, 2)}
    return {**row, "problem": problem}


def main() -> None:
    args = arguments()
    device = "cpu"
    if args.backend == "nccl":
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    dist.init_process_group(args.backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    dist.all_reduce(torch.ones(1, device=device))
    if args.cache:
        settings().cache.dir = Path(args.cache) / str(rank)
    bench = Bench(args, rank)
    warnings.simplefilter("always")
    with warnings.catch_warnings(record=True) as caught, tw.distributed.agree(timeout=args.timeout):
        row: dict[str, Any] = {"rank": rank, "ranks": size, **tune(bench, args.buckets, device)}
        if not args.fail:
            before, kernel = bench.calls, tuned(bench)
            row["again"] = [launch(kernel, n, device) for n in range(args.buckets)]
            row["measured_again"] = bench.calls - before
    row["warnings"] = [str(one.message).partition("\n")[0] for one in caught]
    print(json.dumps(row) + "\n", end="", flush=True)
    if not args.fail:
        dist.barrier()
        dist.destroy_process_group()
    os._exit(0)  # without a wait for ranks that have failed


if __name__ == "__main__":
    main()
