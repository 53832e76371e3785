"""Calls of user functions: of grids, heuristics, tuning."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tilewright.support import errors

T = TypeVar("T")


def call_user_function(
    what: str, takes: str, function: Callable[..., T], *args: object, **keywords: object
) -> T:
    """Call the function with these arguments; BadCallback if it does not accept them.

    what: the function's role, as "the grid function"; takes: a description of its arguments.
    Exceptions of the function itself pass unchanged.
    """
    try:
        return function(*args, **keywords)
    except TypeError as problem:
        trace = problem.__traceback__
        # Arguments are bound before the callee has a frame: a traceback with more entries than that
        # of this function was raised inside the callee.
        if trace is None or trace.tb_next is not None:
            raise
        raise errors.BadCallback(what, str(problem), takes) from None
