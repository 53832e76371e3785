"""Ranges of the scalars that a loop carries, by a fixpoint.

    cf.for 0, %n, 1, 5 (%i, %x) { %y = add %x, 3; cf.yield %y }     5 .. 5 + 3 %n
    cf.while %pid (%t) { ... %t < %tiles ... %t + %programs }       0 .. %tiles - 1 in the body

The range of a carried scalar starts as that of its initial value. Each round joins the range of the
value that the body yields, by the ranges so far, until nothing changes. A counted loop that adds a
bounded number in each iteration needs one round. From the second round on, a bound that still moves
becomes 0, or the bound that an iteration has from any number on (widening). A last round may take
back some of that (narrowing).
"""

from __future__ import annotations

from typing import Protocol

from tilewright.analysis.scalar_bounds import IntegerRange, ScalarBounds
from tilewright.ir import Block, Value
from tilewright.ir.types import DType
from tilewright.ops import ConstantOp, ForOp, WhileOp, incoming_values

_ROUNDS = 8
"""Bounds move twice at most; further rounds are for scalars that depend on each other."""

Known = dict[Value, IntegerRange]


class Walk(Protocol):
    """The ranges of one query. known: those found so far; pending: values that are being
    computed; loops: those whose fixpoint is being computed."""

    divisors: bool
    known: Known
    pending: set[Value]
    loops: dict[ForOp | WhileOp, Fixpoint]

    def bounds(self, value: Value) -> IntegerRange:
        """The range of an integer."""
        ...

    def start(self, value: Value) -> IntegerRange:
        """The range of an initial value."""
        ...

    def within_work(self, value: Value, loop: ForOp | WhileOp, found: IntegerRange) -> IntegerRange:
        """The range of a carried scalar by the assumptions on tile indices."""
        ...


def loop_of(value: Value) -> ForOp | WhileOp | None:
    """The loop that carries a block argument; None for other values."""
    block = value.owner
    loop = block.owner if isinstance(block, Block) else None
    if isinstance(loop, ForOp):
        return loop if value.index else None
    return loop if isinstance(loop, WhileOp) and block is loop.before else None


def carried_range(value: Value, loop: ForOp | WhileOp, walk: Walk) -> IntegerRange:
    """The range of a scalar that a loop carries."""
    active = walk.loops.get(loop)
    return Fixpoint(loop, walk).solve(value) if active is None else active.of(value)


class Fixpoint:
    """The fixpoint of one loop: ranges of the carried scalars that the query depends on.

    limits: the ranges after an iteration that starts from any numbers
    """

    def __init__(self, loop: ForOp | WhileOp, walk: Walk) -> None:
        self._loop, self._walk = loop, walk
        # Values whose computation needs this fixpoint are computed again by it.
        self._outside = {x: r for x, r in walk.known.items() if x not in walk.pending}
        self._current: Known = {}
        self._limits: Known | None = None
        self._starts: Known = {}

    def of(self, value: Value) -> IntegerRange:
        """The range in this round."""
        if value not in self._current:
            # The round that needs it computes it as well.
            self._current[value] = self._initial(value)
        return self._current[value]

    def solve(self, value: Value) -> IntegerRange:
        """The range of a carried scalar."""
        self._limits = self._round({value: _anything(value)})
        ranges = {value: self._initial(value)}
        for round_ in range(_ROUNDS):
            following = _joined(ranges, self._round(ranges))
            if following == ranges:
                break
            ranges = {x: self._widened(ranges.get(x), r, x, round_) for x, r in following.items()}
        else:
            ranges = {x: _anything(x) for x in ranges}
        narrow = self._round(ranges)
        if narrow != ranges and _joined(narrow, self._round(narrow)) == narrow:
            ranges = narrow
        self._walk.known = self._outside | ranges
        return ranges[value]

    def _initial(self, value: Value) -> IntegerRange:
        return _anything(value) if self._limits is None else self._start(value)

    def _start(self, value: Value) -> IntegerRange:
        """The range before the loop, which does not depend on the round."""
        if value not in self._starts:
            known, self._walk.known = self._walk.known, dict(self._outside)
            active = self._walk.loops.pop(self._loop, None)
            self._starts[value] = self._walk.start(incoming_values(value)[0])
            self._walk.known = known
            if active is not None:
                self._walk.loops[self._loop] = active
        return self._starts[value]

    def _round(self, ranges: Known) -> Known:
        """The ranges after an iteration, also of scalars that it newly depends on."""
        self._current = dict(ranges)
        self._walk.known = self._outside | ranges
        self._walk.loops[self._loop] = self
        found: Known = {}
        while left := [x for x in self._current if x not in found]:
            found |= {x: self._next(x) for x in left}
        del self._walk.loops[self._loop]
        return found

    def _next(self, value: Value) -> IntegerRange:
        first, yielded = self._start(value), incoming_values(value)[1]
        found = self._counted(value, yielded, first)
        if found is None:
            found = first.joined(self._walk.bounds(yielded))
        return self._walk.within_work(value, self._loop, found)

    def _counted(self, value: Value, yielded: Value, first: IntegerRange) -> IntegerRange | None:
        """The range of a scalar that grows by a bounded number in each iteration of a counted loop;
        None if it may wrap."""
        loop = self._loop
        if not isinstance(loop, ForOp) or yielded.op is None:
            return None
        by = ScalarBounds(yielded, self._walk).step_from(value)
        if by is None:
            return None
        step, index = loop.step.op, self._walk.bounds(loop.index)
        every = int(step.value) if isinstance(step, ConstantOp) else 1
        trips = (index.high - index.low) // max(every, 1) + 1
        low, high = first.low + min(0, trips * by.low), first.high + max(0, trips * by.high)
        anything = _anything(value)
        fits = anything.low <= low and high <= anything.high
        return IntegerRange(low, high) if fits else None

    def _widened(
        self, before: IntegerRange | None, found: IntegerRange, value: Value, round_: int
    ) -> IntegerRange:
        if before is None or not round_:
            return found
        limit = (self._limits or {}).get(value, _anything(value)).joined(found)
        low = found.low if found.low >= before.low else limit.low if found.low < 0 else 0
        return IntegerRange(low, found.high if found.high <= before.high else limit.high)


def _joined(before: Known, after: Known) -> Known:
    return {x: r.joined(before[x]) if x in before else r for x, r in after.items()}


def _anything(value: Value) -> IntegerRange:
    assert isinstance(value.type, DType)
    return IntegerRange.of_type(value.type)
