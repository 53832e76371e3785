"""Imports every module that registers handlers; their order means nothing."""

from tilewright.frontend.python.lower import (
    branches,
    calls,
    expressions,
    loops,
    operators,
    statements,
)
from tilewright.frontend.python.lower.function_frame import EXPRESSIONS, STATEMENTS

_MODULES = (branches, calls, expressions, loops, operators, statements)

HANDLED = frozenset((*EXPRESSIONS, *STATEMENTS))
"""Every kind of syntax node with a handler."""
