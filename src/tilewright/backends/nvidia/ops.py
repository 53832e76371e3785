"""Ops of the NVIDIA backend only, with their NumPy rules."""

from __future__ import annotations

from typing import Any

from tilewright.ir import Op, Trait, Value, attr, operand, reference, tile
from tilewright.ir.types import Type


class ConvertOp(Op, opcode="nvidia.convert", traits=(Trait.PURE,)):
    """result = x, its elements spread over the threads as the layout of the result type says"""

    x: Value = operand(tile)
    result_type: Type = attr()

    def infer(self) -> Type:
        return self.result_type


@reference(ConvertOp)
def convert(op: ConvertOp, x: Any) -> Any:
    """The elements stay what they are."""
    return x
