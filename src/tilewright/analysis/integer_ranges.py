"""Integer range analysis: the least and the largest value of an element.

    %r = tile.range {start = 0, end = 2048}             0 .. 2047
    %i = index of cf.for 0, 4096, 2048                  0 .. 2048
    %c = arith.add (splat %i), %r                       0 .. 4095
    %h = arith.mul %c, 1103515245                       any i32: it wraps

A sum, difference or product that may overflow wraps, so it may be any number of the type.
`carried_ranges.py` has the fixpoint of loops, `scalar_bounds.py` the relations of scalars.

`tile_index_range` makes the assumptions of docs/adr/0022-tile-indices-start-at-zero.md: a launch
has at most `MOST_TILES` programs along an axis, a loop from a program number or with step 1 has at
most as many iterations, and, if `divisors` is set, no divisor is negative, and loops start at the
first tile of a program even where that is a product with an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import cast

from tilewright.analysis.carried_ranges import Fixpoint, Known, carried_range, loop_of
from tilewright.analysis.index_relations import (
    is_counted,
    is_place_in_grid,
    leaves_remainder,
    starts_work,
)
from tilewright.analysis.scalar_bounds import IntegerRange, ScalarBounds
from tilewright.ir import Block, Function, Op, Value
from tilewright.ir.types import DType, element_of
from tilewright.ops import (
    AbsOp,
    AddOp,
    AndOp,
    BroadcastOp,
    CastOp,
    CatOp,
    ConstantOp,
    DivOp,
    ExpandDimsOp,
    ForOp,
    HintOp,
    ItemOp,
    JoinOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    NumProgramsOp,
    OrOp,
    ProgramIdOp,
    RangeOp,
    RemOp,
    ReshapeOp,
    SelectOp,
    ShlOp,
    ShrOp,
    SplatOp,
    SplitOp,
    SubOp,
    TransposeOp,
    WhileOp,
    XorOp,
    incoming_values,
)

MOST_TILES = 1 << 20
"""The assumed bound on tile indices: programs along an axis, tiles of a loop."""

_MOST_VALUES = 128
"""The most values of one query; addresses are sums of a few terms."""

_MOST_STEPS = 1024
"""The most ranges that one query computes; a fixpoint computes those of a loop several times."""


def integer_range(value: Value) -> IntegerRange | None:
    """The range of all elements of integers; None for other types."""
    return _Walk().of(value)


def tile_index_range(
    value: Value, promised: frozenset[Value] = frozenset(), divisors: bool = False
) -> IntegerRange | None:
    """The range of all elements under the assumptions on tile indices.

    promised: scalars that the kernel states not to be negative
    """
    return _TileWalk(promised, divisors).of(value)


class _Walk:
    """The ranges of one query.

    known: by value; pending: those that are being computed; loops: those whose fixpoint is being
    computed
    """

    divisors = False

    def __init__(self) -> None:
        self.known: Known = {}
        self.pending: set[Value] = set()
        self.loops: dict[ForOp | WhileOp, Fixpoint] = {}
        self._steps = 0

    def of(self, value: Value) -> IntegerRange | None:
        """The range of a value, within that of its type."""
        element = element_of(value.type)
        if not isinstance(element, DType) or not element.is_integer:
            return None
        found = self.known.get(value)
        if found is None:
            anything = IntegerRange.of_type(element)
            if len(self.known) >= _MOST_VALUES or self._steps >= _MOST_STEPS:
                return anything
            self._steps += 1
            # A relation of scalars may lead back to the value.
            self.known[value] = anything
            self.pending.add(value)
            found = self.known[value] = _fitting(self._computed(value), anything)
            self.pending.discard(value)
        return found

    def bounds(self, value: Value) -> IntegerRange:
        """The range of a scalar integer."""
        found = self.of(value)
        assert found is not None
        return found

    def start(self, value: Value) -> IntegerRange:
        """The range of a loop's initial value."""
        return self.bounds(value)

    def within_work(self, value: Value, loop: ForOp | WhileOp, found: IntegerRange) -> IntegerRange:
        """The range of a carried scalar by the assumptions on tile indices."""
        return found

    def _computed(self, value: Value) -> IntegerRange | None:
        op = value.op
        loop = loop_of(value)
        if loop is not None and isinstance(value.type, DType):
            return carried_range(value, loop, self)
        if sources := incoming_values(value):
            sides = [self.of(source) for source in sources]
            found = None if None in sides else _either(op, cast("list[IntegerRange]", sides))
            return self._in_body(value, found)
        if op is None:
            return self._argument(value)
        rule = _RULES.get(type(op))
        if rule is None:
            return None
        # the condition of a select is not a number
        data = op.operands[1:] if isinstance(op, SelectOp) else op.operands
        ranges = [_BIT if _is_bit(operand) else self.of(operand) for operand in data]
        if None in ranges:
            return None
        return self._related(op, self._by_rule(op, rule, cast("list[IntegerRange]", ranges)))

    def _in_body(self, value: Value, found: IntegerRange | None) -> IntegerRange | None:
        """The range of a scalar in the body of a `while`, which runs where its condition holds."""
        block = value.owner
        loop = block.owner if isinstance(block, Block) else None
        if found is None or not isinstance(loop, WhileOp) or not isinstance(value.type, DType):
            return found
        self.known[value] = found
        return ScalarBounds(value, self).narrowed()

    def _related(self, op: Op, found: IntegerRange | None) -> IntegerRange | None:
        """The range of a scalar by its relations, where those of the operands are too wide."""
        type_ = op.results[0].type
        if not isinstance(op, _RELATED) or not isinstance(type_, DType):
            return found
        if found is not None and 0 <= found.low and found.high <= type_.max_int:
            return found
        self.known[op.results[0]] = _fitting(found, IntegerRange.of_type(type_))
        return ScalarBounds(op.results[0], self).range() or found

    def _by_rule(self, op: Op, rule: _Rule, x: list[IntegerRange]) -> IntegerRange | None:
        if leaves_remainder(op) and x[0].low >= 0:
            return IntegerRange(0, x[0].high)
        if is_place_in_grid(op):
            return self.of_grid(op)
        return self.of_grid(op) if isinstance(op, _GRID) else rule(op, x)

    def _argument(self, value: Value) -> IntegerRange | None:
        """The range of a kernel's argument, or of a loop's index."""
        owner = value.owner.owner if isinstance(value.owner, Block) else None
        if isinstance(owner, Function) and "non_negative" in (value.facts or {}):
            return IntegerRange(0, _max_of(value))
        if not isinstance(owner, ForOp):
            return None
        lower, upper = self.start(owner.lower), self.bounds(owner.upper)
        return self.of_index(owner, lower, upper)

    def of_index(self, loop: ForOp, lower: IntegerRange, upper: IntegerRange) -> IntegerRange:
        """The range of a loop's index, from those of its bounds."""
        last, step = upper.high - 1, loop.step.op
        if lower.low == lower.high and isinstance(step, ConstantOp) and int(step.value) > 0:
            last -= (last - lower.low) % int(step.value)
        # a loop without iterations has no index
        return IntegerRange(lower.low, max(lower.low, last))

    def of_grid(self, op: Op) -> IntegerRange:
        """The range of a program number, or of the number of programs."""
        return IntegerRange(0, _max_of(op.results[0]))


