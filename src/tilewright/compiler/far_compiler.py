"""Compilation by an executor: of `concurrent.futures`, Dask, executorlib, mpi4py ...

    with FarCompiler(executor):           # for this thread and its copies of the context
        compile(src, target, options)     # the front end here, the rest as a job there

A job that brings no result is tried once more, then compiled by a new process of this machine: a
kernel that crashes the compiler ends that process, not this one.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Self

from tilewright.compiler.compile import Compilation, compile_elsewhere
from tilewright.compiler.compile_jobs import Failed, job_text, read_result, run_job
from tilewright.compiler.kernel_store import Entry
from tilewright.support import (
    TilewrightError,
    TilewrightWarning,
    environment_of_python,
    errors,
    kernel_hooks,
    usable_cpus,
)
from tilewright.support.asynchronous_exceptions import synchronous

_TRIES = 2
_CHILD = "from tilewright.compiler.compile_jobs import main; main()"


class FarCompiler:
    """Compiles by an executor, in a `with` block. Raises InvalidOption for what is no executor."""

    def __init__(self, executor: Executor) -> None:
        if not callable(getattr(executor, "submit", None)):
            raise errors.InvalidOption("executor", "an executor, with a method `submit`", executor)
        self._executor = executor
        # Of this machine, for jobs that workers have failed to do.
        self._local = ThreadPoolExecutor(len(usable_cpus()), "tilewright-child")

    def __enter__(self) -> Self:
        self._before = compile_elsewhere.set(self)
        return self

    def __exit__(self, *_error: object) -> None:
        compile_elsewhere.reset(self._before)

    def __call__(self, work: Compilation) -> Entry | None:
        """The compiled kernel; None for one that has to be compiled here, for its error or because
        of hooks. Errors: OtherCompiler, CompilerCrashed, CompilationErrors of the front end."""
        if work.compilation.override_dir is not None or kernel_hooks.stages is not None:
            return None
        if not work.starts_with_tile_ir:
            return None
        job = job_text(work)
        problem: object = None
        for _ in range(_TRIES):
            try:
                return _entry(read_result(work, self._executor.submit(run_job, job).result()))
            except TilewrightError:
                raise
            except synchronous(Exception) as failure:
                problem = failure
        text = f"{type(problem).__name__}: {problem}".strip().rstrip(":")
        warn_of = errors.WorkerLost(described(work), _TRIES, text.partition("\n")[0])
        warnings.warn(str(warn_of), TilewrightWarning, stacklevel=2)
        return self._local.submit(_compiled_by_child, work, job).result()


def described(work: Compilation) -> str:
    """A kernel with its configuration, for messages."""
    constants = getattr(work.source, "constant_texts", {})
    options = {"num_warps": work.options.num_warps, "num_stages": work.options.num_stages}
    values = ", ".join(f"{name}={value}" for name, value in {**constants, **options}.items())
    return f"{work.source.name} ({values})"


def _entry(result: Entry | Failed) -> Entry | None:
    return None if isinstance(result, Failed) else result


def _compiled_by_child(work: Compilation, job: str) -> Entry | None:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=job.encode(), capture_output=True, env=environment_of_python(), check=False,
    )  # fmt: skip
    try:
        return _entry(read_result(work, done.stdout))
    except TilewrightError:
        raise
    except synchronous(Exception):
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        problem = f"exit status {done.returncode}" + (f" ({last})" if last else "")
        raise errors.CompilerCrashed(described(work), problem) from None
