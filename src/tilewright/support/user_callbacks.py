"""Calls of functions that users hand over: of grids, heuristics, tuning."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tilewright.support import errors

__all__ = ["ask"]

T = TypeVar("T")


def ask(what: str, takes: str, function: Callable[..., T], *args: object, **keywords: object) -> T:
    """function(*args, **keywords); BadCallback if it does not take such arguments.

    what: the function's part, as "the grid function"; takes: what it is called with, for people.
    What the function itself raises passes unchanged.
    """
    try:
        return function(*args, **keywords)
    except TypeError as problem:
        trace = problem.__traceback__
        # Arguments are bound before the callee has a frame: a traceback with more than the entry of
        # this function was raised inside the callee.
        if trace is None or trace.tb_next is not None:
            raise
        raise errors.BadCallback(what, str(problem), takes) from None
