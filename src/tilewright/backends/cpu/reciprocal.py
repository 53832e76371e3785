"""Division of a tile by something of fewer elements becomes multiplication by its reciprocal.

    %d = tile.splat %s {shape = [1024]}          %i = arith.div 1, (%s scaled into 2^-64 .. 2^64)
    %q = arith.div %x, %d                   ->   %q = (%x * scale) * splat %i

A vector division takes about ten times as long as a multiplication. The scale is 2^64 for a divisor
below 2^-64, 2^-64 for one above 2^64, else 1; so neither the reciprocal nor the product leaves
the range of normal numbers unless the quotient does. The error is below 2 ulp; a division that
asks to be precise stays one. Only for f32: f16 and bf16 divide in f32, and f64 promises correct
rounding.
"""

from __future__ import annotations

from tilewright.ir import Builder, Function, Op, Rewriter, Value
from tilewright.ir.types import TileType, element_of, f32, shape_of
from tilewright.ops import (
    AbsOp,
    BroadcastOp,
    CompareOp,
    ConstantOp,
    DivOp,
    ExpandDimsOp,
    MulOp,
    SelectOp,
    SplatOp,
)

_SPREADING = (SplatOp, BroadcastOp, ExpandDimsOp)
_LARGE = 2.0**64


def use_reciprocals(function: Function) -> None:
    """Rewrite the divisions of one function."""
    for op in [op for op in function.walk() if isinstance(op, DivOp)]:
        if element_of(op.type) is f32 and not op.precise and isinstance(op.type, TileType):
            _rewrite(op)


def _rewrite(op: DivOp) -> None:
    path = _spreading_path(op.rhs)
    if not path:
        return
    builder = Builder.at(op)
    divisor = path[-1].operands[0]
    scale = _scale(builder, divisor)
    one = builder.value(ConstantOp(1.0, divisor.type))
    inverse = builder.value(DivOp(one, builder.value(MulOp(divisor, scale)), precise=True))
    scaled = builder.value(MulOp(op.lhs, _spread(builder, path, scale)))
    quotient = builder.value(MulOp(scaled, _spread(builder, path, inverse)))
    Rewriter.replace(op, quotient)


def _spreading_path(value: Value) -> list[Op]:
    """The ops that spread a smaller value to this one, last first; [] if nothing gets smaller."""
    path: list[Op] = []
    op = value.op
    while isinstance(op, _SPREADING):
        path.append(op)
        op = op.operands[0].op
    if not path or isinstance(op, ConstantOp):
        return []
    smaller = shape_of(path[-1].operands[0].type) != shape_of(value.type)
    return path if smaller else []


def _scale(builder: Builder, divisor: Value) -> Value:
    """A power of two that brings the divisor near 1."""

    def number(value: float) -> Value:
        return builder.value(ConstantOp(value, divisor.type))

    size = builder.value(AbsOp(divisor))
    tiny = builder.value(CompareOp(size, number(1 / _LARGE), predicate="lt"))
    huge = builder.value(CompareOp(size, number(_LARGE), predicate="gt"))
    down = builder.value(SelectOp(huge, number(1 / _LARGE), number(1.0)))
    return builder.value(SelectOp(tiny, number(_LARGE), down))


def _spread(builder: Builder, path: list[Op], value: Value) -> Value:
    """The same spreading of another value."""
    for op in reversed(path):
        value = builder.value(op.clone({op.operands[0]: value}))
    return value
