"""Runs statement lists, with the rest of the function at hand for an early return.

Control flow is structured, so a `return` under a run-time condition cannot leave the middle of a
block:

    if n == 0:            cf.if %c
        return     ->       then {}
    work()                  else { work() }

What follows a statement list is a chain of `Rest`. An `if` that returns on one side runs that chain
on its other side, up to the end of the function. While it is being found out whether an `if`
returns at all the chain is unknown (None); needing it then raises `ContinuationUnknown`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tilewright.frontend.python.lower.function_frame import (
    FUNCTION_END,
    STATEMENTS,
    FunctionFrame,
    Outcome,
    Rest,
    Returned,
)
from tilewright.support import TilewrightError
from tilewright.support.fresh_stack import nested


class ContinuationUnknown(Exception):
    """A branch returns on some paths only, and what follows it is not known here."""


@nested
def run(frame: FunctionFrame, statements: Sequence[ast.stmt], rest: Rest | None) -> Outcome:
    """Lower a statement list; `rest` is what follows it, for an `if` inside that returns."""
    for index, node in enumerate(statements):
        handler = STATEMENTS.get(type(node))
        if handler is None:
            frame.unsupported(node, f"a {type(node).__name__} statement")
        if type(node) is ast.If:
            frame.rest = Rest(statements[index + 1 :], rest)
        try:
            outcome = handler(frame, node)
        except TilewrightError as error:
            raise error.with_loc(frame.ctx.loc) from error.__cause__
        if outcome is not None:
            return outcome
    return None


def is_known(rest: Rest | None) -> bool:
    """Whether a chain goes on to the end of the function."""
    while rest is not None and rest is not FUNCTION_END:
        rest = rest.following
    return rest is FUNCTION_END


def run_to_end(frame: FunctionFrame, rest: Rest | None) -> Outcome:
    """Lower everything from `rest` to the end of the function; `rest` None is unknown."""
    while rest is not FUNCTION_END:
        if rest is None:
            raise ContinuationUnknown
        outcome = run(frame, rest.statements, rest.following)
        if outcome is not None:
            return outcome
        rest = rest.following
    return Returned(None, None)
