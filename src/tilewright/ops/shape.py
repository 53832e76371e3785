"""Ops that create tiles or change their shape; none computes. Order of elements is row-major."""

from __future__ import annotations

from math import prod

from tilewright.ir import Op, Trait, Value, any_type, attr, integer, operand, scalar, tile
from tilewright.ir.types import TileType, Type, element_of, i32, shape_of, with_shape

_PURE = (Trait.PURE,)


class RangeOp(Op, opcode="tile.range", traits=_PURE):
    """result[i] = start + i, for start <= result < end, as i32"""

    start: int = attr()
    end: int = attr()

    def infer(self) -> Type:
        return TileType((self.end - self.start,), i32)


class SplatOp(Op, opcode="tile.splat", traits=_PURE):
    """result[...] = x"""

    x: Value = operand(scalar)
    shape: tuple[int, ...] = attr()

    def infer(self) -> Type:
        return with_shape(self.x.type, self.shape)


class BroadcastOp(Op, opcode="tile.broadcast", traits=_PURE):
    """result[i, j] = x[i, 0] where the extent of x is 1, else x[i, j]; ranks are equal"""

    x: Value = operand(tile)
    shape: tuple[int, ...] = attr()

    def infer(self) -> Type:
        return with_shape(self.x.type, self.shape)

    def verify(self) -> str | None:
        source = shape_of(self.x.type)
        if len(source) != len(self.shape) or any(
            a not in (1, b) for a, b in zip(source, self.shape, strict=True)
        ):
            return f"cannot broadcast {source} to {self.shape}"
        return None


class ExpandDimsOp(Op, opcode="tile.expand_dims", traits=_PURE):
    """result[i, 0, j] = x[i, j], the new extent of 1 at `axis`"""

    x: Value = operand(tile)
    axis: int = attr()

    def infer(self) -> Type:
        shape = shape_of(self.x.type)
        return with_shape(self.x.type, (*shape[: self.axis], 1, *shape[self.axis :]))


class ReshapeOp(Op, opcode="tile.reshape", traits=_PURE):
    """result.flat[i] = x.flat[i]"""

    x: Value = operand(tile)
    shape: tuple[int, ...] = attr()

    def infer(self) -> Type:
        return with_shape(self.x.type, self.shape)

    def verify(self) -> str | None:
        if prod(shape_of(self.x.type)) != prod(self.shape):
            return f"cannot reshape {shape_of(self.x.type)} to {self.shape}"
        return None


class TransposeOp(Op, opcode="tile.transpose", traits=_PURE):
    """result.shape[k] = x.shape[order[k]], the elements moved along"""

    x: Value = operand(tile)
    order: tuple[int, ...] = attr()

    def infer(self) -> Type:
        shape = shape_of(self.x.type)
        return with_shape(self.x.type, tuple(shape[k] for k in self.order))

    def verify(self) -> str | None:
        if sorted(self.order) != list(range(len(shape_of(self.x.type)))):
            return f"{self.order} is not a permutation of the dimensions"
        return None


class JoinOp(Op, opcode="tile.join", traits=_PURE):
    """result[..., 0] = lhs, result[..., 1] = rhs: a new last dimension of 2"""

    lhs: Value = operand(tile)
    rhs: Value = operand(tile)

    def infer(self) -> Type:
        return with_shape(self.lhs.type, (*shape_of(self.lhs.type), 2))


class SplitOp(Op, opcode="tile.split", traits=_PURE):
    """first = x[..., 0], second = x[..., 1]: takes a last dimension of 2 apart"""

    x: Value = operand(tile)

    def infer(self) -> tuple[Type, ...]:
        part = with_shape(self.x.type, shape_of(self.x.type)[:-1])
        return (part, part)

    def verify(self) -> str | None:
        return None if shape_of(self.x.type)[-1] == 2 else "the last dimension must be 2"


class CatOp(Op, opcode="tile.cat", traits=_PURE):
    """result = lhs followed by rhs along `axis`"""

    lhs: Value = operand(tile)
    rhs: Value = operand(tile)
    axis: int = attr(default=0)

    def infer(self) -> Type:
        shape = list(shape_of(self.lhs.type))
        shape[self.axis] += shape_of(self.rhs.type)[self.axis]
        return with_shape(self.lhs.type, tuple(shape))


class ItemOp(Op, opcode="tile.item", traits=_PURE):
    """result = the only element of x, as a scalar"""

    x: Value = operand(tile)

    def infer(self) -> Type:
        return element_of(self.x.type)


class HintOp(Op, opcode="tile.hint", traits=(Trait.PURE,)):
    """result = x, with promises per dimension

    Runs of `contiguity` consecutive numbers or of `constancy` equal ones, whose first is divisible.
    Each attribute is empty (nothing promised) or has one number per dimension (one for a scalar).
    """

    x: Value = operand(any_type)
    divisibility: tuple[int, ...] = attr(default=())
    contiguity: tuple[int, ...] = attr(default=())
    constancy: tuple[int, ...] = attr(default=())

    def infer(self) -> Type:
        return self.x.type


class GatherOp(Op, opcode="tile.gather", traits=_PURE):
    """result[i, j] = x[index[i, j], j] for axis 0, and so on"""

    x: Value = operand(tile)
    index: Value = operand(integer)
    axis: int = attr()

    def infer(self) -> Type:
        return with_shape(self.x.type, shape_of(self.index.type))
