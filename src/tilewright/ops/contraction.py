"""Ops that combine elements of a tile: dot, reduction, scan."""

from __future__ import annotations

from tilewright.ir import Block, Op, Trait, Value, attr, operand, region, tile, variadic
from tilewright.ir.types import Type, element_of, shape_of, with_shape
from tilewright.ops.region_checks import op_with_effects, wrong_args, wrong_end

PRECISIONS = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")


def _wrong_fold(inputs: tuple[Value, ...], combine: Block, axis: int) -> str | None:
    """The error of an op that folds tiles along an axis by a combine region, or None."""
    if not inputs:
        return "needs at least one tile"
    shapes = {shape_of(x.type) for x in inputs}
    if len(shapes) > 1:
        return f"the tiles must have one shape, not {sorted(shapes)}"
    if not 0 <= axis < len(shapes.pop()):
        return f"axis {axis} is not a dimension of {inputs[0].type}"
    effect = op_with_effects(combine)
    if effect is not None:
        return f"`combine` must be free of effects; it contains {effect.opcode}"
    elements = tuple(element_of(x.type) for x in inputs)
    return wrong_args("`combine`", combine, elements * 2) or wrong_end(
        "`combine`", combine, "cf.yield", elements
    )


class DotOp(Op, opcode="tile.dot", traits=(Trait.PURE,)):
    """result[i, j] = acc[i, j] + sum_k a[i, k] * b[k, j]; with rank 3 for each first index

    precision: how fp32 operands may be rounded; max_imprecise: the most products of fp8 that may be
    accumulated in less than fp32 (0: no limit). The accumulator has the type of `acc`.
    """

    a: Value = operand(tile)
    b: Value = operand(tile)
    acc: Value = operand(tile)
    precision: str = attr(default="ieee", choices=PRECISIONS)
    max_imprecise: int = attr(default=0)

    def infer(self) -> Type:
        return self.acc.type

    def verify(self) -> str | None:
        a, b, acc = shape_of(self.a.type), shape_of(self.b.type), shape_of(self.acc.type)
        if len(b) < 2 or len(a) != len(b):
            return f"operands must have one rank of at least 2: {a} x {b}"
        if a[-1] != b[-2] or acc != (*a[:-1], b[-1]) or b[:-2] != a[:-2]:
            return f"shapes do not fit: {a} x {b} -> {acc}"
        return None


class ReduceOp(Op, opcode="tile.reduce", traits=(Trait.PURE,)):
    """result[i] = fold of combine over x[i, :] for the reduced axis; several tiles fold together

    `combine` takes 2n scalars (left values, right values) and yields n; it is associative and
    commutative. A tile of rank 1 folds to a scalar.
    """

    inputs: tuple[Value, ...] = variadic(tile)
    combine: Block = region()
    axis: int = attr()

    def infer(self) -> tuple[Type, ...]:
        shape = shape_of(self.inputs[0].type)
        reduced = (*shape[: self.axis], *shape[self.axis + 1 :])
        return tuple(with_shape(x.type, reduced) for x in self.inputs)

    def verify(self) -> str | None:
        return _wrong_fold(self.inputs, self.combine, self.axis)


class ScanOp(Op, opcode="tile.scan", traits=(Trait.PURE,)):
    """result[i, j] = fold of combine over x[i, 0..j], or x[i, j..] if reversed"""

    inputs: tuple[Value, ...] = variadic(tile)
    combine: Block = region()
    axis: int = attr()
    reverse: bool = attr(default=False)

    def infer(self) -> tuple[Type, ...]:
        return tuple(x.type for x in self.inputs)

    def verify(self) -> str | None:
        return _wrong_fold(self.inputs, self.combine, self.axis)
