"""Ops of the CPU backend only, with their NumPy rules."""

from __future__ import annotations

from typing import Any

from tilewright.ir import Op, Trait, Value, operand, reference, tile
from tilewright.ir.types import Type, shape_of, with_shape
from tilewright.ops import DotOp


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


class Bf16DotOp(DotOp, opcode="cpu.dot_bf16", traits=(Trait.PURE,)):
    """result[i, j] = acc[i, j] + sum_k a[i, k] * b[k, j] in f32, of the bits of bf16 as u16

    The instruction flushes subnormal numbers to 0, in a and b and in the accumulator.
    """


@reference(Bf16DotOp)
def bf16_dot(op: Bf16DotOp, a: Any, b: Any, acc: Any) -> Any:
    """Summed in float64 and rounded once."""
    wide = [(x.astype("uint32") << 16).view("float32").astype("float64") for x in (a, b)]
    return (wide[0] @ wide[1] + acc).astype("float32")
