"""Kernels over several devices: the examples compared with NCCL, and with a single device.

    torchrun --nproc-per-node 2 -m benchmarks.gpu distributed [PHASE ...] [--csv FILE]
    python -m benchmarks.gpu distributed --threads 2 [PHASE ...]     # one process, no NCCL
    torchrun --nproc-per-node 4 -m benchmarks.gpu distributed --cpu  # gloo, small

Phases: check-errors, check-plain (ordinary tensors as peers), check-reduce, time-reduce,
check-matmul, time-matmul, check-ring, time-ring; by default all.
Checks run in changing sizes, for --runs runs or --seconds per phase. Times are medians of rounds in
which the contestants run in random order, each captured in a CUDA graph of several calls;
the slower rank counts.
"""

from __future__ import annotations

import argparse
import csv
import faulthandler
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.gpu.rank_run import (
    CALLS,
    KB,
    MB,
    WAIT_SECONDS,
    Call,
    Run,
    captured,
    difference,
    example,
    noise,
    show,
    timed,
    torch,
)
from tilewright import TilewrightError

# --- checks ---------------------------------------------------------------------------------------


def repeat(run: Run, name: str, step: Callable[[random.Random], float], check: Call) -> None:
    """Run steps, which return how far from right they are; until --runs or --seconds are over.

    check(): raises if a wait in a kernel has ended by its timeout"""
    chance = random.Random(7)
    begun, count, worst = time.monotonic(), 0, 0.0
    while count < run.options.runs:
        for _ in range(min(25, run.options.runs - count)):
            worst = max(worst, step(chance))
            count += 1
        check()
        if max(run.agreed(time.monotonic() - begun)) > run.options.seconds:
            break
    wrong = max(run.agreed(worst))
    seconds = time.monotonic() - begun
    run.report(
        name, f"{count} runs, {seconds:.0f} s", wrong, "of tol", "ok" if wrong <= 1 else "WRONG"
    )


