"""Affine forms of a function's accesses: addresses, limits by masks, bounds of loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from tilewright.analysis.access_overlap import Access, Relation, apart
from tilewright.analysis.affine_addresses import (
    AffineForms,
    Form,
    Kind,
    Monomial,
    Symbol,
    added,
    as_constant,
    constant,
    frozen,
    multiplied,
)
from tilewright.analysis.disjoint_windows import Limit, LoopRange
from tilewright.ir import Function, Op
from tilewright.ir.types import PointerType, element_of, shape_of
from tilewright.ops import AtomicCasOp, AtomicOp, ForOp, LoadOp, StoreOp, loops_around
from tilewright.support import cached_property

MemoryOp = LoadOp | StoreOp | AtomicOp | AtomicCasOp


class MemoryForms:
    """Accesses of one function, computed on demand; transparent: ops that are identities."""

    def __init__(self, function: Function, transparent: tuple[type[Op], ...] = ()) -> None:
        self._function, self._transparent = function, transparent
        self._accesses: dict[Op, Access] = {}

    @classmethod
    def around(cls, op: Op) -> MemoryForms:
        """The forms of the function that contains an op."""
        block = op.parent
        while block is not None and isinstance(block.owner, Op):
            block = block.owner.parent
        assert block is not None and isinstance(block.owner, Function)
        return cls(block.owner)

    @cached_property
    def forms(self) -> AffineForms:
        """The forms of all integers and addresses."""
        return AffineForms(self._function, self._transparent)

    @cached_property
    def bounds(self) -> dict[Op, LoopRange]:
        """The ranges of the loops whose step is a positive constant."""
        by_loop: dict[Op, LoopRange] = {}
        for op in self._function.walk():
            if isinstance(op, ForOp):
                lower, upper, step = map(self.forms.form, (op.lower, op.upper, op.step))
                number = as_constant(step)
                # an unknown step gives no trip count; a loop whose step is not positive never runs
                if number is not None and number > 0:
                    by_loop[op] = LoopRange(lower, upper, number)
        return by_loop

    @cached_property
    def trips(self) -> dict[object, int]:
        """Trip counts of the loops whose bounds are constants."""
        by_loop: dict[object, int] = {}
        for op, bounds in self.bounds.items():
            ends = as_constant(bounds.lower), as_constant(bounds.upper)
            if ends[0] is not None and ends[1] is not None:
                by_loop[op] = len(range(ends[0], ends[1], bounds.step))
        return by_loop

    def access(self, op: MemoryOp) -> Access:
        """The addresses of an op, with the loops around it."""
        cached = self._accesses.get(op)
        if cached is None:
            pointer = cast("PointerType", element_of(op.pointer.type))
            form, shape = self.forms.form(op.pointer), shape_of(op.pointer.type)
            loops = tuple(reversed(list(loops_around(op))))
            cached = Access(form, shape, pointer.element.bytes, loops, self.trips)
            self._accesses[op] = cached
        return cached

    def limits(self, op: MemoryOp) -> list[Limit]:
        """The inequalities in the mask of an op."""
        return [condition for condition in self.conditions(op) if condition is not None]

    def are_apart(self, first: MemoryOp, second: MemoryOp) -> bool:
        """Whether two accesses in one block of ops have no common element: their tiles are
        disjoint, or the mask of one ends it before the first element of the other."""
        one, other = self.access(first), self.access(second)
        return (
            apart(one, other, Relation.of(one, other))
            or self._ends_before(first, second)
            or self._ends_before(second, first)
        )

    def _ends_before(self, first: MemoryOp, second: MemoryOp) -> bool:
        """Whether the mask of an access excludes all elements from the start of another one on.

        first: a + s i where i < n, that is n - i is at least 1; second: b + s j from j = 0 on. If
        b - (a + s i) is s (n - i), it is at least s.
        """
        one, other = self.access(first), self.access(second)
        start = {monomial: c for monomial, c in other.form if not any(map(_varies, monomial))}
        along = {monomial: c for monomial, c in other.form if monomial not in start}
        if any(c < 0 for c in along.values()) or not all(map(_is_coordinate, along)):
            return False
        gap, size = added(frozen(start), one.form, -1), constant(one.size)
        limits = self.limits(first)
        return any(multiplied(added(high, low, -1), size) == gap for low, high in limits)

    def conditions(self, op: MemoryOp) -> list[Limit | None]:
        """The conditions whose conjunction is the mask of an op; None for a condition that is not
        a comparison of numbers."""
        mask = None if isinstance(op, AtomicCasOp) else op.mask
        return [] if mask is None else list(comparisons(self.forms.form(mask)))


def _is_coordinate(monomial: Monomial) -> bool:
    return [symbol.kind for symbol in monomial] == [Kind.DIM]


def _varies(symbol: Symbol) -> bool:
    """Whether a symbol differs between the elements of a tile."""
    return symbol.over_tile


def comparisons(truth: Form) -> Iterator[Limit | None]:
    """The comparisons whose conjunction is a truth value; None for another condition."""
    opcode, attrs, forms = _computation(truth)
    if opcode == "arith.and":
        for form in forms:
            yield from comparisons(form)
    else:
        yield _comparison(str(attrs["predicate"]), *forms) if opcode == "arith.compare" else None


def _computation(truth: Form) -> tuple[str, Mapping[str, object], list[Form]]:
    """Opcode, attributes and operands of the op that computes a truth value; "" if unknown."""
    if len(truth) == 1 and len(truth[0][0]) == 1 and truth[0][1] == 1:
        (symbol,) = truth[0][0]
        if symbol.kind is Kind.COMPUTED:
            opcode, attrs, forms = cast(
                "tuple[str, tuple[tuple[str, object], ...], list[Form]]", symbol.key
            )
            return opcode, dict(attrs), forms
    return "", {}, []


def _comparison(predicate: str, left: Form, right: Form) -> Limit | None:
    """A comparison as left < right; None if it is not an inequality."""
    more = {"lt": 0, "gt": 0, "le": 1, "ge": 1}.get(predicate)
    if more is None:
        return None
    small, large = (left, right) if predicate in ("lt", "le") else (right, left)
    return small, added(large, constant(more))
