"""Sorts as bitonic networks (K. E. Batcher, "Sorting networks and their applications", 1968).

    for stage in 1 .. log2(extent):          runs of 2^stage elements become sorted
        for step in stage - 1 .. 0:
            y = gather x, i ^ 2^step
            x = min(x, y) where i is the lower of the two in an ascending run, ... else max(x, y)

Runs ascend where bit `stage` of i is 0, else descend, so that two of them are bitonic. Both
loops stay loops, so the code of a sort does not grow with its extent.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tilewright.ir import Block, Builder, Op, Value
from tilewright.ir.types import i32, shape_of
from tilewright.ops import (
    ForOp,
    GatherOp,
    SortOp,
    YieldOp,
)


def expand_sort(op: Op, builder: Builder) -> Value | None:
    """Expand a sort."""
    assert isinstance(op, SortOp)
    levels = op.extent.bit_length() - 1
    positions = builder.along(builder.arange(0, op.extent), op.axis, shape_of(op.x.type))
    ordered = op.x
    if levels:
        first = levels if op.bitonic else 1
        bounds = builder.constant(first, i32), builder.constant(levels + 1, i32)
        ordered = _loop(builder, *bounds, ordered, partial(_stage, op, positions))
    if op.count == op.extent:
        return ordered
    kept = builder.along(builder.arange(0, op.count), op.axis, shape_of(op.type))
    return builder.value(GatherOp(ordered, kept, op.axis))


def _stage(op: SortOp, positions: Value, builder: Builder, stage: Value, x: Value) -> Value:
    run = builder.bit_and(builder.shr(positions, builder.splat(stage, shape_of(x.type))), 1)
    # The last stage has one run, all of whose positions have 0 in that bit; the runs of earlier
    # stages alternate.
    falls = builder.compare(run, 0, "eq" if op.descending else "ne")

    def step(inner: Builder, number: Value, value: Value) -> Value:
        bit = inner.sub(inner.sub(stage, 1), number)
        return _exchange(inner, op, positions, falls, bit, value)

    return _loop(builder, builder.constant(0, i32), stage, x, step)


def _exchange(
    builder: Builder, op: SortOp, positions: Value, falls: Value, bit: Value, x: Value
) -> Value:
    """One comparison of every element with the one whose position differs in a bit."""
    apart = builder.splat(builder.shl(1, bit), shape_of(x.type))
    partner = builder.value(GatherOp(x, builder.bit_xor(positions, apart), op.axis))
    upper = builder.ne(builder.bit_and(positions, apart), 0)
    low, high = builder.min(x, partner), builder.max(x, partner)
    return builder.select(builder.ne(upper, falls), high, low)


def _loop(
    builder: Builder,
    lower: Value,
    upper: Value,
    x: Value,
    body: Callable[[Builder, Value, Value], Value],
) -> Value:
    """Emit a loop that carries a tile."""
    block = Block((i32, x.type), ("number", "x"))
    inner = Builder(block, loc=builder.loc)
    inner.emit(YieldOp((body(inner, *block.args),)))
    return builder.value(ForOp(lower, upper, builder.constant(1, i32), (x,), block))
