"""Arithmetic on the lanes of an access, as ops: scalars become tiles as the other operand is."""

from __future__ import annotations

from math import prod

from tilewright.ir import Block, Builder, Op, Value
from tilewright.ir.types import (
    Scalar,
    Type,
    element_of,
    i1,
    i32,
    i64,
    shape_of,
    with_element,
    with_shape,
)
from tilewright.ops import (
    AddOp,
    AndOp,
    BroadcastOp,
    CastOp,
    CompareOp,
    ConstantOp,
    ExpandDimsOp,
    IfOp,
    MaxOp,
    MinOp,
    MulOp,
    OrOp,
    RangeOp,
    ReduceOp,
    SelectOp,
    SplatOp,
    YieldOp,
)

Operand = Value | int | bool
_Fold = type[MinOp] | type[MaxOp] | type[OrOp]


class Lanes:
    """Emits ops on values of one shape; () for scalars."""

    def __init__(self, build: Builder, shape: tuple[int, ...]) -> None:
        self.build = build
        self.shape = shape

    def type_of(self, element: Scalar) -> Type:
        """The tile, or scalar, of such elements."""
        return with_shape(element, self.shape) if self.shape else element

    def spread(self, x: Operand, like: Type = i1) -> Value:
        """A scalar or number in every lane; tiles stay. like: type of a number."""
        if isinstance(x, int):
            return self.build.value(ConstantOp(x, self.type_of(element_of(like))))
        if shape_of(x.type) == self.shape:
            return x
        return self.build.value(SplatOp(x, self.shape))

    def _pair(self, x: Operand, y: Operand) -> tuple[Value, Value]:
        type_ = next((v.type for v in (x, y) if isinstance(v, Value)), i1)
        return self.spread(x, type_), self.spread(y, type_)

    def add(self, x: Operand, y: Operand) -> Value:
        return self.build.value(AddOp(*self._pair(x, y)))

    def multiply(self, x: Operand, y: Operand) -> Value:
        return self.build.value(MulOp(*self._pair(x, y)))

    def both(self, x: Operand | None, y: Operand | None) -> Value | None:
        """x & y; None stands for true."""
        if x is None or y is None:
            kept = x if y is None else y
            return None if kept is None else self.spread(kept)
        return self.build.value(AndOp(*self._pair(x, y)))

    def masked(self, x: Operand, mask: Value | None) -> Value:
        """x in the active lanes, else false."""
        found = self.both(x, mask)
        assert found is not None
        return found

    def either(self, x: Operand, y: Operand) -> Value:
        return self.build.value(OrOp(*self._pair(x, y)))

    def compare(self, x: Operand, predicate: str, y: Operand) -> Value:
        return self.build.value(CompareOp(*self._pair(x, y), predicate))

    def select(self, condition: Operand, x: Operand, y: Operand) -> Value:
        return self.build.value(SelectOp(self.spread(condition), *self._pair(x, y)))

    def cast(self, x: Value, element: Scalar) -> Value:
        """Another element type; as it is if it has that already."""
        if element_of(x.type) is element:
            return x
        return self.build.value(CastOp(x, with_element(x.type, element)))

    def numbers(self) -> Value:
        """The number of each lane in row-major order, as i32."""
        if not self.shape:
            return self.spread(0, i32)
        found: Value | None = None
        for axis, extent in enumerate(self.shape):
            part = Lanes(self.build, (extent,))
            step = part.multiply(self.build.value(RangeOp(0, extent)), prod(self.shape[axis + 1 :]))
            wide = self._along(step, axis)
            found = wide if found is None else self.add(found, wide)
        assert found is not None
        return found

    def _along(self, x: Value, axis: int) -> Value:
        for other in range(len(self.shape)):
            if other != axis:
                x = self.build.value(ExpandDimsOp(x, other))
        return x if shape_of(x.type) == self.shape else self.build.value(BroadcastOp(x, self.shape))

    def fold(self, x: Value, by: _Fold) -> Value:
        """One scalar of all lanes."""
        while shape_of(x.type):
            x = fold_axis(self.build, x, len(shape_of(x.type)) - 1, by)
        return x

    def first(self, condition: Value) -> Value:
        """The first lane in which a condition holds, as i32; the number of lanes if in none."""
        lanes = self.select(condition, self.numbers(), prod(self.shape))
        return self.fold(lanes, MinOp)

    def at(self, lane: Value, x: Value) -> Value:
        """What a tile has in one lane, as i64."""
        wide = self.cast(x, i64)
        here = self.compare(self.numbers(), "eq", lane)
        return self.fold(self.select(here, wide, i64.min_int), MaxOp)


def fold_axis(build: Builder, x: Value, axis: int, by: _Fold) -> Value:
    """A tile folded along one axis."""
    element = element_of(x.type)
    block = Block((element, element))
    inner = Builder(block, loc=build.loc)
    left, right = block.args
    inner.emit(YieldOp((inner.value(by(left, right)),)))
    return build.value(ReduceOp((x,), block, axis))


def when(build: Builder, condition: Value) -> Builder:
    """A builder of what is done only if a scalar condition holds."""
    then, orelse = Block(), Block()
    Builder(orelse, loc=build.loc).emit(YieldOp(()))
    end = Builder(then, loc=build.loc).emit(YieldOp(()))
    build.emit(IfOp(condition, then, orelse))
    return Builder(then, end, build.loc)


def emit_like(build: Builder, op: Op, operands: list[Value]) -> Op:
    """An op with other operands, whose results have the types that follow from them."""
    return build.emit(type(op)(*operands, **op.attrs))
