"""Ops that sort elements, or count them by value."""

from __future__ import annotations

from tilewright.ir import (
    Op,
    Trait,
    Value,
    attr,
    boolean,
    integer,
    operand,
    optional_operand,
)
from tilewright.ir.types import TileType, Type, i32, shape_of, with_shape


class SortOp(Op, opcode="tile.sort", traits=(Trait.PURE,)):
    """result[i, :] = the first `count` of x[i, :] in ascending order, or descending

    Stated for axis 1; extent and count are powers of two. bitonic: x[i, :] ascends and then
    descends, or the reverse; otherwise the order is undefined.
    """

    x: Value = operand(integer)
    axis: int = attr()
    count: int = attr()
    descending: bool = attr(default=False)
    bitonic: bool = attr(default=False)

    @property
    def extent(self) -> int:
        """The extent of x along the axis."""
        return shape_of(self.x.type)[self.axis]

    def infer(self) -> Type:
        shape = shape_of(self.x.type)
        return with_shape(self.x.type, (*shape[: self.axis], self.count, *shape[self.axis + 1 :]))

    def verify(self) -> str | None:
        shape = shape_of(self.x.type)
        if not 0 <= self.axis < len(shape):
            return f"axis {self.axis} is not a dimension of {self.x.type}"
        extent = shape[self.axis]
        if extent & (extent - 1) or self.count & (self.count - 1):
            return f"extent and count must be powers of two, not {extent} and {self.count}"
        if not 0 < self.count <= extent or (self.bitonic and self.count != extent):
            return f"cannot keep {self.count} of {extent}"
        return None


class HistogramOp(Op, opcode="tile.histogram", traits=(Trait.PURE,)):
    """result[b] = number of elements of x that equal b, where mask; others are not counted"""

    x: Value = operand(integer)
    bins: int = attr()
    mask: Value | None = optional_operand(boolean, default=None)

    def infer(self) -> Type:
        return TileType((self.bins,), i32)

    def verify(self) -> str | None:
        shape = shape_of(self.x.type)
        if not shape or (self.mask is not None and shape_of(self.mask.type) != shape):
            return f"needs a tile and a mask of its shape, not {self.x.type}"
        return None if self.bins > 0 else "needs at least one bin"
