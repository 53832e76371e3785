"""Padding of dots whose tiles are smaller than a tensor-core instruction.

    %c = tile.dot %a, %b, %acc     64x4, 4x64: an instruction takes 8 of the inner dimension

    %a2 = 64x8, %b2 = 8x64: %a and %b, and zeros beyond 4
    %c = tile.dot %a2, %b2, %acc

Missing rows and columns are copies of the others: row i is row i mod M of the operand, column j is
column j div (8 / N), so that the copies of one element of the result tend to be registers of one
thread, of which the first is used. Only the inner dimension is filled with zeros, on both sides:
infinity times zero is NaN.
"""

from __future__ import annotations

from tilewright.backends.nvidia.layouts.mma_layouts import smallest_mma
from tilewright.ir import Builder, Value
from tilewright.ir.types import dtype_of, shape_of
from tilewright.ops import (
    BroadcastOp,
    DotOp,
    ExpandDimsOp,
    ReshapeOp,
    SplitOp,
    TransposeOp,
)

_LEAST_INNER = 4
"""With fewer elements along K, FMAs are as fast."""


def is_worth_padding(op: DotOp) -> bool:
    """Whether the operands are narrow numbers, which only tensor cores compute fast."""
    dtype = dtype_of(op.a.type)
    return dtype.bits <= 16 and shape_of(op.a.type)[-1] >= _LEAST_INNER


def padded_dot(op: DotOp, builder: Builder) -> Value:
    """The dot, computed by one as large as an instruction; it `is_worth_padding`."""
    *_, m, k = shape_of(op.a.type)
    n = shape_of(op.type)[-1]
    least = smallest_mma(dtype_of(op.a.type), k)
    # Extents are powers of two: the quotients are exact.
    rows, columns, inner = (max(1, b // a) for a, b in zip((m, n, k), least, strict=True))
    a = _with_zeros(builder, _copied_rows(builder, op.a, rows), -1, inner)
    b = _with_zeros(builder, _copied_columns(builder, op.b, columns), -2, inner)
    acc = _copied_columns(builder, _copied_rows(builder, op.acc, rows), columns)
    result = builder.value(DotOp(a, b, acc, op.precision, op.max_imprecise))
    return _first_rows(builder, _first_columns(builder, result, columns), rows)


def _stacked(builder: Builder, x: Value, position: int, copies: int) -> Value:
    """A new dimension at `position` along which the tile repeats."""
    shape = list(shape_of(x.type))
    shape.insert(position, copies)
    return builder.value(BroadcastOp(builder.value(ExpandDimsOp(x, position)), tuple(shape)))


def _merged(builder: Builder, x: Value, position: int) -> Value:
    """The dimensions at `position` and after it, merged."""
    shape = shape_of(x.type)
    both = shape[position] * shape[position + 1]
    return builder.value(ReshapeOp(x, (*shape[:position], both, *shape[position + 2 :])))


def _copied_rows(builder: Builder, x: Value, copies: int) -> Value:
    if copies == 1:
        return x
    rows = len(shape_of(x.type)) - 2
    return _merged(builder, _stacked(builder, x, rows, copies), rows)


def _copied_columns(builder: Builder, x: Value, copies: int) -> Value:
    if copies == 1:
        return x
    columns = len(shape_of(x.type)) - 1
    return _merged(builder, _stacked(builder, x, columns + 1, copies), columns)


def _with_zeros(builder: Builder, x: Value, axis: int, factor: int) -> Value:
    """The tile, extended along an axis to `factor` times its extent by zeros."""
    if factor == 1:
        return x
    axis += len(shape_of(x.type))
    stacked = _stacked(builder, x, axis, factor)
    shape = shape_of(stacked.type)
    first = builder.along(builder.eq(builder.arange(0, factor), 0), axis, shape)
    # A select, not a multiplication: infinity times zero would be NaN.
    return _merged(builder, builder.select(first, stacked, 0), axis)


def _first_columns(builder: Builder, x: Value, copies: int) -> Value:
    """The first of each `copies` adjacent columns."""
    # `tile.split` halves: the count is a power of two.
    while copies > 1:
        *rest, columns = shape_of(x.type)
        pairs = builder.value(ReshapeOp(x, (*rest, columns // 2, 2)))
        split = builder.emit(SplitOp(pairs))
        x, copies = split.results[0], copies // 2
    return x


def _first_rows(builder: Builder, x: Value, copies: int) -> Value:
    """The first of the `copies` blocks of rows."""
    while copies > 1:
        *rest, rows, columns = shape_of(x.type)
        halves = builder.value(ReshapeOp(x, (*rest, 2, rows // 2, columns)))
        d = len(rest)
        # Blocks become the last dim, which `tile.split` splits.
        order = (*range(d), d + 1, d + 2, d)
        split = builder.emit(SplitOp(builder.value(TransposeOp(halves, order))))
        x, copies = split.results[0], copies // 2
    return x
