"""What is known and assumed of the sign of tile indices, and what that does to `%`."""

from __future__ import annotations

import pytest

from tilewright.analysis import Alignment, analyze_alignment
from tilewright.ir import parse_module
from tilewright.ops import Sign

_HEAD = """func @k(%n: i32 {multiple_of = 16, non_negative = 1}, %any: i32 {multiple_of = 16}) {
  %pid = cf.program_id {axis = 0} : i32
  %c0 = arith.constant {value = 0} : i32
  %c1 = arith.constant {value = 1} : i32
  %c8 = arith.constant {value = 8} : i32
  %c64 = arith.constant {value = 64} : i32
  %i = tile.range {start = 0, end = 64} : tile<64xi32>
"""
_MODULO = """
  %start = arith.mul %r, %c64 : i32
  %starts = tile.splat %start {shape = [64]} : tile<64xi32>
  %at = arith.add %starts, %i : tile<64xi32>
  %ns = tile.splat %any {shape = [64]} : tile<64xi32>
  %wrapped = arith.rem %at, %ns : tile<64xi32>
"""


def facts_of(body: str, name: str = "r") -> Alignment:
    function = parse_module(f"{_HEAD}{body}\ncf.return\n}}").kernel
    facts = analyze_alignment(function)
    named = (v for op in function.walk() for v in op.results if v.name == name)
    return facts[next(named)]


KNOWN = {
    "a quotient of known numbers": "%r = arith.div %pid, %n : i32",
    "a remainder, whatever the divisor": "%r = arith.rem %pid, %any : i32",
    "the smaller of two": "%r = arith.min %n, %pid : i32",
    "a rounded quotient": """%1 = arith.add %n, %c64 : i32
      %2 = arith.sub %1, %c1 : i32
      %3 = arith.max %2, %c0 : i32
      %r = arith.div %3, %c64 : i32""",
    "what division leaves": """%q = arith.div %pid, %any : i32
      %p = arith.mul %q, %any : i32
      %r = arith.sub %pid, %p : i32""",
    "the same with the factors exchanged": """%q = arith.div %pid, %any : i32
      %p = arith.mul %any, %q : i32
      %r = arith.sub %pid, %p : i32""",
    "an assumption of the kernel": """%r = arith.sub %n, %pid : i32
      %1 = arith.compare %r, %c0 {predicate = "ge"} : i1
      cf.assume %1""",
    "one of several assumptions": """%r = arith.sub %n, %pid : i32
      %1 = arith.compare %c0, %r {predicate = "lt"} : i1
      %2 = arith.compare %pid, %c8 {predicate = "lt"} : i1
      %3 = arith.and %2, %1 : i1
      cf.assume %3""",
}
WRAPPING = {
    "an argument with the fact": "%r = arith.add %n, %c1 : i32",
    "the larger one": "%r = arith.max %any, %pid : i32",
    "a product with a large number": """%c = arith.constant {value = 1103515245} : i32
      %r = arith.mul %pid, %c : i32""",
    "a product that a loop carries": """%r = cf.for %c0, %c8, %c1, %c1 : i32 (%k: i32, %x: i32) {
        %y = arith.mul %x, %c64 : i32
        cf.yield %y
      }""",
}
"""Not negative unless a sum or product wraps, which nothing rules out."""

ASSUMED = {
    "a quotient by any number": "%r = arith.div %pid, %any : i32",
    "sums and products of such": """%1 = arith.div %pid, %any : i32
      %2 = arith.mul %1, %c8 : i32
      %r = arith.add %2, %pid : i32""",
    "what division of such leaves": """%x = arith.div %pid, %any : i32
      %q = arith.div %x, %n : i32
      %p = arith.mul %q, %n : i32
      %r = arith.sub %x, %p : i32""",
}
UNKNOWN = {
    "an argument": "%r = arith.add %any, %c1 : i32",
    "a difference": "%r = arith.sub %n, %pid : i32",
    "a quotient of one": """%1 = arith.sub %n, %pid : i32
      %r = arith.div %1, %n : i32""",
    "what division by another number leaves": """%q = arith.div %pid, %any : i32
      %p = arith.mul %q, %n : i32
      %r = arith.sub %pid, %p : i32""",
    "the smaller of an unknown one": "%r = arith.min %any, %pid : i32",
    "an assumption about its top": """%r = arith.sub %n, %pid : i32
      %1 = arith.compare %r, %c8 {predicate = "lt"} : i1
      cf.assume %1""",
    "a weaker assumption": """%minus = arith.constant {value = -1} : i32
      %r = arith.sub %n, %pid : i32
      %1 = arith.compare %r, %minus {predicate = "ge"} : i1
      cf.assume %1""",
    "an assumption elsewhere": """%r = arith.sub %n, %pid : i32
      %1 = arith.compare %r, %c0 {predicate = "ge"} : i1
      cf.if %1 () {
        cf.assume %1
        cf.yield
      } () {
        cf.yield
      }""",
}


@pytest.mark.parametrize("body", KNOWN.values(), ids=KNOWN)
def test_known_not_to_be_negative(body: str):
    assert facts_of(body).sign is Sign.NON_NEGATIVE
    assert facts_of(body + _MODULO, "wrapped").contiguity == (16,)


@pytest.mark.parametrize("body", WRAPPING.values(), ids=WRAPPING)
def test_numbers_that_may_wrap_serve_addresses_only(body: str):
    """The remainder of a tile of such numbers does not count up where they wrap."""
    assert facts_of(body).sign is Sign.NON_NEGATIVE
    assert facts_of(body + _MODULO, "wrapped").contiguity == (1,)


@pytest.mark.parametrize("body", ASSUMED.values(), ids=ASSUMED)
def test_assumed_not_to_be_negative(body: str):
    assert facts_of(body).sign is Sign.ASSUMED
    fact = facts_of(body + _MODULO, "wrapped")
    assert fact.contiguity == fact.divisibility == (16,)


@pytest.mark.parametrize("body", UNKNOWN.values(), ids=UNKNOWN)
def test_nothing_is_assumed(body: str):
    assert facts_of(body).sign is Sign.UNKNOWN
    assert facts_of(body + _MODULO, "wrapped").contiguity == (1,)


def test_assumptions_serve_remainders_only():
    """A quotient of a tile is constant in runs only if nothing is negative for sure."""
    body = f"""%r = arith.div %pid, %any : i32
      {_MODULO}
      %q = arith.div %at, %ns : tile<64xi32>"""
    assert facts_of(body, "q").constancy == (1,)
