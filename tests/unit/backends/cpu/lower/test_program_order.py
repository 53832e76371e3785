"""Which programs follow each other on one thread, and that all of them run."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.backends.cpu.textual import function_of, run
from tilewright.backends.cpu.lower.program_order import program_order


def copy_rows(row_axis: int, column_axis: int, more: str = "") -> str:
    """Program (i, j) copies 4 rows of 16 numbers of matrices with rows of %n."""
    return f"""func @k(%X: ptr<i32>, %Y: ptr<i32>, %n: i32) {{
      %row = cf.program_id {{axis = {row_axis}}} : i32
      %column = cf.program_id {{axis = {column_axis}}} : i32
      %four = arith.constant {{value = 4}} : i32
      %wide = arith.constant {{value = 16}} : i32
      %first = arith.mul %row, %four : i32
      %left = arith.mul %column, %wide : i32
      %down = tile.range {{start = 0, end = 4}} : tile<4xi32>
      %firsts = tile.splat %first {{shape = [4]}} : tile<4xi32>
      %rows = arith.add %firsts, %down : tile<4xi32>
      %ns = tile.splat %n {{shape = [4]}} : tile<4xi32>
      %starts = arith.mul %rows, %ns : tile<4xi32>
      %tall = tile.expand_dims %starts {{axis = 1}} : tile<4x1xi32>
      %a = tile.broadcast %tall {{shape = [4, 16]}} : tile<4x16xi32>
      %across = tile.range {{start = 0, end = 16}} : tile<16xi32>
      %lefts = tile.splat %left {{shape = [16]}} : tile<16xi32>
      %columns = arith.add %lefts, %across : tile<16xi32>
      %flat = tile.expand_dims %columns {{axis = 0}} : tile<1x16xi32>
      %b = tile.broadcast %flat {{shape = [4, 16]}} : tile<4x16xi32>
      %at = arith.add %a, %b : tile<4x16xi32>
      %xs = tile.splat %X {{shape = [4, 16]}} : tile<4x16xptr<i32>>
      %xp = mem.offset %xs, %at : tile<4x16xptr<i32>>
      %x = mem.load %xp : tile<4x16xi32>
      {more}
      %ys = tile.splat %Y {{shape = [4, 16]}} : tile<4x16xptr<i32>>
      %yp = mem.offset %ys, %at : tile<4x16xptr<i32>>
      mem.store %yp, %x
      cf.return
    }}"""


ATOMIC = '%old = mem.atomic %X, %n {kind = "add"} : i32'


@pytest.mark.parametrize(
    ("text", "axis"),
    [
        (copy_rows(0, 1), 1),
        (copy_rows(1, 2), 2),
        (copy_rows(1, 0), 0),
        (copy_rows(0, 0), 0),
    ],
)
def test_programs_whose_tiles_lie_side_by_side_follow_each_other(text: str, axis: int):
    assert program_order(function_of(text)).axis == axis


def test_programs_that_may_wait_for_those_before_keep_their_order():
    assert program_order(function_of(copy_rows(0, 1, ATOMIC))).axis == 0


@pytest.mark.parametrize(("rows", "columns"), [(0, 1), (2, 1), (0, 2)])
def test_all_programs_run_in_any_order(rows: int, columns: int):
    x = np.arange(12 * 80, dtype=np.int32)
    y, grid = np.zeros_like(x), [1, 1, 1]
    grid[rows], grid[columns] = 3, 5
    run(copy_rows(rows, columns), [x, y, 80], tuple(grid))
    np.testing.assert_array_equal(y, x)
