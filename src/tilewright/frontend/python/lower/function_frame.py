"""The frame of a Python function, and the tables from kinds of `ast` nodes to their handlers.

Handlers are plain functions in the modules of this package; importing those fills the tables.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NoReturn

from tilewright.frontend.lowering_frame import LoweringFrame, LoweringSession
from tilewright.frontend.python.captured_names import Environment
from tilewright.frontend.python.function_source import FunctionSource, source_of
from tilewright.frontend.python.lower.strict_triton import refuse_extensions
from tilewright.frontend.python.lower.syntax_queries import local_names
from tilewright.language import DeviceFunction
from tilewright.support import SourceLoc, errors
from tilewright.support.data_class import dataclass
from tilewright.support.fresh_stack import nested
from tilewright.support.registration import Registration


@dataclass(frozen=True, slots=True)
class Returned:
    """Ending of a statement list: the function has returned this value."""

    value: object
    node: ast.stmt | None


class Ending(Enum):
    """Other endings of a statement list than its last statement.

    JUMP: a `break` or `continue` on every path; REST_DONE: the last statement, with an `if` that
    has lowered its continuation on one of its sides.
    """

    JUMP = "jump"
    REST_DONE = "rest done"


Outcome = Returned | Ending | None
"""None: the statement list ended at its last statement, and its continuation follows."""

ExpressionHandler = Callable[["FunctionFrame", ast.expr], object]
StatementHandler = Callable[["FunctionFrame", ast.stmt], Outcome]

EXPRESSIONS: dict[type[Any], ExpressionHandler] = {}
STATEMENTS: dict[type[Any], StatementHandler] = {}

expression = Registration(EXPRESSIONS)
"""Decorator of the handlers of expressions; they return a language value."""

statement = Registration(STATEMENTS)
"""Decorator of the handlers of statements; they return an `Outcome`."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """The next statements, and their continuation; see `statement_sequence`."""

    statements: Sequence[ast.stmt]
    following: Continuation | None


FUNCTION_END = Continuation((), None)
"""The end of the function: it returns None."""


Session = LoweringSession[DeviceFunction]


class FunctionFrame(LoweringFrame[ast.expr | ast.stmt]):
    """One Python function being lowered: its source, its names, and the loops around the statement.

    scope: local names and their values, see `language_values`.
    loops: number of run-time loops of this function around the current statement.
    continuation: that of the statement being lowered; None if it is unknown.
    """

    __slots__ = (
        "_file", "_shift", "continuation", "environment", "local", "loops", "scope", "session",
        "source",
    )  # fmt: skip

    def __init__(
        self, session: Session, function: DeviceFunction, caller: SourceLoc | None = None
    ) -> None:
        super().__init__(session.ctx, caller)
        self.session = session
        # A nested function has its own; see `nested_functions`.
        source, names = getattr(function, "source", None), getattr(function, "environment", None)
        self.source: FunctionSource = source or source_of(function.fn)
        self.environment: Environment = names or Environment(function.fn)
        refuse_extensions(self.source, self.environment, session.ctx.options, caller)
        self.local = local_names(self.source)
        self.scope: dict[str, object] = {}
        self.loops = 0
        self.continuation: Continuation | None = FUNCTION_END
        self._file = self.source.file
        self._shift = self.source.line_shift

    @nested
    def expression(self, node: ast.expr) -> object:
        """The value of an expression."""
        handler = EXPRESSIONS.get(type(node))
        if handler is None:
            self.unsupported(node, f"a {type(node).__name__} expression")
        return handler(self, node)

    def loc(self, node: ast.expr | ast.stmt) -> SourceLoc:
        """The location of a node in the user's file, with the chain of calls."""
        # SourceLoc has one line: a node of several lines is marked to the end of its first.
        end = node.end_col_offset if node.end_lineno == node.lineno else None
        return SourceLoc(
            self._file,
            node.lineno + self._shift,
            node.col_offset,
            -1 if end is None else end,
            self.source.name,
            self.caller,
        )

    def header(self) -> SourceLoc:
        """The location of the function's `def` line."""
        name = self.source.name
        return SourceLoc(self._file, self.source.tree.lineno + self._shift, function=name)

    def fail(self, node: ast.expr | ast.stmt, error: errors.TilewrightError) -> NoReturn:
        """Raise an error at a node."""
        raise error.with_loc(self.loc(node))

    def unsupported(
        self, node: ast.expr | ast.stmt, construct: str, instead: str = "", triton: str = ""
    ) -> NoReturn:
        """Raise the error for an unsupported Python construct; triton: see `TilewrightError`."""
        words = triton or None
        self.fail(node, errors.UnsupportedLanguageConstruct(construct, instead, triton=words))
