"""Affine queries on an integer or an address: its dependence on coordinates, loops, programs.

    x = affine.of(value)
    x.direction()           1: never decreases along any dimension of its tile; -1, 0, None
    x.trend(axis)           whether it increases or decreases along an axis of the grid, a guess
    x.is_linear_in(loop)    linear in coordinates and in the iteration
    x.quotient()            (base + 4) / 8
    x.span()                a scalar plus 0 to 63
    x.range()               its least and its largest number
    x.addend(arg)           y if it is arg + y
    x.factors()             the values whose product it is

Each query walks backwards over one value; `affine_addresses.py` has the forms of a whole function
as polynomials. Signed index arithmetic is assumed not to wrap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from tilewright.analysis.integer_ranges import IntegerRange, integer_range
from tilewright.ir import Op, Trait, Value, is_pure
from tilewright.ir.types import DType, PointerType, TileType, dtype_of, element_of, i32, shape_of
from tilewright.ops import (
    AddOp,
    BroadcastOp,
    CastOp,
    ConstantOp,
    DivOp,
    ExpandDimsOp,
    ForOp,
    HintOp,
    MaxOp,
    MinOp,
    MulOp,
    OffsetOp,
    ProgramIdOp,
    RangeOp,
    RemOp,
    SplatOp,
    SubOp,
    TransposeOp,
)
from tilewright.support.data_class import dataclass
from tilewright.support.graph_fold import fold

_MOST_OPS = 128
"""The most ops whose operands `Linear` visits; longer addresses are generated code."""

_MOVES = (SplatOp, BroadcastOp, ExpandDimsOp, TransposeOp, HintOp)
_SUMS = (AddOp, SubOp, OffsetOp)

_MONOTONE = (AddOp, SubOp, MulOp, DivOp, MinOp, MaxOp, CastOp)
"""Ops that follow their operands, if factors and divisors are positive."""


@dataclass(frozen=True, slots=True)
class Quotient:
    """(base + constant) / divisor, truncated; without base, of the constant alone."""

    base: Value | None
    constant: int = 0
    divisor: int = 1


@dataclass(frozen=True, slots=True)
class Span:
    """The elements of a tile: a scalar, or 0, plus `low` to `high`. These are not negative, so
    only the largest element may exceed the type."""

    scalar: Value | None
    low: int
    high: int

    def plus(self, other: Span) -> Span | None:
        """The span of the sums; None if both have a scalar, or 32 bits may overflow."""
        scalar = self.scalar if other.scalar is None else other.scalar
        total = Span(scalar, self.low + other.low, self.high + other.high)
        is_known = None in (self.scalar, other.scalar) and total.high <= i32.max_int
        return total if is_known else None


@dataclass(slots=True)
class Linear:
    """Linearity of values in coordinates and in the iteration of a loop, cached by value.

    remainders: those outside the loop that are treated as their dividends, which is right unless
    they wrap around
    """

    loop: ForOp
    degrees: dict[Value, int | None] = field(default_factory=dict[Value, int | None])
    remainders: list[RemOp] = field(default_factory=list[RemOp])

    def degree(self, value: Value) -> int | None:
        """0 for a constant, 1 for a linear value, otherwise None."""
        if value not in self.degrees:
            self.degrees[value] = None  # the result for a value with too many operands
            if len(self.degrees) <= _MOST_OPS:
                self.degrees[value] = self._degree(value)
        return self.degrees[value]

    def _degree(self, value: Value) -> int | None:
        op = value.op
        if op is None:
            return int(value in self.loop.body.args)
        inside = op.parent is self.loop.body
        if isinstance(op, ConstantOp) or not (inside or isinstance(value.type, TileType)):
            return 0
        if isinstance(op, RangeOp):
            return 1
        if isinstance(op, RemOp) and not inside:
            self.remainders.append(op)
            return self.degree(op.lhs)
        return self._of_operands(op)

    def _of_operands(self, op: Op) -> int | None:
        degrees = [self.degree(operand) for operand in op.operands]
        if None in degrees or Trait.PURE not in op.traits or op.regions:
            return None
        highest = max((d for d in degrees if d is not None), default=0)
        linear = isinstance(op, _MOVES + _SUMS) or (isinstance(op, MulOp) and 0 in degrees)
        widened = isinstance(op, CastOp) and _widens(op)
        return highest if linear or widened or not highest else None


@dataclass(frozen=True, slots=True)
class Affine:
    """The queries on one value."""

    value: Value

    def range(self) -> IntegerRange | None:
        """The least and the largest value of an element; None for other types."""
        return integer_range(self.value)

    def is_linear_in(self, loop: Linear) -> bool:
        """Whether the value is linear in coordinates and the iteration of a loop, or constant."""
        return loop.degree(self.value) is not None

    def is_invariant_in(self, loop: Linear) -> bool:
        """Whether the value is equal in all elements and iterations."""
        return loop.degree(self.value) == 0

    def direction(self, cache: dict[Value, int | None] | None = None) -> int | None:
        """1 if a tile never decreases along any dimension, -1 never increases, 0 constant.

        cache: results of earlier calls, to which this one adds its own
        """
        return fold(self.value, _terms, _direction, {} if cache is None else cache)

    def trend(self, axis: int) -> int:
        """1 or -1 if the value increases or decreases along an axis of the grid, else 0.

        A guess: factors and divisors are assumed positive, and other computations constant.
        """
        return fold(self.value, _pure_operands, lambda v, x: _trend(v, x, axis), {})

    def quotient(self, through_casts: bool = True) -> Quotient:
        """The value as (base + constant) / divisor; another value is its own base."""
        op = self.value.op
        if isinstance(op, ConstantOp):
            return Quotient(None, int(op.value))
        if isinstance(op, CastOp) and through_casts:
            return of(op.x).quotient()
        found: Quotient | None = None
        if isinstance(op, AddOp | DivOp):
            left, right = (of(side).quotient(through_casts) for side in op.operands)
            found = _divided(left, right) if isinstance(op, DivOp) else _shifted(left, right)
        return Quotient(self.value) if found is None else found

    def span(self) -> Span | None:
        """The value as a scalar plus numbers that are not negative; None for others."""
        op = self.value.op
        if isinstance(op, SplatOp):
            return Span(op.x, 0, 0)
        if isinstance(op, BroadcastOp | ExpandDimsOp):
            return of(op.x).span()
        if isinstance(op, RangeOp) and op.start >= 0:
            return Span(None, op.start, op.end - 1)
        if isinstance(op, ConstantOp) and isinstance(op.value, int) and op.value >= 0:
            return Span(None, op.value, op.value)
        if isinstance(op, AddOp):
            left, right = of(op.lhs).span(), of(op.rhs).span()
            return None if left is None or right is None else left.plus(right)
        return None

    def addend(self, base: Value) -> Value | None:
        """y if the value is base + y, or the address `base` offset by y; otherwise None."""
        op = self.value.op
        if not isinstance(op, AddOp | OffsetOp) or base not in op.operands:
            return None
        left, right = op.operands
        added = right if left is base else left
        counts = isinstance(op, OffsetOp) or dtype_of(base.type).is_integer
        return added if counts and added is not base else None

    def factors(self) -> Iterator[Value]:
        """The values whose product this one is; itself if it is not a product."""
        op = self.value.op
        if isinstance(op, MulOp):
            for operand in op.operands:
                yield from of(operand).factors()
        else:
            yield self.value


def of(value: Value) -> Affine:
    """The queries on a value."""
    return Affine(value)


def _widens(op: CastOp) -> bool:
    """Whether a signed integer is cast to one of at least as many bits."""
    source, target = (element_of(v.type) for v in (op.x, op.result))
    if not isinstance(source, DType) or not isinstance(target, DType):
        return False
    both = source.is_integer and target.is_integer
    return both and source.is_signed and target.bits >= source.bits


# ---- quotients -----------------------------------------------------------------------------------


def _shifted(left: Quotient, right: Quotient) -> Quotient | None:
    """The sum of two quotients, one of which is a constant."""
    for whole, number in ((left, right), (right, left)):
        if whole.divisor == 1 and number.base is None and number.divisor == 1:
            return replace(whole, constant=whole.constant + number.constant)
    return None


def _divided(left: Quotient, right: Quotient) -> Quotient | None:
    is_number = right.base is None and right.divisor == 1 and right.constant > 0
    return replace(left, divisor=right.constant) if is_number and left.divisor == 1 else None


# ---- directions ----------------------------------------------------------------------------------


def _terms(value: Value) -> Sequence[Value]:
    """The values that determine the direction of a tile."""
    op = value.op
    decided = isinstance(op, (*_MOVES, *_SUMS, MulOp, CastOp)) and shape_of(value.type)
    return op.operands if op is not None and decided else ()


def _direction(value: Value, terms: list[int | None]) -> int | None:
    op = value.op
    if not shape_of(value.type) or isinstance(op, ConstantOp):
        return 0
    if isinstance(op, RangeOp):
        return 1
    if isinstance(op, CastOp):
        ordered = _keeps_order(element_of(op.x.type), element_of(op.type))
        return terms[0] if ordered or terms[0] == 0 else None
    if isinstance(op, _MOVES):
        return terms[0]
    # Unsigned differences wrap below zero and are not ordered.
    if isinstance(op, _SUMS) and (not isinstance(op, SubOp) or dtype_of(op.type).is_signed):
        return _sum(terms[0], terms[1], -1 if isinstance(op, SubOp) else 1)
    return _product(op, terms) if isinstance(op, MulOp) else None


def _keeps_order(source: DType | PointerType, target: DType | PointerType) -> bool:
    """Whether a cast is monotonic; a cast of -1 to a large unsigned number is not."""
    if not isinstance(source, DType) or not isinstance(target, DType):
        return False
    if not source.is_integer or not target.is_integer:
        return False
    if source.is_signed == target.is_signed:
        return target.bits >= source.bits
    return target.is_signed and target.bits > source.bits


def _sum(x: int | None, y: int | None, sign: int) -> int | None:
    if x is None or y is None:
        return None
    y *= sign
    # Opposite directions: either may be larger.
    return x or y if x * y >= 0 else None


def _product(op: MulOp, terms: list[int | None]) -> int | None:
    # Reversed: the direction of the operand that a constant multiplies.
    for factor, along in zip(op.operands, reversed(terms), strict=True):
        constant = factor.op
        if isinstance(constant, ConstantOp):
            return None if along is None else along * (1 if constant.value >= 0 else -1)
    return 0 if terms == [0, 0] else None


def _pure_operands(value: Value) -> Sequence[Value]:
    op = value.op
    return op.operands if op is not None and is_pure(op) else ()


def _trend(value: Value, terms: list[int], axis: int) -> int:
    op = value.op
    if isinstance(op, ProgramIdOp):
        return int(op.axis == axis)
    if not terms or not isinstance(op, _MONOTONE):
        return 0
    if isinstance(op, SubOp):
        terms = [terms[0], -terms[1]]
    return max(-1, min(1, sum(terms)))
