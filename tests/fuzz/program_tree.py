"""Programs as trees: expressions with types, statements, arguments; and their source text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import Any

from tests.fuzz.program_dtypes import Shape, Type
from tilewright.support.data_class import dataclass

Bounds = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Expr:
    """An application of `op`, a key of `operations.OPERATIONS`.

    data: what else decides it (a name, an axis, a literal's value); bounds: all elements are
    integers (of a float type, too) in this range.
    """

    op: str
    args: tuple[Expr, ...]
    type: Type
    data: tuple[Any, ...] = ()
    bounds: Bounds | None = None

    @property
    def dtype(self) -> str:
        return self.type.dtype

    @property
    def shape(self) -> Shape:
        return self.type.shape

    def walk(self) -> Iterator[Expr]:
        yield self
        for arg in self.args:
            yield from arg.walk()


def var(name: str, type_: Type, bounds: Bounds | None = None) -> Expr:
    return Expr("var", (), type_, (name,), bounds)


# ---- statements ----------------------------------------------------------------------------------


@dataclass
class Let:
    """`a, b = x, y`, or one of them."""

    names: tuple[str, ...]
    values: tuple[Expr, ...]


@dataclass
class Unpack:
    """`a, b = f(...)`: the value is a tuple."""

    names: tuple[str, ...]
    values: tuple[Expr]


@dataclass
class Store:
    """`tl.store(pointer, value, mask)`: values are these two or three."""

    values: tuple[Expr, ...]


@dataclass
class Do:
    """An expression for its effect."""

    values: tuple[Expr]


@dataclass
class Barrier:
    values: tuple[Expr, ...] = ()


@dataclass
class For:
    """kind: "range", "tl.range", "tl.static_range"; values: start, end, step; hints: its words."""

    name: str
    kind: str
    values: tuple[Expr, ...]
    hints: dict[str, Any]
    body: list[Stmt]


@dataclass
class While:
    values: tuple[Expr]
    body: list[Stmt]


@dataclass
class If:
    values: tuple[Expr]
    body: list[Stmt]
    other: list[Stmt]


@dataclass
class Return:
    """The end of a function."""

    values: tuple[Expr, ...]


Stmt = Let | Unpack | Store | Do | Barrier | For | While | If | Return


def blocks_of(statement: Stmt) -> list[list[Stmt]]:
    """The blocks inside a statement."""
    if isinstance(statement, If):
        return [statement.body, statement.other]
    return [statement.body] if isinstance(statement, For | While) else []


def walk(block: list[Stmt]) -> Iterator[Stmt]:
    for statement in block:
        yield statement
        for inner in blocks_of(statement):
            yield from walk(inner)


# ---- programs ------------------------------------------------------------------------------------


@dataclass
class ArrayArg:
    """An array. contents: "small" or "wild" numbers, "zero", or the numbers themselves.

    region: elements that belong to each program instance, 0 for an array that is only read;
    same_as: an earlier array whose memory this one is.
    """

    name: str
    dtype: str
    size: int
    contents: Any = "small"
    region: int = 0
    same_as: str = ""


@dataclass
class NumberArg:
    """A scalar that is known at run time."""

    name: str
    dtype: str
    value: Any


@dataclass
class ConstantArg:
    """A `tl.constexpr`."""

    name: str
    value: Any


Arg = ArrayArg | NumberArg | ConstantArg


@dataclass
class Function:
    """A function that the kernel calls: `params` are (name, type), a constexpr's type a literal."""

    name: str
    params: list[tuple[str, Type]]
    body: list[Stmt]
    type: Type


@dataclass
class Program:
    """A kernel, what it calls, its arguments, and how it is launched."""

    seed: int
    args: list[Arg] = field(default_factory=list[Arg])
    body: list[Stmt] = field(default_factory=list["Stmt"])
    functions: list[Function] = field(default_factory=list[Function])
    grid: int = 1
    words: dict[str, Any] = field(default_factory=dict[str, Any])
    features: set[str] = field(default_factory=set[str])
    skip: set[str] = field(default_factory=set[str])
    """Devices on which the results may legally differ."""

    def arrays(self) -> list[ArrayArg]:
        return [arg for arg in self.args if isinstance(arg, ArrayArg)]

    def array(self, name: str) -> ArrayArg:
        return next(arg for arg in self.arrays() if arg.name == name)


def copied(program: Program) -> Program:
    """A copy whose statements may be changed; expressions are shared."""
    return replace(
        program,
        args=[replace(arg) for arg in program.args],
        body=_copied_block(program.body),
        functions=[replace(f, body=_copied_block(f.body)) for f in program.functions],
        words=dict(program.words),
        features=set(program.features),
        skip=set(program.skip),
    )


def _copied_block(block: list[Stmt]) -> list[Stmt]:
    found: list[Stmt] = []
    for statement in block:
        if isinstance(statement, If):
            body, other = map(_copied_block, (statement.body, statement.other))
            found.append(replace(statement, body=body, other=other))
        elif isinstance(statement, For | While):
            found.append(replace(statement, body=_copied_block(statement.body)))
        else:
            found.append(replace(statement))
    return found
