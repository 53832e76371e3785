"""Programs by the thousand, in processes of which each may crash or hang: both are failures.

A worker takes seeds one after the other and tells before each step what it is about to do. One that
is silent for too long is killed; whoever dies is replaced, and what it was at is the failure.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import select
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tests.fuzz.program_dtypes import Undefined
from tests.fuzz.program_tree import Program
from tests.fuzz.random_program import program
from tests.fuzz.reduce_program import fails_alike, reduced
from tests.fuzz.run_program import Failure, failure_of
from tests.guarded_devices import device_class
from tilewright.support import settings
from tilewright.support.asynchronous_exceptions import suppress
from tilewright.support.data_class import dataclass

LIVES = 400
"""Programs of one process; what compiled kernels leave behind goes with it."""
NO_CACHE = Path(os.devnull) / "none"
"""A folder that cannot be made, so that compiled kernels are not kept."""
COLLECT = 50
"""Programs between two collections of garbage."""
ALIKE = 2
"""Failures of one signature that are reduced."""


@dataclass(frozen=True)
class Plan:
    """What to run. limit: seconds for one step of one program; reduce: seconds for one failure."""

    devices: tuple[str, ...]
    limit: float = 60.0
    reduce: float = 60.0
    first_seed: int = 0
    count: int = 1000
    processes: int = 1


@dataclass
class Result:
    """What became of one program.

    seconds: of CPU, by step; smaller: the failing program, reduced.
    """

    seed: int
    features: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    undefined: str = ""
    failure: Failure | None = None
    smaller: Program | None = None


# ---- in a worker ---------------------------------------------------------------------------------


def prepare(devices: Sequence[str]) -> None:
    """Settings of a process that only fuzzes: one thread each, and kernels go nowhere."""
    current = settings()
    current.cpu.threads = 1
    current.cache.dir = NO_CACHE
    for name in devices:
        device_class(name)().give_up_early()
    gc.freeze()  # what is loaded by now stays
    gc.disable()  # `_serve` collects
    warnings.simplefilter("ignore")


def examine(seed: int, devices: Sequence[str], about_to: Callable[[str], None]) -> Result:
    """Run one program on all devices."""
    result = Result(seed)
    clock: list[Any] = [time.process_time(), ""]

    def step(name: str) -> None:
        now = time.process_time()
        if clock[1]:
            result.seconds[clock[1]] = now - clock[0]
        clock[:] = [now, name]
        about_to(name)

    step("generate")
    made = program(seed)
    result.features = tuple(sorted(made.features))
    try:
        result.failure = failure_of(made, devices, step)
    except Undefined as reason:
        result.undefined = str(reason)
    step("")
    return result


def _serve(pipe: Connection, plan: Plan) -> None:
    """The life of a worker: seeds in, steps and results out."""
    prepare(plan.devices)
    seen: Counter[tuple[str, str, str]] = Counter()
    while True:
        seed = pipe.recv()
        if seed is None:
            return
        _die_after(20 * plan.limit)
        if seed % COLLECT == 0:
            gc.collect()
        result = examine(seed, plan.devices, lambda step: pipe.send(("step", step)))
        if result.failure is not None:
            signature = result.failure.signature
            seen[signature] += 1
            if seen[signature] <= ALIKE:
                pipe.send(("failing", result))
                result.smaller = _reduced_here(seed, result.failure, plan, pipe)
        pipe.send(("result", result))


def _reduced_here(seed: int, failure: Failure, plan: Plan, pipe: Connection) -> Program:
    def still_fails(candidate: Program) -> bool:
        pipe.send(("step", "reduce"))
        return fails_alike(candidate, failure, lambda p: failure_of(p, (failure.device,)))

    return reduced(program(seed), still_fails, plan.reduce)


def _die_after(seconds: float) -> None:
    """The system ends this process then, whatever it is at and whoever else is left."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(seconds) + 1)


