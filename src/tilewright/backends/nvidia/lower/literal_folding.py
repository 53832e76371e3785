"""Element-wise ops on literals: what a combination makes of constants, as of how many elements a
mean is of, is known while the code is written, and no thread computes it.

LLVM folds these as well, but not the assembly of a division, nor shuffles.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tilewright.ir import Op
from tilewright.ir.types import dtype_of
from tilewright.llvm import Val, constant
from tilewright.ops import AddOp, CompareOp, DivOp, MulOp, SelectOp, SubOp
from tilewright.transforms.rules import fold_binary, fold_compare

_BINARY = (AddOp, SubOp, MulOp, DivOp)


def is_literal(value: Val) -> bool:
    """Whether an operand is the same constant in all threads."""
    return not value.text.startswith(("%", "@"))


def folded(op: Op, operands: Sequence[Val]) -> Val | None:
    """The result of an op as a literal or an operand; None if it is to be computed."""
    if isinstance(op, SelectOp) and operands[0].constant is not None:
        return operands[1] if operands[0].constant else operands[2]
    if not isinstance(op, (*_BINARY, CompareOp)):
        return None
    x, y = (float_number(value) for value in operands)
    if x is None or y is None:
        return None
    if isinstance(op, CompareOp):
        return constant(fold_compare(op.predicate, x, y), dtype_of(op.type))
    number = fold_binary(op.opcode, x, y, dtype_of(op.type))
    if number is None and isinstance(op, DivOp) and y != 0.0:
        # Rounded to fp64 and then to fp32, a quotient of fp32 is rounded as at once.
        number = x / y
    return None if number is None else constant(number, dtype_of(op.type))


def float_number(value: Val) -> float | None:
    """The finite number that a literal of fp32 is."""
    if value.type != "float" or not value.text.startswith("0x"):
        return None
    number: float
    (number,) = struct.unpack("<d", struct.pack("<Q", int(value.text, 16)))
    return number if abs(number) < float("inf") else None
