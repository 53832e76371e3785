"""Where addresses start from, and that nests keep apart what may meet."""

from __future__ import annotations

import numpy as np

from tests.unit.backends.cpu.textual import assert_as_interpreted, function_of
from tilewright.analysis import roots
from tilewright.ir import Function, Value

_HEAD = """func @k(%X: ptr<i32>, %Y: ptr<i32>, %P: ptr<i64>, %n: i32) {
  %zero = arith.constant {value = 0} : i32
  %one = arith.constant {value = 1} : i32
  %go = arith.compare %n, %zero {predicate = "gt"} : i1
  %i = tile.range {start = 0, end = 64} : tile<64xi32>
  %ones = arith.constant {value = 1} : tile<64xi32>
"""


def named(function: Function) -> dict[str, Value]:
    values = {arg.name: arg for arg in function.args}
    for op in function.walk():
        values.update({v.name: v for v in op.results})
        values.update({arg.name: arg for region in op.regions for arg in region.args})
    return values


def found(body: str, name: str) -> set[str]:
    values = named(function_of(f"{_HEAD}{body}\ncf.return\n}}"))
    return {value.name for value in roots(values[name])}


def test_offsets_and_shapes():
    body = """
      %a = mem.offset %X, %n : ptr<i32>
      %b = tile.splat %a {shape = [64]} : tile<64xptr<i32>>
      %c = mem.offset %b, %i : tile<64xptr<i32>>
      %d = tile.reshape %c {shape = [8, 8]} : tile<8x8xptr<i32>>
      %e = tile.transpose %d {order = [1, 0]} : tile<8x8xptr<i32>>
      %f = arith.bitcast %e : tile<8x8xptr<u8>>"""
    assert found(body, "f") == {"X"}


def test_selected_pointers():
    """The condition is no root."""
    body = "%a = arith.select %go, %X, %Y : ptr<i32>"
    assert found(body, "a") == {"X", "Y"}


def test_loaded_and_made_pointers():
    body = """
      %number = mem.load %P : i64
      %a = arith.cast %number : ptr<i32>
      %b = mem.offset %a, %n : ptr<i32>"""
    assert found(body, "b") == {"number"}


def test_addresses_computed_as_integers():
    """Constants, and numbers too narrow for an address, are no start."""
    body = """
      %number = arith.cast %X : i64
      %eight = arith.constant {value = 8} : i64
      %wide = arith.cast %n : i64
      %far = arith.mul %wide, %eight : i64
      %moved = arith.add %number, %far : i64
      %a = arith.cast %moved : ptr<i32>
      %other = mem.load %P : i64
      %b = arith.add %other, %eight : i64
      %c = arith.cast %b : ptr<i32>"""
    assert found(body, "a") == {"X", "wide"}
    assert found(body, "c") == {"other"}


def test_pointers_that_loops_exchange():
    body = """
      %r, %s = cf.for %zero, %n, %one, %X, %Y : ptr<i32>, ptr<i32>
          (%k: i32, %p: ptr<i32>, %q: ptr<i32>) {
        %t = mem.offset %p, %one : ptr<i32>
        cf.yield %q, %t
      }
      %u, %v = cf.while %X, %X : ptr<i32>, ptr<i32> (%d: ptr<i32>, %e: ptr<i32>) {
        cf.condition %go, %d, %Y
      } (%f: ptr<i32>, %g: ptr<i32>) {
        cf.yield %f, %g
      }"""
    for name in ("p", "q", "r", "s"):
        assert found(body, name) == {"X", "Y"}
    assert found(body, "f") == {"X"}
    assert found(body, "u") == {"X"}
    assert found(body, "v") == {"Y"}
    assert found(body, "e") == {"X", "Y"}


def test_branches():
    body = """
      %a = cf.if %go : ptr<i32> () {
        cf.yield %X
      } () {
        %b = mem.offset %Y, %n : ptr<i32>
        cf.yield %b
      }"""
    assert found(body, "a") == {"X", "Y"}


def test_a_store_through_a_selected_pointer_comes_after_the_load():
    """It shifts the elements by one: with both in one nest, some would be read too late."""
    body = f"""{_HEAD}
      %next = mem.offset %X, %one : ptr<i32>
      %to = arith.select %go, %next, %Y : ptr<i32>
      %xs = tile.splat %X {{shape = [64]}} : tile<64xptr<i32>>
      %xp = mem.offset %xs, %i : tile<64xptr<i32>>
      %ts = tile.splat %to {{shape = [64]}} : tile<64xptr<i32>>
      %tp = mem.offset %ts, %i : tile<64xptr<i32>>
      %x = mem.load %xp : tile<64xi32>
      mem.store %tp, %x
      cf.return
    }}"""
    for n in (0, 1):
        x = np.arange(65, dtype=np.int32)
        assert_as_interpreted(body, [x, np.zeros(64, np.int32), np.zeros(1, np.int64), n])


def test_a_store_through_a_carried_pointer_comes_after_the_load():
    body = f"""{_HEAD}
      %xs = tile.splat %X {{shape = [64]}} : tile<64xptr<i32>>
      %xp = mem.offset %xs, %i : tile<64xptr<i32>>
      %next = mem.offset %xp, %ones : tile<64xptr<i32>>
      %r, %s = cf.for %zero, %n, %one, %xp, %next : tile<64xptr<i32>>, tile<64xptr<i32>>
          (%k: i32, %p: tile<64xptr<i32>>, %q: tile<64xptr<i32>>) {{
        %x = mem.load %p : tile<64xi32>
        %y = arith.add %x, %ones : tile<64xi32>
        mem.store %q, %y
        cf.yield %p, %q
      }}
      cf.return
    }}"""
    for n in (0, 1, 2):
        x = np.arange(65, dtype=np.int32)
        assert_as_interpreted(body, [x, np.zeros(64, np.int32), np.zeros(1, np.int64), n])
