"""Between which numbers the elements of integers lie, as far as their own ops say.

    %r = tile.range {start = 0, end = 2048}             0 .. 2047
    %i = index of cf.for 0, 4096, 2048                  0 .. 2048
    %c = arith.add (splat %i), %r                       0 .. 4095

Sums, differences and products that may leave their type are not known: they wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from tilewright.ir import Block, Op, Value
from tilewright.ir.types import DType, element_of
from tilewright.ops import (
    AddOp,
    BroadcastOp,
    CastOp,
    ConstantOp,
    DivOp,
    ExpandDimsOp,
    ForOp,
    MaxOp,
    MinOp,
    MulOp,
    NumProgramsOp,
    ProgramIdOp,
    RangeOp,
    RemOp,
    ReshapeOp,
    SelectOp,
    SplatOp,
    SubOp,
    TransposeOp,
)

_MOST_STEPS = 64
"""Ops that are looked at for one value; addresses are sums of a few terms."""


class IntegerRange(NamedTuple):
    """The least and the largest number that an element may be."""

    low: int
    high: int


def integer_range(value: Value) -> IntegerRange | None:
    """Where all elements of integers lie; None if nothing is known, and for other types."""
    return _Walk().of(value)


class _Walk:
    """The ranges that one question needs."""

    def __init__(self) -> None:
        self.known: dict[Value, IntegerRange | None] = {}

    def of(self, value: Value) -> IntegerRange | None:
        """The range of a value, cut to what its type holds."""
        element = element_of(value.type)
        if not isinstance(element, DType) or not element.is_integer:
            return None
        if value not in self.known:
            if len(self.known) >= _MOST_STEPS:
                return None
            self.known[value] = None
            self.known[value] = _fitting(self._computed(value), element)
        return self.known[value]

    def _computed(self, value: Value) -> IntegerRange | None:
        op = value.op
        if op is None:
            return self._index(value)
        rule = _RULES.get(type(op))
        if rule is None:
            return None
        # the condition of a select is no number
        data = op.operands[1:] if isinstance(op, SelectOp) else op.operands
        ranges = [self.of(operand) for operand in data]
        return None if None in ranges else rule(op, cast("list[IntegerRange]", ranges))

    def _index(self, value: Value) -> IntegerRange | None:
        """That of a loop's index whose bounds are known."""
        block = value.owner
        loop = block.owner if isinstance(block, Block) else None
        if not isinstance(loop, ForOp) or value is not loop.index:
            return None
        lower, upper = self.of(loop.lower), self.of(loop.upper)
        if lower is None or upper is None:
            return None
        last, step = upper.high - 1, loop.step.op
        if lower.low == lower.high and isinstance(step, ConstantOp) and int(step.value) > 0:
            last -= (last - lower.low) % int(step.value)
        # a loop that is never entered has no index that could be wrong
        return IntegerRange(lower.low, max(lower.low, last))


def _fitting(found: IntegerRange | None, element: DType) -> IntegerRange | None:
    fits = found is not None and element.min_int <= found.low <= found.high <= element.max_int
    return found if fits else None


_Rule = Callable[[Op, Sequence[IntegerRange]], IntegerRange | None]


def _constant(op: Op, _: Sequence[IntegerRange]) -> IntegerRange:
    number = int(op.attrs["value"])
    return IntegerRange(number, number)


def _counted(op: Op, _: Sequence[IntegerRange]) -> IntegerRange:
    return IntegerRange(op.attrs["start"], op.attrs["end"] - 1)


def _of_grid(op: Op, _: Sequence[IntegerRange]) -> IntegerRange:
    return IntegerRange(0, cast("DType", op.results[0].type).max_int)


def _same(_: Op, x: Sequence[IntegerRange]) -> IntegerRange:
    return x[0]


def _either(_: Op, x: Sequence[IntegerRange]) -> IntegerRange:
    return IntegerRange(min(x[0].low, x[1].low), max(x[0].high, x[1].high))


def _sum(_: Op, x: Sequence[IntegerRange]) -> IntegerRange:
    return IntegerRange(x[0].low + x[1].low, x[0].high + x[1].high)


def _difference(_: Op, x: Sequence[IntegerRange]) -> IntegerRange:
    return IntegerRange(x[0].low - x[1].high, x[0].high - x[1].low)


def _product(_: Op, x: Sequence[IntegerRange]) -> IntegerRange:
    corners = [a * b for a in x[0] for b in x[1]]
    return IntegerRange(min(corners), max(corners))


def _least(_: Op, x: Sequence[IntegerRange]) -> IntegerRange:
    return IntegerRange(min(x[0].low, x[1].low), min(x[0].high, x[1].high))


def _largest(_: Op, x: Sequence[IntegerRange]) -> IntegerRange:
    return IntegerRange(max(x[0].low, x[1].low), max(x[0].high, x[1].high))


def _quotient(_: Op, x: Sequence[IntegerRange]) -> IntegerRange | None:
    """Of natural numbers: division of others rounds towards zero."""
    natural = x[0].low >= 0 and x[1].low > 0
    return IntegerRange(x[0].low // x[1].high, x[0].high // x[1].low) if natural else None


def _remainder(_: Op, x: Sequence[IntegerRange]) -> IntegerRange | None:
    natural = x[0].low >= 0 and x[1].low > 0
    return IntegerRange(0, min(x[0].high, x[1].high - 1)) if natural else None


_RULES: dict[type[Op], _Rule] = {
    ConstantOp: _constant,
    RangeOp: _counted,
    ProgramIdOp: _of_grid,
    NumProgramsOp: _of_grid,
    **dict.fromkeys((SplatOp, ExpandDimsOp, BroadcastOp, ReshapeOp, TransposeOp, CastOp), _same),
    SelectOp: _either,
    AddOp: _sum,
    SubOp: _difference,
    MulOp: _product,
    MinOp: _least,
    MaxOp: _largest,
    DivOp: _quotient,
    RemOp: _remainder,
}