def check_reduce(run: Run) -> None:
    """All-reduce in changing sizes, compared with the sum by one device, and NCCL's."""
    t = torch()
    most = run.options.most_bytes
    for dtype, tolerance in ((t.float32, 1e-6), (t.bfloat16, 2**-7)):
        reduce = example("all_reduce").AllReduce(
            run.group, dtype, run.device, run.options.programs, WAIT_SECONDS
        )
        count = most // dtype.itemsize
        inputs = [noise(run, r, (count + 4096,), dtype) for r in range(run.world)]
        out = t.zeros(count, dtype=dtype, device=run.device)

        def step(chance: random.Random, reduce: Any = reduce, inputs: Any = inputs,
                 out: Any = out, tolerance: float = tolerance) -> float:  # fmt: skip
            how = chance.choice(("one-shot", "two-shot"))
            n = int(4 * KB * (most / 4 / KB) ** chance.random()) // out.itemsize
            n = n if chance.random() < 0.25 else max(16, n // 16 * 16)
            first = 16 * chance.randrange(256)
            parts = [x[first : first + n] for x in inputs]
            run.together(lambda: reduce(parts[run.rank], out[:n], how, num_warps=8))
            exact = sum(part.double() if not run.on_gpu else part.float() for part in parts)
            wrong = difference(out[:n], exact, tolerance)
            if run.has_nccl and chance.random() < 0.5:
                theirs = parts[run.rank].clone()
                t.distributed.all_reduce(theirs)
                # It rounds every partial sum, which may be larger than the result.
                rounded = 2 * run.world * tolerance
                wrong = max(wrong, difference(out[:n], theirs.float(), rounded))
            return wrong

        repeat(run, f"all-reduce {str(dtype)[6:]}", step, reduce.signals.check)
        if run.on_gpu:
            check_replay(run, f"all-reduce {str(dtype)[6:]}", reduce, inputs, out, tolerance)


def check_replay(
    run: Run, name: str, reduce: Any, inputs: list[Any], out: Any, tolerance: float
) -> None:
    """A graph of launches of several sizes, replayed on changing inputs."""
    x = inputs[run.rank].clone()
    sizes = (1024, 65536, min(1 << 20, out.numel()))

    def calls() -> None:
        for n in sizes:
            reduce(x[:n], out[:n], "one-shot", num_warps=8)
        reduce(x[: sizes[-1]], out[: sizes[-1]], "two-shot", num_warps=8)

    graph = captured(run, calls)
    n, worst = sizes[-1], 0.0
    for replay in range(20):
        moved = [i.roll(replay) for i in inputs]
        x.copy_(moved[run.rank])
        graph.replay()
        worst = max(worst, difference(out[:n], sum(m[:n].float() for m in moved), tolerance))
    reduce.signals.check()
    wrong = max(run.agreed(worst))
    run.report(f"{name}, graph", "20 replays", wrong, "of tol", "ok" if wrong <= 1 else "WRONG")


def check_matmul(run: Run) -> None:
    """Gathered matmul in changing sizes, compared with the matmul of the whole matrices."""
    t = torch()
    dtype = t.float16 if run.on_gpu else t.float32
    cases = []
    for k in (64, 512, 1024) if run.on_gpu else (16, 48):
        rows = 128 if run.on_gpu else 16
        for scale in (1, 3):
            gathered = example("gathered_matmul").GatheredMatmul(
                run.group, rows * scale, k, dtype, run.device, WAIT_SECONDS
            )
            cases.append(gathered)

    def step(chance: random.Random) -> float:
        gathered = chance.choice(cases)
        rows, k = gathered.shard.shape
        seed, columns = chance.randrange(1 << 30), 64 * chance.randint(1, 8)
        shards = [noise(run, seed + r, (rows, k), dtype) for r in range(run.world)]
        gathered.shard.copy_(shards[run.rank])
        b = noise(run, seed + 100 + run.rank, (k, columns), dtype)
        out = t.zeros(rows * run.world, columns, dtype=dtype, device=run.device)
        run.together(lambda: gathered(b, out))
        exact = t.cat(shards).float() @ b.float()
        return difference(out, exact, 2e-3 * k**0.5)

    repeat(run, "all-gather + matmul", step, lambda: [c.signals.check() for c in cases])


def check_ring(run: Run) -> None:
    """Ring attention in changing lengths, compared with attention to all keys on one device."""
    t = torch()
    dtype = t.float16 if run.on_gpu else t.float32
    head = 128 if run.on_gpu else 16
    cases = [
        example("ring_attention").RingAttention(
            run.group, heads, length, head, dtype, run.device, WAIT_SECONDS
        )
        for heads, length in ((1, 256), (2, 384), (4, 1024))[: 3 if run.on_gpu else 1]
    ]

    def step(chance: random.Random) -> float:
        ring = chance.choice(cases)
        _, heads, length, _ = ring.keys.shape
        seed = chance.randrange(1 << 30)
        keys = [noise(run, seed + r, tuple(ring.keys.shape), dtype) for r in range(run.world)]
        ring.keys.copy_(keys[run.rank])
        q = noise(run, seed + 100 + run.rank, (heads, length, head), dtype)
        whole = t.cat(keys, 2).float()
        scores = q.float() @ whole[0].transpose(1, 2) / head**0.5
        exact = t.softmax(scores, -1) @ whole[1]
        return difference(run.together(lambda: ring(q)), exact, 5e-3)

    repeat(run, "ring attention", step, lambda: [c.signals.check() for c in cases])


def check_errors(run: Run) -> None:
    """Mistakes of ranks: each is an error on every rank that it concerns, and none a hang."""
    from tilewright.distributed import Signals, peers, zeros

    t = torch()
    own = zeros(16, t.float32, run.group, run.device)
    signals = Signals.of(run.group, 1, 1.0, run.device)
    elsewhere = "cpu" if run.on_gpu else run.device

    def alone() -> None:
        if run.rank == 0:
            signals.barrier()
            signals.check()

    mistakes: dict[str, tuple[Call, str]] = {
        "another size": (
            lambda: peers(zeros(16 + run.rank, t.float32, run.group, run.device), run.group),
            "TW603",
        ),
        "a wrong rank": (lambda: peers(own, run.group).view(run.world), "TW607"),
        "an absent rank": (alone, "TW605" if run.rank == 0 else ""),
        "memory that is not shared": (lambda: peers(t.zeros(16), run.group), "TW604"),
    }
    if run.on_gpu:
        device = run.device if run.rank else elsewhere
        mistakes["a tensor of the host"] = (
            lambda: peers(zeros(16, t.float32, run.group, device), run.group), "TW603",
        )  # fmt: skip
        other = t.zeros(16, device=f"cuda:{(run.rank + 1) % run.world}")
        mistakes["an array of another GPU"] = (
            lambda: example("ring_attention").merge_kernel[(1,)](
                other, own, own, own, 1, HEAD=4, BLOCK=1
            ),
            "TW203",
        )
    for name, (call, code) in mistakes.items():
        begun, found, text = time.monotonic(), "", ""
        try:
            call()
        except TilewrightError as error:
            found, text = error.code, error.message
        seconds = max(run.agreed(time.monotonic() - begun))
        right = min(run.agreed(found == code)) == 1
        run.report(f"error: {name}", text[:60], seconds, "s", "ok" if right else f"WRONG {found}")


def check_plain(run: Run) -> None:
    """Peers of ordinary tensors of GPUs, by CUDA IPC, and of torch's symmetric memory."""
    from tilewright.distributed import peers

    t = torch()
    tensors = {"ordinary": t.full((1000,), float(run.rank), device=run.device)[100:200]}
    if hasattr(run.group, "process_group"):  # of torch, as its rendezvous requires
        memory: Any = import_module("torch.distributed._symmetric_memory")
        tensors["symmetric"] = memory.empty(1000, device=run.device).fill_(run.rank)[100:200]
    for name, tensor in tensors.items():
        run.synchronize()
        found, peer = peers(tensor, run.group), (run.rank + 1) % run.world
        out = t.zeros_like(tensor)
        found.pull(peer, out)
        wrong = abs(float(out.sum()) - 100 * peer) + abs(float(found.view(peer).sum()) - 100 * peer)
        run.report(f"peers: {name} tensor", "pull, view", max(run.agreed(wrong)), "wrong")


# --- times ----------------------------------------------------------------------------------------


def time_reduce(run: Run) -> None:
    """All-reduce from 4 kB to 64 MB, compared with NCCL's."""
    t = torch()
    for dtype in (t.float32, t.bfloat16):
        reduce = example("all_reduce").AllReduce(
            run.group, dtype, run.device, run.options.programs, WAIT_SECONDS
        )
        for size in (4 * KB, 16 * KB, 64 * KB, 256 * KB, MB, 4 * MB, 16 * MB, 64 * MB):
            time_size(run, reduce, dtype, size)
        reduce.signals.check()


def time_size(run: Run, reduce: Any, dtype: Any, size: int) -> None:
    """One size of an all-reduce, in bytes."""
    t = torch()
    n = size // dtype.itemsize
    x, out = noise(run, run.rank, (n,), dtype), t.zeros(n, dtype=dtype, device=run.device)
    y = x.clone()
    calls: dict[str, Call] = {
        "one-shot": lambda: reduce(x, out, "one-shot", num_warps=8),
        "two-shot": lambda: reduce(x, out, "two-shot", num_warps=8),
    }
    if run.has_nccl:
        calls["nccl"] = lambda: t.distributed.all_reduce(y)
    times = timed(run, calls, CALLS if size < 4 * MB else 4)
    show(run, f"all-reduce {str(dtype)[6:]} {size // KB} kB", times, "nccl")


def time_matmul(run: Run) -> None:
    """All-gather and matmul of 4096 and 8192, compared with all-gather, then cuBLAS."""
    for size in (4096, 8192):
        time_size_of_matmul(run, size)


def time_size_of_matmul(run: Run, size: int) -> None:
    """One size of a gathered matmul."""
    t = torch()
    case = f"all-gather + matmul {size}^3 fp16"
    rows, columns = size // run.world, size // run.world
    gathered = example("gathered_matmul").GatheredMatmul(
        run.group, rows, size, t.float16, run.device, WAIT_SECONDS
    )
    gathered.shard.copy_(noise(run, run.rank, (rows, size), t.float16))
    b = noise(run, 9 + run.rank, (size, columns), t.float16)
    out, theirs = (t.zeros(size, columns, dtype=t.float16, device=run.device) for _ in "ab")
    whole = t.zeros(size, size, dtype=t.float16, device=run.device)
    plain = gathered.shard.clone()

    def gather_then_multiply() -> None:
        t.distributed.all_gather_into_tensor(whole, plain)
        t.matmul(whole, b, out=theirs)

    calls: dict[str, Call] = {
        "ours": lambda: gathered(b, out),
        "cuBLAS alone": lambda: t.matmul(whole, b, out=theirs),
        "our matmul alone": lambda: own_matmul(whole, b, theirs),
        "our halves alone": lambda: own_halves(whole, b, theirs),
        "pull alone": lambda: gathered.peers.pull((run.rank + 1) % run.world, gathered.pulled[0]),
    }
    if run.has_nccl:
        calls["all-gather, cuBLAS"] = gather_then_multiply
        calls["all-gather alone"] = lambda: t.distributed.all_gather_into_tensor(whole, plain)
        gather_then_multiply()
        gathered(b, out)
        wrong = max(run.agreed(difference(out, theirs.float(), 2e-3 * size**0.5)))
        run.report(case, "beside cuBLAS", wrong, "of tol", "ok" if wrong <= 1 else "WRONG")
    times = timed(run, calls, 4)
    show(run, case, times, "all-gather, cuBLAS")
    gathered.signals.check()
    if run.has_nccl:
        parts = times["all-gather alone"], times["cuBLAS alone"]
        run.report(case, "ideal: max / sum", "", "", max(parts) / sum(parts))


def own_matmul(a: Any, b: Any, out: Any) -> None:
    """The ready-made matmul."""
    from tilewright.kernels import matmul

    matmul(a, b, out=out)


def own_halves(a: Any, b: Any, out: Any) -> None:
    """The same as two matmuls, of one shard each."""
    half = a.shape[0] // 2
    own_matmul(a[:half], b, out[:half])
    own_matmul(a[half:], b, out[half:])


def time_ring(run: Run) -> None:
    """Ring attention, S 16k, D 128, compared with a gather of keys, then PyTorch's attention."""
    t = torch()
    length, head, heads = 16384 // run.world, 128, 8
    ring = example("ring_attention").RingAttention(
        run.group, heads, length, head, t.float16, run.device, WAIT_SECONDS
    )
    ring.keys.copy_(noise(run, run.rank, tuple(ring.keys.shape), t.float16))
    q = noise(run, 9 + run.rank, (heads, length, head), t.float16)
    calls: dict[str, Call] = {"ours": lambda: ring(q)}
    whole = t.zeros(run.world, *ring.keys.shape, dtype=t.float16, device=run.device)

    def theirs() -> Any:
        t.distributed.all_gather_into_tensor(whole, ring.keys)
        k, v = whole.transpose(0, 1).transpose(1, 2).reshape(2, heads, -1, head)
        return t.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]

    if run.has_nccl:
        calls["all-gather, SDPA"] = theirs
        wrong = max(run.agreed(difference(ring(q), theirs().float(), 5e-3)))
        verdict = "ok" if wrong <= 1 else "WRONG"
        run.report("ring attention 16k x 128", "beside SDPA", wrong, "of tol", verdict)
    show(run, "ring attention 16k x 128", timed(run, calls, 2), "all-gather, SDPA")
    ring.signals.check()


