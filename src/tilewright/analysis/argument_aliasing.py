"""Pairs of pointer arguments that must not overlap, and when they may be one array.

    tl.store(y + i, tl.load(x + i) * 2)                 element by element: may be one array, but
                                                        not start at different addresses of one
    tl.store(y + i, tl.load(x + (n - 1 - i)))           no: a program may already have stored the
                                                        element that another program loads
    tl.store(y + i, tl.load(x + n + i))                 no, unless n is 0

Different arguments are assumed to be different memory, so native code does not order the load and
the store. This is right for one array if each element is read and written by the same thread: if
both addresses are the same form of coordinates, iterations and arguments, relative to the two
arguments (`argument_uses`). Accesses that are apart in all programs never overlap. The author of a
kernel with a barrier is responsible for the order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from tilewright.analysis.access_forms import MemoryForms
from tilewright.analysis.access_reach import reach_of
from tilewright.analysis.argument_pair import ELEMENT_WISE, ArgumentPair, Sum
from tilewright.analysis.argument_uses import ArgumentUses, Use
from tilewright.analysis.reached_bytes import Reach
from tilewright.ir import Function
from tilewright.ir.types import PointerType
from tilewright.ops import AtomicCasOp, AtomicOp, BarrierOp, LoadOp, StoreOp

MAX_COMPARISONS = 1024
"""The most comparisons for two arguments; with more they are not a pair."""


def argument_pairs(function: Function) -> list[ArgumentPair]:
    """The pairs of a kernel, in the order of arguments."""
    return _Pairs(function).compute()


class _Pairs:
    """The comparison of the accesses of one function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.uses = ArgumentUses(function, MemoryForms(function))
        self.all_known = True  # whether the argument of each access is known

    def compute(self) -> list[ArgumentPair]:
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
                sums = self._conditions(uses[first], uses[second])
                if sums is not None:
                    reaches = self._reaches(uses[first], uses[second]) if sums else None
                    pairs.append(ArgumentPair(first, second, sums, reaches))
        return pairs

    def _uses(self) -> Mapping[int, list[Use]]:
        """The different accesses of each argument, without pointers of several arguments."""
        uses: dict[int, dict[tuple[object, ...], Use]] = defaultdict(dict)
        for op in self.function.walk():
            if isinstance(op, LoadOp | StoreOp | AtomicOp | AtomicCasOp):
                use = self.uses.of(op)
                self.all_known &= use is not None
                if use is not None:
                    key = (use.terms, use.access.shape, use.access.size, use.writes)
                    uses[use.argument.index].setdefault(key, use)
        return defaultdict(
            list, {place: list(distinct.values()) for place, distinct in uses.items()}
        )

    def _reaches(self, *both: list[Use]) -> tuple[tuple[Reach, ...], tuple[Reach, ...]] | None:
        """The reaches of all accesses through two arguments, if known."""
        found = [[reach_of(use.access, self.function.args) for use in uses] for uses in both]
        first, second = (tuple(r for r in reaches if r is not None) for reaches in found)
        complete = self.all_known and [len(first), len(second)] == [*map(len, both)]
        return (first, second) if complete else None

    def _conditions(self, first: list[Use], second: list[Use]) -> tuple[Sum, ...] | None:
        """The sums that are 0 if all accesses are element by element; None without a write."""
        if len(first) * len(second) > MAX_COMPARISONS:
            return None
        # two loads may read one element
        pairs = [(a, b) for a in first for b in second if a.writes or b.writes]
        sums: dict[Sum, None] = {}
        for one, other in pairs:
            difference = self.uses.difference(one, other)
            if difference is None:
                return ()
            sums |= dict.fromkeys(difference)
        return (tuple(sums) or ELEMENT_WISE) if pairs else None
