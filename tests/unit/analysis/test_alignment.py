"""The rules of the alignment analysis, one by one, with what they must not claim.

Every function is also run: its values have what is claimed.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.property.alignment_checker import Checker, eager_arguments
from tilewright.analysis import LARGEST, Alignment, analyze_alignment, power_of_two_in
from tilewright.ir import Function, Value, parse_module

_HEAD = """func @k(%p: ptr<f32> {aligned = 16}, %q: ptr<f16> {aligned = 64},
  %n: i32 {multiple_of = 48}, %u: u32 {multiple_of = 8}, %m: i32) {
  %i = tile.range {start = 0, end = 16} : tile<16xi32>
  %two = arith.constant {value = 2} : tile<16xi32>
  %three = arith.constant {value = 3} : tile<16xi32>
  %four = arith.constant {value = 4} : tile<16xi32>
  %fives = arith.constant {value = 5} : tile<16xi32>
  %eight = arith.constant {value = 8} : tile<16xi32>
  %minus = arith.constant {value = -8} : tile<16xi32>
  %ns = tile.splat %n {shape = [16]} : tile<16xi32>
  %ms = tile.splat %m {shape = [16]} : tile<16xi32>
  %ps = tile.splat %p {shape = [16]} : tile<16xptr<f32>>
  %qs = tile.splat %q {shape = [16]} : tile<16xptr<f16>>
  %below = arith.add %i, %minus : tile<16xi32>
  %blocks = arith.mul %i, %four : tile<16xi32>
  %fours = arith.add %blocks, %four : tile<16xi32>
"""
_ARGUMENTS = (160, 320, 96, 8, 5)


def function_of(body: str) -> Function:
    return parse_module(f"{_HEAD}{body}\ncf.return\n}}").kernel


def facts_of(body: str) -> Alignment:
    """Facts of %r; all facts are compared with what the function computes."""
    function = function_of(body)
    facts = analyze_alignment(function)
    Checker(function, facts).run_block(function.body, eager_arguments(function, _ARGUMENTS))
    return facts[_named(function, "r")]


def _named(function: Function, name: str) -> Value:
    return next(v for op in function.walk() for v in op.results if v.name == name)


T = "tile<16xi32>"
P = "tile<16xptr<f32>>"
B = "tile<16xi1>"


@pytest.mark.parametrize(
    ("body", "contiguity", "divisibility", "constancy"),
    [
        ("%r = tile.range {start = 4, end = 20} : tile<16xi32>", 16, 4, 1),
        ("%r = tile.range {start = 0, end = 12} : tile<12xi32>", 4, 4, 1),
        ("%r = arith.constant {value = 24} : tile<16xi32>", 1, 8, 16),
        ("%r = arith.constant {value = 0} : tile<16xi32>", 1, LARGEST, 16),
        (f"%r = arith.add %i, %ns : {T}", 16, 16, 1),
        (f"%r = arith.add %i, %ms : {T}", 16, 1, 1),
        (f"%r = arith.sub %i, %four : {T}", 16, 4, 1),
        (f"%r = arith.sub %four, %i : {T}", 1, 1, 1),
        (f"%r = arith.add %i, %i : {T}", 1, 1, 1),
        (f"%r = arith.mul %ns, %four : {T}", 1, 64, 16),
        (f"%r = arith.mul %i, %four : {T}", 1, 4, 1),
        (f"%r = arith.shl %i, %two : {T}", 1, 4, 1),
        (f"%r = mem.offset %ps, %i : {P}", 16, 16, 1),
        (f"%r = mem.offset %ps, %ms : {P}", 1, 4, 16),
        (f"%r = mem.offset %ps, %blocks : {P}", 1, 16, 1),
        (f"%r = arith.and %i, %three : {T}", 4, 4, 1),
        (f"%r = arith.and %below, %three : {T}", 4, 4, 1),
        (f"%r = arith.and %i, %minus : {T}", 1, 8, 1),
        (f"%r = arith.or %blocks, %minus : {T}", 1, 4, 1),
        (f"%r = arith.max %blocks, %eight : {T}", 1, 4, 1),
        (f"%r = arith.neg %blocks : {T}", 1, 4, 1),
    ],
)
def test_runs(body: str, contiguity: int, divisibility: int, constancy: int):
    fact = facts_of(body)
    assert (fact.contiguity, fact.divisibility, fact.constancy) == (
        (contiguity,), (divisibility,), (constancy,)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("body", "run", "equal"),
    [
        (f"%r = arith.div %i, %four : {T}", 1, 4),
        (f"%r = arith.rem %i, %four : {T}", 4, 1),
        # -4 / 4 = -1 but -3 / 4 = 0; -4 % 4 = 0 but -3 % 4 = -3
        (f"%r = arith.div %below, %four : {T}", 1, 1),
        (f"%r = arith.rem %below, %four : {T}", 1, 1),
        (f"%r = arith.shr %below, %two : {T}", 1, 4),
        # a divisor that is another one from element to element
        (f"%r = arith.div %i, %fours : {T}", 1, 1),
        (f"%r = arith.rem %i, %fours : {T}", 1, 1),
        (f"%r = arith.div %i, %three : {T}", 1, 1),
        (f"%r = arith.div %i, %ns : {T}", 1, 16),
        (f"%r = arith.rem %i, %ns : {T}", 16, 1),
    ],
)
def test_division(body: str, run: int, equal: int):
    fact = facts_of(body)
    assert (fact.contiguity, fact.constancy) == ((run,), (equal,))


@pytest.mark.parametrize(
    ("left", "predicate", "right", "equal"),
    [
        ("i", "lt", "ns", 16),
        ("i", "lt", "four", 4),
        ("i", "ge", "four", 4),
        ("four", "gt", "i", 4),
        ("four", "le", "i", 4),
        ("i", "le", "four", 1),
        ("i", "gt", "four", 1),
        ("i", "eq", "four", 1),
        ("i", "lt", "fives", 1),
        ("i", "lt", "fours", 1),
        ("four", "lt", "ns", 16),
    ],
)
def test_comparisons(left: str, predicate: str, right: str, equal: int):
    fact = facts_of(f'%r = arith.compare %{left}, %{right} {{predicate = "{predicate}"}} : {B}')
    assert fact.constancy == (equal,)
    assert fact.contiguity == (1,)


def test_addresses_are_compared_in_bytes():
    """%q is a multiple of 64, but only a multiple of 32 elements of two bytes."""
    body = """
      %c = arith.constant {value = 328} : tile<16xptr<f16>>
      %a = mem.offset %qs, %i : tile<16xptr<f16>>
      %r = arith.compare %a, %c {predicate = "lt"} : tile<16xi1>"""
    assert facts_of(body).constancy == (4,)


def test_runs_of_small_numbers_end_where_they_wrap():
    body = """
      %j = tile.range {start = 0, end = 256} : tile<256xi32>
      %b = arith.cast %j : tile<256xi8>
      %z = arith.constant {value = 0} : tile<256xi8>
      %r = arith.compare %b, %z {predicate = "lt"} : tile<256xi1>"""
    assert facts_of(body).constancy == (128,)


def test_values_wrap_like_the_numbers():
    body = """
      %a = arith.constant {value = 100} : i8
      %r = arith.add %a, %a : i8"""
    assert facts_of(body).value == -56
    body = """
      %a = arith.constant {value = -4} : i32
      %r = arith.cast %a : u32"""
    assert facts_of(body).value == 2**32 - 4


def test_select_keeps_runs_where_its_condition_stays():
    body = f"""
      %c = arith.compare %i, %eight {{predicate = "lt"}} : {B}
      %j = arith.add %i, %ns : {T}
      %r = arith.select %c, %i, %j : {T}"""
    fact = facts_of(body)
    assert fact.contiguity == (8,)
    assert fact.divisibility == (8,)
    body = f"""
      %b = arith.and %i, %two : {T}
      %c = arith.cast %b : {B}
      %j = arith.add %i, %ns : {T}
      %r = arith.select %c, %i, %j : {T}"""
    assert facts_of(body).contiguity == (1,)


def test_a_known_condition_selects():
    body = f"""
      %c = arith.constant {{value = true}} : {B}
      %r = arith.select %c, %i, %ms : {T}"""
    assert facts_of(body).contiguity == (16,)


def test_shapes():
    body = """
      %e = tile.expand_dims %i {axis = 0} : tile<1x16xi32>
      %b = tile.broadcast %e {shape = [8, 16]} : tile<8x16xi32>
      %r = tile.transpose %b {order = [1, 0]} : tile<16x8xi32>"""
    fact = facts_of(body)
    assert (fact.contiguity, fact.constancy) == ((16, 1), (1, 8))
    fact = facts_of("%r = tile.reshape %i {shape = [2, 8, 1]} : tile<2x8x1xi32>")
    assert (fact.contiguity, fact.divisibility) == ((1, 8, 1), (1, 8, 1))
    fact = facts_of("%r = tile.cat %i, %i : tile<32xi32>")
    assert fact.contiguity == (16,)
    fact = facts_of(f"%j = tile.join %i, %ns : tile<16x2xi32>\n%r, %s = tile.split %j : {T}, {T}")
    assert fact.contiguity == (1,)


def test_every_dimension_knows_what_all_elements_are_divisible_by():
    body = """
      %e = tile.expand_dims %blocks {axis = 1} : tile<16x1xi32>
      %r = tile.broadcast %e {shape = [16, 8]} : tile<16x8xi32>"""
    assert facts_of(body).divisibility == (4, 4)


def test_casts():
    fact = facts_of("%r = arith.cast %i : tile<16xi64>")
    assert (fact.contiguity, fact.divisibility) == ((16,), (LARGEST,))
    fact = facts_of("%w = arith.cast %ns : tile<16xi64>\n%r = arith.cast %w : tile<16xi8>")
    assert (fact.divisibility, fact.constancy) == ((16,), (16,))
    fact = facts_of(f"%a = mem.offset %ps, %i : {P}\n%r = arith.cast %a : tile<16xi64>")
    assert (fact.contiguity, fact.divisibility) == ((1,), (4,))
    fact = facts_of(f"%a = mem.offset %ps, %i : {P}\n%r = arith.cast %a : tile<16xptr<i32>>")
    assert (fact.contiguity, fact.divisibility) == ((16,), (16,))


def test_hints_add_to_what_is_known():
    """96 is what %n is; the analysis knows a multiple of 16."""
    fact = facts_of("%r = tile.hint %n {divisibility = [32]} : i32")
    assert fact.divisibility == (32,)
    body = f"""
      %a = arith.rem %ns, %fives : {T}
      %b = arith.add %a, %i : {T}
      %r = tile.hint %b {{contiguity = [16], divisibility = [1]}} : {T}"""
    assert facts_of(body).contiguity == (16,)


@pytest.mark.parametrize(("attributes", "equal"), [("", 4), (" {volatile = true}", 1)])
def test_what_is_loaded_is_equal_where_its_place_is(attributes: str, equal: int):
    function = function_of(
        f"%k = arith.div %i, %four : {T}\n%at = mem.offset %ps, %k : {P}\n"
        f"%r = mem.load %at{attributes} : tile<16xf32>"
    )
    fact = analyze_alignment(function)[_named(function, "r")]
    assert (fact.contiguity, fact.divisibility, fact.constancy) == ((1,), (1,), (equal,))


def test_loops_meet_what_is_carried():
    body = f"""
      %l = arith.constant {{value = 0}} : i32
      %h = arith.constant {{value = 64}} : i32
      %s = arith.constant {{value = 16}} : i32
      %c8 = arith.constant {{value = 8}} : {T}
      %r, %x = cf.for %l, %h, %s, %ps, %ns : {P}, {T} (%k: i32, %a: {P}, %b: {T}) {{
        %ks = tile.splat %k {{shape = [16]}} : {T}
        %o = arith.add %i, %ks : {T}
        %a1 = mem.offset %a, %c8 : {P}
        %b1 = arith.add %b, %o : {T}
        cf.yield %a1, %b1
      }}"""
    fact = facts_of(body)
    assert (fact.divisibility, fact.constancy) == ((16,), (16,))
    function = function_of(body)
    facts = analyze_alignment(function)
    assert facts[_named(function, "o")].divisibility == (16,)
    assert facts[_named(function, "x")].constancy == (1,)


def test_branches_and_while_loops_meet():
    body = f"""
      %go = arith.compare %m, %n {{predicate = "lt"}} : i1
      %j = cf.if %go : {T} () {{
        %t = arith.add %i, %ns : {T}
        cf.yield %t
      }} () {{
        %e = arith.add %i, %four : {T}
        cf.yield %e
      }}
      %stop = arith.constant {{value = false}} : i1
      %r = cf.while %j : {T} (%a: {T}) {{
        cf.condition %stop, %a
      }} (%b: {T}) {{
        %f = arith.add %b, %eight : {T}
        cf.yield %f
      }}"""
    fact = facts_of(body)
    assert (fact.contiguity, fact.divisibility) == ((16,), (4,))


def test_floats_have_no_runs():
    fact = facts_of("%r = arith.cast %i : tile<16xf32>")
    assert (fact.contiguity, fact.divisibility) == ((1,), (1,))
    assert facts_of("%r = arith.constant {value = 1.5} : f32").value is None


@pytest.mark.parametrize(("number", "power"), [(0, LARGEST), (1, 1), (12, 4), (-8, 8), (96, 32)])
def test_power_of_two(number: int, power: int):
    assert power_of_two_in(number) == power


def test_division_by_zero_is_analyzed():
    function = function_of(
        f"%z = arith.constant {{value = 0}} : {T}\n%a = arith.div %i, %z : {T}\n"
        f"%b = arith.rem %i, %z : {T}"
    )
    facts = analyze_alignment(function)
    assert facts[_named(function, "a")].divisibility == (1,)
    assert np.all(facts[_named(function, "b")].contiguity)
