"""Several compilations at a time, by an executor: threads, processes, or other machines."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from tilewright.backends import CommonOptions, GPUTarget
from tilewright.compiler.compile import compile
from tilewright.compiler.sources import IRSource, KernelSource
from tilewright.support import errors, import_late, user_boundary
from tilewright.support.asynchronous_exceptions import synchronous

T = TypeVar("T")
_Source = KernelSource | IRSource | str | Path
CompileJob = (
    _Source
    | tuple[_Source]
    | tuple[_Source, GPUTarget | None]
    | tuple[_Source, GPUTarget | None, dict[str, Any] | CommonOptions | None]
)
"""The arguments of `compile`: a source, perhaps with a target and options."""

_MAX_WAITING = 256
"""Jobs that an executor has at a time: a thread of this process waits for each."""


class Started(list[Future[T]]):
    """The futures of calls, in order. cancel: gives up those that have not started"""

    def __init__(self, futures: Iterable[Future[T]], cancel: Callable[[], object]) -> None:
        super().__init__(futures)
        self.cancel = cancel


def start_compilations(calls: Sequence[Callable[[], T]], executor: Executor) -> Started[T]:
    """Start calls that compile.

    Threads of an executor make the calls themselves. Other executors get the jobs of their
    compilations (`far_compiler`), for which threads of this process wait.
    """
    if isinstance(executor, ThreadPoolExecutor):
        futures = [_submitted(executor, call) for call in calls]
        return Started(futures, lambda: [future.cancel() for future in futures])
    pool = ThreadPoolExecutor(min(_MAX_WAITING, max(1, len(calls))), "tilewright-far")
    with import_late("tilewright.compiler.far_compiler").FarCompiler(executor):
        futures = [_submitted(pool, call) for call in calls]
    pool.shutdown(wait=False)
    return Started(futures, partial(pool.shutdown, wait=False, cancel_futures=True))


def _submitted(pool: Executor, call: Callable[[], T]) -> Future[T]:
    # a copy of the context for each: two threads cannot enter one context
    return pool.submit(contextvars.copy_context().run, call)


@contextmanager
def started_calls(
    calls: Sequence[Callable[[], T]], executor: Executor | None
) -> Generator[Sequence[Callable[[], T]]]:
    """A block with functions that return the results of calls. None makes the calls in this
    thread. At the end of the block those that have not started are given up."""
    if executor is None:
        yield calls
        return
    started = start_compilations(calls, executor)
    try:
        yield [future.result for future in started]
    finally:
        started.cancel()  # after an error, or an exception of a signal handler


def compile_many(
    jobs: Iterable[CompileJob], executor: Executor | None = None, *, return_errors: bool = False
) -> list[Any]:
    """Compile several kernels; a list of compiled kernels in the order of the jobs.

    jobs: sources, or tuples of the arguments of `compile`. executor: of `concurrent.futures`, or a
    subclass of its `Executor`, as those of Dask, executorlib and mpi4py.futures; None compiles in
    this thread. Threads share this process. To any other executor a kernel is sent as text, and the
    result is equal to the one that this process would make, byte by byte.

    A job whose worker dies is tried once more, then compiled by a process of this machine, with a
    warning. return_errors: put the error of a kernel in its place, instead of raising the first
    one when all jobs have ended.

    Errors: those of `compile`; OtherCompiler for a worker with other versions; CompilerCrashed.
    """
    with user_boundary:
        calls = [partial(compile, *_arguments(job)) for job in jobs]
        with started_calls(calls, executor) as results:
            done = [_outcome(result) for result in results]
        problem = next((one for one in done if isinstance(one, Exception)), None)
        if problem is not None and not return_errors:
            raise problem
        return done


def _outcome(call: Callable[[], T]) -> T | Exception:
    try:
        return call()
    except synchronous(Exception) as problem:
        return problem


def _arguments(job: object) -> tuple[Any, ...]:
    arguments = cast("tuple[Any, ...]", job) if isinstance(job, tuple) else (job,)
    if not 1 <= len(arguments) <= 3 or not isinstance(
        arguments[0], KernelSource | IRSource | str | Path
    ):
        raise errors.InvalidOption(
            "jobs", "sources, or tuples (source, target, options)", repr(arguments)
        )
    return arguments
