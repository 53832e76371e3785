"""Random programs compute the same before and after the shared pipeline, on edge values too."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.interp import NUMPY_DTYPES, run_function
from tilewright.ir import Block, Builder, Function, Op, Value, print_function
from tilewright.ir.types import (
    DType,
    PointerType,
    TileType,
    Type,
    bf16,
    dtype_of,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
    shape_of,
    u8,
    u32,
    u64,
    with_element,
)
from tilewright.ops import (
    COMPARISONS,
    AbsOp,
    AddOp,
    AndOp,
    BroadcastOp,
    CastOp,
    CompareOp,
    ConstantOp,
    DivOp,
    ExpandDimsOp,
    ForOp,
    JoinOp,
    LoadOp,
    MaxOp,
    MinOp,
    MulHighOp,
    MulOp,
    NegOp,
    OffsetOp,
    OrOp,
    RangeOp,
    RemOp,
    ReshapeOp,
    ReturnOp,
    SelectOp,
    ShlOp,
    ShrOp,
    SplatOp,
    SplitOp,
    StoreOp,
    SubOp,
    TransposeOp,
    XorOp,
    YieldOp,
)
from tilewright.transforms import SHARED, Canonicalize

INTEGERS = (i8, u8, i16, i32, u32, i64, u64)
FLOATS = (f16, bf16, f32, f64)
DTYPES = (i1, *INTEGERS, *FLOATS)
SHAPE = (4, 2)
FLOAT_EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, 3.25, float("inf"), float("-inf"), float("nan"), 1e-7)


def edges(dtype: DType) -> tuple[Any, ...]:
    """Values at which identities break."""
    if dtype.is_float:
        return FLOAT_EDGES
    if dtype.is_bool:
        return (0, 1)
    return (0, 1, 2, 7, dtype.max_int, dtype.max_int - 1, dtype.min_int, dtype.min_int // 2)


@dataclass
class Program:
    """A function in the making: values by which random ops choose their operands."""

    data: st.DataObject
    builder: Builder
    values: list[Value] = field(default_factory=list[Value])

    def draw(self, items: Any) -> Any:
        return self.data.draw(st.sampled_from(list(items)))

    def emit(self, op: Op) -> Value:
        value = self.builder.value(op)
        self.values.append(value)
        return value

    def constant(self, type_: Type) -> Value:
        return self.builder.value(ConstantOp(self.draw(edges(dtype_of(type_))), type_))

    def like(self, type_: Type) -> Value:
        """A value of a type: one that is there, or a constant."""
        known = [value for value in self.values if value.type is type_]
        if known and self.data.draw(st.integers(0, 3)):
            return self.draw(known)
        return self.constant(type_)

    def number(self, type_: Type, number: int) -> Value:
        return self.builder.value(ConstantOp(number, type_))

    def grow(self) -> None:
        """One more op on some value."""
        x = self.draw(self.values)
        steps = [self.binary, self.unary, self.compare, self.select, self.cast]
        steps += [self.divide, self.shift, self.splat] if shape_of(x.type) else [self.splat] * 2
        self.draw(steps + [self.reshape] * 2)(x)

    def binary(self, x: Value) -> None:
        classes: tuple[Any, ...] = (AddOp, SubOp, MulOp, MinOp, MaxOp)
        if not dtype_of(x.type).is_float:
            classes = (*classes, AndOp, OrOp, XorOp)
        if dtype_of(x.type).is_integer:
            classes = (*classes, MulHighOp)
        if dtype_of(x.type).is_bool:
            classes = (AndOp, OrOp, XorOp)
        pair = [x, self.like(x.type)]
        if self.data.draw(st.booleans()):
            pair.reverse()
        self.emit(self.draw(classes)(*pair))

    def unary(self, x: Value) -> None:
        if not dtype_of(x.type).is_bool:
            self.emit(self.draw((NegOp, AbsOp))(x))

    def divide(self, x: Value) -> None:
        """By a positive number, since division by zero is undefined."""
        if not dtype_of(x.type).is_integer:
            return
        low = self.builder.value(AndOp(self.like(x.type), self.number(x.type, 7)))
        divisor = self.builder.value(OrOp(low, self.number(x.type, 1)))
        if self.data.draw(st.booleans()):
            divisor = self.number(x.type, self.draw((1, 2, 3, 8)))
        self.emit(self.draw((DivOp, RemOp))(x, divisor))

    def shift(self, x: Value) -> None:
        if not dtype_of(x.type).is_integer:
            return
        amount = self.number(x.type, self.draw((0, 1, dtype_of(x.type).bits - 1)))
        self.emit(self.draw((ShlOp, ShrOp))(x, amount))

    def compare(self, x: Value) -> None:
        self.emit(CompareOp(x, self.draw((x, self.like(x.type))), self.draw(COMPARISONS)))

    def select(self, x: Value) -> None:
        condition = self.like(with_element(x.type, i1))
        self.emit(SelectOp(condition, x, self.draw((x, self.like(x.type)))))

    def cast(self, x: Value) -> None:
        """Not from floats to integers: what does not fit is undefined."""
        targets = FLOATS if dtype_of(x.type).is_float else DTYPES
        self.emit(CastOp(x, with_element(x.type, self.draw(targets))))

    def splat(self, x: Value) -> None:
        if not shape_of(x.type):
            self.emit(SplatOp(x, self.draw((SHAPE, (4,), (4, 1)))))

    def reshape(self, x: Value) -> None:
        shape = shape_of(x.type)
        if shape == (4,):
            self.emit(ExpandDimsOp(x, 1))
        elif shape == (4, 1):
            self.emit(self.draw((BroadcastOp, ReshapeOp))(x, (4, 1)))
            self.emit(BroadcastOp(x, SHAPE))
        elif shape == SHAPE:
            there = self.emit(TransposeOp(x, self.draw(((1, 0), (0, 1)))))
            order = (1, 0) if shape_of(there.type) != SHAPE else (0, 1)
            self.emit(TransposeOp(there, order))
            first, second = self.builder.emit(SplitOp(x)).results
            self.values += [first, second]
            self.emit(JoinOp(*self.draw(((first, second), (second, first)))))


def sources(program: Program) -> tuple[list[Any], list[Any]]:
    """Parameters with random contents: a tile and a scalar of each of some types."""
    args: list[Any] = []
    dtypes = program.data.draw(st.lists(st.sampled_from(DTYPES), min_size=1, max_size=4))
    block = program.builder.block
    for dtype in dtypes:
        contents = program.data.draw(
            st.lists(st.sampled_from(edges(dtype)), min_size=8, max_size=8)
        )
        pointer = block.add_arg(PointerType(dtype))
        args.append(np.array(contents, NUMPY_DTYPES[dtype]))
        program.emit(LoadOp(addresses(program.builder, pointer, SHAPE)))
        scalar = program.builder.value(LoadOp(pointer))
        program.values.append(scalar)
    return args, dtypes


def addresses(builder: Builder, pointer: Value, shape: tuple[int, ...]) -> Value:
    size = int(np.prod(shape))
    flat = builder.value(RangeOp(0, size))
    index = builder.value(ReshapeOp(flat, shape))
    return builder.value(OffsetOp(builder.value(SplatOp(pointer, shape)), index))


def loop_over(program: Program) -> None:
    """Some ops run in a loop, which carries tiles that move."""
    builder = program.builder
    carried = [v for v in program.values if isinstance(v.type, TileType)][:3]
    body = Block((i32, *[v.type for v in carried]))
    inner = Program(program.data, Builder(body), [*program.values, *body.args[1:]])
    for _ in range(program.data.draw(st.integers(1, 6))):
        inner.grow()
    passed: list[Value] = []
    for arg in body.args[1:]:
        amount = inner.like(arg.type)
        passed.append(inner.builder.value(AddOp(arg, amount)) if _adds(arg) else amount)
    inner.builder.emit(YieldOp(tuple(passed)))
    trips = program.draw((0, 1, 3))
    low, high, one = (builder.value(ConstantOp(number, i32)) for number in (0, trips, 1))
    loop = builder.emit(ForOp(low, high, one, tuple(carried), body))
    program.values += loop.results


def _adds(value: Value) -> bool:
    return not dtype_of(value.type).is_bool


def store_all(program: Program, args: list[Any]) -> None:
    """Each value to an array of its own."""
    builder = program.builder
    for value in program.values:
        dtype, shape = dtype_of(value.type), shape_of(value.type)
        pointer = builder.block.add_arg(PointerType(dtype))
        args.append(np.zeros(int(np.prod(shape)), NUMPY_DTYPES[dtype]))
        to = addresses(builder, pointer, shape) if shape else pointer
        builder.emit(StoreOp(to, value))


def same_floats(found: Any, expected: Any, note: str) -> None:
    """Equal, zeros with their signs; a NaN may have other bits."""
    np.testing.assert_array_equal(found, expected, err_msg=note)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]), note)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_random_programs(data: st.DataObject):
    program = Program(data, Builder(Block()))
    args, _ = sources(program)
    for _ in range(data.draw(st.integers(1, 12))):
        program.grow()
    if data.draw(st.booleans()):
        loop_over(program)
    store_all(program, args)
    program.builder.emit(ReturnOp())
    before = Function("f", program.builder.block)
    after = before.clone()
    SHARED.run(after)
    again = before.clone()
    runs = [[arg.copy() for arg in args] for _ in range(2)]
    with np.errstate(all="ignore"):
        for function, copies in zip((before, after), runs, strict=True):
            run_function(function, copies)
    for expected, found in zip(*runs, strict=True):
        note = f"\n{print_function(before)}\n{print_function(after)}"
        if expected.dtype.kind in "biu":
            np.testing.assert_array_equal(found, expected, err_msg=note)
        else:
            same_floats(found.astype(np.float64), expected.astype(np.float64), note)
    Canonicalize().run(again)
    assert not Canonicalize().run(again), "rules match what they have made"
