"""`break` and `continue` under a run-time condition: hidden flags.

Control flow is structured, so that a jump cannot leave the middle of a block. It sets a flag, which
branches join like any variable, and later statements test the flag:

    while True:                  cf.while carrying (%break = false): continue while not %break
        if done(): break    ->     %break = cf.if %done then { cf.yield true }
        work()                                          else { work(); cf.yield false }
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import cast

from tilewright.frontend.python.lower.function_frame import FunctionFrame, Outcome
from tilewright.frontend.python.lower.language_values import is_static, static_value
from tilewright.language import constexpr, tensor

# Keywords of Python: no variable of the user has these names.
ITERATION_OVER = "continue"
"""The flag that a jump, `continue` or `break`, has ended this iteration."""
LOOP_LEFT = "break"
"""The flag that a `break` has ended the innermost loop."""

YES, NO = constexpr(True), constexpr(False)


class UnlessJumped(ast.stmt):
    """Statement made by the lowering: the statements after one that may have jumped.

    flag: ITERATION_OVER or LOOP_LEFT, a run-time value; rest: lowers these statements.
    """

    def __init__(self, after: ast.stmt, flag: str, rest: Callable[[], Outcome]) -> None:
        super().__init__()
        ast.copy_location(self, after)
        self.flag = flag
        self.rest = rest


def begin_iteration(frame: FunctionFrame) -> None:
    """Clear the flags."""
    frame.scope[ITERATION_OVER] = frame.scope[LOOP_LEFT] = NO


def has_jumped(frame: FunctionFrame, flag: str) -> tensor | bool:
    """The value of a flag: True or False if it is a compile-time constant."""
    value = frame.scope.get(flag, NO)
    return bool(static_value(value)) if is_static(value) else cast("tensor", value)