PHASES: dict[str, Callable[[Run], None]] = {
    "check-errors": check_errors, "check-plain": check_plain,
    "check-reduce": check_reduce, "time-reduce": time_reduce, "check-matmul": check_matmul,
    "time-matmul": time_matmul, "check-ring": check_ring, "time-ring": time_ring,
}  # fmt: skip


# --- ranks ----------------------------------------------------------------------------------------


def run_phases(run: Run, stop: Call) -> None:
    """Run the phases; one that fails on any rank ends the run. stop(): end a phase that hangs"""
    wanted = run.options.phases or [
        name for name in PHASES if run.on_gpu or name.startswith("check") and name != "check-plain"
    ]
    for name in wanted:
        stop()
        try:
            PHASES[name](run)
        except Exception as error:  # noqa: BLE001 -- reported; the other ranks end by a timeout
            print(f"rank {run.rank}, {name}: {type(error).__name__}: {error}", flush=True)
            write(run)
            raise
    write(run)


def write(run: Run) -> None:
    """Append the rows to the file of --csv."""
    if not run.options.csv or run.rank:
        return
    file = Path(run.options.csv)
    device = torch().cuda.get_device_name(0) if run.on_gpu else "cpu"
    head = {
        "date": date.today().isoformat(), "commit": commit(), "device": f"{run.world} x {device}",
        "ranks": "threads" if run.options.threads else "processes",
    }  # fmt: skip
    is_new = not file.exists()
    with file.open("a", newline="") as out:
        fields = [*head, "case", "contestant", "value", "unit", "ratio"]
        writer = csv.DictWriter(out, fields)
        if is_new:
            writer.writeheader()
        writer.writerows(head | row for row in run.rows)


