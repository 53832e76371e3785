"""Integers and addresses of a loop as sums, which tell what iterations have in common.

Within a loop an address is, if it can be written so,

    sum of c * n^p * x * y ...   +   sum of c * [low, high]

n: the number of the iteration; x, y: scalars that the loop does not change; [low, high]: a number
that depends on the element. Addresses count in bytes. So `a + (k * 32 + i[:, None]) * stride` with
the loop `for k in range(5, m, 2)` and `i = arange(0, 32)` has no such form (an element is
multiplied by `stride`), and with rows of 64 floats instead of `stride` it is

    a + 40960 + n * 16384 + 256 * [0, 31]

Sums and products are taken not to wrap, as in alignment.py: an address that does points nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import cast

from tilewright.ir import Block, Op, Value
from tilewright.ir.types import DType, PointerType, TileType, element_of
from tilewright.ops import (
    AddOp,
    BroadcastOp,
    CastOp,
    ConstantOp,
    ExpandDimsOp,
    ForOp,
    HintOp,
    MulOp,
    OffsetOp,
    RangeOp,
    ReshapeOp,
    ShlOp,
    SplatOp,
    SubOp,
    TransposeOp,
)

Monomial = tuple[int, tuple[Value, ...]]
"""A power of the iteration number, and the scalars that it is multiplied by, in a fixed order."""

_ONE: Monomial = (0, ())
_MOST_TERMS = 64
_DEEPEST = 200
"""Sums of more terms and deeper expressions have no form, so that the analysis stays cheap."""
_NARROWEST_BITS = 32
"""Numbers of fewer bits are expected to wrap."""


@dataclass(frozen=True, slots=True)
class Span:
    """coefficient * x for some integer x with low <= x <= high; the bounds may be infinite."""

    coefficient: int
    low: float
    high: float

    @property
    def least(self) -> float:
        """The smallest value."""
        return min(self.coefficient * self.low, self.coefficient * self.high)

    @property
    def largest(self) -> float:
        """The largest value."""
        return max(self.coefficient * self.low, self.coefficient * self.high)


@dataclass(frozen=True, slots=True)
class Affine:
    """A sum as described above."""

    terms: dict[Monomial, int] = field(default_factory=dict[Monomial, int])
    spans: tuple[Span, ...] = ()

    @property
    def is_small(self) -> bool:
        """Whether it is worth the work."""
        return len(self.terms) + len(self.spans) <= _MOST_TERMS

    def plus(self, other: Affine) -> Affine:
        """The sum of both."""
        terms = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            terms[monomial] = terms.get(monomial, 0) + coefficient
        kept = {monomial: c for monomial, c in terms.items() if c}
        return Affine(kept, self.spans + other.spans)

    def scaled(self, factor: int) -> Affine:
        """factor times the sum."""
        if not factor:
            return Affine()
        spans = tuple(Span(s.coefficient * factor, s.low, s.high) for s in self.spans)
        return Affine({m: c * factor for m, c in self.terms.items()}, spans)

    def times(self, other: Affine) -> Affine | None:
        """The product; None if something that depends on the element is not scaled by a number."""
        if self.spans or other.spans:
            known, rest = (self, other) if other.spans else (other, self)
            factor = known.number
            return None if factor is None else rest.scaled(factor)
        total = Affine()
        for (power, scalars), c in self.terms.items():
            for (more, others), d in other.terms.items():
                product = tuple(sorted((*scalars, *others), key=id))
                total = total.plus(Affine({(power + more, product): c * d}))
        return total

    @property
    def number(self) -> int | None:
        """The number that the sum is, if it is one."""
        if self.spans or any(monomial != _ONE for monomial in self.terms):
            return None
        return self.terms.get(_ONE, 0)


def constant(number: int) -> Affine:
    """A number."""
    return Affine({_ONE: number} if number else {})


class AffineForms:
    """The forms of values in one loop."""

    def __init__(self, loop: ForOp) -> None:
        self._loop = loop
        self._known: dict[Value, Affine | None] = {}
        self._inside: dict[Block, bool] = {loop.body: True}

    def of(self, value: Value, depth: int = 0) -> Affine | None:
        """The form of a value, or None."""
        if value not in self._known:
            self._known[value] = None  # what depends on itself has no form
            form = self._form(value, depth) if depth < _DEEPEST else None
            self._known[value] = form if form is not None and form.is_small else None
        return self._known[value]

    def _form(self, value: Value, depth: int) -> Affine | None:
        element = element_of(value.type)
        if isinstance(element, DType) and not element.is_integer:
            return None
        op = cast("Op | None", value.op)
        rule = None if op is None else _RULES.get(type(op))
        if op is not None and rule is not None and not _may_wrap(op):
            parts = [self.of(v, depth + 1) for v in op.operands]
            if all(part is not None for part in parts):
                return rule(op, cast("list[Affine]", parts))
        if value.owner is self._loop.body:
            return self._of_argument(value, depth)
        if not isinstance(value.type, TileType) and not self._is_inside(value):
            return Affine({(0, (value,)): 1})
        return None

    def _of_argument(self, value: Value, depth: int) -> Affine | None:
        """The index, or a scalar to which each iteration adds what does not change."""
        loop = self._loop
        if value is loop.index:
            start, step = self.of(loop.lower, depth + 1), self.of(loop.step, depth + 1)
            return None if start is None or step is None else _progression(start, step)
        if isinstance(value.type, TileType):
            return None
        start = self.of(loop.inits[value.index - 1], depth + 1)
        before = Affine({(0, (value,)): 1})
        following = AffineForms(loop)
        following._known |= {**dict.fromkeys(loop.body.args), value: before}
        after = following.of(loop.body.terminator.operands[value.index - 1], depth + 1)
        if start is None or after is None:
            return None
        amount = after.plus(before.scaled(-1))
        moves = any(value in scalars for _, scalars in amount.terms)
        return None if amount.spans or moves else _progression(start, amount)

    def _is_inside(self, value: Value) -> bool:
        """Whether the loop may change the value."""
        owner = value.owner
        block = owner if isinstance(owner, Block) else owner.parent
        return block is None or self._holds(block)

    def _holds(self, block: Block) -> bool:
        """Whether a block is the body of the loop or lies in it."""
        known = self._inside.get(block)
        if known is None:
            above = block.owner.parent if isinstance(block.owner, Op) else None
            known = self._inside[block] = above is not None and self._holds(above)
        return known


def _progression(start: Affine, step: Affine) -> Affine:
    """start + n * step"""
    moved = {(power + 1, scalars): c for (power, scalars), c in step.terms.items()}
    return start.plus(Affine(moved))


# ---- ops ----------------------------------------------------------------------------------------


def _may_wrap(op: Op) -> bool:
    element = element_of(op.results[0].type)
    return isinstance(element, DType) and element.bits < _NARROWEST_BITS


def _range(op: Op, parts: list[Affine]) -> Affine:
    numbers = cast("RangeOp", op)
    return Affine({}, (Span(1, numbers.start, numbers.end - 1),))


def _offset(op: Op, parts: list[Affine]) -> Affine:
    element = element_of(op.results[0].type)
    assert isinstance(element, PointerType)
    return parts[0].plus(parts[1].scaled(element.element.bytes))


def _cast(op: Op, parts: list[Affine]) -> Affine | None:
    """Integers keep their value when they are widened; addresses keep theirs."""
    source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
    if isinstance(source, DType) and not source.is_integer:
        return None
    return parts[0] if target.bits >= source.bits else None


def _shifted(op: Op, parts: list[Affine]) -> Affine | None:
    bits = parts[1].number
    return None if bits is None or not 0 <= bits < 64 else parts[0].scaled(1 << bits)


_Rule = Callable[[Op, list[Affine]], Affine | None]
_RULES: dict[type[object], _Rule] = {
    ConstantOp: lambda op, parts: constant(int(cast("ConstantOp", op).value)),
    RangeOp: _range,
    AddOp: lambda op, parts: parts[0].plus(parts[1]),
    SubOp: lambda op, parts: parts[0].plus(parts[1].scaled(-1)),
    MulOp: lambda op, parts: parts[0].times(parts[1]),
    ShlOp: _shifted,
    OffsetOp: _offset,
    CastOp: _cast,
}
_RULES.update(
    dict.fromkeys(
        (SplatOp, BroadcastOp, ExpandDimsOp, ReshapeOp, TransposeOp, HintOp),
        lambda op, parts: parts[0],
    )
)


# ---- comparison ---------------------------------------------------------------------------------


def may_overlap(
    first: Affine, first_bytes: int, second: Affine, second_bytes: int, later: int
) -> bool:
    """Whether accesses may touch one byte: `first` of an iteration, `second` `later` ones after it.

    Two proofs that they do not: their difference lies outside of (-second_bytes, first_bytes); or
    it does modulo some g, after what is divisible by g is left out. Example of the latter: columns
    s * 32 .. s * 32 + 31 of rows of 256 elements in iteration s.
    """
    gap = _after(second, later).plus(first.scaled(-1))
    spans = [*gap.spans, *(Span(c, -inf, inf) for m, c in gap.terms.items() if m != _ONE)]
    base = gap.terms.get(_ONE, 0)
    moduli = sorted({abs(span.coefficient) for span in spans if span.coefficient})
    return _meets(base, spans, first_bytes, second_bytes) and all(
        _meets_modulo(base, spans, g, first_bytes, second_bytes) for g in moduli
    )


def _after(form: Affine, later: int) -> Affine:
    """The form with n + later for n."""
    total = Affine({}, form.spans)
    for (power, scalars), c in form.terms.items():
        expanded = Affine({(0, scalars): c})
        for _ in range(power):
            expanded = _progression(expanded.scaled(later), expanded)
        total = total.plus(expanded)
    return total


def _bounds(base: int, spans: Iterable[Span]) -> tuple[float, float]:
    """The smallest and the largest sum."""
    low: float = base
    high: float = base
    for span in spans:
        low, high = low + span.least, high + span.largest
    return low, high


def _meets(base: int, spans: list[Span], first_bytes: int, second_bytes: int) -> bool:
    low, high = _bounds(base, spans)
    return low < first_bytes and high > -second_bytes


def _meets_modulo(
    base: int, spans: list[Span], g: int, first_bytes: int, second_bytes: int
) -> bool:
    """Whether a multiple of g brings the rest of the sum into the range."""
    low, high = _bounds(base % g, (s for s in spans if s.coefficient % g))
    if low == -inf or high == inf:
        return True
    smallest = (int(-second_bytes - high) // g + 1) * g
    return smallest < first_bytes - low
