"""The order in which blocks run programs of different lengths."""

import itertools
from typing import Any, cast

import numpy as np
import pytest

from tilewright.backends.nvidia.schedule.persistent_order import Sweep, number_in_sweeps, row_groups
from tilewright.eager.eager_builder import EagerBuilder
from tilewright.interp import ConcreteValue, Machine, Memory
from tilewright.ir.types import u32

BLOCKS = 6


@pytest.mark.parametrize("rises", [False, True])
@pytest.mark.parametrize(("grid", "axis"), [((8, 12, 1), 0), ((4, 8, 3), 1), ((5, 1, 31), 2)])
def test_each_program_runs_once_and_blocks_end_at_the_same_time(
    grid: tuple[int, int, int], axis: int, rises: bool
) -> None:
    order = order_of(grid, Sweep(axis, rises))
    assert sorted(order) == list(itertools.product(*map(range, grid)))
    lengths = [place[axis] + 1 if rises else grid[axis] - place[axis] for place in order]
    sums = [sum(lengths[block::BLOCKS]) for block in range(BLOCKS)]
    assert max(sums) < 1.12 * sum(sums) / BLOCKS
    # Those that begin last, and end at different times, are short.
    assert max(lengths[-BLOCKS:]) <= grid[axis] // 2


def order_of(grid: tuple[int, int, int], sweep: Sweep) -> list[tuple[int, ...]]:
    builder: Any = EagerBuilder(Machine(Memory()))
    sizes, blocks = [number(size) for size in grid], number(BLOCKS)
    groups = row_groups(builder, sizes, blocks, sweep)
    turns = map(number, range(int(np.prod(grid))))
    places = [number_in_sweeps(builder, turn, sizes, sweep, groups) for turn in turns]
    return [tuple(int(cast("ConcreteValue", v).data) for v in place) for place in places]


def number(value: int) -> Any:
    return ConcreteValue(u32, np.array(value, np.uint32))
