"""When values live, over structured control flow, and which of them live at the same time.

Ops are numbered in the order of the text; one with regions has a number before them and one after.

    0  %a = ...
    1  %r = cf.for ... %a (%i, %p) {     %a lives 0-1: the loop takes it as a start, %p takes over
    2    %b = ... %p                     %p lives 1-2, %b 2-3, each for one iteration
    3    cf.yield %b
    4  }                                 %r lives from 4
    5  ... %r

A value used inside a loop but defined outside lives until the loop ends, since the next iteration
may need it again. What an op reads and what it makes overlap (at the op); so do the two branches of
an `if` with what comes before and after, but not with each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from tilewright.ir import Block, Function, Op, Value
from tilewright.ops import ForOp, WhileOp


@dataclass(frozen=True, slots=True)
class LiveRange:
    """From when to when something is needed, both ends included."""

    first: int
    last: int

    def overlaps(self, other: LiveRange) -> bool:
        """Whether both are needed at one time."""
        return self.first <= other.last and other.first <= self.last

    def hull(self, other: LiveRange) -> LiveRange:
        """The range that covers both."""
        return LiveRange(min(self.first, other.first), max(self.last, other.last))


class Liveness:
    """Live ranges of all values of a function.

    begin, end: number of each op before and after its regions (one number for an op without)
    """

    __slots__ = ("begin", "end", "ranges")

    def __init__(self, function: Function) -> None:
        self.begin: dict[Op, int] = {}
        self.end: dict[Op, int] = {}
        self.ranges: dict[Value, LiveRange] = {}
        self._number(function.body, 0)
        for arg in function.args:
            self._extend(arg, 0)
        for raw in function.walk():
            op = cast("Op", raw)
            self._define(op)
        for raw in function.walk():
            for value in raw.operands:
                self._use(value, cast("Op", raw))

    def _number(self, block: Block, number: int) -> int:
        for raw in block:
            op = cast("Op", raw)
            self.begin[op] = number
            for region in op.regions:
                number = self._number(region, number + 1)
            number += bool(op.regions)
            self.end[op] = number
            number += 1
        return number - 1

    def _define(self, op: Op) -> None:
        for result in op.results:
            self._extend(result, self.end[op])
        for region in op.regions:
            first = cast("Op | None", region.first)
            assert first is not None, f"{op.opcode} has an empty region"
            for arg in region.args:
                self._extend(arg, self.begin[first] - 1)

    def _extend(self, value: Value, number: int) -> None:
        here = LiveRange(number, number)
        known = self.ranges.get(value)
        self.ranges[value] = here if known is None else known.hull(here)

    def _use(self, value: Value, op: Op) -> None:
        """The value is needed at the op, and in all of a loop that it comes into from outside."""
        self._extend(value, self.begin[op])
        home = value.owner if isinstance(value.owner, Block) else value.owner.parent
        block = op.parent
        while block is not None and block is not home:
            owner = cast("Op", block.owner)
            if isinstance(owner, ForOp | WhileOp):
                self._extend(value, self.end[owner])
            block = owner.parent

    def interferes(self, a: Value, b: Value) -> bool:
        """Whether two values live at one time."""
        return self.ranges[a].overlaps(self.ranges[b])

    def hull(self, values: Iterable[Value]) -> LiveRange:
        """When a buffer is needed that holds several values one after the other."""
        first, *rest = (self.ranges[value] for value in values)
        for other in rest:
            first = first.hull(other)
        return first


def analyze_liveness(function: Function) -> Liveness:
    """Live ranges of every value of a function."""
    return Liveness(function)
