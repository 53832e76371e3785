"""Boundary between the user's code and the compiler, which errors cross without compiler frames."""

import inspect
import os
from collections.abc import Iterator, Sequence
from types import FrameType, TracebackType

from tilewright.support.asynchronous_exceptions import is_asynchronous
from tilewright.support.errors import CompilationError, TilewrightError, triton_words
from tilewright.support.settings_table import settings

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


class UserBoundary:
    """Context manager of the public entry points: `with user_boundary: ...`.

    A `TilewrightError` that leaves the block shows only the frames outside the function with the
    block: its traceback, cause and context are dropped. `TILEWRIGHT_DEBUG=1` keeps them. Other
    exceptions pass unchanged: one from a callback of the user or a compiler bug needs its frames.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        """Nothing to set up."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Strip a designed error; never swallow anything."""
        if isinstance(error, TilewrightError) and not settings().compilation.debug:
            # The interpreter re-raises after __exit__ with this traceback, and adds the frames that
            # it unwinds from then on: those of the caller, not that of the block.
            error.__traceback__ = None
            error.__cause__ = _cause(error) if triton_words.shown else None
            error.__suppress_context__ = True


def _cause(error: TilewrightError) -> BaseException | None:
    """The cause of an error as Triton chains errors.

    Each call of a function has the error inside as its cause, and a language function a ValueError
    with its words.
    """
    inner = error.inner()
    if inner is not None:
        inner.__cause__ = _cause(inner)
        return inner
    of_call = isinstance(error, CompilationError) and error.of_language_function
    return ValueError(error.triton_words or error.message) if of_call else None


class KernelBoundary(UserBoundary):
    """`UserBoundary` around the user's own Python code, in a kernel that is interpreted.

    An exception of that code shows its own frames, without those of the interpreter in between. An
    error from inside this package keeps all frames, since it is a bug.
    """

    __slots__ = ()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Strip a designed error, and frames of this package from any other; never swallow
        anything.
        """
        super().__exit__(kind, error, traceback)
        if error is None or isinstance(error, TilewrightError) or is_asynchronous(error):
            return
        if settings().compilation.debug:
            return
        entries = list(_entries(traceback))
        # the innermost frame decides: an error that this package raises is a bug here
        if entries and not _is_own(entries[-1]):
            error.__traceback__ = _chained([entry for entry in entries if not _is_own(entry)])


def caller_outside() -> tuple[str, int]:
    """File and line of the innermost frame of the user's code."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_back is not None and _is_of_package(frame):
        frame = frame.f_back
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _is_of_package(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_PACKAGE)


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_own(entry: TracebackType) -> bool:
    return entry.tb_frame.f_code.co_filename.startswith(_PACKAGE)


def _chained(entries: Sequence[TracebackType]) -> TracebackType | None:
    chain: TracebackType | None = None
    for entry in reversed(entries):
        # new entries, from the innermost outwards: assigning `tb_next` would cut a traceback that
        # others hold
        chain = TracebackType(chain, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return chain


user_boundary = UserBoundary()
kernel_boundary = KernelBoundary()
