"""The state of lowering one function, and the tables from syntax node to handler.

An `FunctionFrame` is one run through one function: the kernel, or a call that is being inlined.
Handlers are plain functions in the modules beside this one; importing those fills the tables.

Unlike in Python a variable has one type, that of its declaration, so what control flow joins always
fits. `values` says what each variable holds where the lowering stands.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar, cast

from tilewright import language as tl
from tilewright.frontend.c import syntax
from tilewright.frontend.c.c_tokens import Span
from tilewright.frontend.c.preprocess import expansion_notes, location
from tilewright.frontend.semantics import Context, call_builtin, constant
from tilewright.ir import Block, Value
from tilewright.ir.types import DType, Type, element_of, i1, i64, with_element
from tilewright.language import constexpr, tensor
from tilewright.ops import CastOp
from tilewright.support import SourceLoc, errors

H = TypeVar("H", bound=Callable[..., object])

ExpressionHandler = Callable[["FunctionFrame", syntax.Expression], object]
StatementHandler = Callable[["FunctionFrame", syntax.Statement], None]

EXPRESSIONS: dict[type[syntax.Node], ExpressionHandler] = {}
STATEMENTS: dict[type[syntax.Node], StatementHandler] = {}


def expression(kind: type[syntax.Expression]) -> Callable[[H], H]:
    """Register the handler of a kind of expression; it gives a tensor or a compile-time value."""

    def register(handler: H) -> H:
        EXPRESSIONS[kind] = cast("ExpressionHandler", handler)
        return handler

    return register


def statement(kind: type[syntax.Statement]) -> Callable[[H], H]:
    """Register the handler of a kind of statement."""

    def register(handler: H) -> H:
        STATEMENTS[kind] = cast("StatementHandler", handler)
        return handler

    return register


class Integer(constexpr):
    """A compile-time integer with its type in C: `5u`, `sizeof(float)`, `TM / 2 + 1`."""

    __slots__ = ("dtype",)

    def __init__(self, value: int, dtype: DType) -> None:
        super().__init__(dtype.wrap(value))
        self.dtype = dtype


@dataclass(slots=True, eq=False)
class Variable:
    """A declared name. type: of all that it ever holds.

    hidden: made by the lowering, which gives it a value wherever it has none; fixed: declared
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
    """What a variable without a value holds. construct: the only place that assigns it, if any."""

    construct: str = ""


Values = dict[Variable, tensor | Unset]


@dataclass(slots=True)
class Session:
    """What all frames of one kernel share. stack: the functions being lowered, outer first;
    span: of what is being lowered."""

    ctx: Context
    program: syntax.Program
    defines: Mapping[str, str]
    stack: list[str] = field(default_factory=list[str])
    span: Span | None = None


class FunctionFrame:
    """One function being lowered: where its names are, and where in the source it stands.

    scopes: names by block, inner last; values: what the variables hold; guard: where set, loads are
    done only where it holds; broken, continued, returned: whether a jump has happened, as variables
    of the loop or function that it leaves; None where there is none to leave.
    """

    def __init__(
        self, session: Session, function: syntax.Function, caller: SourceLoc | None = None
    ) -> None:
        self.session = session
        self.ctx = session.ctx
        self.function = function
        self.caller = caller
        self.scopes: list[dict[str, Variable]] = [{}]
        self.values: Values = {}
        self.guard: tensor | None = None
        self.broken: Variable | None = None
        self.continued: Variable | None = None
        self.returned = Variable("returned", i1, hidden=True)
        self.result: Variable | None = None

    # --- handlers ---------------------------------------------------------------------------------

    def expression(self, node: syntax.Expression) -> object:
        """The value of an expression: a tensor, or what is known at compile time."""
        return EXPRESSIONS[type(node)](self, node)

    def tensor(self, node: syntax.Expression) -> tensor:
        """The value of an expression at run time."""
        return self.run_time(node, self.expression(node))

    def run_time(self, node: syntax.Expression, value: object) -> tensor:
        """A value as a tensor; float literals by themselves are `float`, as far as they fit."""
        if isinstance(value, tensor):
            return value
        if isinstance(value, Integer):
            return tensor(constant(self.at(node), value.value, value.dtype))
        return cast("tensor", call(self, node, tl.to_tensor, value))

    # --- names ------------------------------------------------------------------------------------

    def declare(self, variable: Variable) -> Variable:
        """Add a variable to the innermost scope."""
        self.scopes[-1][variable.name] = variable
        return variable

    def find(self, name: str) -> Variable | None:
        """The variable that a name stands for."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def set(self, variable: Variable, value: tensor) -> None:
        """Let a variable hold a value of its type; a value without a name takes the variable's."""
        assert value.handle.type is variable.type, f"{variable.name}: {value.handle.type}"
        self.values[variable] = value
        if not value.handle.name and not variable.hidden:
            value.handle.name = variable.name

    def raise_flag(self, variable: Variable, raised: bool) -> None:
        """Set a hidden condition."""
        self.values[variable] = tensor(constant(self.ctx, raised, i1))

    def zero(self, variable: Variable) -> tensor:
        """What a hidden variable holds before anything is assigned."""
        return tensor(zero_of(self.ctx, variable.type))

    @contextmanager
    def scope(self) -> Generator[None]:
        """A block of names of its own."""
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()

    # --- places -----------------------------------------------------------------------------------

    def at(self, node: syntax.Node) -> Context:
        """The context, with `node` as the place of what is emitted or fails from now on."""
        self.session.span = node.span
        self.ctx.emitter.loc = self.loc(node)
        return self.ctx

    def loc(self, node: syntax.Node) -> SourceLoc:
        """Where a node is, with the calls that led here."""
        return location(node.span, self.function.name, self.caller)

    def fail(self, node: syntax.Node, error: errors.CompilationError) -> NoReturn:
        """Raise a user's mistake at a node."""
        self.session.span = None
        error.notes = (*error.notes, *expansion_notes(node.span, self.session.defines))
        raise error.with_loc(self.loc(node))

    def into(self, block: Block) -> AbstractContextManager[Block]:
        """Emit into `block` while the context manager is open."""
        return self.ctx.into(block)


def zero_of(ctx: Context, type_: Type) -> Value:
    """Zero in every element; a null pointer."""
    element = element_of(type_)
    if isinstance(element, DType):
        return constant(ctx, 0, type_)
    return null(ctx, type_)


def null(ctx: Context, type_: Type) -> Value:
    """Null pointers of a type."""
    address = constant(ctx, 0, with_element(type_, i64))
    return ctx.value(CastOp(address, type_))


def call(
    frame: FunctionFrame, node: syntax.Node, stub: Callable[..., object], *args: object
) -> object:
    """The meaning of a language function applied to arguments."""
    return call_builtin(frame.at(node), stub, args, {})
