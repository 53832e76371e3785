"""The aliasing condition of two arguments: stored with a kernel, evaluated at launches."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tilewright.analysis.reached_bytes import Reach, bytes_reached
from tilewright.support.data_class import dataclass

Sum = tuple[tuple[int, tuple[int, ...]], ...]
"""Numbers times products of arguments, given by their positions."""

ELEMENT_WISE: tuple[Sum, ...] = ((),)
"""The empty sum, which is 0 in every launch: the arguments may be one array."""


@dataclass(frozen=True, slots=True)
class ArgumentPair:
    """Two pointer arguments, by their positions, that must not overlap.

    unless: sums that are all 0 if they may be one array; empty: they never may; ELEMENT_WISE: they
    always may, but not start at different addresses of one array; reaches: if they may, the reaches
    of the accesses through each of them, None if not all are known
    """

    first: int
    second: int
    unless: tuple[Sum, ...] = ()
    reaches: tuple[tuple[Reach, ...], tuple[Reach, ...]] | None = None

    @property
    def is_element_wise(self) -> bool:
        """Whether the arguments may be one array in every launch."""
        return self.unless == ELEMENT_WISE

    def as_json(self) -> list[object]:
        """Lists and numbers, for `of_json`."""
        return [self.first, self.second, self.unless, self.reaches]

    @classmethod
    def of_json(cls, entry: Sequence[Any]) -> ArgumentPair:
        """The pair of a JSON value. Errors: TypeError, ValueError for other values."""
        first, second, unless, reaches = entry
        sums = tuple(
            tuple((int(factor), tuple(map(int, places))) for factor, places in terms)
            for terms in unless
        )
        return cls(int(first), int(second), sums, None if reaches is None else _reaches(reaches))

    def may_meet(self, values: Sequence[Any], grid: Sequence[int]) -> bool:
        """Whether accesses through both may share a byte in a launch. values: by position."""
        if self.reaches is None:
            return True
        (a, a_end), (b, b_end) = (bytes_reached(each, values, grid) for each in self.reaches)
        distance = int(values[self.second]) - int(values[self.first])
        return a < distance + b_end and distance + b < a_end

    def may_be_one(self, values: Sequence[Any]) -> bool:
        """Whether both may be one array in a launch. values: its arguments by position."""
        return bool(self.unless) and not any(_total(terms, values) for terms in self.unless)


def _reaches(entry: Sequence[Any]) -> tuple[tuple[Reach, ...], tuple[Reach, ...]]:
    first, second = (
        tuple(
            (int(size), tuple((int(n), tuple(places), tuple(axes)) for n, places, axes in terms))
            for size, terms in reaches
        )
        for reaches in entry
    )
    return first, second


def _total(terms: Sum, values: Sequence[Any]) -> int:
    return sum(factor * prod(int(values[place]) for place in places) for factor, places in terms)
