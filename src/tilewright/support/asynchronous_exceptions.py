"""Exceptions of signal handlers, which no `except` of this package may take for its own.

Python runs a handler between any two instructions of the main thread. What it raises, such as the
TimeoutError of an alarm, appears inside whatever runs, with any type. It is the user's: it must not
be reported as a bug, nor as a damaged file, nor be suppressed. So handlers that catch more than the
errors of this package are written

    except synchronous(OSError) as problem:
    with suppress(OSError):                     # this module's

An exception is asynchronous if its traceback contains a function that was called with the frame it
interrupted, which is how Python calls signal handlers and trace functions. Exceptions that a thread
sets in another one (PyThreadState_SetAsyncExc) leave no such mark.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from inspect import CO_VARARGS
from types import FrameType, TracebackType
from typing import TypeVar, overload

E = TypeVar("E", bound=BaseException)


@overload
def synchronous(kind: type[E], /) -> tuple[type[E], ...]: ...
@overload
def synchronous(*kinds: type[Exception]) -> tuple[type[Exception], ...]: ...
def synchronous(*kinds: type[BaseException]) -> tuple[type[BaseException], ...]:
    """The kinds, or none for a signal handler's exception: `except synchronous(...)`."""
    problem = sys.exception()
    return () if problem is not None and is_asynchronous(problem) else kinds


class suppress:
    """`contextlib.suppress`, except that exceptions of signal handlers propagate."""

    __slots__ = ("_kinds",)

    def __init__(self, *kinds: type[BaseException]) -> None:
        self._kinds = kinds

    def __enter__(self) -> None:
        """Nothing to set up."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Whether the exception ends here."""
        return isinstance(problem, self._kinds) and not is_asynchronous(problem)


def is_asynchronous(problem: BaseException) -> bool:
    """Whether a signal handler, or a trace function, raised it."""
    return any(map(_is_handler, _frames(problem.__traceback__)))


def _frames(trace: TracebackType | None) -> Iterator[FrameType]:
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _is_handler(frame: FrameType) -> bool:
    """Whether the function of a frame was called with the frame of its caller."""
    code, caller = frame.f_code, frame.f_back
    if caller is None or not (code.co_argcount or code.co_flags & CO_VARARGS):
        return False
    values = frame.f_locals
    arguments = [values.get(name) for name in code.co_varnames[: code.co_argcount]]
    if code.co_flags & CO_VARARGS:
        rest = values.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount])
        arguments += rest if isinstance(rest, tuple) else ()
    return any(argument is caller for argument in arguments)
