"""Reductions of constants that are combined with constants only.

%m, %v, %n = tile.reduce %mean, %m2, %ones {axis = 0}     over 64 elements, where a step yields
  (...) { ... %n = arith.add %n1, %n2 ... }               n of n1 and n2: the last result is 64.0
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir import Block, Op, Value
from tilewright.ir.types import dtype_of
from tilewright.ops import BinaryOp, ConstantOp, ReduceOp
from tilewright.transforms.rules.exact_arithmetic import Number, constant_of, fold_binary


def reduced_constants(op: ReduceOp, extent: int) -> list[Number | None]:
    """The constant that each result is for `extent` elements along the axis; None if it is none."""
    numbers = [constant_of(value) for value in op.inputs]
    if extent & (extent - 1):
        return [None] * len(numbers)
    # all elements are equal, so that halves are: 64 = 32 + 32
    while extent > 1:
        numbers, extent = _combined(op.combine, [*numbers, *numbers]), extent // 2
    return numbers


def _combined(combine: Block, arguments: Sequence[Number | None]) -> list[Number | None]:
    known = dict(zip(combine.args, arguments, strict=True))
    for step in combine:
        for result in step.results:
            known[result] = _number(step, known)
    return [known.get(value) for value in combine.terminator.operands]


def _number(step: Op, known: dict[Value, Number | None]) -> Number | None:
    if isinstance(step, ConstantOp):
        return constant_of(step.results[0])
    if not isinstance(step, BinaryOp):
        return None
    a, b = (known.get(value) for value in step.operands)
    if a is None or b is None:
        return None
    return fold_binary(step.opcode, a, b, dtype_of(step.type))
