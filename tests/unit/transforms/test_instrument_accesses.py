"""Instrumented kernels compute what they did, and tell what is wrong first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.interp import run_function
from tilewright.ir import parse_function, parse_module, print_module, report
from tilewright.transforms import CheckTable, InstrumentAccesses, Licm, Violation, check_table

SHIFTED = """
func @shifted(%X: ptr<f32>, %Y: ptr<f32>, %n: i32) {
  %pid = cf.program_id {axis = 0} : i32
  %block = arith.constant {value = 4} : i32
  %first = arith.mul %pid, %block : i32
  %firsts = tile.splat %first {shape = [4]} : tile<4xi32>
  %range = tile.range {start = 0, end = 4} : tile<4xi32>
  %i = arith.add %firsts, %range : tile<4xi32>
  %ns = tile.splat %n {shape = [4]} : tile<4xi32>
  %inside = arith.compare %i, %ns {predicate = "lt"} : tile<4xi1>
  %xs = tile.splat %X {shape = [4]} : tile<4xptr<f32>>
  %x = mem.offset %xs, %i : tile<4xptr<f32>>
  %v = mem.load %x, %inside : tile<4xf32>
  %ys = tile.splat %Y {shape = [4]} : tile<4xptr<f32>>
  %y = mem.offset %ys, %range : tile<4xptr<f32>>
  mem.store %y, %v, MASK
  cf.return
}
"""
MASKED, UNMASKED = SHIFTED.replace("MASK", "%inside"), SHIFTED.replace(", MASK", "")

WRAPPED = UNMASKED.replace("%pid, %block", "%n, %n").replace("%x, %inside", "%x")


def run(text: str, kinds: str, n: int, grid: int = 1, size: int = 8) -> tuple[Any, CheckTable, Any]:
    """The table after a run on x of 0, 1, 2 ... and y, the layout of the table, and y."""
    function = parse_function(text)
    InstrumentAccesses(kinds).run(function)
    layout = CheckTable.of_text(function.attrs["checks"])
    x, y = np.arange(size, dtype=np.float32) + 1, np.zeros(size, np.float32)
    words = np.zeros(check_table.words_for(2), np.int64)
    notes = np.zeros((2, 3, size), np.int32)
    for number, array in enumerate((x, y)):
        start = array.ctypes.data
        told = [start, start + array.nbytes, *(row.ctypes.data for row in notes[number]), 1, 1]
        at = check_table.pointer_word(number, check_table.BEGIN)
        words[at : at + len(told)] = told
    run_function(function, [x, y, n, words], (grid,))
    return words, layout, y


def test_a_right_run_tells_nothing_and_computes_the_same():
    words, layout, y = run(MASKED, "bounds+race+overflow+uninit", 3)
    assert words[0] == 0 and [site.verb for site in layout.sites] == ["load", "store"]
    np.testing.assert_array_equal(y, [1, 2, 3, 0, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("text", "kinds", "n", "grid", "site", "kind", "lane", "program"),
    [
        (UNMASKED, "bounds", 12, 3, 0, Violation.OUTSIDE, 0, 3),
        (UNMASKED, "uninit", 3, 1, 1, Violation.VALUE_UNDEFINED, 3, 1),
        (UNMASKED, "race", 8, 2, 1, Violation.WRITTEN, 0, 2),
        (MASKED.replace("%pid, %b", "%block, %b"), "overflow", 99, 1, 0, Violation.OUTSIDE, 0, 1),
        (WRAPPED, "overflow", 70000, 1, 0, Violation.ADDRESS_WRAPPED, 0, 1),
        (WRAPPED, "bounds", 70000, 1, 0, Violation.OUTSIDE, 0, 1),
    ],
)
def test_the_first_wrong_access_is_told(
    text: str, kinds: str, n: int, grid: int, site: int, kind: Violation, lane: int, program: int
):
    words, layout, _ = run(text, kinds, n, grid)
    assert check_table.site_of(int(words[0])) == (site, kind)
    assert (words[1], words[4]) == (lane, program)
    assert layout.sites[site].shape == (4,) and layout.sites[site].root == site


def test_later_programs_do_nothing():
    _, _, y = run(UNMASKED, "race", 8, 2)
    np.testing.assert_array_equal(y, [1, 2, 3, 4, 0, 0, 0, 0])


def test_what_is_instrumented_is_valid_and_can_be_read_back():
    module = parse_module(MASKED)
    InstrumentAccesses("bounds+race+overflow+uninit").run(module.kernel)
    text = print_module(module)
    assert report(module) is None and print_module(parse_module(text)) == text


LOOP = """
func @f(%X: ptr<f32>, %Y: ptr<f32>) {
  %zero = arith.constant {value = 0} : i32
  %four = arith.constant {value = 4} : i32
  %one = arith.constant {value = 1} : i32
  %start = arith.constant {value = 0.0} : f32
  %sum = cf.for %zero, %four, %one, %start : f32 (%i: i32, %s: f32) {
    %x = mem.load %X : f32
    %t = arith.add %s, %x : f32
    cf.yield %t
  }
  mem.store %Y, %sum
  cf.return
}
"""


def test_a_load_stays_behind_its_check():
    """In front of the loop it would come before it."""
    function = parse_function(LOOP)
    InstrumentAccesses("bounds").run(function)
    Licm().run(function)
    loop = next(op for op in function.walk() if op.opcode == "cf.for")
    kinds = [op.opcode for op in loop.regions[0].walk()]
    assert kinds.index("cf.stop") < max(i for i, kind in enumerate(kinds) if kind == "mem.load")
