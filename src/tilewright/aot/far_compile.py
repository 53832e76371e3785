"""Compilation of variants by one worker process of this one.

A job is a text: the spec, the target, the settings and the folders of modules. Unlike a job for an
executor (`compiler/compile_jobs.py`), it has no tile IR: the front end, too, runs in the worker, so
that launches do not wait for the interpreter's lock. The result goes to the common disk cache.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import IO, cast

from tilewright.aot.spec import KernelSpec
from tilewright.aot.spec_file import read_spec, spec_header, spec_text
from tilewright.backends import GPUTarget
from tilewright.runtime import driver
from tilewright.support import ForkLock, environment_with, errors, settings
from tilewright.support.asynchronous_exceptions import synchronous

_SERVE = "from tilewright.aot.far_compile import serve; serve()"


def compile_in_worker(spec: KernelSpec) -> bool:
    """Compile a variant for this machine in the worker process of this one, into the disk cache.

    False: not so; the kernel has no name outside of this process, or the worker has failed.
    """
    if spec.kernel.fn.__module__ == "__main__":
        return False  # the worker would run the program
    try:
        job = job_text(spec, None)
    except (errors.InvalidSpec, errors.InvalidArgumentText):
        return False
    return _process.compile(job)


def job_text(spec: KernelSpec, target: GPUTarget | None) -> str:
    """A job for `compile_job`. Errors: InvalidSpec."""
    current = settings()
    described = driver.active.backend.target() if target is None else target
    return json.dumps(
        {
            "spec": spec_text(spec),
            "target": asdict(described),
            "folder": str(current.cache.dir),
            "assigned": {name: str(value) for name, value in vars(current.compilation).items()},
            "path": sys.path,
        }
    )


def compile_job(job: str) -> None:
    """Do a job: compile a variant into the disk cache."""
    asked = json.loads(job)
    sys.path += [folder for folder in asked["path"] if folder not in sys.path]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "spec.toml")
        file.write_text(f"{spec_header()}\n{asked['spec']}", encoding="utf-8")
        (spec,) = read_spec(file)
    with settings().cache.scope(dir=Path(asked["folder"])):
        spec.compile(GPUTarget(**asked["target"]))


class _WorkerProcess:
    """A process that compiles, one job at a time; it starts at the first job, and ends with this
    process."""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._running: tuple[int, subprocess.Popen[str]] | None = None

    def compile(self, job: str) -> bool:
        """Do a job; False if it failed, or the process."""
        with self._lock:
            process = self._started()
            try:
                cast("IO[str]", process.stdin).write(job + "\n")
                cast("IO[str]", process.stdin).flush()
                return cast("IO[str]", process.stdout).readline().strip() == "done"
            except synchronous(OSError):
                self._running = None
                return False

    def start(self) -> None:
        """Start the process, if it is not running."""
        with self._lock:
            self._started()

    def _started(self) -> subprocess.Popen[str]:
        if self._running is not None:
            owner, process = self._running
            # the pipes of a forked process are those of its parent
            if owner == os.getpid() and process.poll() is None:
                return process
        command = [sys.executable, "-c", _SERVE]
        folders = os.pathsep.join(filter(None, sys.path))
        environment = {**environment_with(), "PYTHONPATH": folders}
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, env=environment, encoding="utf-8"
        )
        self._running = os.getpid(), process
        atexit.register(self.stop)
        return process

    def stop(self) -> None:
        """Stop the process."""
        if self._running is not None and self._running[0] == os.getpid():
            self._running[1].kill()
            self._running[1].wait()
            self._running = None


_process = _WorkerProcess()


def start_worker() -> None:
    """Start the worker process, so that the first job does not wait for it."""
    _process.start()


def serve() -> None:
    """The work of the worker process: a job from each line of its input, until that ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what modules print must not become an answer
    for job in sys.stdin:
        try:
            compile_job(job)
            answer = "done"
        except synchronous(Exception) as problem:
            answer = f"failed: {problem!r}".replace("\n", " ")
        answers.write(answer + "\n")
        answers.flush()
