"""The solver, with the parity of integers as the analysis: "even", "odd" or unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from tilewright.analysis import Forward
from tilewright.ir import Function, Op, Value, parse_module
from tilewright.ops import AddOp, ConstantOp, ForOp, MulOp

Parity = str


def transfer(op: Op, operands: Sequence[Parity]) -> Sequence[Parity]:
    if isinstance(op, ConstantOp):
        return ["odd" if cast("int", op.value) % 2 else "even"]
    if isinstance(op, AddOp) and "?" not in operands:
        return ["even" if operands[0] == operands[1] else "odd"]
    if isinstance(op, MulOp) and "even" in operands:
        return ["even"]
    return ["?"] * len(op.results)


def meet(a: Parity, b: Parity) -> Parity:
    return a if a == b else "?"


def index(op: ForOp, bounds: Sequence[Parity]) -> Parity:
    return bounds[0] if bounds[2] == "even" else "?"


def solved(body: str) -> dict[str, Parity]:
    function = parse_module(f"func @k(%n: i32) {{\n{_CONSTANTS}{body}\ncf.return\n}}").kernel
    solver = Forward(transfer, meet, lambda value: "?", index)
    facts = solver.run(function, ["?"])
    return {_name(value): fact for value, fact in facts.items() if value.name}


def _name(value: Value) -> str:
    return value.name


_CONSTANTS = """
  %zero = arith.constant {value = 0} : i32
  %one = arith.constant {value = 1} : i32
  %two = arith.constant {value = 2} : i32
"""


def test_straight_lines():
    facts = solved("""
      %a = arith.add %one, %two : i32
      %b = arith.mul %n, %two : i32
      %c = arith.add %n, %n : i32""")
    assert (facts["a"], facts["b"], facts["c"], facts["n"]) == ("odd", "even", "?", "?")


def test_a_carried_value_that_keeps_its_fact():
    facts = solved("""
      %r = cf.for %zero, %n, %two, %one : i32 (%i: i32, %p: i32) {
        %q = arith.add %p, %two : i32
        cf.yield %q
      }""")
    assert (facts["r"], facts["p"], facts["i"]) == ("odd", "odd", "even")


def test_a_carried_value_that_loses_it():
    facts = solved("""
      %r = cf.for %zero, %n, %one, %one : i32 (%i: i32, %p: i32) {
        %q = arith.add %p, %one : i32
        cf.yield %q
      }""")
    assert (facts["r"], facts["p"], facts["q"], facts["i"]) == ("?", "?", "?", "?")


def test_only_what_depends_on_changed_facts_is_computed_again():
    function = parse_module(f"""func @k(%n: i32) {{
      {_CONSTANTS}
      %r = cf.for %zero, %n, %one, %one : i32 (%i: i32, %p: i32) {{
        %same = arith.mul %n, %two : i32
        %q = arith.add %p, %one : i32
        cf.yield %q
      }}
      cf.return
    }}""").kernel
    computed: list[str] = []

    def noted(op: Op, operands: Sequence[Parity]) -> Sequence[Parity]:
        computed.extend(_name(result) for result in op.results)
        return transfer(op, operands)

    Forward(noted, meet, lambda value: "?", index).run(function, ["?"])
    assert (computed.count("same"), computed.count("q")) == (1, 2)


def test_facts_travel_through_several_carried_values():
    """It takes one round for each until all are known not to hold."""
    facts = solved("""
      %a, %b, %c = cf.for %zero, %n, %one, %one, %one, %one : i32, i32, i32
          (%i: i32, %p: i32, %q: i32, %s: i32) {
        cf.yield %q, %s, %two
      }""")
    assert (facts["a"], facts["b"], facts["c"]) == ("?", "?", "?")


def test_nested_loops_and_branches():
    facts = solved("""
      %go = arith.compare %n, %zero {predicate = "lt"} : i1
      %r = cf.for %zero, %n, %one, %two : i32 (%i: i32, %p: i32) {
        %x, %y = cf.if %go : i32, i32 () {
          %t = cf.for %zero, %n, %one, %p : i32 (%j: i32, %u: i32) {
            %v = arith.add %u, %two : i32
            cf.yield %v
          }
          cf.yield %t, %one
        } () {
          cf.yield %two, %two
        }
        cf.yield %x
      }""")
    assert (facts["r"], facts["x"], facts["t"], facts["y"]) == ("even", "even", "even", "?")


def test_while_loops_give_what_the_condition_passes():
    facts = solved("""
      %r, %s = cf.while %zero, %two : i32, i32 (%a: i32, %b: i32) {
        %go = arith.compare %a, %n {predicate = "lt"} : i1
        %d = arith.add %b, %one : i32
        cf.condition %go, %d, %b
      } (%e: i32, %f: i32) {
        cf.yield %e, %f
      }""")
    assert (facts["s"], facts["b"], facts["f"]) == ("even", "even", "even")
    assert (facts["d"], facts["e"], facts["r"]) == ("odd", "odd", "odd")
    assert facts["a"] == "?"


def test_other_regions_are_unknown_territory():
    facts = solved("""
      %t = tile.splat %two {shape = [4]} : tile<4xi32>
      %r = tile.reduce %t {axis = 0} : i32 (%a: i32, %b: i32) {
        %c = arith.add %a, %b : i32
        %d = arith.mul %c, %two : i32
        cf.yield %d
      }""")
    assert (facts["a"], facts["c"], facts["d"], facts["r"]) == ("?", "?", "even", "?")


def test_facts_that_never_settle_are_a_mistake_that_shows():
    function: Function = parse_module(f"""func @k(%n: i32) {{
      {_CONSTANTS}
      %r = cf.for %zero, %n, %one, %one : i32 (%i: i32, %p: i32) {{
        %q = arith.add %p, %one : i32
        cf.yield %q
      }}
      cf.return
    }}""").kernel
    solver = Forward(
        lambda op, facts: [max(facts, default=0) + 1] * len(op.results),
        max, lambda value: 0, lambda op, bounds: 0,
    )  # fmt: skip
    with pytest.raises(AssertionError, match="fixpoint"):
        solver.run(function, [0])
