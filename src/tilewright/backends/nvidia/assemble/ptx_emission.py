"""From LLVM IR to PTX, isolated from crashes of LLVM.

LLVM aborts the process on code that it cannot select. Text with only constructs that are tested for
the architecture (nvptx_legality.py) is compiled here, any other in a child process, whose exit
becomes an exception. The child is started at the first need (0.15 s) and kept.

The child also compiles long functions. It disables a pass of the code generator with quadratic time
(18,000 lines: 0.88 s of 1.15), which LLVM can only do for a whole process.
"""

from __future__ import annotations

import _thread
import atexit
import os
import pickle
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import IO, cast

from tilewright.backends.nvidia.arch import Arch
from tilewright.backends.nvidia.assemble.nvptx_legality import unlisted
from tilewright.llvm import LlvmError, TargetSpec, emit_assembly, is_long, leave_out_passes
from tilewright.support import ForkLock, errors, operating_system
from tilewright.support.asynchronous_exceptions import suppress, synchronous
from tilewright.support.data_class import dataclass

TIMEOUT_SECONDS = 120.0  # of one text; then the child is killed
_END_SECONDS = 2.0  # for the child to exit after the end of its input
_LENGTH = struct.Struct("<Q")  # of a message, in front of it
_OF_SQUARE_TIME = "slsr"  # straight-line strength reduction
_MESSAGE_CHARACTERS = 400  # of LLVM's message that an error shows
# the program may have changed sys.path since it was started
_BOOT = "import sys; sys.path[:] = {path!r}; import {module} as m; m.serve()"


def emit_ptx(text: str, arch: Arch, kernel: str) -> str:
    """Compile LLVM IR to PTX.

    Raises LlvmError for invalid text, InternalCompilerError where LLVM aborts.
    """
    risks = unlisted(text, arch)
    if not risks and not is_long(text):
        return emit_assembly(text, arch.target)
    return emit_ptx_isolated(text, arch.target, kernel, risks)


def emit_ptx_isolated(text: str, target: TargetSpec, kernel: str, risks: Sequence[str] = ()) -> str:
    """Compile LLVM IR to PTX in a child process; see `emit_ptx`. risks: named in the error."""
    try:
        return _child().emit(text, target)
    except _ChildEndedError as ended:
        raise _report(ended, text, kernel, risks) from None


@dataclass
class _ChildEndedError(Exception):
    """The child exited. how: status or signal; log: the output of LLVM."""

    how: str
    log: str


def _report(
    ended: _ChildEndedError, text: str, kernel: str, risks: Sequence[str]
) -> errors.InternalCompilerError:
    log = ended.log.strip()
    message = log.splitlines()[0][:_MESSAGE_CHARACTERS] if log else "no message"
    handle, path = tempfile.mkstemp(prefix=f"tilewright-{kernel}-", suffix=".ll")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    notes = (f"not shown to compile: {', '.join(risks[:5])}",) if risks else ()
    return errors.InternalCompilerError(
        f"LLVM could not generate code for kernel '{kernel}': {message} ({ended.how})",
        reproducer=path,
        notes=notes,
    )


class _Child:
    """A process that compiles one text after the other."""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._is_lost = False
        # a file, not a pipe: no one reads it while the child runs, and a full pipe would block LLVM
        self._log = cast("IO[bytes]", tempfile.TemporaryFile())
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOT.format(path=sys.path, module=__name__)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )

    @property
    def alive(self) -> bool:
        return not self._is_lost and self._process.poll() is None

    def emit(self, text: str, target: TargetSpec) -> str:
        """Raises _ChildEndedError if the child does not survive it, LlvmError as the child did."""
        with self._lock:
            # LLVM may also loop for ever: then the child's exit ends the read below
            answered = _thread.allocate_lock()
            answered.acquire()
            try:
                # no threading.Thread: a signal handler that raises in its `start` breaks its locks
                _thread.start_new_thread(self._kill_late, (answered,))
                answer = self._request((text, target))
            except BaseException:
                # After an exception of a signal handler the answer is outstanding: the next request
                # must not read it as its own.
                self._is_lost = True
                self._process.kill()
                raise
            finally:
                answered.release()
        if isinstance(answer, LlvmError):
            raise answer
        return cast("str", answer)

    def _kill_late(self, answered: _thread.LockType) -> None:
        if not answered.acquire(timeout=TIMEOUT_SECONDS):
            self._process.kill()

    def _request(self, request: object) -> object:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        try:
            _send(cast("IO[bytes]", stdin), request)
            return _receive(cast("IO[bytes]", stdout))
        except synchronous(EOFError, OSError):
            raise _ChildEndedError(_how(self._process.wait()), self._read_log()) from None

    def _read_log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def disown(self) -> None:
        """In a forked process: keep no end of the pipes, or the child's input would not end before
        this process does. Other objects may close their numbers again, so these stay open."""
        with open(os.devnull, "r+b", buffering=0) as nothing, suppress(OSError, ValueError):
            for stream in (self._process.stdin, self._process.stdout):
                assert stream is not None
                os.dup2(nothing.fileno(), stream.fileno(), inheritable=False)

    def close(self) -> None:
        """Stop the child: it exits at the end of its input."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:  # another process also has the other end of its input
            self._process.kill()
            self._process.wait()


def _how(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    if -status == signal.SIGKILL:
        return f"killed, after {TIMEOUT_SECONDS:.0f} s at the latest"
    return signal.Signals(-status).name


class _Current:
    """The child of this process."""

    child: _Child | None = None
    lock = ForkLock()

    @classmethod
    def forget(cls) -> None:
        """After a fork: the compiling process belongs to the parent."""
        # without the lock: the child of a fork has this one thread
        child, cls.child = cls.child, None
        if child is not None:
            child.disown()


operating_system.at_fork(after_in_child=_Current.forget)


def _child() -> _Child:
    with _Current.lock:
        # an aborted one is replaced at the next need
        if _Current.child is None or not _Current.child.alive:
            _Current.child = _Child()
        return _Current.child


@atexit.register
def _stop() -> None:
    if _Current.child is not None and _Current.child.alive:
        _Current.child.close()


# --- in the child ---------------------------------------------------------------------------------


def serve() -> None:
    """Compile the texts from standard input until its end. Runs in the child."""
    requests = sys.stdin.buffer
    leave_out_passes(_OF_SQUARE_TIME)
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # whatever LLVM prints is no answer
        while True:
            try:
                text, target = cast("tuple[str, TargetSpec]", _receive(requests))
            except EOFError:
                return
            try:
                answer: object = emit_assembly(text, target)
            except LlvmError as error:
                answer = error
            _send(answers, answer)


def _send(stream: IO[bytes], message: object) -> None:
    data = pickle.dumps(message)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def _receive(stream: IO[bytes]) -> object:
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    return pickle.loads(_exactly(stream, length))


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data