def isolated(made: Program, devices: Sequence[str], limit: float) -> Failure | None:
    """As `failure_of`, in a child that may crash or hang."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            _die_after(limit + 5)
            os.close(read)
            _answer(made, devices, write)
        os._exit(0)
    os.close(write)
    ready, _, _ = select.select([read], [], [], limit)
    answer = b""
    if ready:
        with os.fdopen(read, "rb") as file:
            answer = file.read()
    else:
        os.close(read)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if answer:
        found = pickle.loads(answer)
        if isinstance(found, Exception):
            raise found
        return found
    kind = f"signal {os.WTERMSIG(status)}" if ready and os.WIFSIGNALED(status) else "no end"
    return Failure(made.seed, devices[-1], kind, "")


def _answer(made: Program, devices: Sequence[str], write: int) -> None:
    prepare(devices)
    try:
        found: Any = failure_of(made, devices)
    except Exception as error:
        found = error
    with os.fdopen(write, "wb") as file:
        file.write(pickle.dumps(found))


def _reduce_isolated(pipe: Connection, failure: Failure, plan: Plan) -> None:
    """Reduce a program that crashes or hangs."""
    limit = min(10.0, plan.limit / 2)

    def run(candidate: Program) -> Failure | None:
        pipe.send(("step", "reduce"))
        return isolated(candidate, (failure.device,), limit)

    smaller = reduced(
        program(failure.seed), lambda p: fails_alike(p, failure, run), 2 * plan.reduce
    )
    pipe.send(("result", Result(failure.seed, failure=failure, smaller=smaller)))


# ---- around the workers --------------------------------------------------------------------------


class Worker:
    """A process with what it is at."""

    def __init__(self, target: Callable[..., None], *args: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=target, args=(theirs, *args), daemon=True)
        # Ctrl-C is meant for the process that sums up. The tracker unblocks it as it starts.
        resource_tracker.ensure_running()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self.process.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
        self.seed: int | None = None
        self.failing: Result | None = None
        self.step = "start"
        self.since = time.monotonic()
        self.done = 0

    def give(self, seed: int | None) -> None:
        self.seed, self.since, self.step = seed, time.monotonic(), "start"
        self.failing = None
        self.pipe.send(seed)

    def told(self) -> Result | None:
        """Take one message; the result if it is one. Raises EOFError if the worker is dead."""
        kind, value = self.pipe.recv()
        self.since = time.monotonic()
        if kind == "step":
            self.step = value
            return None
        if kind == "failing":
            self.step, self.failing = "reduce", value
            return None
        self.done += 1
        return value

    def end(self) -> str:
        """Kill the process, and say how it had ended before."""
        self.process.join(1.0)
        code = self.process.exitcode
        self.process.kill()
        self.process.join()
        self.pipe.close()
        return "no end" if code is None else f"signal {-code}" if code < 0 else f"exit {code}"


class Fleet:
    """Runs the plan; `results()` gives what becomes of each program, in any order."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.seeds = iter(range(plan.first_seed, plan.first_seed + plan.count))
        self.workers: list[Worker] = []
        self.reducers: list[Worker] = []
        self.waiting: list[Failure] = []
        self.seen: Counter[tuple[str, str, str]] = Counter()

    def results(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Result]:
        """stop: is asked at least every second whether to end early."""
        try:
            for _ in range(self.plan.processes):
                self._start()
            while (self.workers or self.reducers or self.waiting) and not stop():
                self._start_reducers()
                yield from self._some()
            yield from (w.failing for w in self.workers if w.failing is not None)
        finally:
            for worker in (*self.workers, *self.reducers):
                worker.process.kill()

    def _start(self) -> None:
        seed = next(self.seeds, None)
        if seed is not None:
            worker = Worker(_serve, self.plan)
            worker.give(seed)
            self.workers.append(worker)

    def _start_reducers(self) -> None:
        while self.waiting and len(self.reducers) < max(1, self.plan.processes // 4):
            failure = self.waiting.pop()
            worker = Worker(_reduce_isolated, failure, self.plan)
            worker.seed = failure.seed
            self.reducers.append(worker)

    def _some(self) -> Iterator[Result]:
        there = {w.pipe: w for w in (*self.workers, *self.reducers)}
        for pipe in wait(list(there), timeout=0.5):
            worker = there[pipe]  # type: ignore[index]
            try:
                result = worker.told()
            except (EOFError, ConnectionError):
                yield from self._died(worker, worker.end())
                continue
            if result is not None:
                yield result
                self._next(worker)
        now = time.monotonic()
        for worker in there.values():
            if now - worker.since > self.plan.limit and worker in (*self.workers, *self.reducers):
                worker.process.kill()
                worker.end()
                yield from self._died(worker, "no end")

    def _next(self, worker: Worker) -> None:
        if worker in self.reducers:
            self.reducers.remove(worker)
            worker.end()
            return
        seed = next(self.seeds, None)
        if seed is not None and worker.done < LIVES:
            worker.give(seed)
            return
        self.workers.remove(worker)
        worker.give(None)
        worker.end()
        if seed is not None:
            fresh = Worker(_serve, self.plan)
            fresh.give(seed)
            self.workers.append(fresh)

    def _died(self, worker: Worker, how: str) -> Iterator[Result]:
        if worker in self.reducers:
            self.reducers.remove(worker)
            return
        self.workers.remove(worker)
        assert worker.seed is not None
        result = worker.failing or Result(
            worker.seed, failure=Failure(worker.seed, worker.step, how, "")
        )
        yield result
        failure = result.failure
        assert failure is not None
        self.seen[failure.signature] += 1
        if self.seen[failure.signature] <= ALIKE and failure.device in self.plan.devices:
            self.waiting.append(failure)
        self._start()
