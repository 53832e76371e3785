"""A process that compiles jobs (`compiler/compile_jobs.py`), one after the other.

It is started by a plain command, not by `multiprocessing`, which would import the main module of
this program, and it imports no module of the user: a job is tile IR.
"""

from __future__ import annotations

import atexit
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import IO, Any, cast

from tilewright.compiler import result_stream, run_job
from tilewright.support import ForkLock, environment_of_python
from tilewright.support.asynchronous_exceptions import suppress, synchronous

_SERVE = "from tilewright.aot.worker_process import serve; serve()"
_LENGTH = struct.Struct("<Q")
"""Bytes before each job and each result: their number."""


class WorkerProcess(Executor):
    """An executor of one process, which starts at the first job and ends with this process.

    `submit` waits for the result: it is for a thread that has nothing else to do.
    """

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._running: tuple[int, subprocess.Popen[bytes]] | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Do a job. fn: `run_job`; args: its text. A process that dies is the future's error."""
        assert fn is run_job
        future: Future[Any] = Future()
        try:
            future.set_result(self._done(str(args[0]).encode()))
        except synchronous(OSError, EOFError) as problem:
            self.stop()
            future.set_exception(RuntimeError(f"the compiling process has ended: {problem!r}"))
        return future

    def start(self) -> None:
        """Start the process, if it is not running. If that fails, the next job has the error."""
        with self._lock, suppress(OSError):
            self._process()

    def stop(self) -> None:
        """Stop the process; the next job starts another one."""
        running, self._running = self._running, None
        if running is not None and running[0] == os.getpid():
            running[1].kill()
            running[1].wait()

    def _done(self, job: bytes) -> bytes:
        with self._lock:
            process = self._process()
            _write(cast("IO[bytes]", process.stdin), job)
            return _read(cast("IO[bytes]", process.stdout))

    def _process(self) -> subprocess.Popen[bytes]:
        if self._running is not None:
            owner, process = self._running
            # the pipes of a forked process are those of its parent
            if owner == os.getpid() and process.poll() is None:
                return process
        process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment_of_python(),
        )
        self._running = os.getpid(), process
        atexit.register(self.stop)
        return process


def _write(stream: IO[bytes], content: bytes) -> None:
    stream.write(_LENGTH.pack(len(content)) + content)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes:
    """The next content. Errors: EOFError at the end of the stream."""
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        raise EOFError
    return stream.read(_LENGTH.unpack(header)[0])


def serve() -> None:
    """The work of the process: jobs of its input, until that ends."""
    with result_stream() as results, suppress(EOFError):
        while True:
            _write(results, run_job(_read(sys.stdin.buffer).decode()))
