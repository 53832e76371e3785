"""Which nests a block becomes, and which tiles get buffers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.backends.cpu.textual import assert_as_interpreted, function_of
from tilewright.analysis import analyze_alignment
from tilewright.backends.cpu.lower.fusion import (
    FusionPlan,
    FusionPlanner,
    LoopNest,
    is_known_at_entry,
    recompute_cost,
)
from tilewright.ir import Function, Op, Value
from tilewright.ops import ForOp, ReduceOp, StoreOp

_HEAD = """func @k(%X: ptr<f32>, %Y: ptr<f32>, %n: i32) {
  %i = tile.range {start = 0, end = 64} : tile<64xi32>
  %xs = tile.splat %X {shape = [64]} : tile<64xptr<f32>>
  %xp = mem.offset %xs, %i : tile<64xptr<f32>>
  %ys = tile.splat %Y {shape = [64]} : tile<64xptr<f32>>
  %yp = mem.offset %ys, %i : tile<64xptr<f32>>
"""
T = "tile<64xf32>"


def planned(body: str) -> tuple[FusionPlan, Function]:
    function = function_of(f"{_HEAD}{body}\ncf.return\n}}")
    return FusionPlanner(function.body, analyze_alignment(function)).run(), function


def nests(plan: FusionPlan) -> list[LoopNest]:
    return [step for step in plan.steps if isinstance(step, LoopNest)]


def named(function: Function, name: str) -> Value:
    return next(v for op in function.walk() for v in op.results if v.name == name)


def kinds(nest: LoopNest) -> list[type[Op]]:
    return [type(op) for op in nest.sinks]


def total(result: str, operand: str, kind: str = "add") -> str:
    return f"""
      %{result} = tile.reduce %{operand} {{axis = 0}} : f32
          (%a{result}: f32, %b{result}: f32) {{
        %c{result} = arith.{kind} %a{result}, %b{result} : f32
        cf.yield %c{result}
      }}"""


def test_element_wise_code_is_one_nest_without_buffers():
    plan, _ = planned(f"""
      %x = mem.load %xp : {T}
      %e = arith.math %x {{function = "floor"}} : {T}
      %s = arith.add %e, %x : {T}
      mem.store %yp, %s""")
    assert [kinds(g) for g in nests(plan)] == [[StoreOp]]
    assert not plan.materialized


def test_reductions_of_one_shape_share_a_nest():
    plan, _ = planned(f"""
      %x = mem.load %xp : {T}
      {total("s", "x")}
      {total("m", "x", "max")}
      %t = arith.add %s, %m : f32
      mem.store %Y, %t""")
    assert [kinds(g) for g in nests(plan)] == [[ReduceOp, ReduceOp]]
    assert nests(plan)[0].shape == (64,)


def test_softmax_is_three_nests_and_keeps_the_exponentials():
    """A contiguous load is repeated; `floor` stands for an expensive function here."""
    body = f"""
      %x = mem.load %xp : {T}
      {total("m", "x", "max")}
      %ms = tile.splat %m {{shape = [64]}} : {T}
      %d = arith.sub %x, %ms : {T}
      %e = arith.math %d {{function = "exp"}} : {T}
      {total("s", "e")}
      %ss = tile.splat %s {{shape = [64]}} : {T}
      %q = arith.div %e, %ss : {T}
      mem.store %yp, %q"""
    plan, function = planned(body)
    assert [kinds(g) for g in nests(plan)] == [[ReduceOp], [ReduceOp], [StoreOp]]
    assert plan.materialized == {named(function, "e")}
    assert nests(plan)[1].materialized == [named(function, "e")]


def test_a_load_that_is_not_contiguous_is_kept():
    body = f"""
      %two = arith.constant {{value = 2}} : tile<64xi32>
      %j = arith.mul %i, %two : tile<64xi32>
      %p = mem.offset %xs, %j : tile<64xptr<f32>>
      %x = mem.load %p : {T}
      {total("m", "x", "max")}
      %ms = tile.splat %m {{shape = [64]}} : {T}
      %d = arith.sub %x, %ms : {T}
      mem.store %yp, %d"""
    plan, function = planned(body)
    assert plan.materialized == {named(function, "x")}
    assert nests(plan)[0].materialized == [named(function, "x")]


def test_a_load_before_a_store_is_done_before_it():
    """The store at other addresses of the same array must not change what is loaded."""
    body = f"""
      %x = mem.load %xp : {T}
      %one = arith.constant {{value = 1}} : tile<64xi32>
      %next = mem.offset %xp, %one : tile<64xptr<f32>>
      mem.store %next, %x"""
    plan, function = planned(body)
    found = nests(plan)
    assert [g.materialized for g in found] == [[named(function, "x")], []]
    assert [kinds(g) for g in found] == [[], [StoreOp]]


def test_a_store_where_it_was_loaded_needs_no_buffer():
    body = f"""
      %x = mem.load %xp : {T}
      %d = arith.add %x, %x : {T}
      mem.store %xp, %d"""
    plan, _ = planned(body)
    assert [kinds(g) for g in nests(plan)] == [[StoreOp]]
    assert not plan.materialized


def test_a_load_after_a_store_is_done_after_it():
    body = f"""
      %one = arith.constant {{value = 1.0}} : {T}
      mem.store %yp, %one
      %x = mem.load %xp : {T}
      mem.store %yp, %x"""
    plan, _ = planned(body)
    assert [kinds(g) for g in nests(plan)] == [[StoreOp], [StoreOp]]


def test_stores_to_different_arrays_share_a_nest():
    body = f"""
      %x = mem.load %xp : {T}
      %d = arith.add %x, %x : {T}
      mem.store %xp, %d
      mem.store %yp, %x"""
    plan, _ = planned(body)
    assert [kinds(g) for g in nests(plan)] == [[StoreOp, StoreOp]]


def test_reductions_along_two_axes_are_two_nests():
    body = f"""
      %x = mem.load %xp : {T}
      %z = tile.reshape %x {{shape = [8, 8]}} : tile<8x8xf32>
      %r = tile.reduce %z {{axis = 0}} : tile<8xf32> (%a: f32, %b: f32) {{
        %c = arith.add %a, %b : f32
        cf.yield %c
      }}
      %s = tile.reduce %z {{axis = 1}} : tile<8xf32> (%d: f32, %e: f32) {{
        %f = arith.add %d, %e : f32
        cf.yield %f
      }}
      %t = arith.add %r, %s : tile<8xf32>
      %j = tile.range {{start = 0, end = 8}} : tile<8xi32>
      %q = tile.splat %Y {{shape = [8]}} : tile<8xptr<f32>>
      %qp = mem.offset %q, %j : tile<8xptr<f32>>
      mem.store %qp, %t"""
    plan, _ = planned(body)
    assert [kinds(g) for g in nests(plan)] == [[ReduceOp], [ReduceOp], [StoreOp]]


@pytest.mark.parametrize("op", ["scan", "gather", "dot"])
def test_operands_that_are_addressed_freely_have_buffers(op: str):
    bodies = {
        "scan": f"""
          %r = tile.scan %e {{axis = 0}} : {T} (%a: f32, %b: f32) {{
            %c = arith.add %a, %b : f32
            cf.yield %c
          }}""",
        "gather": f"%r = tile.gather %e, %i {{axis = 0}} : {T}",
        "dot": f"""
          %m = tile.reshape %e {{shape = [8, 8]}} : tile<8x8xf32>
          %none = arith.constant {{value = 0.0}} : tile<8x8xf32>
          %p = tile.dot %m, %m, %none : tile<8x8xf32>
          %r = tile.reshape %p {{shape = [64]}} : {T}""",
    }
    plan, function = planned(f"""
      %x = mem.load %xp : {T}
      %e = arith.add %x, %x : {T}
      {bodies[op]}
      mem.store %yp, %r""")
    assert named(function, "m" if op == "dot" else "e") in plan.materialized


def test_what_a_region_uses_is_computed_before_it():
    body = f"""
      %x = mem.load %xp : {T}
      %e = arith.math %x {{function = "exp"}} : {T}
      %zero = arith.constant {{value = 0}} : i32
      %one = arith.constant {{value = 1}} : i32
      cf.for %zero, %n, %one (%k: i32) {{
        mem.store %yp, %e
        cf.yield
      }}"""
    plan, function = planned(body)
    assert plan.materialized == {named(function, "e")}
    assert nests(plan)[0].materialized == [named(function, "e")]


def test_cost_counts_loads_and_functions():
    _, function = planned(f"""
      %x = mem.load %xp : {T}
      %one = arith.constant {{value = 1.0}} : {T}
      %cheap = arith.add %one, %one : {T}
      %half = arith.div %one, %cheap : {T}
      %dear = arith.math %one {{function = "exp"}} : {T}
      mem.store %yp, %x""")
    assert recompute_cost(named(function, "cheap")) <= 2
    assert (
        recompute_cost(named(function, "cheap")) < recompute_cost(named(function, "half")) < 6 + 4
    )
    assert recompute_cost(named(function, "dear")) >= 6
    assert recompute_cost(named(function, "x")) >= 6
    assert recompute_cost(named(function, "i")) == 0


def test_prefetches_are_of_addresses_that_are_known_early():
    """The nest after the first one fetches what the next program instance will load."""
    body = f"""
      %x = mem.load %xp : {T}
      {total("m", "x", "max")}
      %ms = tile.splat %m {{shape = [64]}} : {T}
      %d = arith.sub %x, %ms : {T}
      {total("s", "d")}
      %ss = tile.splat %s {{shape = [64]}} : {T}
      %q = arith.div %d, %ss : {T}
      mem.store %yp, %q"""
    plan, function = planned(body)
    fetched = [(p.pointer, p.for_store) for g in nests(plan) for p in g.prefetches]
    assert (named(function, "xp"), False) in fetched
    assert (named(function, "yp"), True) in fetched


def test_addresses_that_are_loaded_are_not_prefetched():
    body = f"""
      %offset = mem.load %O : i32
      %from = mem.offset %X, %offset : ptr<f32>
      %fs = tile.splat %from {{shape = [64]}} : tile<64xptr<f32>>
      %fp = mem.offset %fs, %i : tile<64xptr<f32>>
      %x = mem.load %fp : {T}
      {total("m", "x", "max")}
      %ms = tile.splat %m {{shape = [64]}} : {T}
      %d = arith.sub %x, %ms : {T}
      mem.store %yp, %d"""
    function = function_of(
        f"{_HEAD.replace('%n: i32)', '%n: i32, %O: ptr<i32>)')}{body}\ncf.return\n}}"
    )
    plan = FusionPlanner(function.body, analyze_alignment(function)).run()
    assert not is_known_at_entry(named(function, "fp"))
    assert is_known_at_entry(named(function, "yp"))
    fetched = [p.pointer for g in nests(plan) for p in g.prefetches]
    assert named(function, "fp") not in fetched


def test_loop_indices_are_not_known_early():
    _, function = planned("""
      %zero = arith.constant {value = 0} : i32
      %one = arith.constant {value = 1} : i32
      cf.for %zero, %n, %one (%k: i32) {
        %q = mem.offset %Y, %k : ptr<f32>
        cf.yield
      }""")
    assert not is_known_at_entry(named(function, "q"))


HALVES = """func @k(%X: ptr<f32>, %Y: ptr<f32>, %n: i32, %h: i32) {{
  %i = tile.range {{start = 0, end = 64}} : tile<64xi32>
  %ns = tile.splat %{bound} {{shape = [64]}} : tile<64xi32>
  %m = arith.compare %i, %ns {{predicate = "lt"}} : tile<64xi1>
  %X2 = mem.offset %X, %n : ptr<f32>
  %Y2 = mem.offset %Y, %n : ptr<f32>
  %xs = tile.splat %X {{shape = [64]}} : tile<64xptr<f32>>
  %xp = mem.offset %xs, %i : tile<64xptr<f32>>
  %zs = tile.splat %X2 {{shape = [64]}} : tile<64xptr<f32>>
  %zp = mem.offset %zs, %i : tile<64xptr<f32>>
  %ys = tile.splat %Y {{shape = [64]}} : tile<64xptr<f32>>
  %yp = mem.offset %ys, %i : tile<64xptr<f32>>
  %vs = tile.splat %Y2 {{shape = [64]}} : tile<64xptr<f32>>
  %vp = mem.offset %vs, %i : tile<64xptr<f32>>
  %x = mem.load %xp, %m : tile<64xf32>
  %z = mem.load %zp, %m : tile<64xf32>
  %a = arith.sub %x, %z : tile<64xf32>
  mem.store %{first}, %a, %m
  %b = arith.add %x, %z : tile<64xf32>
  mem.store %{second}, %b, %m
  cf.return
}}"""
"""A row's halves of n numbers each, turned as a rotary embedding does, to another row or in place;
stored under a mask that ends at `bound`."""


@pytest.mark.parametrize(
    "places", [("yp", "vp"), ("vp", "yp"), ("xp", "zp"), ("zp", "xp")], ids=" ".join
)
@pytest.mark.parametrize(("bound", "together"), [("n", True), ("h", False)])
def test_stores_that_a_mask_keeps_apart_share_a_nest(
    bound: str, together: bool, places: tuple[str, str]
) -> None:
    """Others do not: where h is more than n, the second store overwrites some of the first."""
    text = HALVES.format(bound=bound, first=places[0], second=places[1])
    function = function_of(text)
    plan = FusionPlanner(function.body, analyze_alignment(function)).run()
    assert [kinds(g) for g in nests(plan)][-1] == [StoreOp] * (2 if together else 1)
    assert bool(plan.materialized) == (not together)
    x = np.random.default_rng(0).standard_normal(128).astype(np.float32)
    for n, h in ((13, 40), (40, 13)):
        assert_as_interpreted(text, [x, np.zeros_like(x), n, h])


@pytest.mark.parametrize(("distance", "together"), [(64, True), (-64, True), (63, False)])
def test_tiles_that_do_not_meet_are_stored_by_one_nest(distance: int, together: bool) -> None:
    plan, _ = planned(f"""
      %x = mem.load %xp : {T}
      %d = arith.constant {{value = {distance}}} : i32
      %Z = mem.offset %Y, %d : ptr<f32>
      %zs = tile.splat %Z {{shape = [64]}} : tile<64xptr<f32>>
      %zp = mem.offset %zs, %i : tile<64xptr<f32>>
      mem.store %yp, %x
      mem.store %zp, %x""")
    assert [kinds(g) for g in nests(plan)] == ([[StoreOp] * 2] if together else [[StoreOp]] * 2)
    assert bool(plan.materialized) == (not together)


@pytest.mark.parametrize(("size", "kept"), [(1024, True), (2048, False)])
def test_narrow_numbers_are_converted_again_where_the_others_would_fill_the_cache(
    size: int, kept: bool
) -> None:
    function = function_of(f"""func @k(%X: ptr<f16>, %Y: ptr<f32>) {{
      %i = tile.range {{start = 0, end = {size}}} : tile<{size}xi32>
      %xs = tile.splat %X {{shape = [{size}]}} : tile<{size}xptr<f16>>
      %xp = mem.offset %xs, %i : tile<{size}xptr<f16>>
      %ys = tile.splat %Y {{shape = [{size}]}} : tile<{size}xptr<f32>>
      %yp = mem.offset %ys, %i : tile<{size}xptr<f32>>
      %h = mem.load %xp : tile<{size}xf16>
      %x = arith.cast %h : tile<{size}xf32>
      {total("s", "x")}
      %ss = tile.splat %s {{shape = [{size}]}} : tile<{size}xf32>
      %q = arith.div %x, %ss : tile<{size}xf32>
      mem.store %yp, %q
      cf.return
    }}""")
    plan = FusionPlanner(function.body, analyze_alignment(function)).run()
    assert plan.materialized == ({named(function, "x")} if kept else set())


@pytest.mark.parametrize(("loads", "kept"), [(1, False), (2, True)])
def test_a_short_function_of_one_load_is_computed_again_and_of_two_is_kept(
    loads: int, kept: bool
) -> None:
    operands = "%x, %x" if loads == 1 else "%x, %y"
    plan, function = planned(f"""
      %x = mem.load %xp : {T}
      %y = mem.load %yp : {T}
      %e = arith.add {operands} : {T}
      {total("s", "e")}
      %ss = tile.splat %s {{shape = [64]}} : {T}
      %q = arith.sub %e, %ss : {T}
      mem.store %yp, %q""")
    assert plan.materialized == ({named(function, "e")} if kept else set())


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_a_loop_carries_is_computed_at_once_but_for_what_is_read_elsewhere(
    elsewhere: bool,
) -> None:
    back = "tile.gather %d, %i {axis = 0}" if elsewhere else "arith.add %d, %x"
    text = f"""{_HEAD}
      %zero = arith.constant {{value = 0}} : i32
      %one = arith.constant {{value = 1}} : i32
      %x = mem.load %xp : {T}
      %a, %b, %c = cf.for %zero, %n, %one, %x, %x, %x : {T}, {T}, {T} (%k: i32, %p: {T}, %q: {T},
          %r: {T}) {{
        %d = arith.div %p, %x : {T}
        %e = {back} : {T}
        %f = arith.mul %q, %e : {T}
        %g = arith.sub %r, %d : {T}
        cf.yield %e, %f, %g
      }}
      mem.store %yp, %c
      cf.return
    }}"""
    function = function_of(text)
    body = next(op for op in function.walk() if isinstance(op, ForOp)).body
    plan = FusionPlanner(body, analyze_alignment(function)).run()
    kept = [[v.name for v in nest.materialized] for nest in nests(plan) if nest.materialized]
    assert kept == ([["d"], ["e", "f", "g"]] if elsewhere else [["e", "f", "g"]])
    x = np.linspace(1, 2, 64, dtype=np.float32)
    assert_as_interpreted(text, [x, np.zeros(64, np.float32), 3], tolerance=1e-6)
