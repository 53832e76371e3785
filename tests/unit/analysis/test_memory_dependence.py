"""Dependences between the memory operations of a loop, and their distances in iterations."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.unit.backends.cpu.textual import function_of
from tilewright.analysis import memory_dependences
from tilewright.ops import ForOp

_HEAD = """func @k(%X: ptr<i32>, %Y: ptr<i32>, %n: i32, %m: i32, %go: i1) {
  %zero = arith.constant {value = 0} : i32
  %one = arith.constant {value = 1} : i32
  %two = arith.constant {value = 2} : i32
  %rows = arith.constant {value = 256} : tile<8x1xi32>
  %size = arith.constant {value = 32} : i32
  %i = tile.range {start = 0, end = 32} : tile<32xi32>
  %ones = arith.constant {value = 1} : tile<32xi32>
"""
_AT = """
  %{name}0 = arith.mul %s, %{stride} : i32
  %{name}1 = arith.add %{name}0, %{start} : i32
  %{name}2 = mem.offset %{root}, %{name}1 : ptr<i32>
  %{name}3 = tile.splat %{name}2 {{shape = [32]}} : tile<32xptr<i32>>
  %{name} = mem.offset %{name}3, %i : tile<32xptr<i32>>"""
_SHIFTS = "".join(
    f"  %by{n} = arith.constant {{value = {32 * n}}} : i32\n".replace("by-", "back")
    for n in range(-3, 4)
)


def at(name: str, start: str = "zero", root: str = "X", stride: str = "size") -> str:
    """A tile of 32 elements at start + stride s."""
    return _AT.format(name=name, start=start, root=root, stride=stride)


def loop_over(body: str) -> ForOp:
    """The loop `for s in range(n)` with a body."""
    return loop_in(f"cf.for %zero, %n, %one (%s: i32) {{\n{body}\n}}")


def loop_in(text: str) -> ForOp:
    """The first loop of some lines."""
    function = function_of(f"{_HEAD}{_SHIFTS}{text}\ncf.return\n}}")
    return next(op for op in function.walk() if isinstance(op, ForOp))


def distances_of(loop: ForOp, horizon: int = 4) -> dict[tuple[str, str], int]:
    return {
        (d.source.opcode.split(".")[1], d.sink.opcode.split(".")[1]): d.distance
        for d in memory_dependences(loop, horizon)
    }


LOAD, STORE = "%v = mem.load %a : tile<32xi32>\n", "mem.store %b, %v\n"


@pytest.mark.parametrize("shift", range(-3, 4))
def test_distances_of_tiles_that_follow_each_other(shift: int) -> None:
    """In iteration s tile s is loaded, tile s + shift is stored."""
    start = f"by{shift}" if shift >= 0 else f"back{-shift}"
    loop = loop_over(f"{at('a')}{at('b', start)}\n{LOAD}{STORE}cf.yield")
    expected: Any = {("store", "load"): shift} if shift > 0 else {("load", "store"): -shift}
    assert distances_of(loop) == expected
    assert distances_of(loop, 2) == (expected if abs(shift) <= 2 else {})


def test_a_store_before_the_load() -> None:
    loop = loop_over(f"{at('a')}{at('b')}\nmem.store %b, %ones\n{LOAD}cf.yield")
    assert distances_of(loop) == {("store", "load"): 0}


def test_other_pointers_are_other_memory() -> None:
    loop = loop_over(f"{at('a')}{at('b', 'by1', 'Y')}\n{LOAD}{STORE}cf.yield")
    assert distances_of(loop) == {}


def test_a_stride_of_run_time() -> None:
    """Tiles side by side do not meet in one iteration, but perhaps in two."""
    text = f"{at('a', stride='m')}{at('b', 'by1', stride='m')}\n{LOAD}{STORE}cf.yield"
    pairs = [("load", "store"), ("store", "load"), ("store", "store")]
    assert distances_of(loop_over(text)) == dict.fromkeys(pairs, 1)


def test_a_start_of_run_time() -> None:
    loop = loop_over(f"{at('a')}{at('b', 'm')}\n{LOAD}{STORE}cf.yield")
    assert distances_of(loop) == {("load", "store"): 0, ("store", "load"): 1}


def test_overlapping_windows() -> None:
    """Windows of 32 elements at 2 s and at 2 s + 32."""
    text = f"{at('a', stride='two')}{at('b', 'by1', stride='two')}\n{LOAD}{STORE}cf.yield"
    assert distances_of(loop_over(text)) == {("store", "load"): 1, ("store", "store"): 1}


def test_starts_of_run_time_cancel() -> None:
    """Both are at s * 32 + m, and the store one tile further."""
    more = "%far = arith.add %m, %by1 : i32\n"
    loop = loop_over(f"{more}{at('a', 'm')}{at('b', 'far')}\n{LOAD}{STORE}cf.yield")
    assert distances_of(loop) == {("store", "load"): 1}


def test_columns_of_a_matrix() -> None:
    """Columns 32 s .. 32 s + 31 of 8 rows of 256: the same after 8 iterations, one row on."""
    body = """
      %k = arith.mul %s, %size : i32
      %q = mem.offset %X, %k : ptr<i32>
      %r = tile.range {start = 0, end = 8} : tile<8xi32>
      %r1 = tile.expand_dims %r {axis = 1} : tile<8x1xi32>
      %r2 = arith.mul %r1, %rows : tile<8x1xi32>
      %r3 = tile.broadcast %r2 {shape = [8, 32]} : tile<8x32xi32>
      %c1 = tile.expand_dims %i {axis = 0} : tile<1x32xi32>
      %c2 = tile.broadcast %c1 {shape = [8, 32]} : tile<8x32xi32>
      %o = arith.add %r3, %c2 : tile<8x32xi32>
      %q1 = tile.splat %q {shape = [8, 32]} : tile<8x32xptr<i32>>
      %a = mem.offset %q1, %o : tile<8x32xptr<i32>>
      %v = mem.load %a : tile<8x32xi32>
      %b = mem.offset %a, %moved : tile<8x32xptr<i32>>
      mem.store %b, %v
      cf.yield"""
    moved = "%moved = arith.constant {value = 64} : tile<8x32xi32>\n"
    assert distances_of(loop_over(moved + body), 7) == {("store", "load"): 2, ("load", "store"): 6}


def test_carried_pointers() -> None:
    text = """%r = cf.for %zero, %n, %one, %X : ptr<i32> (%s: i32, %p: ptr<i32>) {
      %v = mem.load %p : i32
      %q = mem.offset %p, %two : ptr<i32>
      mem.store %q, %v
      %next = mem.offset %p, %one : ptr<i32>
      cf.yield %next
    }"""
    assert distances_of(loop_in(text)) == {("store", "load"): 2}


def test_pointers_that_depend_on_each_other() -> None:
    """They are exchanged in each iteration, so nothing is known of either."""
    carried = "(%s: i32, %p: ptr<i32>, %q: ptr<i32>)"
    text = f"""%e, %f = cf.for %zero, %n, %one, %X, %X : ptr<i32>, ptr<i32> {carried} {{
      %v = mem.load %p : i32
      mem.store %q, %v
      %t = mem.offset %p, %one : ptr<i32>
      cf.yield %q, %t
    }}"""
    expected = {("load", "store"): 0, ("store", "load"): 1, ("store", "store"): 1}
    assert distances_of(loop_in(text)) == expected


FENCES = {
    "barrier": "mem.barrier",
    "atomic": "%f = mem.atomic %Y, %one : i32",
    "compare and swap": "%f = mem.atomic_cas %Y, %one, %two : i32",
    "volatile load": "%f = mem.load %Y {volatile = true} : i32",
    "uncached load": '%f = mem.load %Y {cache = ".cv"} : i32',
    "barrier in a branch": """cf.if %go () {
      mem.barrier
      cf.yield
    } () {
      cf.yield
    }""",
    "spinning": """cf.while () {
      %f = mem.atomic_cas %Y, %one, %one : i32
      %w = arith.compare %f, %one {predicate = "ne"} : i1
      cf.condition %w
    } () {
      cf.yield
    }""",
}


@pytest.mark.parametrize("fence", FENCES)
@pytest.mark.parametrize("first", [False, True])
def test_nothing_crosses_a_fence(fence: str, first: bool) -> None:
    body = f"{FENCES[fence]}\n{LOAD}" if first else f"{LOAD}{FENCES[fence]}\n"
    loop = loop_over(f"{at('a')}\n{body}cf.yield")
    (load,) = [op for op in loop.body if op.results and op.results[0].name == "v"]
    others = [d for d in memory_dependences(loop, 3) if load in (d.source, d.sink)]
    assert len(others) == 2 and all(d.fence for d in others)
    assert [d.distance for d in others if d.sink is load] == [0 if first else 1]
    assert [d.distance for d in others if d.source is load] == [1 if first else 0]


def test_prints_and_assertions_are_no_fences() -> None:
    body = f"""{at("a")}
      {LOAD}
      cf.print %s {{prefix = "s"}}
      cf.assert %go {{message = "m"}}
      cf.yield"""
    assert distances_of(loop_over(body)) == {}


def test_operations_of_inner_loops_count_as_one() -> None:
    body = f"""{at("a")}
      {LOAD}
      cf.for %zero, %m, %one (%t: i32) {{
        %b = mem.offset %X, %t : ptr<i32>
        mem.store %b, %t
        cf.yield
      }}
      cf.yield"""
    assert distances_of(loop_over(body)) == {
        ("load", "for"): 0, ("for", "load"): 1, ("for", "for"): 1,
    }  # fmt: skip


def overlaps(first: tuple[int, int], second: tuple[int, int], later: int) -> bool:
    """Whether 32 elements at stride s + start of some iteration are those of one `later`."""
    tiles = [[range(k * s + o, k * s + o + 32) for s in range(60)] for k, o in (first, second)]
    pairs = ((tiles[0][s], tiles[1][s + later]) for s in range(60 - later))
    return any(a.start < b.stop and b.start < a.stop for a, b in pairs)


@pytest.mark.parametrize("load", list(product((0, 16, 32, 48), (0, 8, 64))))
@pytest.mark.parametrize("store", list(product((16, 32), (0, 40))))
def test_distances_are_those_of_the_addresses_themselves(
    load: tuple[int, int], store: tuple[int, int]
) -> None:
    """Never longer; and no shorter if both move by the same."""
    numbers = zip(("la", "lb", "sa", "sb"), (*load, *store), strict=True)
    constants = [f"%{n} = arith.constant {{value = {v}}} : i32" for n, v in numbers]
    accesses = at("a", "lb", stride="la") + at("b", "sb", stride="sa")
    body = "\n".join([*constants, accesses, f"{LOAD}{STORE}cf.yield"])
    told = distances_of(loop_over(body))
    for key, first, second in (("load", load, store), ("store", store, load)):
        other = "store" if key == "load" else "load"
        real = [d for d in range(key == "store", 5) if overlaps(first, second, d)]
        assert not real or told[key, other] <= real[0]
        assert load[0] != store[0] or told.get((key, other)) == (real or [None])[0]