def commit() -> str:
    """The checked-out commit, by git or the variable COMMIT."""
    done = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True)
    return os.environ.get("COMMIT") or done.stdout.strip()


def run_process(options: argparse.Namespace) -> None:
    """A rank that torchrun has started."""
    t = torch()
    distributed = t.distributed
    from tilewright.distributed import FolderGroup, group_of

    rank = int(os.environ["LOCAL_RANK"])
    device = "cpu" if options.cpu else f"cuda:{rank}"
    limit = timedelta(seconds=30)
    if options.cpu:
        t.set_num_threads(1)
        distributed.init_process_group("gloo", timeout=limit)
    else:
        t.cuda.set_device(rank)
        distributed.init_process_group("nccl", timeout=limit, device_id=t.device(device))
    watch(options)
    group = group_of()
    if options.memory == "ipc" or (not options.cpu and not shares_symmetric(group, device)):
        group = FolderGroup(
            f"/tmp/ranks-{os.environ['MASTER_PORT']}-{os.getppid()}", rank, group.size
        )
    if rank == 0:
        print(f"{t.__version__}, group: {type(group).__name__}", flush=True)
    run_phases(Run(group, device, options), lambda: watch(options))
    distributed.destroy_process_group()


def shares_symmetric(group: Any, device: str) -> bool:
    """Whether all ranks can allocate symmetric memory of torch; else they use CUDA IPC."""
    from tilewright.distributed import Signals

    try:
        signals = Signals.of(group, 1, WAIT_SECONDS, device)
        signals.barrier()
        signals.check()
        problem = ""
    except Exception as error:  # noqa: BLE001 -- printed, and IPC is tried
        problem = f"{type(error).__name__}: {error}"
        print(f"no symmetric memory: {problem}", flush=True)
    return not any(group.exchange(problem))


