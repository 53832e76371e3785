"""Arithmetic on the lanes of an access: scalars become tiles of the shape of the access."""

from __future__ import annotations

from math import prod

from tilewright.ir import ArithmeticBuilder, Block, Builder, Number, Op, Operand, Value, plain
from tilewright.ir.types import (
    Type,
    element_of,
    i1,
    i32,
    i64,
    shape_of,
    with_shape,
)
from tilewright.ops import (
    IfOp,
    MaxOp,
    MinOp,
    OrOp,
    ReduceOp,
    YieldOp,
)

_Fold = type[MinOp] | type[MaxOp] | type[OrOp]


class Lanes(ArithmeticBuilder):
    """Emits ops on values of one shape; () for scalars."""

    __slots__ = ("build", "shape")

    def __init__(self, build: Builder, shape: tuple[int, ...]) -> None:
        self.build = build
        self.shape = shape

    def value(self, op: Op) -> Value:
        return self.build.value(op)

    def spread(self, x: Operand, like: Type = i1) -> Value:
        """Broadcast a scalar or number to every lane; tiles stay. like: type of a number."""
        if isinstance(x, Number):
            element = element_of(like)
            return self.constant(x, with_shape(element, self.shape) if self.shape else element)
        x = plain(x)
        return x if shape_of(x.type) == self.shape else self.splat(x, self.shape)

    def _pair(self, opcode: str, x: Operand, y: Operand, *attrs: object) -> Value:
        return super()._pair(opcode, self.like(x, y), self.like(y, x), *attrs)

    def like(self, x: Operand, other: Operand) -> Value:
        return self.spread(x, i1 if isinstance(other, Number) else other.type)

    def both(self, x: Operand | None, y: Operand | None) -> Value | None:
        """x & y; None means true."""
        if x is None or y is None:
            kept = x if y is None else y
            return None if kept is None else self.spread(kept)
        return self.bit_and(x, y)

    def masked(self, x: Operand, mask: Value | None) -> Value:
        """x in the active lanes, false in the others."""
        found = self.both(x, mask)
        assert found is not None
        return found

    def numbers(self) -> Value:
        """The index of each lane in row-major order, as i32."""
        if not self.shape:
            return self.spread(0, i32)
        found: Value | None = None
        for axis, extent in enumerate(self.shape):
            step = self.build.mul(self.arange(0, extent), prod(self.shape[axis + 1 :]))
            wide = self.along(step, axis, self.shape)
            found = wide if found is None else self.add(found, wide)
        assert found is not None
        return found

    def fold(self, x: Value, by: _Fold) -> Value:
        """Reduce all lanes to one scalar."""
        while shape_of(x.type):
            x = fold_axis(self.build, x, len(shape_of(x.type)) - 1, by)
        return x

    def first(self, condition: Value) -> Value:
        """The first lane in which a condition holds, as i32; else the number of lanes."""
        lanes = self.select(condition, self.numbers(), prod(self.shape))
        return self.fold(lanes, MinOp)

    def at(self, lane: Value, x: Value) -> Value:
        """The element of a tile in one lane, as i64."""
        wide = self.cast(x, i64)
        here = self.eq(self.numbers(), lane)
        return self.fold(self.select(here, wide, i64.min_int), MaxOp)


def fold_axis(build: Builder, x: Value, axis: int, by: _Fold) -> Value:
    """Reduce a tile along one axis."""
    element = element_of(x.type)
    block = Block((element, element))
    inner = Builder(block, loc=build.loc)
    left, right = block.args
    inner.emit(YieldOp((inner.value(by(left, right)),)))
    return build.value(ReduceOp((x,), block, axis))


def when(build: Builder, condition: Value) -> Builder:
    """A builder in the branch of a new `cf.if`, taken if a scalar condition holds."""
    then, orelse = Block(), Block()
    Builder(orelse, loc=build.loc).emit(YieldOp(()))
    end = Builder(then, loc=build.loc).emit(YieldOp(()))
    build.emit(IfOp(condition, then, orelse))
    return Builder(then, end, build.loc)


def emit_like(build: Builder, op: Op, operands: list[Value]) -> Op:
    """Emit an op of the same class with other operands; its result types are inferred."""
    return build.emit(type(op)(*operands, **op.attrs))
