"""Accesses relative to pointer arguments, and whether two of them have the same elements.

    tl.load(x + pid * 64 + i)      x plus  256 * pid + 4 * d0
    tl.store(y + pid * 64 + i)     y plus  the same, so that elements correspond

Symbols are numbered, with one number for symbols that are assumed equal. Loops with equal bounds
share a number, since a second pass over a row is after the first. If one of the two was unrolled,
its sums are compared with those of each iteration of the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from typing import cast

from tilewright.analysis.access_forms import MemoryForms, MemoryOp
from tilewright.analysis.access_overlap import Access, Relation, apart_in_arrays
from tilewright.analysis.affine_addresses import Form, Kind, Symbol, added
from tilewright.analysis.argument_pair import Sum
from tilewright.analysis.pointer_roots import roots
from tilewright.ir import Function, Op, Value
from tilewright.ir.types import DType
from tilewright.ops import ForOp, LoadOp
from tilewright.support.data_class import dataclass

Terms = tuple[tuple[tuple[int, ...], int], ...]
"""The terms of a sum: the numbers of the symbols of each product, and its coefficient."""

_MOST_ITERATIONS = 8
"""The most iterations of a loop that may be unrolled elsewhere."""


@dataclass(frozen=True)
class Use:
    """An access to an argument: the sum relative to it; writes: whether it is a store."""

    argument: Value
    access: Access
    terms: Terms
    writes: bool


class ArgumentUses:
    """The accesses of one function."""

    def __init__(self, function: Function, forms: MemoryForms) -> None:
        self.forms = forms
        self._parameters = frozenset(function.args)
        # One cache for all accesses: pointers that are computed from each other share their root.
        self._starts: dict[Value, frozenset[Value]] = {}
        self._uses: dict[MemoryOp, Use | None] = {}
        self._numbers: dict[object, int] = {}
        self._arguments: dict[int, int] = {}
        self._trips: dict[int, int] = {}

    def of(self, op: MemoryOp) -> Use | None:
        """The use of an access; None if its address is not one argument plus a sum."""
        if op not in self._uses:
            self._uses[op] = self._use(op)
        return self._uses[op]

    def _use(self, op: MemoryOp) -> Use | None:
        starts = list(roots(op.pointer, self._starts))
        if len(starts) != 1 or starts[0] not in self._parameters:
            return None
        access = self.forms.access(op)
        behind = added(access.form, self.forms.forms.form(starts[0]), -1)
        # The argument's own term did not cancel: it is multiplied, or the address is not an offset
        # from it.
        if len(behind) >= len(access.form):
            return None
        access = Access(behind, access.shape, access.size, access.loops, access.trips)
        return Use(starts[0], access, self._terms(behind), not isinstance(op, LoadOp))

    def _terms(self, form: Form) -> Terms:
        """A form with the numbers of its symbols."""
        terms = [(tuple(sorted(map(self._number, m))), c) for m, c in form]
        return tuple(sorted(terms))

    def _number(self, symbol: Symbol) -> int:
        key: object = symbol
        if symbol.kind is Kind.ITERATION:
            key = self._loop(cast("Op", symbol.key))
        elif symbol.kind is Kind.COMPUTED:
            opcode, attrs, forms = cast("tuple[str, object, tuple[Form, ...]]", symbol.key)
            key = (opcode, attrs, tuple(map(self._terms, forms)))
        number = self._numbers.setdefault(key, len(self._numbers))
        if symbol.kind is Kind.ITERATION:
            self._trips[number] = self.forms.trips.get(symbol.key, _MOST_ITERATIONS + 1)
        if symbol.kind is Kind.VALUE and symbol.key in self._parameters:
            value = cast("Value", symbol.key)
            if isinstance(value.type, DType) and value.type.is_integer:
                self._arguments[number] = value.index
        return number

    def _loop(self, loop: Op) -> object:
        """The key of a loop: loops of one depth with equal bounds are equal."""
        if not isinstance(loop, ForOp):
            return loop
        depth, block = 0, loop.parent
        while block is not None and isinstance(block.owner, Op):
            depth, block = depth + 1, block.owner.parent
        ends = (loop.lower, loop.upper, loop.step)
        return (depth, *(self._terms(self.forms.forms.form(v)) for v in ends))

    def may_be_one_element(self, one: Use, other: Use) -> bool:
        """Whether accesses through two arguments have the same elements in some launch, if both
        arguments are one array."""
        sums = self.difference(one, other)
        if sums is None:
            return False
        return bool(sums) or any(mine == theirs for mine, theirs in self._iterations(one, other))

    def difference(self, one: Use, other: Use) -> list[Sum] | None:
        """The sums that are 0 if two accesses have the same elements; None if they never do."""
        if one.terms == other.terms and one.access.size == other.access.size:
            return []
        if apart_in_arrays(one.access, other.access, Relation(programs=True)):
            return []
        if one.access.size != other.access.size:
            return None
        pairs = (self._sums(mine, theirs) for mine, theirs in self._iterations(one, other))
        return next((sums for sums in pairs if sums is not None), None)

    def _iterations(self, one: Use, other: Use) -> Iterator[tuple[Terms, Terms]]:
        """The terms of both, in each iteration of short loops around only one of them."""
        return product(self._in_iterations(one, other), self._in_iterations(other, one))

    def _in_iterations(self, use: Use, other: Use) -> list[Terms]:
        there = {number for monomial, _ in other.terms for number in monomial}
        numbers = {number for monomial, _ in use.terms for number in monomial} - there
        found = [use.terms]
        for number in sorted(numbers & self._trips.keys()):
            trips = self._trips[number]
            if trips * len(found) <= _MOST_ITERATIONS:
                found = [_at_value(terms, number, n) for terms in found for n in range(trips)]
        return found

    def _sums(self, one: Terms, other: Terms) -> list[Sum] | None:
        """The sums that are 0 if two sums are equal; None if they never are."""
        # The factor of each symbol that varies within a launch, a sum over arguments, must be 0.
        groups: dict[tuple[int, ...], dict[tuple[int, ...], int]] = defaultdict(dict)
        for sign, terms in ((1, one), (-1, other)):
            for monomial, coefficient in terms:
                rest = tuple(n for n in monomial if n not in self._arguments)
                factor = tuple(self._arguments[n] for n in monomial if n in self._arguments)
                groups[rest][factor] = groups[rest].get(factor, 0) + sign * coefficient
        sums: list[Sum] = []
        for rest, factors in groups.items():
            kept = tuple(sorted((c, positions) for positions, c in factors.items() if c))
            if _is_never_zero(kept, bool(rest)):
                return None
            sums += [kept] if kept else []
        return sums


def _at_value(terms: Terms, number: int, value: int) -> Terms:
    """Terms with a symbol replaced by a number."""
    found: dict[tuple[int, ...], int] = defaultdict(int)
    for monomial, coefficient in terms:
        rest = tuple(n for n in monomial if n != number)
        found[rest] += coefficient * value ** (len(monomial) - len(rest))
    return tuple(sorted((monomial, c) for monomial, c in found.items() if c))


def _is_never_zero(terms: Sum, is_factor: bool) -> bool:
    """Whether terms are a nonzero number, or as a factor a single term, assumed to be a stride."""
    is_number = bool(terms) and not any(positions for _, positions in terms)
    return is_number or (is_factor and len(terms) == 1)
