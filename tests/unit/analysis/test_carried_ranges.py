"""Ranges of scalars that loops carry, and by the relations of loop conditions."""

from __future__ import annotations

import pytest

from tilewright.analysis import analyze_alignment, integer_range
from tilewright.analysis.integer_ranges import tile_index_range
from tilewright.ir import Function, Value, parse_module
from tilewright.ir.types import i32
from tilewright.ops import Sign

_HEAD = """func @k(%n: i32 {non_negative = 1}, %any: i32, %p: ptr<i32>) {
  %pid = cf.program_id {axis = 0} : i32
  %programs = cf.num_programs {axis = 0} : i32
  %m1 = arith.constant {value = -1} : i32
  %c0 = arith.constant {value = 0} : i32
  %c1 = arith.constant {value = 1} : i32
  %c2 = arith.constant {value = 2} : i32
  %c64 = arith.constant {value = 64} : i32
  %c100 = arith.constant {value = 100} : i32
  %loaded = mem.load %p : i32
"""
LARGEST, LEAST = i32.max_int, i32.min_int


def values_of(body: str) -> tuple[Function, dict[str, Value]]:
    function = parse_module(f"{_HEAD}{body}\ncf.return\n}}").kernel
    found = {arg.name: arg for arg in function.args}
    for op in function.walk():
        found |= {v.name: v for v in op.results}
        found |= {arg.name: arg for block in op.regions for arg in block.args}
    return function, found


def counted(step: str, initial: str = "%c0", upper: str = "%c100") -> str:
    return f"""%r = cf.for %c0, {upper}, %c1, {initial} : i32 (%i: i32, %x: i32) {{
      {step}
      cf.yield %y
    }}"""


def while_loop(compare: str, body: str, initial: str = "%c0") -> str:
    return f"""%r = cf.while {initial} : i32 (%w: i32) {{
      {compare}
      cf.condition %go, %w
    }} (%x: i32) {{
      {body}
      cf.yield %y
    }}"""


BELOW = '%go = arith.compare %w, %any {predicate = "lt"} : i1'
ABOVE = '%go = arith.compare %w, %c0 {predicate = "gt"} : i1'
EXACT = {
    "a constant step": (counted("%y = arith.add %x, %c2 : i32"), "x", (0, 200)),
    "the result": (counted("%y = arith.add %x, %c2 : i32"), "r", (0, 202)),
    "a step back": (counted("%y = arith.sub %x, %c2 : i32"), "x", (-200, 0)),
    "steps of a known range": (counted(
        """%s = arith.rem %loaded, %c2 : i32
        %y = arith.add %x, %s : i32"""), "x", (-100, 100)),
    "a step that may wrap": (counted("%y = arith.add %x, %c2 : i32", upper="%n"), "x",
                             (LEAST, LARGEST)),
    "a product": (counted("%y = arith.mul %x, %c2 : i32", "%c1"), "x", (LEAST, LARGEST)),
    "one of two values": (counted("%y = arith.sub %c2, %x : i32"), "x", (0, 2)),
    "a bounded value": (counted(
        """%s = arith.add %x, %c1 : i32
        %y = arith.min %s, %c64 : i32"""), "x", (0, 64)),
    "a remainder": (counted(
        """%s = arith.add %x, %n : i32
        %a = arith.abs %s : i32
        %y = arith.rem %a, %c64 : i32"""), "y", (-63, 63)),
    "the body of a while above zero": (
        while_loop(ABOVE, "%y = arith.sub %x, %c64 : i32", "%n"), "x", (1, LARGEST)),
    "what such a body yields": (
        while_loop(ABOVE, "%y = arith.sub %x, %c64 : i32", "%n"), "y", (-63, LARGEST - 64)),
    "a while that halves": (
        while_loop(ABOVE, "%y = arith.div %x, %c2 : i32", "%n"), "w", (0, LARGEST)),
    "a while by ones": (while_loop(BELOW, "%y = arith.add %x, %c1 : i32"), "w", (0, LARGEST)),
    "its body": (while_loop(BELOW, "%y = arith.add %x, %c1 : i32"), "x", (0, LARGEST - 1)),
    "a while that may pass its bound, and wrap": (
        while_loop(BELOW, "%y = arith.add %x, %c2 : i32"), "w", (LEAST, LARGEST)),
    "a while without an order": (
        while_loop('%go = arith.compare %w, %any {predicate = "ne"} : i1',
                   "%y = arith.add %x, %c1 : i32"), "w", (LEAST, LARGEST)),
    "what is loaded": (while_loop(BELOW, "%y = mem.load %p : i32"), "w", (LEAST, LARGEST)),
}  # fmt: skip


@pytest.mark.parametrize(("body", "name", "expected"), EXACT.values(), ids=EXACT)
def test_ranges_of_carried_scalars(body: str, name: str, expected: tuple[int, int]):
    assert integer_range(values_of(body)[1][name]) == expected


