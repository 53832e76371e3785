"""The bytes that a launch may access, from the reaches that are stored with a kernel.

Launches import this module, so it does not import IR (access_reach.py computes the reaches).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

ReachTerm = tuple[int, tuple[int, ...], tuple[int, ...]]
"""The largest value of a part of an address: a number, times arguments by their positions, times
the last program along axes of the grid."""
Reach = tuple[int, tuple[ReachTerm, ...]]
"""The reach of an access: bytes of an element, and the parts of its address."""


def bytes_reached(
    reaches: Sequence[Reach], values: Sequence[Any], grid: Sequence[int]
) -> tuple[int, int]:
    """The half-open range of bytes, relative to an argument's address, that accesses may touch.
    values: the arguments of a launch, by position."""
    low, high = 0, 0
    for size, terms in reaches:
        parts = [
            factor * prod(int(values[i]) for i in places) * prod(grid[axis] - 1 for axis in axes)
            for factor, places, axes in terms
        ]
        low = min(low, sum(part for part in parts if part < 0))
        high = max(high, size + sum(part for part in parts if part > 0))
    return low, high
