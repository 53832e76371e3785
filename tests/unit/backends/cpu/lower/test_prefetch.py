"""Lines that a nest fetches for its own stores and loads."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.unit.backends.cpu.lower.test_program_order import copy_rows
from tests.unit.backends.cpu.textual import lowered, run, strided_offsets
from tilewright.backends.cpu.microkernel import CACHE_LINE
from tilewright.llvm import host_cpu


def power_kernel(
    shape: tuple[int, ...], products: int = 1, stride: int = 1, first: str = "zero"
) -> str:
    """y = x, multiplied by itself so many times, of a tile whose rows follow each other.

    first: the place of the first element of x
    """
    sizes = "x".join(map(str, shape))
    strides = tuple(stride * int(np.prod(shape[d + 1 :])) for d in range(len(shape)))
    lines = [f"%v{i + 1} = arith.mul %v{i}, %v{i} : tile<{sizes}xf32>" for i in range(products)]
    return f"""func @k(%X: ptr<f32>, %Y: ptr<f32> {{aligned = 64}}) {{
      {strided_offsets(shape, strides)}
      %p = cf.program_id {{axis = 0}} : i32
      %zero = arith.constant {{value = 0}} : i32
      %x = mem.offset %X, %{first} : ptr<f32>
      %xs = tile.splat %x {{shape = {list(shape)}}} : tile<{sizes}xptr<f32>>
      %xp = mem.offset %xs, %at : tile<{sizes}xptr<f32>>
      %v0 = mem.load %xp : tile<{sizes}xf32>
      {" ".join(lines)}
      %ys = tile.splat %Y {{shape = {list(shape)}}} : tile<{sizes}xptr<f32>>
      %yp = mem.offset %ys, %at : tile<{sizes}xptr<f32>>
      mem.store %yp, %v{products}
      cf.return
    }}"""


def fetches(text: str, stream_above: int = 0, for_store: bool = True, fetch_above: int = 0) -> int:
    """Lines that a step fetches to be stored to, or to be loaded."""
    found = rf"@llvm.prefetch.p0\(ptr %\w+, i32 {int(for_store)}"
    return len(re.findall(found, lowered(text, stream_above, fetch_above).text))


LINES = max(1, 2 * host_cpu().vector_bits // 512)
"""Of a step: two vectors of all bits."""


def test_moved_numbers_are_stored_to_lines_that_were_fetched():
    assert fetches(power_kernel((256,))) == LINES


def test_numbers_that_take_long_to_compute_are_loaded_from_lines_that_were_fetched():
    text = power_kernel((256,), products=20, first="p")
    assert (fetches(text), fetches(text, for_store=False)) == (0, LINES)


def test_one_of_both_is_fetched():
    assert not fetches(power_kernel((256,), first="p"), for_store=False)


@pytest.mark.skipif(not host_cpu().is_x86, reason="streams with x86 instructions")
def test_lines_that_stores_pass_by_are_not_fetched():
    text = power_kernel((256,))
    assert "!nontemporal" in lowered(text, 1).text
    assert fetches(text, stream_above=1) == fetches(text)


@pytest.mark.parametrize(
    "text",
    [power_kernel((256,), products=20), power_kernel((128,)), power_kernel((16, 256)),
     power_kernel((256,), stride=3)],
    ids=["computes", "short", "rows", "scattered"],
)  # fmt: skip
def test_what_would_not_pay_is_not_fetched(text: str):
    assert fetches(text) == fetches(text, for_store=False) == 0


def filling_kernel(rows: int, columns: int) -> str:
    """y = x, one number for a tile."""
    sizes, shape = f"{rows}x{columns}", [rows, columns]
    return f"""func @k(%x: f32, %Y: ptr<f32> {{aligned = 64}}) {{
      {strided_offsets((rows, columns), (1024, 1))}
      %xs = tile.splat %x {{shape = {shape}}} : tile<{sizes}xf32>
      %ys = tile.splat %Y {{shape = {shape}}} : tile<{sizes}xptr<f32>>
      %yp = mem.offset %ys, %at : tile<{sizes}xptr<f32>>
      mem.store %yp, %xs
      cf.return
    }}"""


def test_rows_of_what_is_in_the_caches_are_fetched_before_they_are_stored_to():
    assert fetches(filling_kernel(16, 256)) == max(1, 2 * host_cpu().vector_bits // 512)
    assert fetches(filling_kernel(4, 256)) == 0


def adding_kernel(shape: tuple[int, ...], step: int) -> str:
    """y = the sum of three tiles of x, so many elements apart."""
    sizes, dims = "x".join(map(str, shape)), list(shape)
    tile = f"tile<{sizes}xf32>"
    return f"""func @k(%X: ptr<f32>, %Y: ptr<f32> {{aligned = 64}}) {{
      {strided_offsets(shape, (1024, 1)[-len(shape) :])}
      %low = arith.constant {{value = 0}} : i32
      %step = arith.constant {{value = {step}}} : i32
      %end = arith.constant {{value = {2 * step + 1}}} : i32
      %zero = arith.constant {{value = 0.0}} : {tile}
      %sum = cf.for %low, %end, %step, %zero : {tile} (%k: i32,
          %s: {tile}) {{
        %x = mem.offset %X, {"%k" if step > 1 else "%low"} : ptr<f32>
        %xs = tile.splat %x {{shape = {dims}}} : tile<{sizes}xptr<f32>>
        %xp = mem.offset %xs, %at : tile<{sizes}xptr<f32>>
        %v = mem.load %xp : {tile}
        %next = arith.add %s, %v : {tile}
        cf.yield %next
      }}
      %ys = tile.splat %Y {{shape = {dims}}} : tile<{sizes}xptr<f32>>
      %yp = mem.offset %ys, %at : tile<{sizes}xptr<f32>>
      mem.store %yp, %sum
      cf.return
    }}"""


def test_what_carried_sums_take_in_is_fetched():
    assert fetches(adding_kernel((256,), 256), for_store=False) == LINES


def test_short_rows_of_carried_sums_are_fetched_but_longer_ones_are_not():
    lines = [fetches(adding_kernel((4, n), 4096), for_store=False) for n in (64, 128)]
    assert lines == [LINES, 0]


@pytest.mark.parametrize(("size", "step"), [(128, 128), (256, 1)], ids=["short", "the same"])
def test_short_rows_and_what_is_loaded_again_are_not_fetched(size: int, step: int):
    assert fetches(adding_kernel((size,), step), for_store=False) == 0


def summing_kernel(columns: int) -> str:
    """y[p] = the sum of the first %n numbers of row p of x."""
    tile = f"tile<{columns}x"
    return f"""func @k(%X: ptr<f32>, %Y: ptr<f32>, %n: i32) {{
      %p = cf.program_id {{axis = 0}} : i32
      %size = arith.constant {{value = {columns}}} : i32
      %start = arith.mul %p, %size : i32
      %row = mem.offset %X, %start : ptr<f32>
      %i = tile.range {{start = 0, end = {columns}}} : {tile}i32>
      %ns = tile.splat %n {{shape = [{columns}]}} : {tile}i32>
      %below = arith.compare %i, %ns {{predicate = "lt"}} : {tile}i1>
      %zero = arith.constant {{value = 0.0}} : {tile}f32>
      %rows = tile.splat %row {{shape = [{columns}]}} : {tile}ptr<f32>>
      %at = mem.offset %rows, %i : {tile}ptr<f32>>
      %x = mem.load %at, %below, %zero : {tile}f32>
      %sum = tile.reduce %x {{axis = 0}} : f32 (%a: f32, %b: f32) {{
        %c = arith.add %a, %b : f32
        cf.yield %c
      }}
      %y = mem.offset %Y, %p : ptr<f32>
      mem.store %y, %sum
      cf.return
    }}"""


def test_long_rows_of_large_grids_are_fetched_before_they_are_summed():
    found = fetches(summing_kernel(1024), for_store=False, fetch_above=1)
    assert found >= LINES
    assert fetches(summing_kernel(1024), for_store=False) == 0
    assert fetches(summing_kernel(128), for_store=False, fetch_above=1) == 0


@pytest.mark.parametrize("above", [1, 1 << 40])
@pytest.mark.parametrize("count", [1024, 1000, 5, 0])
def test_sums_are_the_same_with_and_without_fetching(above: int, count: int):
    x, y = np.ones(3 * 1024, np.float32), np.full(3, np.nan, np.float32)
    run(summing_kernel(1024), [x, y, count], (3,), fetch_above=above)
    np.testing.assert_array_equal(y, count)


def test_the_next_program_s_part_of_each_row_is_fetched():
    text = copy_rows(0, 1)
    lines = max(1, 16 * 4 // CACHE_LINE)
    assert fetches(text, fetch_above=1) == fetches(text, 0, False, 1) == lines
    assert fetches(text) == fetches(text, for_store=False) == 0


def test_nothing_behind_an_array_is_changed():
    x, y = np.arange(256, dtype=np.float32), np.full(1024, 7.0, np.float32)
    run(power_kernel((256,)), [x, y])
    np.testing.assert_array_equal(y[:256], x * x)
    assert (y[256:] == 7).all()
