"""Loops and branches: carried scalars and tiles, buffers that swap, results of branches."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.backends.cpu.textual import Array, assert_as_interpreted, lowered, run

_HEAD = """func @k(%X: ptr<i32>, %Y: ptr<i32>, %n: i32) {
  %i = tile.range {start = 0, end = 16} : tile<16xi32>
  %xs = tile.splat %X {shape = [16]} : tile<16xptr<i32>>
  %xp = mem.offset %xs, %i : tile<16xptr<i32>>
  %ys = tile.splat %Y {shape = [16]} : tile<16xptr<i32>>
  %yp = mem.offset %ys, %i : tile<16xptr<i32>>
  %zero = arith.constant {value = 0} : i32
  %one = arith.constant {value = 1} : i32
  %two = arith.constant {value = 2} : i32
  %ones = arith.constant {value = 1} : tile<16xi32>
  %x = mem.load %xp : tile<16xi32>
"""
T = "tile<16xi32>"


def text(body: str) -> str:
    return f"{_HEAD}{body}\ncf.return\n}}"


def arrays() -> tuple[Array, Array]:
    x = np.arange(16, dtype=np.int32) ** 2 - 20
    return x, np.zeros(16, np.int32)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_two_carried_tiles_change_places(n: int):
    """Each body reads both and writes both: with one buffer each, one would be overwritten."""
    body = f"""
      %a, %b = cf.for %zero, %n, %one, %x, %ones : {T}, {T} (%k: i32, %p: {T}, %q: {T}) {{
        %s = arith.add %p, %q : {T}
        cf.yield %q, %s
      }}
      %r = arith.mul %a, %b : {T}
      mem.store %yp, %a
      mem.store %yp, %r"""
    assert_as_interpreted(text(body), [*arrays(), n])


def test_a_carried_tile_is_not_copied():
    """The buffers of two iterations swap: the pointers are phis, nothing moves."""
    body = f"""
      %a = cf.for %zero, %n, %one, %x : {T} (%k: i32, %p: {T}) {{
        %f = tile.transpose %p {{order = [0]}} : {T}
        %s = arith.add %p, %f : {T}
        cf.yield %s
      }}
      mem.store %yp, %a"""
    code = lowered(text(body)).text
    assert "phi ptr" in code
    assert lowered(text(body)).scratch_bytes == 2 * 64
    assert_as_interpreted(text(body), [*arrays(), 3])


@pytest.mark.parametrize(
    ("next_p", "next_q", "tiles"),
    [("%s", "%t", 3), ("%t", "%s", 3), ("%s", "%s", 3), ("%s", "%p", 4), ("%f", "%t", 5)],
    ids=["own", "other", "twice", "kept", "elsewhere"],
)
def test_a_carried_tile_that_one_nest_reads_where_it_writes_has_one_buffer(
    next_p: str, next_q: str, tiles: int
):
    """But not where another nest, or another index, needs what was there before."""
    body = f"""
      %a, %b = cf.for %zero, %n, %one, %x, %ones : {T}, {T} (%k: i32, %p: {T}, %q: {T}) {{
        %s = arith.add %p, %x : {T}
        %t = arith.sub %q, %s : {T}
        %f = tile.gather %s, %i {{axis = 0}} : {T}
        cf.yield {next_p}, {next_q}
      }}
      mem.store %yp, %a
      %r = arith.mul %a, %b : {T}
      mem.store %xp, %r"""
    assert lowered(text(body)).scratch_bytes == tiles * 64  # one of them is x
    assert_as_interpreted(text(body), [*arrays(), 3])


def test_reading_elsewhere_than_writing():
    """A reversed tile needs elements that one buffer would have lost."""
    body = f"""
      %end = arith.constant {{value = 15}} : {T}
      %back = arith.sub %end, %i : {T}
      %a = cf.for %zero, %n, %one, %x : {T} (%k: i32, %p: {T}) {{
        %f = tile.gather %p, %back {{axis = 0}} : {T}
        %s = arith.add %f, %ones : {T}
        cf.yield %s
      }}
      mem.store %yp, %a"""
    assert_as_interpreted(text(body), [*arrays(), 3])


@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_product_is_summed_in_place(n: int):
    body = """func @k(%X: ptr<f32>, %Y: ptr<f32>, %n: i32) {
      %i = tile.range {start = 0, end = 64} : tile<64xi32>
      %j = tile.reshape %i {shape = [8, 8]} : tile<8x8xi32>
      %xs = tile.splat %X {shape = [8, 8]} : tile<8x8xptr<f32>>
      %xp = mem.offset %xs, %j : tile<8x8xptr<f32>>
      %ys = tile.splat %Y {shape = [8, 8]} : tile<8x8xptr<f32>>
      %yp = mem.offset %ys, %j : tile<8x8xptr<f32>>
      %x = mem.load %xp : tile<8x8xf32>
      %zero = arith.constant {value = 0} : i32
      %one = arith.constant {value = 1} : i32
      %none = arith.constant {value = 0.0} : tile<8x8xf32>
      %a = cf.for %zero, %n, %one, %none : tile<8x8xf32> (%k: i32, %p: tile<8x8xf32>) {
        %d = tile.dot %x, %x, %p : tile<8x8xf32>
        cf.yield %d
      }
      mem.store %yp, %a
      cf.return
    }"""
    x = (np.arange(64) % 7 - 3).astype(np.float32)
    assert_as_interpreted(body, [x, np.zeros(64, np.float32), n])


@pytest.mark.parametrize(("low", "high", "step"), [(0, 0, 1), (5, 3, 1), (-3, 6, 4), (0, 7, 3)])
def test_bounds_and_steps(low: int, high: int, step: int):
    body = f"""
      %l = arith.constant {{value = {low}}} : i32
      %h = arith.constant {{value = {high}}} : i32
      %s = arith.constant {{value = {step}}} : i32
      %a, %c = cf.for %l, %h, %s, %x, %zero : {T}, i32 (%k: i32, %p: {T}, %m: i32) {{
        %ks = tile.splat %k {{shape = [16]}} : {T}
        %t = arith.add %p, %ks : {T}
        %m1 = arith.add %m, %one : i32
        cf.yield %t, %m1
      }}
      %cs = tile.splat %c {{shape = [16]}} : {T}
      %r = arith.mul %a, %cs : {T}
      mem.store %yp, %r"""
    assert_as_interpreted(text(body), [*arrays(), 0])


def test_an_unsigned_index_compares_unsigned():
    body = f"""
      %l = arith.constant {{value = 4294967290}} : u32
      %h = arith.constant {{value = 4294967294}} : u32
      %s = arith.constant {{value = 1}} : u32
      %a = cf.for %l, %h, %s, %x : {T} (%k: u32, %p: {T}) {{
        %t = arith.add %p, %ones : {T}
        cf.yield %t
      }}
      mem.store %yp, %a"""
    assert_as_interpreted(text(body), [*arrays(), 0])


@pytest.mark.parametrize("n", [0, 1, 3])
def test_while_with_tiles(n: int):
    body = f"""
      %c, %a, %b = cf.while %zero, %x, %ones : i32, {T}, {T} (%d: i32, %p: {T}, %q: {T}) {{
        %go = arith.compare %d, %n {{predicate = "lt"}} : i1
        cf.condition %go, %d, %q, %p
      }} (%e: i32, %u: {T}, %v: {T}) {{
        %e1 = arith.add %e, %one : i32
        %w = arith.add %u, %v : {T}
        cf.yield %e1, %w, %u
      }}
      %r = arith.sub %a, %b : {T}
      mem.store %yp, %r"""
    assert_as_interpreted(text(body), [*arrays(), n])


@pytest.mark.parametrize("n", [0, 2])
def test_while_passes_on_what_it_does_not_carry(n: int):
    """Values from outside, and values that the condition computes."""
    body = f"""
      %y2 = arith.mul %x, %ones : {T}
      %c, %a, %b = cf.while %zero, %x, %ones : i32, {T}, {T} (%d: i32, %p: {T}, %q: {T}) {{
        %go = arith.compare %d, %n {{predicate = "lt"}} : i1
        %s = arith.add %p, %q : {T}
        cf.condition %go, %d, %y2, %s
      }} (%e: i32, %u: {T}, %v: {T}) {{
        %e1 = arith.add %e, %one : i32
        %w = arith.add %u, %v : {T}
        cf.yield %e1, %w, %v
      }}
      %r = arith.sub %a, %b : {T}
      mem.store %yp, %r"""
    assert_as_interpreted(text(body), [*arrays(), n])


@pytest.mark.parametrize("n", [0, 1])
def test_branches_with_tiles(n: int):
    """Values of a branch, from outside, and constants; scalars meet too."""
    body = f"""
      %go = arith.compare %n, %zero {{predicate = "gt"}} : i1
      %a, %b, %s = cf.if %go : {T}, {T}, i32 () {{
        %t = arith.add %x, %ones : {T}
        cf.yield %t, %x, %one
      }} () {{
        %u = mem.load %xp : {T}
        %c = arith.constant {{value = 7}} : {T}
        cf.yield %u, %c, %two
      }}
      %ss = tile.splat %s {{shape = [16]}} : {T}
      %p = arith.mul %a, %ss : {T}
      %r = arith.sub %p, %b : {T}
      mem.store %yp, %r"""
    assert_as_interpreted(text(body), [*arrays(), n])


def test_branches_in_loops_in_branches():
    body = f"""
      %go = arith.compare %n, %zero {{predicate = "gt"}} : i1
      %a = cf.if %go : {T} () {{
        %b = cf.for %zero, %n, %one, %x : {T} (%k: i32, %p: {T}) {{
          %odd = arith.and %k, %one : i32
          %is = arith.cast %odd : i1
          %c = cf.if %is : {T} () {{
            %d = arith.add %p, %ones : {T}
            cf.yield %d
          }} () {{
            cf.yield %p
          }}
          %e = arith.add %c, %ones : {T}
          cf.yield %e
        }}
        cf.yield %b
      }} () {{
        cf.yield %ones
      }}
      mem.store %yp, %a"""
    for n in (0, 1, 4):
        assert_as_interpreted(text(body), [*arrays(), n])


def test_carried_pointers_walk():
    body = f"""
      %a, %p1 = cf.for %zero, %n, %one, %ones, %xp : {T}, tile<16xptr<i32>>
          (%k: i32, %s: {T}, %p: tile<16xptr<i32>>) {{
        %v = mem.load %p : {T}
        %t = arith.add %s, %v : {T}
        %sixteen = arith.constant {{value = 16}} : {T}
        %next = mem.offset %p, %sixteen : tile<16xptr<i32>>
        cf.yield %t, %next
      }}
      mem.store %yp, %a"""
    assert_as_interpreted(text(body), [np.arange(64, dtype=np.int32), np.zeros(16, np.int32), 4])


def test_stores_in_loops_are_seen_by_later_iterations():
    body = f"""
      cf.for %zero, %n, %one (%k: i32) {{
        %v = mem.load %xp : {T}
        %t = arith.add %v, %v : {T}
        mem.store %xp, %t
        cf.yield
      }}
      %last = mem.load %xp : {T}
      mem.store %yp, %last"""
    x, y = arrays()
    expected = x * 8
    run(text(body), [x, y, 3])
    np.testing.assert_array_equal(y, expected)


def test_products_in_loops_of_tiles_from_outside():
    """Even a tile that is cheap to compute needs a buffer there."""
    body = """func @k(%Y: ptr<f32>, %n: i32) {
      %i = tile.range {start = 0, end = 32} : tile<32xi32>
      %j = tile.reshape %i {shape = [4, 8]} : tile<4x8xi32>
      %f = arith.cast %j : tile<4x8xf32>
      %w = arith.constant {value = 2.0} : tile<8x8xf32>
      %none = arith.constant {value = 0.0} : tile<4x8xf32>
      %ys = tile.splat %Y {shape = [4, 8]} : tile<4x8xptr<f32>>
      %yp = mem.offset %ys, %j : tile<4x8xptr<f32>>
      %zero = arith.constant {value = 0} : i32
      %one = arith.constant {value = 1} : i32
      %a = cf.for %zero, %n, %one, %none : tile<4x8xf32> (%k: i32, %p: tile<4x8xf32>) {
        %d = tile.dot %f, %w, %p : tile<4x8xf32>
        cf.yield %d
      }
      mem.store %yp, %a
      cf.return
    }"""
    assert_as_interpreted(body, [np.zeros(32, np.float32), 3])