class _TileWalk(_Walk):
    """The ranges under the assumptions on tile indices."""

    def __init__(self, promised: frozenset[Value], divisors: bool) -> None:
        super().__init__()
        self.promised, self.divisors = promised, divisors

    def of(self, value: Value) -> IntegerRange | None:
        found = super().of(value)
        # A promised scalar is a tile index in the kernel's own order.
        if found is not None and value in self.promised and found.low < 0:
            found = self.known[value] = IntegerRange(0, min(max(found.high, 0), MOST_TILES))
        return found

    def start(self, value: Value) -> IntegerRange:
        found = self.bounds(value)
        if self.divisors and found.low < 0 and starts_work(value):
            return IntegerRange(0, MOST_TILES)
        return found

    def within_work(self, value: Value, loop: ForOp | WhileOp, found: IntegerRange) -> IntegerRange:
        initial = incoming_values(value)[0]
        counts = isinstance(loop, WhileOp) and starts_work(initial) and is_counted(value, loop)
        if not counts or found.low < 0 or self.start(initial).high > MOST_TILES:
            return found
        return IntegerRange(found.low, min(found.high, MOST_TILES))

    def _by_rule(self, op: Op, rule: _Rule, x: list[IntegerRange]) -> IntegerRange | None:
        if isinstance(op, DivOp) and self.divisors and x[0].low >= 0 >= x[1].low:
            return IntegerRange(0, x[0].high)
        if leaves_remainder(op) and self.divisors:
            return x[0] if x[0].low >= 0 else None
        found, rounded = super()._by_rule(op, rule, x), _rounded_down(op)
        dividend = self.of(rounded) if rounded is not None and self.divisors else None
        if found is not None and dividend is not None and dividend.low >= 0:
            return IntegerRange(0, min(found.high, dividend.high))
        return found

    def of_index(self, loop: ForOp, lower: IntegerRange, upper: IntegerRange) -> IntegerRange:
        found = super().of_index(loop, lower, upper)
        if 0 <= lower.low and lower.high <= MOST_TILES and _counts_tiles(loop):
            return IntegerRange(lower.low, min(found.high, MOST_TILES))
        return found

    def of_grid(self, op: Op) -> IntegerRange:
        return IntegerRange(0, min(MOST_TILES, _max_of(op.results[0])))


