"""Goes on, on a fresh stack, with what is nested too deeply for one.

Python lets each thread nest 1,000 calls. Whatever follows the nesting of a user's program (an
expression within expressions, a block within blocks, a function that is inlined into functions)
is marked as `nested`: its levels are counted, and before they are used up the next one is called
on a thread, which has a stack, and a count, of its own. The caller waits, so nothing runs at the
same time.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from functools import wraps
from threading import Thread, local
from typing import ParamSpec, TypeVar

__all__ = ["nested", "on_fresh_stack"]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

LEVELS = 25
"""Nested levels that go on one stack; an inlined call takes about ten of Python's calls."""


class _Thread(local):
    """level: how many nested functions are being called on this thread."""

    level = 0


_thread = _Thread()


def nested(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """A function that calls itself, maybe through others, for what is inside its argument."""

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if _thread.level >= LEVELS:
            return on_fresh_stack(call, *args, **kwargs)
        _thread.level += 1
        try:
            return function(*args, **kwargs)
        finally:
            _thread.level -= 1

    return call


def on_fresh_stack(
    function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """What the function returns or raises, called on a stack of its own in the same context."""
    future: Future[Result] = Future()
    # Settings and recorders are context variables; the thread must see the caller's.
    context = copy_context()

    def work() -> None:
        try:
            future.set_result(context.run(function, *args, **kwargs))
        # Also KeyboardInterrupt: it belongs to the thread that waits.
        except BaseException as error:
            future.set_exception(error)

    thread = Thread(target=work, name="tilewright-deep")
    # not from a pool: each stack waits for the next, so a bounded pool could run out
    thread.start()
    thread.join()
    return future.result()
