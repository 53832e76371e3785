"""What `argument_aliasing` says of two arguments: kept with a kernel, asked at launches."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tilewright.support.data_class import dataclass

Sum = tuple[tuple[int, tuple[int, ...]], ...]
"""Numbers times products of arguments, which are named by their positions."""

ELEMENT_WISE: tuple[Sum, ...] = ((),)
"""The sum of nothing, which is 0 in every launch: the arguments may be one array."""


@dataclass(frozen=True, slots=True)
class ArgumentPair:
    """Two pointer arguments, by their positions, that must not overlap.

    unless: sums that are all 0 where they may be one array after all; empty: they never may;
    ELEMENT_WISE: they always may, but not begin at different addresses of one array
    """

    first: int
    second: int
    unless: tuple[Sum, ...] = ()

    @property
    def is_element_wise(self) -> bool:
        """Whether the arguments may be one array in every launch."""
        return self.unless == ELEMENT_WISE

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
