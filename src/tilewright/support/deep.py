"""Goes on, on a fresh stack, with what is nested too deeply for one.

Python lets each thread nest 1,000 calls. Whatever follows the nesting of a user's program (an
expression within expressions, a function that is inlined into functions) counts its levels and
calls the next one here before they are used up: a thread has a stack, and a count, of its own.
The caller waits, so nothing runs at the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import ParamSpec, TypeVar

__all__ = ["LEVELS", "on_fresh_stack"]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

LEVELS = 25
"""Nested levels that go on one stack; an inlined call takes about ten of Python's calls."""


def on_fresh_stack(
    function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """What the function returns or raises, called on a stack of its own in the same context."""
    future: Future[Result] = Future()
    context = copy_context()

    def work() -> None:
        try:
            future.set_result(context.run(function, *args, **kwargs))
        except BaseException as error:
            future.set_exception(error)

    thread = Thread(target=work, name="tilewright-deep")
    thread.start()
    thread.join()
    return future.result()
