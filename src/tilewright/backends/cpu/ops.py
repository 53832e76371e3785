"""Ops of the CPU backend only, with their NumPy rules."""

from __future__ import annotations

from typing import Any

from tilewright.ir import Op, Trait, Value, operand, reference, tile
from tilewright.ir.types import Type, shape_of, with_shape


class BlockTransposeOp(Op, opcode="cpu.transpose", traits=(Trait.PURE,)):
    """result[..., j, i] = x[..., i, j], written to a buffer through square blocks in registers"""

    x: Value = operand(tile)

    def infer(self) -> Type:
        *others, rows, columns = shape_of(self.x.type)
        return with_shape(self.x.type, (*others, columns, rows))


@reference(BlockTransposeOp)
def block_transpose(op: BlockTransposeOp, x: Any) -> Any:
    """The last two dimensions swapped."""
    return x.swapaxes(-1, -2)
