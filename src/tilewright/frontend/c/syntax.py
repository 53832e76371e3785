"""The syntax tree of Triton-C: small frozen nodes, each with its location in the source."""

from __future__ import annotations

from typing import Literal

from tilewright.frontend.c.c_tokens import Span
from tilewright.ir.types import DType
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A node with a location. Nodes are compared by identity."""

    span: Span


class Expression(Node):
    """A node with a value."""

    __slots__ = ()


class Statement(Node):
    """A node that is executed."""

    __slots__ = ()


# --- types and declarations -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Attribute(Node):
    """`__aligned(16)`, `__readonly`. amount: of the parentheses, if there are any."""

    name: str
    amount: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class TypeName(Node):
    """`const unsigned char *restrict`.

    specifiers: `unsigned`, `char`; qualifiers: before the first `*`; pointers: those after each.
    """

    specifiers: tuple[str, ...]
    qualifiers: tuple[str, ...]
    pointers: tuple[tuple[str, ...], ...]

    @property
    def is_fixed(self) -> bool:
        """Whether the declared variable itself is constant: `const int n`, `float *const p`."""
        return "const" in (self.pointers[-1] if self.pointers else self.qualifiers)


@dataclass(frozen=True, slots=True, eq=False)
class Variable(Node):
    """One variable of a declaration; extents: of a tile, else empty."""

    type: TypeName
    name: str
    extents: tuple[Expression, ...]
    value: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class Parameter(Node):
    """One parameter of a function; extents: of a tile, else empty."""

    type: TypeName
    name: str
    extents: tuple[Expression, ...]
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Function(Node):
    """A function. span: its name; type: its return type."""

    type: TypeName
    name: str
    parameters: tuple[Parameter, ...]
    body: Block

    @property
    def is_kernel(self) -> bool:
        """Whether it is declared `__global__`."""
        return "__global__" in self.type.qualifiers


@dataclass(frozen=True, slots=True, eq=False)
class Program(Node):
    """A translation unit: functions and constants, each in the order of the source."""

    functions: tuple[Function, ...]
    constants: tuple[Declaration, ...]


# --- statements -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Declaration(Statement):
    """`float x[16] = 0, y = 1;`"""

    variables: tuple[Variable, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Block(Statement):
    """`{ ... }`, with a nested scope; empty for `;`."""

    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate(Statement):
    """An expression for its effects."""

    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class If(Statement):
    """`if (test) then else orelse`."""

    test: Expression
    then: Statement
    orelse: Statement | None


@dataclass(frozen=True, slots=True, eq=False)
class Loop(Statement):
    """`for`, `while` and `do`; `keyword` is which. Only `for` has a start and a step."""

    keyword: Literal["for", "while", "do"]
    start: Statement | None
    test: Expression | None
    step: Expression | None
    body: Statement


@dataclass(frozen=True, slots=True, eq=False)
class Jump(Statement):
    """`break`, `continue`, `return value`."""

    keyword: Literal["break", "continue", "return"]
    value: Expression | None


# --- expressions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Name(Expression):
    """A variable, or a name that its context gives a value."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Number(Expression):
    """A literal. type: of an integer; None for a float, which takes the other operand's type."""

    value: int | float
    type: DType | None


@dataclass(frozen=True, slots=True, eq=False)
class Text(Expression):
    """A string."""

    value: str


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Expression):
    """`-x`, `+x`, `!x`, `~x`, and `^x`, the transposition."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Dereference(Expression):
    """`*p`, `*?(mask) p`."""

    mask: Expression | None
    pointer: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Expression):
    """`a + b` and the like; also `&&`, `||`, `@`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Conditional(Expression):
    """`test ? then : orelse`."""

    test: Expression
    then: Expression
    orelse: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Assign(Expression):
    """`target = value`; operator: of a compound assignment, else empty."""

    operator: str
    target: Expression
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Step(Expression):
    """`++x`, `x--`; operator: + or -; prefix: whether the value is the new one."""

    operator: str
    target: Expression
    prefix: bool


@dataclass(frozen=True, slots=True, eq=False)
class Cast(Expression):
    """`(float) x`."""

    type: TypeName
    operand: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Range(Expression):
    """`0 ... 16`, without its end."""

    first: Expression
    last: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Axis(Expression):
    """A subscript that is no expression: `:`, or the operator of a reduction."""

    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class Slice(Expression):
    """`0:8`, `8:`, `:8` in a subscript."""

    start: Expression | None
    stop: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class Subscript(Expression):
    """`x[:, newaxis]`, `x[:, +]`."""

    base: Expression
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Call(Expression):
    """`f(a, b)`; a type can be an argument too."""

    function: str
    arguments: tuple[Expression | TypeName, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Braces(Expression):
    """`{4, 8}`: several values as one argument."""

    items: tuple[Expression | TypeName, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Comma(Expression):
    """`a, b`: both are evaluated, the last is the value."""

    items: tuple[Expression, ...]
