"""The order of programs that are not equally long, where blocks run one after the other.

    for group of so many programs that blocks run some 4 each
      for n of the axis that tells how long they take, backwards in every other group
        for program of the group

Blocks take turns, so each one's lengths rise and fall, and the sum of all is nearly the same: for
causal attention of 1024 to 16384 keys, 16384 in all, 132 blocks, it is within 3 % of what a common
counter would give (within 12 % for any of 500 numbers of heads and lengths). In the order of the
device, one head after the other, it is up to 80 % more, since the same blocks may get the longest
programs again and again. All heads at a time would be as even, but their keys leave the cache: 10 %
slower on an H200 at 1024 keys. The last group begins with its longest programs, which end at
different times otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.analysis import affine
from tilewright.ir import Builder, Expr, Function, Value
from tilewright.ir.types import i1
from tilewright.ops import (
    DescriptorLoadOp,
    ForOp,
    ProgramIdOp,
)
from tilewright.support.data_class import dataclass
from tilewright.transforms import backward_slice

_ROUNDS = 4
"""Programs of a block in a group."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The axis of the grid along which programs take longer, or less long."""

    axis: int
    rises: bool


def sweep_of(function: Function, loads: Sequence[DescriptorLoadOp]) -> Sweep | None:
    """How the number of a program along one axis tells how long the loops of loads run, as far as
    it and no load does; None where it does not, or there is one axis alone."""
    loops = [op for op in backward_slice(loads) if isinstance(op, ForOp)]
    used = {op.axis for op in function.walk() if isinstance(op, ProgramIdOp)}
    slopes = [
        (axis, slope)
        for axis in used
        for loop in loops
        for slope in [affine.of(loop.upper).trend(axis) - affine.of(loop.lower).trend(axis)]
        if slope
    ]
    if len({axis for axis, _ in slopes}) != 1 or len(used) < 2:
        return None
    axis, slope = slopes[0]
    return Sweep(axis, slope > 0)


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Of rows, which are programs along the axis of a sweep: how many there are, how many a group
    has at most, how many groups there are, and most programs of one; u32."""

    rows: Value
    most: Value
    groups: Value
    programs: Value


def row_groups(builder: Builder, grid: Sequence[Value], blocks: Value, sweep: Sweep) -> RowGroups:
    """The groups of a launch, which do not change in it."""
    count = grid[sweep.axis]
    rows = builder.mul(*(grid[axis] for axis in _others(grid, sweep)))
    most = builder.min(_ceil(builder, builder.mul(blocks, _ROUNDS), count), rows)
    programs = builder.mul(most, count)
    return RowGroups(rows, most, _ceil(builder, rows, most), programs)


def _others(grid: Sequence[Value], sweep: Sweep) -> list[int]:
    return [axis for axis in range(len(grid)) if axis != sweep.axis]


def number_in_sweeps(
    builder: Builder, turn: Value, grid: Sequence[Value], sweep: Sweep, of: RowGroups
) -> list[Value]:
    """The places in a grid of the program of a turn, as u32."""
    number, rows = builder.expr(turn), builder.expr(of.rows)
    group = number // of.programs
    rest = number - group * of.programs
    first = group * of.most
    # After the last program no number is right, but none divides by zero.
    width = builder.max(builder.min(rows - first, of.most), 1)
    place = rest // width
    row = first + rest % width
    inner, outer = _others(grid, sweep)
    places = {
        sweep.axis: _alternated(builder, place, grid[sweep.axis], of.groups, group, sweep.rises),
        inner: (row % grid[inner]).value,
        outer: (row // grid[inner]).value,
    }
    return [places[axis] for axis in range(len(grid))]


def _ceil(builder: Builder, number: Value, divisor: Value) -> Value:
    """number / divisor, rounded up."""
    return ((builder.expr(number) + (builder.expr(divisor) - 1)) // divisor).value


def _alternated(
    builder: Builder, place: Expr, count: Value, groups: Value, group: Expr, rises: bool
) -> Value:
    """A place along an axis of `count`, counted from its end in every other group: in the last
    one, if programs take longer along it."""
    # The last group is 1 from the end.
    is_odd = builder.cast((builder.expr(groups) - group) & 1, i1)
    reverse = builder.expr(count) - 1 - place
    choices = (reverse, place) if rises else (place, reverse)
    return builder.select(is_odd, *choices)
