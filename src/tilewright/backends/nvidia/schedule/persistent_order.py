"""Order of programs of unequal length in the persistent loop.

    for group of rows, with some 4 programs of each block
      for n of the axis that determines the length, backwards in every other group
        for program of the group

Blocks take programs in turn, so lengths rise and fall for each block, and the totals of blocks are
nearly equal. In the order of the device, one head after the other, the same blocks may get the
longest programs again and again; all heads at a time would be as even, but their keys would leave
the cache. The last group starts with its longest programs, which would otherwise end at different
times. Measured in docs/adr/0030-dependent-dots.md.
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
"""Programs of a block in one group."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The axis of the grid along which programs get longer (`rises`) or shorter."""

    axis: int
    rises: bool


def sweep_of(function: Function, loads: Sequence[DescriptorLoadOp]) -> Sweep | None:
    """The axis whose program id alone determines the trip counts of the loops of loads; None where
    another number or a load does, or the grid has one axis only."""
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
    """Groups of rows, which are programs along the axis of a sweep: number of rows, most rows of a
    group, number of groups, most programs of a group; u32."""

    rows: Value
    most: Value
    groups: Value
    programs: Value


def row_groups(builder: Builder, grid: Sequence[Value], blocks: Value, sweep: Sweep) -> RowGroups:
    """The groups of a launch."""
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
    """The program ids of the program with a linear index, as u32."""
    number, rows = builder.expr(turn), builder.expr(of.rows)
    group = number // of.programs
    rest = number - group * of.programs
    first = group * of.most
    # Past the last program the numbers are meaningless, but no divisor is zero.
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
    """A place along an axis of `count`, counted from its end in every other group; in the last one
    if programs get longer along it."""
    # The last group counts as odd.
    is_odd = builder.cast((builder.expr(groups) - group) & 1, i1)
    reverse = builder.expr(count) - 1 - place
    choices = (reverse, place) if rises else (place, reverse)
    return builder.select(is_odd, *choices)
