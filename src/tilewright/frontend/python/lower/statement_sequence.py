"""Lowering of statement lists, with the rest of the function for early returns.

Control flow is structured, so a `return` under a run-time condition cannot leave the middle of a
block:

    if n == 0:            cf.if %c
        return     ->       then {}
    work()                  else { work() }

The statements after a list are a chain of `Continuation`s. An `if` that returns on one side lowers
that chain on its other side, up to the end of the function. A first attempt, which determines
whether the `if` returns at all, has no chain (None); it raises `ContinuationUnknown` to need one.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tilewright.frontend.python.lower.function_frame import (
    FUNCTION_END,
    STATEMENTS,
    Continuation,
    Ending,
    FunctionFrame,
    Outcome,
    Returned,
)
from tilewright.frontend.python.lower.jump_flags import ITERATION_OVER, UnlessJumped, has_jumped
from tilewright.support import TilewrightError
from tilewright.support.fresh_stack import nested


class ContinuationUnknown(Exception):
    """A branch returns on some paths only, and its continuation is unknown here."""


@nested
def lower_statements(
    frame: FunctionFrame, statements: Sequence[ast.stmt], continuation: Continuation | None
) -> Outcome:
    """Lower a statement list; an `if` in it that returns needs the continuation."""
    for index, node in enumerate(statements):
        handler = STATEMENTS.get(type(node))
        if handler is None:
            frame.unsupported(node, f"a {type(node).__name__} statement")
        # Only `if` reads the continuation; building it copies the tail of the list.
        if type(node) is ast.If:
            frame.continuation = Continuation(statements[index + 1 :], continuation)
        try:
            outcome = handler(frame, node)
        except TilewrightError as error:
            raise error.with_loc(frame.ctx.loc) from error.__cause__
        if outcome is None and type(node) is ast.If:
            outcome = _unless_jumped(frame, node, statements[index + 1 :])
        if outcome is not None:
            return None if outcome is Ending.REST_DONE else outcome
    return None


def _unless_jumped(frame: FunctionFrame, node: ast.If, rest: Sequence[ast.stmt]) -> Outcome:
    """The statements after an `if` in which a jump depends on a run-time condition."""
    jumped = has_jumped(frame, ITERATION_OVER)
    if isinstance(jumped, bool):
        return Ending.JUMP if jumped else None
    if rest:
        # None: no side of an `if` in the rest could run to the end of the function.
        guarded = UnlessJumped(node, ITERATION_OVER, lambda: lower_statements(frame, rest, None))
        STATEMENTS[UnlessJumped](frame, guarded)
    return Ending.REST_DONE


def reaches_function_end(continuation: Continuation | None) -> bool:
    """Whether a chain extends to the end of the function."""
    while continuation is not None and continuation is not FUNCTION_END:
        continuation = continuation.following
    return continuation is FUNCTION_END


def lower_to_function_end(frame: FunctionFrame, continuation: Continuation | None) -> Outcome:
    """Lower the rest of the function. Errors: ContinuationUnknown for None."""
    while continuation is not FUNCTION_END:
        if continuation is None:
            raise ContinuationUnknown
        outcome = lower_statements(frame, continuation.statements, continuation.following)
        if outcome is not None:
            return outcome
        continuation = continuation.following
    return Returned(None, None)
