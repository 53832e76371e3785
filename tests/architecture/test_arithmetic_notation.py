"""Arithmetic on IR has one notation: `builder.add(x, y)`, never `builder.value(AddOp(x, y))`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.gates import ROOT
from tilewright.ir import ArithmeticBuilder, Op
from tilewright.ops import SplatOp, arith

SOURCES = ROOT / "src" / "tilewright"
ARITHMETIC = {
    name
    for name, cls in vars(arith).items()
    if isinstance(cls, type) and issubclass(cls, Op) and cls.opcode
} | {SplatOp.__name__}


def nests(source: str) -> Iterator[int]:
    """Lines with arithmetic that is constructed where it is emitted."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="value" | "emit" | "tensor"),
                args=[ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))],
            ) if name in ARITHMETIC:
                yield node.lineno
            case _:
                pass


def test_arithmetic_goes_through_the_builder() -> None:
    found = [
        f"{path.relative_to(SOURCES)}:{line}"
        for path in SOURCES.rglob("*.py")
        for line in nests(path.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "planted",
    [
        "total = builder.value(AddOp(x, y))",
        "wide = self.builder.emit(CastOp(x, i64)).result",
        "chosen = ctx.tensor(ops.SelectOp(condition, x, y))",
    ],
)
def test_a_planted_nest_is_found(planted: str) -> None:
    assert list(nests(planted)) == [1]


def test_each_arithmetic_op_has_a_method() -> None:
    emitted = {name.removesuffix("Op").lower() for name in ARITHMETIC}
    methods = {name.removeprefix("bit_").replace("_", "") for name in dir(ArithmeticBuilder)}
    assert emitted <= methods
