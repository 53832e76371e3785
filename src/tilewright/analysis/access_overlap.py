"""Overlap of memory accesses: two tiles of addresses, in the same or different iterations.

Addresses are sums of coordinates, iterations and program numbers (`affine_addresses`), each within
bounds. Two accesses are *apart* if no choice of these makes the difference of their addresses
smaller than an element. The exact test is a small search over integers:

    p + 256 * n + 4 * i   and   p + 256 * (n + t) + 4 * j     0 <= i, j < 64, t > 0
    256 * t + 4 * (j - i) is at least 256 - 252 = 4:          apart, for elements of 4 bytes

A coordinate times an argument of the launch, as in `row * stride`, cannot be searched. Functions
whose docstrings say so assume that such sums are addresses in an array with disjoint rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field
from math import gcd
from typing import cast

from tilewright.analysis.affine_addresses import Form, Kind, Monomial, Symbol, symbols_of
from tilewright.ir import Op, Value
from tilewright.support.data_class import dataclass

BUDGET = 4096
"""The most steps of a search; beyond them the accesses may overlap."""


@dataclass(frozen=True)
class Access:
    """A tile of addresses, or one address.

    form: the form of the addresses, in bytes; size: bytes of an element; loops: the loops around
    the access, outermost first; trips: constant trip counts of loops
    """

    form: Form
    shape: tuple[int, ...]
    size: int
    loops: tuple[Op, ...]
    trips: Mapping[object, int]

    def last(self, symbol: Symbol) -> int | None:
        """The largest value of a coordinate or an iteration number; None: no bound."""
        if symbol.kind is Kind.DIM:
            dim = cast("int", symbol.key)
            return self.shape[dim] - 1 if dim < len(self.shape) else 0
        trips = self.trips.get(symbol.key)
        return None if trips is None else max(trips - 1, 0)


@dataclass(frozen=True)
class Relation:
    """The relation of the iterations of two accesses.

    same: loops of which both are in the same iteration; later: the loop of which the second access
    is in a later iteration; distance: how many iterations later, None: any number; programs:
    whether they may belong to different programs
    """

    same: frozenset[Op] = frozenset()
    later: Op | None = None
    distance: int | None = None
    programs: bool = False

    @classmethod
    def of(cls, first: Access, second: Access, later: Op | None = None) -> Relation:
        """The relation of two accesses of one program: the second is in a later iteration of the
        loop `later` if both are in it; otherwise both are in the same iteration of common loops."""
        common = [a for a, b in zip(first.loops, second.loops, strict=False) if a is b]
        if later not in common:
            return cls(frozenset(common))
        return cls(frozenset(common[: common.index(later)]), later)

    @classmethod
    def at(cls, first: Access, second: Access, loop: Op, distance: int) -> Relation:
        """The relation of two accesses in a loop, the second `distance` iterations later."""
        outer = first.loops[: first.loops.index(loop)]
        if not distance:
            return cls(frozenset([*outer, loop]))
        return cls(frozenset(outer), loop, distance)


def apart(first: Access, second: Access, relation: Relation) -> bool:
    """Whether two accesses provably never overlap."""
    parts = _difference(first, second, relation)
    part = parts.pop((), None)
    # without a part in bytes alone, the difference may be 0
    if part is None or any(_may_differ(g, first, second, relation) for g in parts.values()):
        return False
    return not _may_overlap(part, first, second, relation)


def apart_in_arrays(first: Access, second: Access, relation: Relation) -> bool:
    """As `apart`, assuming that sums of multiples of several arguments are array addresses."""
    parts = _difference(first, second, relation)
    if any(number and part.constant for number, part in parts.items()):
        return False  # an argument of the launch is in one address only
    return any(not _may_overlap(part, first, second, relation) for part in parts.values())


def is_same(first: Access, second: Access, relation: Relation) -> bool:
    """Whether both accesses have the same address at each coordinate."""
    if first.form != second.form or first.shape != second.shape:
        return False
    return all(s.kind is Kind.DIM or s.loops <= relation.same for s in symbols_of(first.form))


def is_injective(access: Access) -> bool:
    """Whether no two elements of a tile share a byte, if rows do not overlap (`apart_in_arrays`).

    A sum of coordinates is unique if each coefficient exceeds the largest sum of the smaller ones.
    """
    seen = {d for d, extent in enumerate(access.shape) if extent == 1}
    parts: dict[Monomial, dict[int, int]] = defaultdict(dict)
    for monomial, coefficient in access.form:
        over = [s for s in monomial if s.over_tile]
        counted = any(s.kind is Kind.ITERATION for s in monomial)
        # A product of coordinates, or of a coordinate and an iteration, may repeat a value.
        if len(over) > 1 or (over and (counted or over[0].kind is not Kind.DIM)):
            return False
        if over:
            rest = tuple(s for s in monomial if s is not over[0])
            parts[rest][cast("int", over[0].key)] = abs(coefficient)
    for along in parts.values():
        if _has_distinct_sums(along, access):
            seen |= along.keys()
    return len(seen) == len(access.shape)


def _has_distinct_sums(along: Mapping[int, int], access: Access) -> bool:
    """Whether all coordinates with these coefficients have different sums."""
    reach = access.size
    # As in a number system: each coefficient must exceed the largest sum of the smaller ones.
    for dim in sorted(along, key=lambda d: along[d]):
        if along[dim] < reach:
            return False
        reach += along[dim] * (access.shape[dim] - 1)
    return True


# ---- differences ---------------------------------------------------------------------------------

Interval = tuple[int | None, int | None]
"""The least and the largest value; None: unbounded."""
Term = tuple[int, Interval]
"""The coefficient of a variable, and its bounds."""


@dataclass
class _LinearDifference:
    """The part of a difference with one common factor: a constant and a sum over variables.

    counted: coefficients of a variable in the first and in the second access; is_linear: False if
    the part also has other terms, whose values are unknown
    """

    constant: int = 0
    counted: dict[Symbol, list[int]] = field(default_factory=dict[Symbol, list[int]])
    is_linear: bool = True

    def add(self, number: int, moving: Sequence[Symbol], coefficient: int) -> None:
        """Add a term of the first access (number 0), or of the second one (1)."""
        if not moving:
            self.constant += coefficient if number else -coefficient
        elif len(moving) > 1 or not _is_counted(moving[0]):
            self.is_linear = False
        else:
            self.counted.setdefault(moving[0], [0, 0])[number] += coefficient


def _difference(
    first: Access, second: Access, relation: Relation
) -> dict[Monomial, _LinearDifference]:
    """second - first, by the product of launch arguments in each part."""
    parts: dict[Monomial, _LinearDifference] = defaultdict(_LinearDifference)
    for number, access in enumerate((first, second)):
        for monomial, coefficient in access.form:
            moving = [s for s in monomial if not _is_fixed(s, relation)]
            rest = tuple(s for s in monomial if _is_fixed(s, relation))
            parts[rest].add(number, moving, coefficient)
    return parts


def _terms(
    part: _LinearDifference, first: Access, second: Access, relation: Relation
) -> list[Term]:
    """The terms of the difference."""
    terms = [
        term
        for symbol, factors in part.counted.items()
        for term in _variable_terms(symbol, factors, (first, second), relation)
    ]
    return [(coefficient, bounds) for coefficient, bounds in terms if coefficient]


def _variable_terms(
    symbol: Symbol, factors: Sequence[int], accesses: Sequence[Access], relation: Relation
) -> list[Term]:
    """The terms of a variable in the difference."""
    (one, other), lasts = factors, [access.last(symbol) for access in accesses]
    if symbol.key is relation.later:
        # the iteration of the second access is that of the first plus `later`: a variable for each
        exact = relation.distance
        later = (1, lasts[1]) if exact is None else (exact, exact)
        return [(other - one, (0, lasts[0])), (other, later)]
    if symbol.kind is Kind.ITERATION and symbol.key in relation.same:
        return [(other - one, (0, lasts[0]))]
    # Both have the same values independently: one variable for their difference.
    if one == other and lasts[0] == lasts[1]:
        return [(one, (None if lasts[0] is None else -lasts[0], lasts[0]))]
    return [(-one, (0, lasts[0])), (other, (0, lasts[1]))]


def _is_fixed(symbol: Symbol, relation: Relation) -> bool:
    """Whether a symbol has one value in both accesses, and does not vary."""
    if symbol.over_tile or symbol.kind is Kind.ITERATION:
        return False
    if relation.programs and differs_by_program(symbol):
        return False
    return symbol.loops <= relation.same


def _is_counted(symbol: Symbol) -> bool:
    """Whether a symbol takes the values from 0 on."""
    return symbol.kind in (Kind.DIM, Kind.ITERATION) or is_program_number(symbol)


def is_program_number(symbol: Symbol) -> bool:
    """Whether a symbol is the program number along an axis."""
    if symbol.kind is not Kind.COMPUTED:
        return False
    return cast("tuple[object, ...]", symbol.key)[0] == "cf.program_id"


def differs_by_program(symbol: Symbol) -> bool:
    """Whether programs of one launch may have different numbers for a symbol."""
    if symbol.kind is Kind.COMPUTED:
        _, _, forms = cast("tuple[object, object, tuple[Form, ...]]", symbol.key)
        inner = (s for form in forms for s in symbols_of(form))
        return is_program_number(symbol) or any(map(differs_by_program, inner))
    if symbol.kind is Kind.TRIPS:
        return True
    if symbol.kind in (Kind.VALUE, Kind.CARRIED):
        value = cast("Value", symbol.key)
        return value.op is not None or bool(symbol.loops)
    return False


def _may_differ(part: _LinearDifference, first: Access, second: Access, relation: Relation) -> bool:
    """Whether a part may differ from 0."""
    return not part.is_linear or part.constant != 0 or bool(_terms(part, first, second, relation))


# ---- the search ----------------------------------------------------------------------------------


def _may_overlap(
    part: _LinearDifference, first: Access, second: Access, relation: Relation
) -> bool:
    """Whether the accesses share a byte for some values of the variables."""
    if not part.is_linear:
        return True
    terms = _terms(part, first, second, relation)
    return _Search(-second.size, first.size).hits(terms, part.constant)


class _Search:
    """A search for values of the variables whose sum is strictly between two bounds."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        self.steps = 0

    def hits(self, terms: Sequence[Term], total: int) -> bool:
        """Whether total + sum of c * v is between the bounds for some v."""
        self.steps += 1
        # Conservative: they may overlap.
        if self.steps > BUDGET:
            return True
        if not terms:
            return self.low < total < self.high
        # All sums are multiples of the coefficients' common divisor; often none is between the
        # bounds.
        step = gcd(*(c for c, _ in terms))
        if not any((total + d) % step == 0 for d in range(1 - self.high, -self.low)):
            return False
        number = self._first(terms)
        rest = [term for i, term in enumerate(terms) if i != number]
        values = self._values(terms[number], rest, total)
        coefficient = terms[number][0]
        return values is None or any(self.hits(rest, total + coefficient * v) for v in values)

    def _first(self, terms: Sequence[Term]) -> int:
        """The term to fix first: one without bounds, which the others bound, else the largest."""
        return max(range(len(terms)), key=lambda i: (None in terms[i][1], abs(terms[i][0])))

    def _values(self, term: Term, rest: Sequence[Term], total: int) -> range | None:
        """The values that the other terms can compensate; None without a bound."""
        ends = [(c * a, c * b) for c, (a, b) in rest if a is not None and b is not None]
        if len(ends) < len(rest):
            return None
        # The sum of the other terms bounds the values of this one.
        least, most = total + sum(map(min, ends)), total + sum(map(max, ends))
        # low < c * v + x < high for an x from least to most
        first, last = self.low + 1 - most, self.high - 1 - least
        coefficient, (start, stop) = term
        if coefficient < 0:
            first, last, coefficient = -last, -first, -coefficient
        # Round inwards: up for the first value, down for the last.
        first, last = -(-first // coefficient), last // coefficient
        first = first if start is None else max(first, start)
        return range(first, (last if stop is None else min(last, stop)) + 1)
