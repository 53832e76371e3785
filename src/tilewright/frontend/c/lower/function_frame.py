"""The frame of a C function, and the tables from kinds of syntax nodes to their handlers.

Handlers are plain functions in the other modules of this package; importing those fills the tables.

Unlike in Python a variable has one type, that of its declaration, so joined values always agree in
type. `values` maps each variable to its value at the current point of the lowering.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn, cast

from tilewright import language as tl
from tilewright.frontend.c import syntax
from tilewright.frontend.c.c_tokens import Span
from tilewright.frontend.c.preprocess import expansion_notes, location
from tilewright.frontend.lowering_frame import LoweringFrame, LoweringSession
from tilewright.frontend.semantics import Context, call_builtin, constant
from tilewright.ir import Value
from tilewright.ir.types import DType, Type, element_of, i1, i64, with_element
from tilewright.language import Constexpr, tensor
from tilewright.support import SourceLoc, errors
from tilewright.support.data_class import dataclass
from tilewright.support.registration import Registration

ExpressionHandler = Callable[["FunctionFrame", syntax.Expression], object]
StatementHandler = Callable[["FunctionFrame", syntax.Statement], None]

EXPRESSIONS: dict[type[Any], ExpressionHandler] = {}
STATEMENTS: dict[type[Any], StatementHandler] = {}

expression = Registration(EXPRESSIONS)
"""Decorator of the handlers of expressions; they return a tensor or a compile-time value."""

statement = Registration(STATEMENTS)
"""Decorator of the handlers of statements."""


class TypedInteger(Constexpr):
    """A compile-time integer with its type in C: `5u`, `sizeof(float)`, `TM / 2 + 1`."""

    __slots__ = ("dtype",)

    def __init__(self, value: int, dtype: DType) -> None:
        # Wraps, so that every folded result is a value of its type.
        super().__init__(dtype.wrap(value))
        self.dtype = dtype


@dataclass(slots=True, eq=False)
class Variable:
    """A declared name. type: of all its values.

    hidden: created by the lowering, which assigns it zero wherever it has no value; fixed: declared
    `const`; number: of a constant integer, which extents may use; write_only: of a pointer.
    """

    name: str
    type: Type
    hidden: bool = False
    fixed: bool = False
    number: int | None = None
    write_only: bool = False


@dataclass(frozen=True, slots=True)
class Unset:
    """The state of a variable without a value. construct: the only place that assigns it, if
    any."""

    construct: str = ""


Values = dict[Variable, tensor | Unset]


@dataclass(slots=True)
class Session(LoweringSession[str]):
    """The lowering of a kernel in C, with functions by name. defines: the macros of the command
    line or launch; span: the source text being lowered, None before the first node and once an
    error has its own.
    """

    program: syntax.Program
    defines: Mapping[str, str]
    span: Span | None = None


class FunctionFrame(LoweringFrame[syntax.Node]):
    """The lowering of one C function: its names, their values, and the jumps that have happened.

    scopes: names by block, inner last; values: of the variables; guard: if set, masks all loads;
    broken, continued, returned: whether a jump has happened, as variables of
    the loop or function that it leaves; None outside of any.
    """

    def __init__(
        self, session: Session, function: syntax.Function, caller: SourceLoc | None = None
    ) -> None:
        super().__init__(session.ctx, caller)
        self.session = session
        self.function = function
        self.scopes: list[dict[str, Variable]] = [{}]
        self.values: Values = {}
        self.guard: tensor | None = None
        self.broken: Variable | None = None
        self.continued: Variable | None = None
        # Not in a scope: `return` leaves all blocks at once.
        self.returned = Variable("returned", i1, hidden=True)
        self.result: Variable | None = None

    # --- handlers ---------------------------------------------------------------------------------

    def expression(self, node: syntax.Expression) -> object:
        """The value of an expression: a tensor, or a compile-time value."""
        return EXPRESSIONS[type(node)](self, node)

    def tensor(self, node: syntax.Expression) -> tensor:
        """The value of an expression at run time."""
        return self.run_time(node, self.expression(node))

    def run_time(self, node: syntax.Expression, value: object) -> tensor:
        """A value as a tensor; float literals are `float`, if they fit."""
        if isinstance(value, tensor):
            return value
        if isinstance(value, TypedInteger):
            return tensor(constant(self.at(node), value.value, value.dtype))
        return cast("tensor", call(self, node, tl.to_tensor, value))

    # --- names ------------------------------------------------------------------------------------

    def declare(self, variable: Variable) -> Variable:
        """Add a variable to the innermost scope."""
        self.scopes[-1][variable.name] = variable
        return variable

    def find(self, name: str) -> Variable | None:
        """The variable with a name."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def set(self, variable: Variable, value: tensor) -> None:
        """Assign a variable a value of its type; an unnamed value takes the variable's name."""
        assert value.handle.type is variable.type, f"{variable.name}: {value.handle.type}"
        self.values[variable] = value
        if not value.handle.name and not variable.hidden:
            value.handle.name = variable.name

    def raise_flag(self, variable: Variable, raised: bool) -> None:
        """Set a hidden condition."""
        self.values[variable] = tensor(constant(self.ctx, raised, i1))

    def zero(self, variable: Variable) -> tensor:
        """The initial value of a hidden variable."""
        return tensor(zero_of(self.ctx, variable.type))

    @contextmanager
    def scope(self) -> Generator[None]:
        """A context manager for a nested scope of names."""
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()

    # --- locations --------------------------------------------------------------------------------

    def at(self, node: syntax.Node) -> Context:
        """Set the location, as in every front end; the span serves notes on macros in errors."""
        self.session.span = node.span
        return super().at(node)

    def loc(self, node: syntax.Node) -> SourceLoc:
        """The location of a node, with the calls that led to it."""
        return location(node.span, self.function.name, self.caller)

    def fail(self, node: syntax.Node, error: errors.CompilationError) -> NoReturn:
        """Raise a user's mistake at a node."""
        # The notes are added here; a later handler must not add them again.
        self.session.span = None
        error.notes = (*error.notes, *expansion_notes(node.span, self.session.defines))
        raise error.with_loc(self.loc(node))


def zero_of(ctx: Context, type_: Type) -> Value:
    """Zero in every element; a null pointer."""
    element = element_of(type_)
    if isinstance(element, DType):
        return constant(ctx, 0, type_)
    return null(ctx, type_)


def null(ctx: Context, type_: Type) -> Value:
    """Null pointers of a type."""
    # Pointers have no literals; a cast of 0 gives null.
    address = constant(ctx, 0, with_element(type_, i64))
    return ctx.cast(address, type_)


def call(
    frame: FunctionFrame, node: syntax.Node, stub: Callable[..., object], *args: object
) -> object:
    """The result of a language function applied to arguments."""
    return call_builtin(frame.at(node), stub, args, {})
