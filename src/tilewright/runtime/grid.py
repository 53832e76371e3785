"""The grid of a launch: how many program instances run along each of three axes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import cast

from tilewright.support import errors

Grid = tuple[int, int, int]

MAX_EXTENT = 0x7FFFFFFF
"""`program_id` is an int32."""


def normal_grid(grid: object) -> Grid:
    """A grid as three positive ints; given are one to three, as an int, a tuple or a list.

    Raises BadGrid.
    """
    extents = _extents(grid)
    if not 1 <= len(extents) <= 3:
        raise errors.BadGrid(grid, f"has {len(extents)} extents")
    x, y, z = [*(_extent(extent, grid) for extent in extents), 1, 1][:3]
    return x, y, z


def _extents(grid: object) -> Sequence[object]:
    if isinstance(grid, tuple | list):
        return cast("Sequence[object]", grid)
    try:
        return (index(grid),)  # pyright: ignore[reportArgumentType]
    except TypeError:
        raise errors.BadGrid(grid, f"is a {type(grid).__name__}") from None


def _extent(extent: object, grid: object) -> int:
    try:
        number = index(extent)  # pyright: ignore[reportArgumentType]
    except TypeError:
        kind = type(extent).__name__
        raise errors.BadGrid(grid, f"holds a {kind}, which is no integer") from None
    if number < 1:
        problem = "holds 0: there is nothing to run" if number == 0 else f"holds {number}"
        raise errors.BadGrid(grid, problem)
    if number > MAX_EXTENT:
        raise errors.BadGrid(grid, f"holds {number}; the limit is {MAX_EXTENT}")
    return number
