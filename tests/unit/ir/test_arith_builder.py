"""Arithmetic by methods and by operators: which ops are emitted, with which operands and types."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.ir import Block, Builder, Expr, Value
from tilewright.ir.types import TileType, Type, f32, i1, i32, i64
from tilewright.ops import CastOp, ConstantOp, MinOp, SelectOp
from tilewright.support import SourceLoc


def builder_of(*types: Type) -> tuple[Builder, list[Value]]:
    block = Block(types)
    return Builder(block), block.args


def opcodes(builder: Builder) -> list[str]:
    return [op.opcode.rpartition(".")[2] for op in builder.block]


BINARY: list[tuple[str, Callable[[Builder, Value, Value], Value]]] = [
    ("add", Builder.add), ("sub", Builder.sub), ("mul", Builder.mul), ("div", Builder.div),
    ("rem", Builder.rem), ("mul_high", Builder.mul_high), ("and", Builder.bit_and),
    ("or", Builder.bit_or), ("xor", Builder.bit_xor), ("shl", Builder.shl), ("shr", Builder.shr),
    ("min", Builder.min), ("max", Builder.max),
]  # fmt: skip


@pytest.mark.parametrize(("opcode", "method"), BINARY, ids=[name for name, _ in BINARY])
def test_a_method_emits_the_op_of_its_name(
    opcode: str, method: Callable[[Builder, Value, Value], Value]
) -> None:
    builder, (x, y) = builder_of(i32, i32)
    result = method(builder, x, y)
    assert opcodes(builder) == [opcode]
    assert result.op is not None and result.op.operands == [x, y] and result.type is i32
    assert result.op.verify() is None


@pytest.mark.parametrize("predicate", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons(predicate: str) -> None:
    builder, (x, y) = builder_of(f32, f32)
    result = getattr(builder, predicate)(x, y)
    assert result.op.attrs == {"predicate": predicate} and result.type is i1


@pytest.mark.parametrize("number", [3, -1.5])
def test_a_number_takes_the_type_of_the_other_operand(number: float) -> None:
    type_ = TileType((4,), f32)
    builder, (x,) = builder_of(type_)
    left, right = builder.sub(number, x), builder.sub(x, number)
    for value, position in ((left, 0), (right, 1)):
        assert value.op is not None
        constant = value.op.operands[position].op
        assert isinstance(constant, ConstantOp) and constant.type is type_
        # an integer is written as a float where the type is one
        assert constant.value == number and isinstance(constant.value, float)


def test_a_cast_keeps_the_shape_and_is_left_out_where_nothing_changes() -> None:
    builder, (x,) = builder_of(TileType((8,), i32))
    wide = builder.cast(x, i64)
    assert wide.type is TileType((8,), i64) and isinstance(wide.op, CastOp)
    assert builder.cast(x, i32) is x and builder.cast(wide, TileType((8,), i64)) is wide
    assert builder.bitcast(x, f32).type is TileType((8,), f32)
    assert opcodes(builder) == ["cast", "bitcast"]


def test_attributes_are_kept() -> None:
    builder, (x, y) = builder_of(f32, f32)
    values = [builder.min(x, y, nan=True), builder.div(x, y, "fast"), builder.math("exp", x)]
    values.append(builder.cast(x, i32, "rtz", in_range=True))
    attrs = [value.op.attrs for value in values if value.op is not None]
    assert attrs[:3] == [{"nan": True}, {"rounding": "fast"}, {"function": "exp"}]
    assert attrs[3]["rounding"] == "rtz" and attrs[3]["in_range"] is True
    assert isinstance(values[0].op, MinOp)


def test_operators_emit_the_same_ops_in_the_order_of_evaluation() -> None:
    builder, args = builder_of(i32, i32)
    x, n = map(builder.expr, args)
    result = builder.select(builder.lt(x, n), x * 2 + n, x - n)
    assert opcodes(builder) == ["compare", "constant", "mul", "add", "sub", "select"]
    assert isinstance(result.op, SelectOp)


OPERATORS: list[tuple[str, Callable[[Expr, Value], Expr]]] = [
    ("add", lambda x, y: x + y), ("sub", lambda x, y: x - y), ("mul", lambda x, y: x * y),
    ("div", lambda x, y: x // y), ("rem", lambda x, y: x % y), ("and", lambda x, y: x & y),
]  # fmt: skip


@pytest.mark.parametrize(("opcode", "expression"), OPERATORS)
def test_operators(opcode: str, expression: Callable[[Expr, Value], Expr]) -> None:
    builder, (x, y) = builder_of(i32, i32)
    result = expression(builder.expr(x), y)
    assert opcodes(builder) == [opcode]
    assert result.value.op is not None and result.value.op.operands == [x, y]
    assert result.type is result.value.type


def test_a_line_is_laid_along_an_axis() -> None:
    builder, _ = builder_of()
    tile = builder.along(builder.arange(0, 4), 1, (2, 4, 8))
    assert tile.type is TileType((2, 4, 8), i32)
    assert opcodes(builder) == ["range", "expand_dims", "expand_dims", "broadcast"]


def test_ops_take_the_location_of_the_builder() -> None:
    builder, (x,) = builder_of(i32)
    builder.loc = SourceLoc("kernel.py", 7)
    op = builder.add(x, 1).op
    assert op is not None and op.loc == builder.loc
