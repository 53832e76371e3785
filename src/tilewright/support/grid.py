"""The grid of a launch: numbers of program instances along three axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import cast

from tilewright.support.user_callbacks import call_user_function

from . import errors

Grid = tuple[int, int, int]

MAX_EXTENT = 0x7FFFFFFF
"""`program_id` is an int32."""


def grid_for(grid: object, named: Mapping[str, object]) -> Grid:
    """`normal_grid` of a grid or of the result of a function, called with all arguments by name.

    Errors: BadGrid, BadCallback, and exceptions of the function.
    """
    if callable(grid):
        # a copy of the arguments, since the user's function may change its dictionary
        grid = call_user_function(
            "the grid function", "the dictionary of all arguments", grid, dict(named)
        )
    return normal_grid(grid)


def normal_grid(grid: object) -> Grid:
    """Normalize a grid, an int or a tuple or list of one to three, to three non-negative ints.

    A grid with a 0 has no program instances. Errors: BadGrid.
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
        raise errors.BadGrid(grid, f"holds a {kind}, which is not an integer") from None
    if number < 0:
        raise errors.BadGrid(grid, f"holds {number}")
    if number > MAX_EXTENT:
        raise errors.BadGrid(grid, f"holds {number}; the limit is {MAX_EXTENT}")
    return number
