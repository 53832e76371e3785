"""Live ranges over loops and branches, and placing blocks by them."""

from __future__ import annotations

from random import Random
from typing import cast

import pytest

from tests.property.integer_programs import IntegerPrograms
from tilewright.analysis import LiveRange, Request, analyze_liveness, pack
from tilewright.ir import Function, Op, Value, parse_module


def function_of(body: str) -> Function:
    return parse_module(f"func @k(%n: i32) {{\n{body}\ncf.return\n}}").kernel


def named(function: Function) -> dict[str, Value]:
    values = {arg.name: arg for arg in function.args}
    for op in function.walk():
        values.update({v.name: v for v in op.results})
        values.update({arg.name: arg for region in op.regions for arg in region.args})
    return values


def op_of(value: Value) -> Op:
    assert isinstance(value.op, Op)
    return value.op


LOOP = """
  %a = arith.constant {value = 1} : i32
  %z = arith.constant {value = 0} : i32
  %outside = arith.constant {value = 2} : i32
  %before = arith.add %a, %a : i32
  %r = cf.for %z, %n, %a, %before : i32 (%i: i32, %p: i32) {
    %b = arith.add %p, %outside : i32
    %c = arith.add %b, %i : i32
    cf.yield %c
  }
  %end = arith.add %r, %r : i32
"""


def test_straight_lines():
    function = function_of("%a = arith.add %n, %n : i32\n%b = arith.add %a, %a : i32")
    live, values = analyze_liveness(function), named(function)
    assert live.ranges[values["n"]] == LiveRange(0, 0)
    assert live.ranges[values["a"]] == LiveRange(0, 1)
    assert live.ranges[values["b"]] == LiveRange(1, 1)
    assert not live.interferes(values["n"], values["b"])
    assert live.interferes(values["a"], values["b"])


def test_what_a_loop_needs_again_lives_until_it_ends():
    function = function_of(LOOP)
    live, values = analyze_liveness(function), named(function)
    assert live.interferes(values["outside"], values["c"])
    assert not live.interferes(values["before"], values["b"])
    assert not live.interferes(values["p"], values["c"])
    assert not live.interferes(values["r"], values["c"])
    assert live.interferes(values["i"], values["b"])
    assert live.ranges[values["outside"]].last == live.end[op_of(values["r"])]


def test_a_value_inside_a_loop_lives_for_one_iteration():
    function = function_of(LOOP)
    live, values = analyze_liveness(function), named(function)
    loop = live.begin[op_of(values["r"])], live.end[op_of(values["r"])]
    b = live.ranges[values["b"]]
    assert loop[0] < b.first < b.last < loop[1]


def test_branches_do_not_live_together():
    function = function_of("""
      %c = arith.compare %n, %n {predicate = "lt"} : i1
      %r = cf.if %c : i32 () {
        %a = arith.add %n, %n : i32
        cf.yield %a
      } () {
        %b = arith.add %n, %n : i32
        cf.yield %b
      }""")
    live, values = analyze_liveness(function), named(function)
    assert not live.interferes(values["a"], values["b"])
    assert not live.interferes(values["a"], values["r"])
    assert live.interferes(values["n"], values["b"])


def test_while_passes_values_on():
    function = function_of("""
      %z = arith.constant {value = 0} : i32
      %r = cf.while %z : i32 (%a: i32) {
        %c = arith.compare %a, %n {predicate = "lt"} : i1
        cf.condition %c, %a
      } (%b: i32) {
        %d = arith.add %b, %b : i32
        cf.yield %d
      }
      %end = arith.add %r, %r : i32""")
    live, values = analyze_liveness(function), named(function)
    assert live.interferes(values["n"], values["d"])
    assert not live.interferes(values["a"], values["d"])
    assert live.interferes(values["a"], values["b"])


def test_hull_of_what_shares_a_buffer():
    function = function_of(LOOP)
    live, values = analyze_liveness(function), named(function)
    carried = live.hull(values[name] for name in ("before", "p", "c", "r"))
    assert carried.first == live.ranges[values["before"]].first
    assert carried.last == live.ranges[values["r"]].last


@pytest.mark.parametrize("seed", range(20))
def test_every_use_is_in_the_range(seed: int):
    function = IntegerPrograms(Random(seed)).function(20)
    live = analyze_liveness(function)
    for raw in function.walk():
        op = cast("Op", raw)
        for value in op.operands:
            found = live.ranges[value]
            assert found.first <= live.begin[op] <= found.last
        assert all(live.ranges[v].first == live.end[op] for v in op.results)


def test_packing_reuses_what_is_free():
    a, b, c = (Request(100, LiveRange(*ends)) for ends in ((0, 2), (3, 4), (2, 3)))
    packing = pack([a, b, c])
    assert packing.offsets == (0, 0, 128)
    assert packing.total == 228


def test_packing_fills_gaps():
    large, long, small = (
        Request(128, LiveRange(0, 1)), Request(64, LiveRange(0, 9)), Request(64, LiveRange(2, 3)),
    )  # fmt: skip
    assert pack([large, long, small]).offsets == (0, 128, 0)


def test_packing_aligns():
    packing = pack([Request(10, LiveRange(0, 1), 16), Request(5, LiveRange(0, 1), 16)])
    assert packing.offsets == (0, 16)
    assert packing.total == 21


def test_packing_nothing():
    assert pack([]).total == 0


@pytest.mark.parametrize("seed", range(30))
def test_packing_never_overlaps_and_is_exact_for_equal_sizes(seed: int):
    random = Random(seed)
    ends = [sorted(random.sample(range(30), 2)) for _ in range(25)]
    ranges = [LiveRange(*pair) for pair in ends]
    requests = [Request(random.choice((64, 100, 640)), live) for live in ranges]
    packing = pack(requests)
    for i, (one, at) in enumerate(zip(requests, packing.offsets, strict=True)):
        assert at % one.alignment == 0
        for other, place in zip(requests[:i], packing.offsets[:i], strict=True):
            apart = at + one.bytes <= place or place + other.bytes <= at
            assert apart or not one.live.overlaps(other.live)
    most = max(sum(r.first <= t <= r.last for r in ranges) for t in range(30))
    assert pack([Request(64, live) for live in ranges]).total == 64 * most
