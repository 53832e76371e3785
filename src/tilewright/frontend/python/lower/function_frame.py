"""The state of lowering one function, and the tables from syntax node to handler.

An `FunctionFrame` is one run through one function: the kernel, or a call that is being inlined.
Handlers are plain functions in the modules beside this one; importing those fills the tables.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar, cast

from tilewright.frontend.python.captured_names import Environment
from tilewright.frontend.python.function_source import FunctionSource, source_of
from tilewright.frontend.python.lower.syntax_queries import local_names
from tilewright.frontend.semantics import Context
from tilewright.ir import Block
from tilewright.language import DeviceFunction
from tilewright.support import SourceLoc, errors
from tilewright.support.fresh_stack import nested

H = TypeVar("H", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Returned:
    """How a statement list ended: the function has returned this value."""

    value: object
    node: ast.stmt | None


@dataclass(frozen=True, slots=True)
class Jump:
    """How a statement list ended: at a `break` or `continue`."""

    node: ast.Break | ast.Continue


Outcome = Returned | Jump | None
"""None: the statement list ended at its end, and what follows it comes next."""

ExpressionHandler = Callable[["FunctionFrame", ast.expr], object]
StatementHandler = Callable[["FunctionFrame", ast.stmt], Outcome]

EXPRESSIONS: dict[type[ast.AST], ExpressionHandler] = {}
STATEMENTS: dict[type[ast.AST], StatementHandler] = {}


def expression(*kinds: type[ast.expr]) -> Callable[[H], H]:
    """Register the handler of some kinds of expression; it returns a language value."""

    def register(handler: H) -> H:
        for kind in kinds:
            EXPRESSIONS[kind] = cast("ExpressionHandler", handler)
        return handler

    return register


def statement(*kinds: type[ast.stmt]) -> Callable[[H], H]:
    """Register the handler of some kinds of statement; it returns an `Outcome`."""

    def register(handler: H) -> H:
        for kind in kinds:
            STATEMENTS[kind] = cast("StatementHandler", handler)
        return handler

    return register


@dataclass(frozen=True, slots=True)
class Rest:
    """The statements that come next, and what comes after them; see `sequence`."""

    statements: Sequence[ast.stmt]
    following: Rest | None


FUNCTION_END = Rest((), None)
"""Nothing comes next: the function returns None."""


@dataclass(slots=True)
class Session:
    """What all frames of one kernel share.

    stack: the functions being lowered, outer first
    """

    ctx: Context
    stack: list[DeviceFunction] = field(default_factory=list[DeviceFunction])


class FunctionFrame:
    """One function being lowered: where its names are, and where in the source it stands.

    scope: local names and their values, see `values`.
    loops: how many run-time loops of this function enclose the current statement.
    rest: what follows the statement being lowered; None where that is not known.
    """

    __slots__ = (
        "_file", "_shift", "caller", "ctx", "environment", "local", "loops", "rest", "scope",
        "session", "source",
    )  # fmt: skip

    def __init__(
        self, session: Session, function: DeviceFunction, caller: SourceLoc | None = None
    ) -> None:
        self.session = session
        self.ctx = session.ctx
        self.caller = caller
        self.source: FunctionSource = source_of(function.fn)
        self.environment = Environment(function.fn)
        self.local = local_names(self.source)
        self.scope: dict[str, object] = {}
        self.loops = 0
        self.rest: Rest | None = FUNCTION_END
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
        """Where a node is in the user's file, with the calls that led here."""
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
        """Where the function begins: its `def` line."""
        name = self.source.name
        return SourceLoc(self._file, self.source.tree.lineno + self._shift, function=name)

    def at(self, node: ast.expr | ast.stmt) -> Context:
        """The context, with `node` as the place of what is emitted or fails from now on."""
        ctx = self.ctx
        ctx.emitter.loc = self.loc(node)
        return ctx

    def fail(self, node: ast.expr | ast.stmt, error: errors.TilewrightError) -> NoReturn:
        """Raise a user's mistake at a node."""
        raise error.with_loc(self.loc(node))

    def unsupported(self, node: ast.expr | ast.stmt, construct: str, instead: str = "") -> NoReturn:
        """Raise for a part of Python that kernels do not have."""
        self.fail(node, errors.UnsupportedLanguageConstruct(construct, instead))

    def into(self, block: Block) -> AbstractContextManager[Block]:
        """Emit into `block` while the context manager is open."""
        return self.ctx.into(block)
