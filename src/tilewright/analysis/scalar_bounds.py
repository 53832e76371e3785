"""Bounds of scalar integers by relations: loop conditions, remainders, minima and maxima.

    %first = rem %step, %n          first <= step, and first < n
    %left = sub %end, %step         in the body of `while step < end`: at least 1
    %last = min %n, (%first + %left)
    %next = %step + %last - %first  at most end; at least step + 1

A value is expanded to a sum of multiples of other values. A bound of the sum follows by
elimination: a term is replaced by a bound of it, or, for a minimum, maximum or selection, by each
of its cases. The ranges of the remaining terms give a number.

Arithmetic wraps, so an expanded sum equals the value modulo 2^bits; it is the value itself only
where both of its bounds fit the type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from tilewright.analysis.index_relations import counts_work
from tilewright.ir import Block, Value
from tilewright.ir.types import DType
from tilewright.ops import (
    AddOp,
    AndOp,
    CastOp,
    CompareOp,
    ConstantOp,
    DivOp,
    ForOp,
    IfOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    RemOp,
    SelectOp,
    SubOp,
    WhileOp,
    blocks_around,
)

_DEPTH = 5
"""The most terms that are replaced one after the other."""

_MOST_SUMS = 200
"""The most sums that are bounded for one value."""

_MOST_TERMS = 8

NEVER = 1 << 200
"""The lower bound of a value in a case that never occurs."""


class IntegerRange(NamedTuple):
    """The least and the largest value of an element."""

    low: int
    high: int

    @classmethod
    def of_type(cls, dtype: DType) -> IntegerRange:
        """The range of all numbers of a type of integers."""
        return cls(dtype.min_int, dtype.max_int)

    def joined(self, other: IntegerRange) -> IntegerRange:
        """The range of the numbers of both."""
        return IntegerRange(min(self.low, other.low), max(self.high, other.high))


class Ranges(Protocol):
    """The ranges of single values."""

    divisors: bool
    """Whether tile indices are assumed to be divided by positive numbers."""

    def bounds(self, value: Value) -> IntegerRange:
        """The range of an integer."""
        ...


class ScalarSum(NamedTuple):
    """constant + the sum of factor * value."""

    terms: dict[Value, int]
    constant: int = 0

    def plus(self, other: ScalarSum, factor: int = 1) -> ScalarSum:
        """The sum of this and a multiple of another one."""
        terms = dict(self.terms)
        for value, number in other.terms.items():
            terms[value] = terms.get(value, 0) + factor * number
        kept = {value: number for value, number in terms.items() if number}
        return ScalarSum(kept, self.constant + factor * other.constant)

    def substituted(self, value: Value, by: ScalarSum) -> ScalarSum:
        """The sum with another one in place of a value."""
        factor = self.terms.get(value, 0)
        return self.plus(by, factor).plus(ScalarSum({value: factor}), -1) if factor else self


class _Case(NamedTuple):
    """An equal sum for a value, and sums that are then not negative."""

    equal: ScalarSum
    facts: tuple[ScalarSum, ...] = ()


class ScalarBounds:
    """The bounds of one scalar, at the place where it is computed."""

    def __init__(self, value: Value, ranges: Ranges) -> None:
        self._ranges = ranges
        self._value = value
        self._left = _MOST_SUMS
        self._scope = _innermost_loop(value)
        self._exact: dict[Value, ScalarSum] = {}
        # Facts are sums of exact values: those of an outer condition serve those of an inner one.
        self._facts: list[ScalarSum] = []
        for block in reversed(list(blocks_around(value.block))):
            self._facts += self._facts_of(block)

    def range(self) -> IntegerRange | None:
        """The range of the value; None where it may wrap."""
        return self._range_of(self._value, self._expanded(self._value))

    def narrowed(self) -> IntegerRange:
        """The range of a value by the conditions of its block."""
        total = ScalarSum({self._value: 1})
        return IntegerRange(self._least(total, NEVER), self._largest(total, -NEVER))

    def step_from(self, start: Value) -> IntegerRange | None:
        """The range of the difference to another value, before it wraps; None if it is not known to
        be independent of that."""
        difference = self._expanded(self._value).plus(ScalarSum({start: 1}), -1)
        if start in difference.terms:
            return None
        return IntegerRange(self._least(difference, 0), self._largest(difference, 0))

    # ---- sums ------------------------------------------------------------------------------------

    def _expanded(self, value: Value) -> ScalarSum:
        """The sum that equals a value modulo 2^bits of its type."""
        op = value.op
        if isinstance(op, ConstantOp):
            return ScalarSum({}, int(op.value))
        found: ScalarSum | None = None
        if isinstance(op, AddOp | SubOp):
            left, right = map(self._part, op.operands)
            found = left.plus(right, -1 if isinstance(op, SubOp) else 1)
        elif isinstance(op, NegOp):
            found = ScalarSum({}).plus(self._part(op.operands[0]), -1)
        elif isinstance(op, MulOp):
            found = self._multiple(op)
        elif isinstance(op, CastOp) and self._keeps_number(op):
            found = self._exactly(op.x)
        return found if found and len(found.terms) <= _MOST_TERMS else ScalarSum({value: 1})

    def _part(self, value: Value) -> ScalarSum:
        """The sum of an operand. Values from outside of the loop are not expanded where they wrap,
        as conditions in the loop are about them."""
        inside = self._scope is None or self._scope in blocks_around(value.block)
        return self._expanded(value) if inside else self._exactly(value)

    def _multiple(self, op: MulOp) -> ScalarSum | None:
        for number, other in (op.operands, op.operands[::-1]):
            if isinstance(number.op, ConstantOp):
                return ScalarSum({}).plus(self._part(other), int(number.op.value))
        return None

    def _exactly(self, value: Value) -> ScalarSum:
        """The sum that equals a value: itself where its terms may wrap."""
        if value not in self._exact:
            self._exact[value] = ScalarSum({value: 1})
            found = self._expanded(value)
            if self._range_of(value, found) is not None:
                self._exact[value] = found
        return self._exact[value]

    def _keeps_number(self, op: CastOp) -> bool:
        source, target = op.x.type, op.type
        if not isinstance(source, DType) or not isinstance(target, DType):
            return False
        if not source.is_integer or not target.is_integer:
            return False
        low, high = self._ranges.bounds(op.x)
        return target.min_int <= low and high <= target.max_int

    def _range_of(self, value: Value, total: ScalarSum) -> IntegerRange | None:
        type_ = value.type
        assert isinstance(type_, DType)
        low = self._least(total, 0)
        if low < type_.min_int:
            return None
        high = self._largest(total, type_.max_int)
        return None if high > type_.max_int else IntegerRange(low, max(low, high))

    # ---- bounds ----------------------------------------------------------------------------------

    def _largest(self, total: ScalarSum, wanted: int) -> int:
        return -self._least(ScalarSum({}).plus(total, -1), -wanted)

    def _least(self, total: ScalarSum, wanted: int) -> int:
        return self._bounded(total, wanted, _DEPTH, self._facts)

    def _bounded(
        self, total: ScalarSum, wanted: int, depth: int, facts: Sequence[ScalarSum]
    ) -> int:
        """A lower bound, the search for which ends at `wanted`."""
        best = self._of_ranges(total)
        if best >= wanted or not depth or self._left <= 0:
            return best
        self._left -= 1
        for least in self._lower_bounds(total, facts):
            best = max(best, self._bounded(least, wanted, depth - 1, facts))
            if best >= wanted:
                return best
        for value, factor in total.terms.items():
            if cases := self._cases(value, factor):
                found = (self._in_case(total, value, c, wanted, depth, facts) for c in cases)
                best = max(best, min(found))
        return best

    def _in_case(
        self, total: ScalarSum, value: Value, case: _Case, wanted: int, depth: int,
        facts: Sequence[ScalarSum],
    ) -> int:  # fmt: skip
        known = [*(fact.substituted(value, case.equal) for fact in facts), *case.facts]
        if any(self._of_ranges(ScalarSum({}).plus(fact, -1)) > 0 for fact in known):
            return NEVER
        return self._bounded(total.substituted(value, case.equal), wanted, depth - 1, known)

    def _of_ranges(self, total: ScalarSum) -> int:
        """The least number by the ranges of the terms."""
        low = total.constant
        for value, factor in total.terms.items():
            low += factor * self._ranges.bounds(value)[factor < 0]
        return low

    def _lower_bounds(self, total: ScalarSum, facts: Sequence[ScalarSum]) -> Iterator[ScalarSum]:
        """Sums that are not larger, each with a term replaced by a bound of it."""
        for value, factor in total.terms.items():
            for fact in facts:
                if fact.terms.get(value) == (1 if factor > 0 else -1):
                    yield total.plus(fact, -abs(factor))
            for bound in self._bounds_of(value, factor > 0):
                yield total.substituted(value, bound)

    def _bounds_of(self, value: Value, below: bool) -> Iterator[ScalarSum]:
        """Sums that are not larger than a value, or not smaller."""
        op = value.op
        if isinstance(op, MaxOp if below else MinOp):
            yield from map(self._exactly, op.operands)
        if below or not isinstance(op, RemOp | DivOp):
            return
        # The remainder and the quotient of a number that is not negative are not larger.
        dividend, divisor = op.operands
        if self._ranges.bounds(dividend).low < 0:
            return
        assumed = self._ranges.divisors and counts_work(dividend)
        positive = assumed or self._ranges.bounds(divisor).low > 0
        if isinstance(op, RemOp):
            yield self._exactly(dividend)
            if positive:
                yield self._exactly(divisor).plus(ScalarSum({}, -1))
        elif positive:
            yield self._exactly(dividend)

    def _cases(self, value: Value, factor: int) -> list[_Case]:
        """The sums one of which equals a value, where each must have the bound."""
        op = value.op
        if isinstance(op, MinOp if factor > 0 else MaxOp):
            left, right = map(self._exactly, op.operands)
            over = right.plus(left, -1) if factor > 0 else left.plus(right, -1)
            return [_Case(left, (over,)), _Case(right, (ScalarSum({}).plus(over, -1),))]
        if isinstance(op, SelectOp | IfOp):
            return self._branches(value, op)
        return []

    def _branches(self, value: Value, op: SelectOp | IfOp) -> list[_Case]:
        """The two values of a selection or a branch; the condition holds for the first."""
        condition, *values = op.operands
        if isinstance(op, IfOp):
            values = [block.terminator.operands[value.index] for block in op.regions]
        then, orelse = map(self._exactly, values)
        return [_Case(then, tuple(self._of_condition(condition, {}))), _Case(orelse)]

    # ---- facts -----------------------------------------------------------------------------------

    def _facts_of(self, block: Block) -> Iterator[ScalarSum]:
        """Sums that are not negative in a block."""
        owner = block.owner
        if isinstance(owner, ForOp):
            index, upper = ScalarSum({owner.index: 1}), self._exactly(owner.upper)
            lower, last = self._exactly(owner.lower), upper.plus(ScalarSum({}, -1))
            # The body runs for an index between the bounds only.
            yield from (index.plus(lower, -1), last.plus(index, -1), last.plus(lower, -1))
        elif isinstance(owner, WhileOp) and block is owner.body:
            go, *values = owner.before.terminator.operands
            passed = dict(zip(values, block.args, strict=True))
            yield from self._of_condition(go, passed)
        elif isinstance(owner, IfOp) and block is owner.then:
            yield from self._of_condition(owner.condition, {})

    def _of_condition(self, condition: Value, names: dict[Value, Value]) -> Iterator[ScalarSum]:
        """Sums that are not negative where a condition holds. names: other names of values"""
        op = condition.op
        if isinstance(op, AndOp):
            for side in op.operands:
                yield from self._of_condition(side, names)
        elif isinstance(op, CompareOp) and _is_integer(op.lhs):
            left, right = (self._exactly(names.get(v, v)) for v in op.operands)
            if op.predicate in ("gt", "ge"):
                left, right = right, left
            if op.predicate in ("lt", "le", "gt", "ge"):
                strict = op.predicate in ("lt", "gt")
                yield right.plus(left, -1).plus(ScalarSum({}, -strict))


def _is_integer(value: Value) -> bool:
    return isinstance(value.type, DType) and value.type.is_integer


def _innermost_loop(value: Value) -> Block | None:
    """The body of the loop around a value."""
    blocks = blocks_around(value.block)
    return next((b for b in blocks if isinstance(b.owner, ForOp | WhileOp)), None)
