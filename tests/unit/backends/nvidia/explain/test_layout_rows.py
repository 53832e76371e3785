"""Layouts of `kernel.explain()`: each once, with the tiles that have it."""

from math import prod

from tests.unit.backends.nvidia.compiled import compiled
from tests.unit.backends.nvidia.explain.test_op_rows import transposed
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright.kernels.softmax import softmax_kernel

pytestmark = needs_ptxas


def test_layouts_cover_their_tiles_and_are_listed_once() -> None:
    rows = compiled(transposed, "*fp32/16 *fp32/16", BLOCK=64).explain().layouts
    assert len(set(rows)) == len(rows)
    for row in rows:
        bases = [*row.register, *row.lane, *row.warp]
        assert len(bases) == 7 + len(row.register)  # 128 threads
        assert 1 << sum(any(basis) for basis in bases) >= prod(row.shape)


def test_tiles_are_named_by_variable_and_line() -> None:
    rows = compiled(softmax_kernel, "*fp32 *fp32 i32 i32 i32", BLOCK=1024).explain().layouts
    names = {name.partition(" ")[0] for row in rows for name in row.values}
    assert {"x", "mask", "offsets"} <= names
    assert all("(line " in name for row in rows for name in row.values)
