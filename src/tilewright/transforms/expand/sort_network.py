"""Sorts as bitonic networks (K. E. Batcher, "Sorting networks and their applications", 1968).

    for stage in 1 .. log2(extent):          runs of 2^stage elements become sorted
        for step in stage - 1 .. 0:
            y = gather x, i ^ 2^step
            x = min(x, y) where i is the lower of the two in an ascending run, ... else max(x, y)

Runs ascend where bit `stage` of i is 0, else descend, so that two of them are bitonic. Two loops
that run: the code of a sort does not grow with its extent.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tilewright.ir import Block, Builder, Op, Value
from tilewright.ir.types import i32, shape_of
from tilewright.ops import (
    BroadcastOp,
    CompareOp,
    ConstantOp,
    ExpandDimsOp,
    ForOp,
    GatherOp,
    MaxOp,
    MinOp,
    RangeOp,
    SelectOp,
    ShlOp,
    ShrOp,
    SortOp,
    SplatOp,
    SubOp,
    YieldOp,
)
from tilewright.transforms.expand.op_notation import Arithmetic


def expand_sort(op: Op, builder: Builder) -> Value | None:
    """The value of a sort."""
    assert isinstance(op, SortOp)
    levels = op.extent.bit_length() - 1
    positions = _positions(builder, op)
    ordered = op.x
    if levels:
        first = levels if op.bitonic else 1
        bounds = _number(builder, first), _number(builder, levels + 1)
        ordered = _loop(builder, *bounds, ordered, partial(_stage, op, positions))
    if op.count == op.extent:
        return ordered
    kept = _along(builder, builder.value(RangeOp(0, op.count)), op.axis, shape_of(op.type))
    return builder.value(GatherOp(ordered, kept, op.axis))


def _stage(op: SortOp, positions: Value, builder: Builder, stage: Value, x: Value) -> Value:
    a = Arithmetic(builder, positions.type)
    shape = shape_of(x.type)
    run = a.bit_and(builder.value(ShrOp(positions, _splat(builder, stage, shape))), 1)
    # Of the last stage there is one run, all of whose positions have 0 in that bit; the runs of
    # earlier stages alternate either way.
    falls = a.compare("eq" if op.descending else "ne", run, 0)

    def step(inner: Builder, number: Value, value: Value) -> Value:
        one_less = inner.value(SubOp(stage, _number(inner, 1)))
        bit = inner.value(SubOp(one_less, number))
        return _exchange(inner, op, positions, falls, bit, value)

    return _loop(builder, _number(builder, 0), stage, x, step)


def _exchange(
    builder: Builder, op: SortOp, positions: Value, falls: Value, bit: Value, x: Value
) -> Value:
    """One comparison of every element with the one whose position differs in a bit."""
    a = Arithmetic(builder, positions.type)
    shape = shape_of(x.type)
    distance = builder.value(ShlOp(_number(builder, 1), bit))
    apart = _splat(builder, distance, shape)
    partner = builder.value(GatherOp(x, a.bit_xor(positions, apart), op.axis))
    upper = a.compare("ne", a.bit_and(positions, apart), 0)
    low, high = builder.value(MinOp(x, partner)), builder.value(MaxOp(x, partner))
    takes_high = builder.value(CompareOp(upper, falls, "ne"))
    return builder.value(SelectOp(takes_high, high, low))


def _loop(
    builder: Builder,
    lower: Value,
    upper: Value,
    x: Value,
    body: Callable[[Builder, Value, Value], Value],
) -> Value:
    """A tile that is carried through a loop."""
    block = Block((i32, x.type), ("number", "x"))
    inner = Builder(block, loc=builder.loc)
    inner.emit(YieldOp((body(inner, *block.args),)))
    return builder.value(ForOp(lower, upper, _number(builder, 1), (x,), block))


def _positions(builder: Builder, op: SortOp) -> Value:
    return _along(builder, builder.value(RangeOp(0, op.extent)), op.axis, shape_of(op.x.type))


def _along(builder: Builder, line: Value, axis: int, shape: tuple[int, ...]) -> Value:
    for dim in range(len(shape)):
        if dim != axis:
            line = builder.value(ExpandDimsOp(line, dim))
    return line if shape_of(line.type) == shape else builder.value(BroadcastOp(line, shape))


def _number(builder: Builder, value: int) -> Value:
    return builder.value(ConstantOp(value, i32))


def _splat(builder: Builder, x: Value, shape: tuple[int, ...]) -> Value:
    return builder.value(SplatOp(x, shape))
