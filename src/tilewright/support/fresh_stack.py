"""Deep recursion that continues on a fresh stack.

Python lets each thread nest 1,000 calls. A function that follows the nesting of a user's program
(an expression within expressions, a block within blocks, a function that is inlined into functions)
is marked as `nested`. Its levels are counted, and before they are used up the next one is called on
a new thread with its own stack and count. The caller waits, so nothing runs at the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from functools import wraps
from threading import Thread, local
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

LEVELS = 25
"""Nested levels on one stack; an inlined call takes about ten of Python's calls."""


class _Thread(local):
    """level: number of nested functions on this thread's stack"""

    level = 0


_thread = _Thread()


def nested(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate a function that calls itself, perhaps through others, for parts of its argument."""

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
    """Call the function on a new stack, in the same context, for its result or exception."""
    future: Future[Result] = Future()
    # Settings and recorders are context variables, so the thread needs the caller's context.
    context = copy_context()

    def work() -> None:
        try:
            future.set_result(context.run(function, *args, **kwargs))
        # including KeyboardInterrupt, which belongs to the thread that waits
        except BaseException as error:
            future.set_exception(error)

    thread = Thread(target=work, name="tilewright-deep")
    # without a pool: each stack waits for the next, so a bounded pool could run out
    thread.start()
    thread.join()
    return future.result()