def _counts_tiles(loop: ForOp) -> bool:
    """Whether the step of a loop is 1, or a number of programs."""
    step = loop.step.op
    by_one = isinstance(step, ConstantOp) and int(step.value) == 1
    return by_one or isinstance(step, NumProgramsOp) or isinstance(loop.lower.op, ProgramIdOp)


def _rounded_down(op: Op) -> Value | None:
    """The x of x // n * n, or of x // (c * n) * c, neither of which exceeds x: the first tile of a
    row of n, or the row of the first tile of a group of c rows."""
    if not isinstance(op, MulOp):
        return None
    for quotient, factor in (op.operands, op.operands[::-1]):
        if isinstance(quotient.op, DivOp) and _contains(quotient.op.rhs, factor):
            return quotient.op.lhs
    return None


def _contains(product: Value, factor: Value) -> bool:
    """Whether a value is `factor`, or a product with it."""
    inside = product.op.operands if isinstance(product.op, MulOp) else ()
    number = _constant_in(factor)
    return any(v is factor or (number is not None and _constant_in(v) == number)
               for v in (product, *inside))  # fmt: skip


def _constant_in(value: Value) -> int | None:
    return int(value.op.value) if isinstance(value.op, ConstantOp) else None


def _fitting(found: IntegerRange | None, anything: IntegerRange) -> IntegerRange:
    if found is None or found.low < anything.low or anything.high < found.high:
        return anything
    return found


def _max_of(value: Value) -> int:
    return cast("DType", element_of(value.type)).max_int


def _is_bit(value: Value) -> bool:
    element = element_of(value.type)
    return isinstance(element, DType) and element.is_bool


_BIT = IntegerRange(0, 1)
_GRID = (ProgramIdOp, NumProgramsOp)
_RELATED = (AddOp, SubOp, MinOp, MaxOp, SelectOp)
"""Ops whose ranges by relations are narrower."""

_Rule = Callable[[Op, Sequence[IntegerRange]], IntegerRange | None]


def _constant(op: Op, _: Sequence[IntegerRange]) -> IntegerRange:
    number = int(op.attrs["value"])
    return IntegerRange(number, number)


