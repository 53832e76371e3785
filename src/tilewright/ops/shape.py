"""Ops that create tiles or change their shape, without arithmetic. Elements are row-major."""

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

    def verify(self) -> str | None:
        if not i32.min_int <= self.start < self.end <= i32.max_int + 1:
            return f"the range {self.start} to {self.end} is empty or not in i32"
        return None


class SplatOp(Op, opcode="tile.splat", traits=_PURE):
    """result[...] = x"""

    x: Value = operand(scalar)
    shape: tuple[int, ...] = attr()

    def infer(self) -> Type:
        return with_shape(self.x.type, self.shape)

    def verify(self) -> str | None:
        return None if self.shape else "a tile has at least one dimension"


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

    def verify(self) -> str | None:
        if not 0 <= self.axis <= len(shape_of(self.x.type)):
            return f"axis {self.axis} does not fit {self.x.type}"
        return None


class ReshapeOp(Op, opcode="tile.reshape", traits=_PURE):
    """result.flat[i] = x.flat[i]"""

    x: Value = operand(tile)
    shape: tuple[int, ...] = attr()

    def infer(self) -> Type:
        return with_shape(self.x.type, self.shape)

    def verify(self) -> str | None:
        if not self.shape:
            return "a tile has at least one dimension"
        if prod(shape_of(self.x.type)) != prod(self.shape):
            return f"cannot reshape {shape_of(self.x.type)} to {self.shape}"
        return None


class TransposeOp(Op, opcode="tile.transpose", traits=_PURE):
    """result.shape[k] = x.shape[order[k]], with the elements permuted alike"""

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

    def verify(self) -> str | None:
        if self.lhs.type is not self.rhs.type:
            return f"operands differ in type: {self.lhs.type} and {self.rhs.type}"
        return None


class SplitOp(Op, opcode="tile.split", traits=_PURE):
    """first = x[..., 0], second = x[..., 1]: splits a last dimension of 2"""

    x: Value = operand(tile)

    def infer(self) -> tuple[Type, ...]:
        part = with_shape(self.x.type, shape_of(self.x.type)[:-1])
        return (part, part)

    def verify(self) -> str | None:
        shape = shape_of(self.x.type)
        if len(shape) > 1 and shape[-1] == 2:
            return None
        return f"needs at least two dimensions, the last of 2, not {self.x.type}"


class CatOp(Op, opcode="tile.cat", traits=_PURE):
    """result = lhs followed by rhs along `axis`"""

    lhs: Value = operand(tile)
    rhs: Value = operand(tile)
    axis: int = attr(default=0)

    def infer(self) -> Type:
        shape = list(shape_of(self.lhs.type))
        shape[self.axis] += shape_of(self.rhs.type)[self.axis]
        return with_shape(self.lhs.type, tuple(shape))

    def verify(self) -> str | None:
        shapes = shape_of(self.lhs.type), shape_of(self.rhs.type)
        if not 0 <= self.axis < len(shapes[0]):
            return f"axis {self.axis} is not a dimension of {self.lhs.type}"
        left, right = ((*s[: self.axis], *s[self.axis + 1 :]) for s in shapes)
        same_element = element_of(self.lhs.type) is element_of(self.rhs.type)
        if left != right or len(shapes[0]) != len(shapes[1]) or not same_element:
            return f"cannot join {self.lhs.type} and {self.rhs.type} along axis {self.axis}"
        return None


class ItemOp(Op, opcode="tile.item", traits=_PURE):
    """result = the only element of x, as a scalar"""

    x: Value = operand(tile)

    def infer(self) -> Type:
        return element_of(self.x.type)

    def verify(self) -> str | None:
        return None if prod(shape_of(self.x.type)) == 1 else f"{self.x.type} has several elements"


class HintOp(Op, opcode="tile.hint", traits=(Trait.PURE,)):
    """result = x, with promises per dimension

    Runs of `contiguity` consecutive numbers or of `constancy` equal ones, whose first is divisible
    by `divisibility`. An attribute is empty (no promise) or has a number for each dimension (one
    for a scalar).
    """

    x: Value = operand(any_type)
    divisibility: tuple[int, ...] = attr(default=())
    contiguity: tuple[int, ...] = attr(default=())
    constancy: tuple[int, ...] = attr(default=())

    def infer(self) -> Type:
        return self.x.type

    def verify(self) -> str | None:
        rank = max(1, len(shape_of(self.x.type)))
        for promise in (self.divisibility, self.contiguity, self.constancy):
            if len(promise) not in (0, rank):
                return f"{promise} must have one number for each of {rank} dimensions"
        return None


class GatherOp(Op, opcode="tile.gather", traits=_PURE):
    """result[i, j] = x[index[i, j], j], stated for axis 0"""

    x: Value = operand(tile)
    index: Value = operand(integer)
    axis: int = attr()

    def infer(self) -> Type:
        return with_shape(self.x.type, shape_of(self.index.type))

    def verify(self) -> str | None:
        shapes = shape_of(self.x.type), shape_of(self.index.type)
        if not 0 <= self.axis < len(shapes[0]):
            return f"axis {self.axis} is not a dimension of {self.x.type}"
        left, right = ((*s[: self.axis], *s[self.axis + 1 :]) for s in shapes)
        if left != right or len(shapes[0]) != len(shapes[1]):
            return f"cannot gather {self.index.type} from {self.x.type} along axis {self.axis}"
        return None