def test_scalars_that_depend_on_each_other():
    _, values = values_of("""%r, %s = cf.for %c0, %c100, %c1, %c0, %c1 : i32, i32
      (%i: i32, %x: i32, %y: i32) {
        cf.yield %y, %x
      }""")
    assert integer_range(values["x"]) == integer_range(values["s"]) == (0, 1)


def test_inner_loops_see_the_ranges_of_outer_ones():
    _, values = values_of("""%r = cf.for %c0, %c64, %c1, %c0 : i32 (%i: i32, %x: i32) {
        %s = cf.for %c0, %c2, %c1, %x : i32 (%j: i32, %y: i32) {
          %z = arith.add %y, %c1 : i32
          cf.yield %z
        }
        %t = arith.min %s, %c100 : i32
        cf.yield %t
      }""")
    assert integer_range(values["x"]) == (0, 100)
    assert integer_range(values["y"]) == (0, 102)


_STREAM = """%first = arith.mul %pid, %n : i32
  %end = arith.add %first, %n : i32
  %r = cf.while %first : i32 (%w: i32) {
    %go = arith.compare %w, %end {predicate = "lt"} : i1
    cf.condition %go, %w
  } (%x: i32) {
    %tile = arith.div %x, %any : i32
    %k = arith.rem %x, %any : i32
    %1 = arith.add %k, %end : i32
    %2 = arith.sub %1, %x : i32
    %last = arith.min %any, %2 : i32
    %count = arith.sub %last, %k : i32
    %y = arith.add %x, %count : i32
    cf.yield %y
  }"""
_ENDS = """%tiles = arith.div %any, %c64 : i32
  %first = arith.mul %pid, %n : i32
  %next = arith.add %pid, %c1 : i32
  %end = arith.mul %next, %n : i32
  %r = cf.while %first : i32 (%w: i32) {
    %go = arith.compare %w, %end {predicate = "lt"} : i1
    cf.condition %go, %w
  } (%x: i32) {
    %tile = arith.div %x, %tiles : i32
    %k = arith.rem %x, %tiles : i32
    %left = arith.sub %tiles, %k : i32
    %whole = arith.add %x, %left : i32
    %y = arith.min %whole, %end : i32
    cf.yield %y
  }"""
_INDEX = """%first = arith.mul %pid, %n : i32
  %end = arith.add %first, %n : i32
  cf.for %first, %end, %c1 (%x: i32) {
    %tile = arith.div %x, %any : i32
    cf.yield
  }"""


@pytest.mark.parametrize("body", [_STREAM, _ENDS, _INDEX])
def test_tiles_of_work_that_programs_share(body: str):
    """Only the start of a loop is assumed to be a tile index, not each product."""
    _, values = values_of(body)
    assert tile_index_range(values["tile"], divisors=True) == (0, 1 << 20)
    assert integer_range(values["tile"]) == (LEAST, LARGEST)
    assert tile_index_range(values["first"], divisors=True) == (LEAST, LARGEST)


@pytest.mark.parametrize("factor", ["%any", "%loaded", "%large"])
def test_other_products_are_no_tile_indices(factor: str):
    large = "%large = arith.constant {value = 1103515245} : i32\n"
    _, values = values_of(large + _STREAM.replace("%pid, %n", f"%pid, {factor}"))
    assert tile_index_range(values["tile"], divisors=True) == (LEAST, LARGEST)


def test_a_hash_that_a_loop_carries_is_no_tile_index():
    _, values = values_of(while_loop(
        '%go = arith.compare %w, %any {predicate = "ne"} : i1',
        """%s = arith.mul %x, %c64 : i32
        %mask = arith.constant {value = 2147483647} : i32
        %y = arith.and %s, %mask : i32""", "%pid"))  # fmt: skip
    assert tile_index_range(values["x"], divisors=True) == (0, LARGEST)


def test_an_index_that_counts_down_is_not_negative():
    function, values = values_of("""%last = arith.sub %n, %c64 : i32
      %above = arith.max %last, %m1 : i32
      %count = arith.sub %above, %m1 : i32
      cf.for %c0, %count, %c64 (%i: i32) {
        %k = arith.sub %last, %i : i32
        cf.yield
      }""")
    assert integer_range(values["k"]) == (0, LARGEST - 64)
    assert analyze_alignment(function)[values["k"]].sign is Sign.NON_NEGATIVE


@pytest.mark.parametrize(("lower", "sign"), [("%c0", Sign.NON_NEGATIVE), ("%m1", Sign.UNKNOWN)])
def test_branches_narrow_differences(lower: str, sign: Sign):
    function, values = values_of(f"""%c = arith.compare %any, %n {{predicate = "ge"}} : i1
      %low = arith.add %n, {lower} : i32
      cf.if %c () {{
        %d = arith.sub %any, %n : i32
        %e = arith.add %d, {lower} : i32
        %f = arith.sub %e, %c0 : i32
        cf.yield
      }} () {{
        cf.yield
      }}""")
    assert analyze_alignment(function)[values["d"]].sign is Sign.NON_NEGATIVE
    assert analyze_alignment(function)[values["f"]].sign is sign