def _counted(op: Op, _: Sequence[IntegerRange]) -> IntegerRange:
    return IntegerRange(op.attrs["start"], op.attrs["end"] - 1)


def _same(_: Op, x: Sequence[IntegerRange]) -> IntegerRange:
    return x[0]


def _either(_: Op | None, x: Sequence[IntegerRange]) -> IntegerRange:
    return reduce(IntegerRange.joined, x)


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


def _negated(_: Op, x: Sequence[IntegerRange]) -> IntegerRange:
    return IntegerRange(-x[0].high, -x[0].low)


def _size(_: Op, x: Sequence[IntegerRange]) -> IntegerRange:
    least = 0 if x[0].low <= 0 <= x[0].high else min(map(abs, x[0]))
    return IntegerRange(least, max(map(abs, x[0])))


def _quotient(_: Op, x: Sequence[IntegerRange]) -> IntegerRange:
    """Division rounds towards zero, and a divisor of 0 counts as 1."""
    if x[1].low > 0:
        corners = [_truncated(a, b) for a in x[0] for b in x[1]]
        return IntegerRange(min(corners), max(corners))
    most = max(map(abs, x[0]))
    natural = x[0].low >= 0 and x[1].low >= 0
    return IntegerRange(0 if natural else -most, most)


def _truncated(x: int, y: int) -> int:
    return x // y if x >= 0 else -(-x // y)


def _remainder(_: Op, x: Sequence[IntegerRange]) -> IntegerRange:
    """The sign of the dividend; at most its absolute value, and less than that of the divisor."""
    most = max(0, max(map(abs, x[1])) - 1)
    return IntegerRange(max(min(x[0].low, 0), -most), min(max(x[0].high, 0), most))


def _conjunction(_: Op, x: Sequence[IntegerRange]) -> IntegerRange | None:
    limits = [side.high for side in x if side.low >= 0]
    return IntegerRange(0, min(limits)) if limits else None


def _bits(_: Op, x: Sequence[IntegerRange]) -> IntegerRange | None:
    if x[0].low < 0 or x[1].low < 0:
        return None
    return IntegerRange(0, (1 << max(x[0].high, x[1].high).bit_length()) - 1)


def _shifted_left(op: Op, x: Sequence[IntegerRange]) -> IntegerRange | None:
    if not _is_amount(op, x[1]):
        return None
    return _product(op, (x[0], IntegerRange(1 << x[1].low, 1 << x[1].high)))


def _shifted_right(op: Op, x: Sequence[IntegerRange]) -> IntegerRange:
    """Towards 0 or -1, whatever the amount."""
    if not _is_amount(op, x[1]):
        return IntegerRange(min(x[0].low, 0), max(x[0].high, 0))
    corners = [a >> b for a in x[0] for b in x[1]]
    return IntegerRange(min(corners), max(corners))


def _is_amount(op: Op, amount: IntegerRange) -> bool:
    bits = element_of(op.operands[0].type).bits
    return 0 <= amount.low <= amount.high < bits


_RULES: dict[type[Op], _Rule] = {
    ConstantOp: _constant,
    RangeOp: _counted,
    **dict.fromkeys((*_GRID, SplatOp, ExpandDimsOp, BroadcastOp, ReshapeOp, TransposeOp), _same),
    **dict.fromkeys((CastOp, HintOp, ItemOp, SplitOp), _same),
    **dict.fromkeys((SelectOp, JoinOp, CatOp), _either),
    AddOp: _sum,
    SubOp: _difference,
    MulOp: _product,
    NegOp: _negated,
    AbsOp: _size,
    MinOp: _least,
    MaxOp: _largest,
    DivOp: _quotient,
    RemOp: _remainder,
    AndOp: _conjunction,
    **dict.fromkeys((OrOp, XorOp), _bits),
    ShlOp: _shifted_left,
    ShrOp: _shifted_right,
}
