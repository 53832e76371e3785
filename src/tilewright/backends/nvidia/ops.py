"""Ops of the NVIDIA backend on tiles in registers, with their NumPy rules."""

from __future__ import annotations

from typing import Any

from tilewright.backends.nvidia.operand_checks import dot_problem, other_tile
from tilewright.ir import Effect, Op, Trait, Value, attr, operand, reference, tile
from tilewright.ir.types import TileType, Type


class ConvertOp(Op, opcode="nvidia.convert", traits=(Trait.PURE,)):
    """result = x, its elements distributed over threads by the layout of the result type"""

    x: Value = operand(tile)
    result_type: Type = attr()

    def verify(self) -> str | None:
        if not isinstance(self.result_type, TileType):
            return f"the result is a tile, not {self.result_type}"
        return other_tile(self.result_type, self.x.type)


@reference(ConvertOp)
def convert(op: ConvertOp, x: Any) -> Any:
    """The same elements: NumPy has no layouts."""
    return x


class WarpBarrierOp(Op, opcode="nvidia.warp_barrier", effects=(Effect.SHARED,)):
    """The lanes of each warp wait for each other, and see the others' writes."""


@reference(WarpBarrierOp)
def warp_barrier(op: WarpBarrierOp) -> tuple[()]:
    """NumPy has no lanes."""
    return ()


class FmaDotOp(Op, opcode="nvidia.dot_fma", traits=(Trait.PURE,)):
    """result = acc + a @ b by FMAs in the type of all three"""

    a: Value = operand(tile)
    b: Value = operand(tile)
    acc: Value = operand(tile)

    def infer(self) -> Type:
        return self.acc.type

    def verify(self) -> str | None:
        return dot_problem(self.a.type, self.b.type, self.acc.type)


@reference(FmaDotOp)
def fma_dot(op: FmaDotOp, a: Any, b: Any, acc: Any) -> Any:
    """Floats are accumulated in float64 and rounded once; integers wrap."""
    wide = "float64" if acc.dtype.kind == "f" else "int64"
    return (acc.astype(wide) + a.astype(wide) @ b.astype(wide)).astype(acc.dtype)
