"""Pairs of pointer arguments that must not be one array, for they are not used element by element.

    tl.store(y + i, tl.load(x + i) * 2)                 element by element: may be one array
    tl.store(y + i, tl.load(x + (n - 1 - i)))           not: a program may have stored already what
                                                        another one, or another thread, loads
    tl.store(y + i, tl.load(x + n + i))                 not, unless the number n is 0

Different arguments are taken to be different memory, so native code keeps no order between the
load and the store. That is right for one array where each element is read and written at one place
of the program: where both addresses are the same sum of coordinates, iterations and numbers, behind
the two arguments. Loops with equal bounds count as one, for a second pass over a row comes after
the first one. Accesses that are apart in all programs never meet. A kernel with a barrier of its
own has an author who sees to the order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from tilewright.analysis.address_forms import Form, Kind, Symbol, added
from tilewright.analysis.memory_forms import MemoryForms, MemoryOp
from tilewright.analysis.overlap import Access, Relation, apart_in_arrays
from tilewright.analysis.pointers import roots
from tilewright.ir import Function, Op, Value
from tilewright.ir.types import DType, PointerType
from tilewright.ops import AtomicCasOp, AtomicOp, BarrierOp, ForOp, LoadOp, StoreOp

MOST_COMPARISONS = 1024
"""Between two arguments; of more nothing is said."""

Sum = tuple[tuple[int, tuple[int, ...]], ...]
"""Numbers times products of arguments, which are named by their positions."""


@dataclass(frozen=True, slots=True)
class ArgumentPair:
    """Two pointer arguments, by their positions, that must not overlap.

    unless: sums that are all 0 where they may be one array after all; empty: they never may
    """

    first: int
    second: int
    unless: tuple[Sum, ...] = ()

    def as_json(self) -> list[object]:
        """As lists and numbers; `of_json` takes them back."""
        return [self.first, self.second, self.unless]

    @classmethod
    def of_json(cls, entry: Sequence[Any]) -> ArgumentPair:
        """Errors: TypeError, ValueError for what is none."""
        first, second, unless = entry
        sums = tuple(
            tuple((int(factor), tuple(map(int, places))) for factor, places in terms)
            for terms in unless
        )
        return cls(int(first), int(second), sums)

    def may_be_one(self, values: Sequence[Any]) -> bool:
        """Whether the arguments of a launch, by position, let both be one array."""
        return bool(self.unless) and not any(_total(terms, values) for terms in self.unless)


def _total(terms: Sum, values: Sequence[Any]) -> int:
    return sum(factor * prod(int(values[place]) for place in places) for factor, places in terms)


def argument_pairs(function: Function) -> list[ArgumentPair]:
    """The pairs of a kernel, in order."""
    return _Pairs(function).found()


@dataclass(frozen=True)
class _Use:
    """How an argument is accessed: as which sum behind it; writes: whether it is stored to."""

    access: Access
    terms: tuple[tuple[tuple[int, ...], int], ...]
    writes: bool


class _Pairs:
    """The comparison of the accesses of one function.

    A symbol is known by a number, the same for what is taken to be equal.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.forms = MemoryForms(function)
        self._numbers: dict[object, int] = {}
        self._arguments: dict[int, int] = {}

    def found(self) -> list[ArgumentPair]:
        if any(isinstance(op, BarrierOp) for op in self.function.walk()):
            return []
        pointers = [
            i for i, arg in enumerate(self.function.args) if isinstance(arg.type, PointerType)
        ]
        if len(pointers) < 2:
            return []
        uses = self._uses()
        pairs: list[ArgumentPair] = []
        for place, first in enumerate(pointers):
            for second in pointers[place + 1 :]:
                sums = self._compared(uses[first], uses[second])
                if sums is not None:
                    pairs.append(ArgumentPair(first, second, sums))
        return pairs

    # ---- accesses --------------------------------------------------------------------------------

    def _uses(self) -> Mapping[int, list[_Use]]:
        """The different accesses of each argument; pointers that may be several are left out."""
        places = {arg: i for i, arg in enumerate(self.function.args)}
        uses: dict[int, dict[tuple[object, ...], _Use]] = defaultdict(dict)
        # One memory for all accesses: pointers that are computed from each other share their start.
        known: dict[Value, frozenset[Value]] = {}
        for op in self.function.walk():
            if isinstance(op, LoadOp | StoreOp | AtomicOp | AtomicCasOp):
                starts = list(roots(op.pointer, known))
                use = self._use(op, starts[0]) if len(starts) == 1 and starts[0] in places else None
                if use is not None:
                    key = (use.terms, use.access.shape, use.access.size, use.writes)
                    uses[places[starts[0]]].setdefault(key, use)
        return defaultdict(list, {place: list(known.values()) for place, known in uses.items()})

    def _use(self, op: MemoryOp, start: Value) -> _Use | None:
        """None if the address is no sum that begins with the argument."""
        access = self.forms.access(op)
        base = self.forms.forms.form(start)
        behind = added(access.form, base, -1)
        if len(behind) >= len(access.form):
            return None
        access = Access(behind, access.shape, access.size, access.loops, access.trips)
        return _Use(access, self._terms(behind), not isinstance(op, LoadOp))

    # ---- what is equal ---------------------------------------------------------------------------

    def _terms(self, form: Form) -> tuple[tuple[tuple[int, ...], int], ...]:
        """A form by the numbers of its symbols."""
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
        if symbol.kind is Kind.VALUE and symbol.key in self.function.args:
            value = cast("Value", symbol.key)
            if isinstance(value.type, DType) and value.type.is_integer:
                self._arguments[number] = value.index
        return number

    def _loop(self, loop: Op) -> object:
        """Loops of one depth and equal bounds count alike."""
        if not isinstance(loop, ForOp):
            return loop
        depth, block = 0, loop.parent
        while block is not None and isinstance(block.owner, Op):
            depth, block = depth + 1, block.owner.parent
        ends = (loop.lower, loop.upper, loop.step)
        return (depth, *(self._terms(self.forms.forms.form(v)) for v in ends))

    # ---- pairs -----------------------------------------------------------------------------------

    def _compared(self, first: list[_Use], second: list[_Use]) -> tuple[Sum, ...] | None:
        """What must be 0 for all accesses to be element by element; None if they are anyway."""
        if len(first) * len(second) > MOST_COMPARISONS:
            return None
        sums: dict[Sum, None] = {}
        for one in first:
            for other in second:
                if not (one.writes or other.writes):
                    continue
                found = self._difference(one, other)
                if found is None:
                    return ()
                sums |= dict.fromkeys(found)
        return tuple(sums) or None

    def _difference(self, one: _Use, other: _Use) -> list[Sum] | None:
        """What must be 0 for two accesses to be of one element; None if they never are."""
        if one.terms == other.terms and one.access.size == other.access.size:
            return []
        if apart_in_arrays(one.access, other.access, Relation(programs=True)):
            return []
        if one.access.size != other.access.size:
            return None
        groups: dict[tuple[int, ...], dict[tuple[int, ...], int]] = defaultdict(dict)
        for sign, use in ((1, one), (-1, other)):
            for monomial, coefficient in use.terms:
                rest = tuple(n for n in monomial if n not in self._arguments)
                known = tuple(self._arguments[n] for n in monomial if n in self._arguments)
                groups[rest][known] = groups[rest].get(known, 0) + sign * coefficient
        sums: list[Sum] = []
        for rest, terms in groups.items():
            kept = tuple(sorted((c, positions) for positions, c in terms.items() if c))
            if _is_never_zero(kept, bool(rest)):
                return None
            sums += [kept] if kept else []
        return sums


def _is_never_zero(terms: Sum, is_factor: bool) -> bool:
    """A number alone; also of the launch, if it is a stride: what a coordinate is multiplied by."""
    is_number = bool(terms) and not any(positions for _, positions in terms)
    return is_number or (is_factor and len(terms) == 1)
