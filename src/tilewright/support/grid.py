"""The grid of a launch: how many program instances run along each of three axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import cast

from tilewright.support.user_callbacks import ask

from . import errors

__all__ = ["Grid", "grid_for", "normal_grid"]

Grid = tuple[int, int, int]

MAX_EXTENT = 0x7FFFFFFF
"""`program_id` is an int32."""


def grid_for(grid: object, named: Mapping[str, object]) -> Grid:
    """As `normal_grid`; a function is called first, with all arguments by name.

    Errors: BadGrid, BadCallback, and what the function raises.
    """
    if callable(grid):
        # a copy of the arguments: the function is the user's, and may change its dictionary
        grid = ask("the grid function", "the dictionary of all arguments", grid, dict(named))
    return normal_grid(grid)


def normal_grid(grid: object) -> Grid:
    """A grid as three ints of at least 0; given are one to three, as an int, a tuple or a list.

    A grid with a 0 has no program instances. Raises BadGrid.
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
    if number < 0:
        raise errors.BadGrid(grid, f"holds {number}")
    if number > MAX_EXTENT:
        raise errors.BadGrid(grid, f"holds {number}; the limit is {MAX_EXTENT}")
    return number