def run_threads(options: argparse.Namespace) -> None:
    """All ranks, as threads of this process, each with its GPU."""
    from tilewright.distributed import ThreadGroup

    failed: list[int] = []

    def rank_main(group: Any) -> None:
        try:
            torch().cuda.set_device(group.rank)
            run_phases(Run(group, f"cuda:{group.rank}", options), lambda: watch(options))
        except Exception:  # noqa: BLE001 -- printed where it was raised
            failed.append(group.rank)

    torch().cuda.init()
    ranks = [
        threading.Thread(target=rank_main, args=(group,))
        for group in ThreadGroup.ranks(options.threads, 20)
    ]
    for thread in ranks:
        thread.start()
    for thread in ranks:
        thread.join()
    if failed:
        sys.exit(1)


def watch(options: argparse.Namespace) -> None:
    """End this process if a phase takes longer than its limit."""
    faulthandler.dump_traceback_later(options.limit, exit=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the phases on the ranks of torchrun, or on threads."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("phases", nargs="*", metavar="PHASE", help=", ".join(PHASES))
    parser.add_argument("--threads", type=int, default=0, help="ranks in this process")
    parser.add_argument("--cpu", action="store_true", help="on CPUs, with gloo")
    parser.add_argument("--runs", type=int, default=1000, help="of each check")
    parser.add_argument("--seconds", type=float, default=60, help="of each check")
    parser.add_argument("--memory", choices=("symmetric", "ipc"), default="symmetric")
    parser.add_argument("--limit", type=float, default=300, help="seconds of a phase")
    parser.add_argument("--rounds", type=int, default=15, help="of times")
    parser.add_argument("--programs", type=int, default=0, help="of an all-reduce, at most")
    parser.add_argument("--most-bytes", type=int, default=0, help="of a checked all-reduce")
    parser.add_argument("--csv", help="file to append rows to")
    options = parser.parse_args(arguments)
    options.programs = options.programs or (8 if options.cpu else 256)
    options.most_bytes = options.most_bytes or (256 * KB if options.cpu else 64 * MB)
    unknown = set(options.phases) - set(PHASES)
    if unknown:
        parser.error(f"unknown phases {', '.join(unknown)}; choose from {', '.join(PHASES)}")
    if options.threads:
        run_threads(options)
    else:
        run_process(options)


if __name__ == "__main__":
    main()
