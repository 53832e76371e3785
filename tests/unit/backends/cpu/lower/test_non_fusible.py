"""Scans, products, atomics, gathers, elements: ops that are more than one nest."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.unit.backends.cpu.textual import assert_as_interpreted, run
from tilewright.ops import ACCESS_ORDERS, ATOMIC_KINDS, ATOMIC_TYPES


def scan_of(shape: tuple[int, ...], axis: int, reverse: bool, combine: str = "add") -> str:
    tile = f"tile<{'x'.join(map(str, shape))}x"
    numel = int(np.prod(shape))
    return f"""func @k(%X: ptr<i32>, %Y: ptr<i32>) {{
      %i = tile.range {{start = 0, end = {numel}}} : tile<{numel}xi32>
      %j = tile.reshape %i {{shape = {list(shape)}}} : {tile}i32>
      %xs = tile.splat %X {{shape = {list(shape)}}} : {tile}ptr<i32>>
      %xp = mem.offset %xs, %j : {tile}ptr<i32>>
      %ys = tile.splat %Y {{shape = {list(shape)}}} : {tile}ptr<i32>>
      %yp = mem.offset %ys, %j : {tile}ptr<i32>>
      %x = mem.load %xp : {tile}i32>
      %s = tile.scan %x {{axis = {axis}, reverse = {str(reverse).lower()}}} : {tile}i32>
          (%a: i32, %b: i32) {{
        %c = arith.{combine} %a, %b : i32
        cf.yield %c
      }}
      mem.store %yp, %s
      cf.return
    }}"""


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((16,), 0), ((4, 8), 0), ((4, 8), 1), ((2, 3, 4), 1), ((2, 4, 24), 0), ((16, 1, 24), 0),
     ((4, 8, 2), 2), ((1, 6), 0), ((5,), 0)],
)  # fmt: skip
def test_scans(shape: tuple[int, ...], axis: int, reverse: bool):
    """Also of extents that no vector divides."""
    x = np.random.default_rng(1).integers(-100, 100, int(np.prod(shape))).astype(np.int32)
    assert_as_interpreted(scan_of(shape, axis, reverse), [x, np.zeros_like(x)])
    assert_as_interpreted(scan_of(shape, axis, reverse, "max"), [x, np.zeros_like(x)])


def test_scans_of_several_tiles():
    """Running maxima with the index where each was found first."""
    text = """func @k(%X: ptr<i32>, %Y: ptr<i32>, %Z: ptr<i32>) {
      %i = tile.range {start = 0, end = 32} : tile<32xi32>
      %xs = tile.splat %X {shape = [32]} : tile<32xptr<i32>>
      %xp = mem.offset %xs, %i : tile<32xptr<i32>>
      %ys = tile.splat %Y {shape = [32]} : tile<32xptr<i32>>
      %yp = mem.offset %ys, %i : tile<32xptr<i32>>
      %zs = tile.splat %Z {shape = [32]} : tile<32xptr<i32>>
      %zp = mem.offset %zs, %i : tile<32xptr<i32>>
      %x = mem.load %xp : tile<32xi32>
      %m, %w = tile.scan %x, %i {axis = 0} : tile<32xi32>, tile<32xi32>
          (%a: i32, %j: i32, %b: i32, %k: i32) {
        %g = arith.compare %b, %a {predicate = "gt"} : i1
        %v = arith.select %g, %b, %a : i32
        %n = arith.select %g, %k, %j : i32
        cf.yield %v, %n
      }
      mem.store %yp, %m
      mem.store %zp, %w
      cf.return
    }"""
    x = np.random.default_rng(0).integers(0, 9, 32).astype(np.int32)
    assert_as_interpreted(text, [x, np.zeros(32, np.int32), np.zeros(32, np.int32)])


# --- reductions -----------------------------------------------------------------------------------


def arg_max_of(shape: tuple[int, ...], axis: int) -> str:
    """The largest number along an axis and where it is, the first of equal ones."""
    tile = f"tile<{'x'.join(map(str, shape))}x"
    numel = int(np.prod(shape))
    kept = [n for d, n in enumerate(shape) if d != axis]
    out = f"tile<{'x'.join(map(str, kept))}x" if kept else ""
    close = ">" if kept else ""
    count = max(1, int(np.prod(kept)))
    spread = [f"%r0 = tile.range {{start = 0, end = {shape[axis]}}} : tile<{shape[axis]}xi32>"]
    current, name = [shape[axis]], "%r0"
    for d in (d for d in range(len(shape)) if d != axis):
        current.insert(d, 1)
        kind = "x".join(map(str, current))
        spread.append(f"%r{d + 1} = tile.expand_dims {name} {{axis = {d}}} : tile<{kind}xi32>")
        name = f"%r{d + 1}"
    index = "\n".join(spread)
    store = (
        f"""%o = tile.range {{start = 0, end = {count}}} : tile<{count}xi32>
      %oo = tile.reshape %o {{shape = {kept}}} : {out}i32>
      %ys = tile.splat %Y {{shape = {kept}}} : {out}ptr<i32>>
      %yp = mem.offset %ys, %oo : {out}ptr<i32>>"""
        if kept
        else "%yp = mem.offset %Y, %zero : ptr<i32>"
    )
    return f"""func @k(%X: ptr<f32>, %Y: ptr<i32>) {{
      %zero = arith.constant {{value = 0}} : i32
      %i = tile.range {{start = 0, end = {numel}}} : tile<{numel}xi32>
      %j = tile.reshape %i {{shape = {list(shape)}}} : {tile}i32>
      %xs = tile.splat %X {{shape = {list(shape)}}} : {tile}ptr<f32>>
      %xp = mem.offset %xs, %j : {tile}ptr<f32>>
      %x = mem.load %xp : {tile}f32>
      {index}
      %at = tile.broadcast {name} {{shape = {list(shape)}}} : {tile}i32>
      %m, %w = tile.reduce %x, %at {{axis = {axis}}} : {out}f32{close}, {out}i32{close}
          (%a: f32, %p: i32, %b: f32, %q: i32) {{
        %g = arith.compare %a, %b {{predicate = "gt"}} : i1
        %e = arith.compare %a, %b {{predicate = "eq"}} : i1
        %l = arith.compare %p, %q {{predicate = "lt"}} : i1
        %t = arith.and %e, %l : i1
        %left = arith.or %g, %t : i1
        %v = arith.select %left, %a, %b : f32
        %n = arith.select %left, %p, %q : i32
        cf.yield %v, %n
      }}
      {store}
      mem.store %yp, %w
      cf.return
    }}"""


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((64,), 0), ((4, 32), 0), ((4, 32), 1), ((32, 4), 1), ((2, 8, 4), 0), ((2, 8, 4), 1),
     ((2, 8, 4), 2), ((5,), 0), ((3, 6), 1), ((1, 8), 0), ((8, 1), 1)],
)  # fmt: skip
def test_of_equal_numbers_the_first_wins(shape: tuple[int, ...], axis: int):
    """Lanes are folded in halves, so the first one does not win by itself."""
    numel = int(np.prod(shape))
    count = numel // shape[axis]
    for seed in range(3):
        x = np.random.default_rng(seed).integers(0, 3, numel).astype(np.float32)
        y = np.zeros(count, np.int32)
        run(arg_max_of(shape, axis), [x, y])
        np.testing.assert_array_equal(y, x.reshape(shape).argmax(axis).reshape(-1))


# --- atomics --------------------------------------------------------------------------------------


def atomic_kernel(kind: str, element: str, count: int, mask: bool = False) -> str:
    """Every program applies its 32 numbers to the same `count` places; Z gets what was found."""
    tile = "tile<32x"
    return f"""func @k(%X: ptr<{element}>, %Y: ptr<{element}>, %Z: ptr<{element}>) {{
      %pid = cf.program_id {{axis = 0}} : i32
      %size = arith.constant {{value = 32}} : i32
      %start = arith.mul %pid, %size : i32
      %i = tile.range {{start = 0, end = 32}} : {tile}i32>
      %s = tile.splat %start {{shape = [32]}} : {tile}i32>
      %o = arith.add %s, %i : {tile}i32>
      %xs = tile.splat %X {{shape = [32]}} : {tile}ptr<{element}>>
      %xp = mem.offset %xs, %o : {tile}ptr<{element}>>
      %x = mem.load %xp : {tile}{element}>
      %n = arith.constant {{value = {count}}} : {tile}i32>
      %place = arith.rem %i, %n : {tile}i32>
      %two = arith.constant {{value = 2}} : {tile}i32>
      %odd = arith.rem %i, %two : {tile}i32>
      %some = arith.cast %odd : {tile}i1>
      %ys = tile.splat %Y {{shape = [32]}} : {tile}ptr<{element}>>
      %yp = mem.offset %ys, %place : {tile}ptr<{element}>>
      %old = mem.atomic %yp, %x{", %some" if mask else ""} {{kind = "{kind}"}} : {tile}{element}>
      %zs = tile.splat %Z {{shape = [32]}} : {tile}ptr<{element}>>
      %zp = mem.offset %zs, %o : {tile}ptr<{element}>>
      mem.store %zp, %old{", %some" if mask else ""}
      cf.return
    }}"""


DTYPES = {
    "i32": "i4", "u32": "u4", "i64": "i8", "u64": "u8", "f16": "f2", "bf16": ml_dtypes.bfloat16,
    "f32": "f4", "f64": "f8",
}  # fmt: skip


@pytest.mark.parametrize(
    ("element", "kind"),
    [
        (str(e), kind)
        for kind in ATOMIC_KINDS
        for e in ATOMIC_TYPES[kind]
        if str(e) in DTYPES and kind not in ACCESS_ORDERS
    ],
)
def test_atomics_of_one_program(kind: str, element: str):
    """In the order of the elements, so that what each finds is known."""
    dtype = np.dtype(DTYPES[element])
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 120, 32).astype(dtype), rng.integers(0, 99, 8).astype(dtype)
    if dtype.kind != "u":
        x -= x.dtype.type(100)
    for mask in (False, True):
        assert_as_interpreted(atomic_kernel(kind, element, 8, mask), [x, y, np.zeros(32, dtype)])


@pytest.mark.parametrize("element", ["i32", "u64", "f32", "f64"])
def test_atomics_of_many_threads_lose_nothing(element: str):
    programs = 500
    dtype = np.dtype(DTYPES[element])
    x = np.random.default_rng(1).integers(0, 9, 32 * programs).astype(dtype)
    y, z = np.zeros(4, dtype), np.zeros(32 * programs, dtype)
    run(atomic_kernel("add", element, 4), [x, y, z], (programs,))
    np.testing.assert_array_equal(y, x.reshape(-1, 4).sum(0))
    y = np.zeros(4, dtype)
    run(atomic_kernel("max", element, 4), [x, y, z], (programs,))
    np.testing.assert_array_equal(y, x.reshape(-1, 4).max(0))


def test_exchanges_of_many_threads_hand_on_every_number():
    programs = 200
    x = np.arange(1, 32 * programs + 1, dtype=np.int32)
    y, z = np.zeros(1, np.int32), np.zeros(32 * programs, np.int32)
    run(atomic_kernel("xchg", "i32", 1), [x, y, z], (programs,))
    np.testing.assert_array_equal(np.sort(np.append(z, y)), np.append(0, x))


@pytest.mark.parametrize(("element", "dtype"), [("i32", "i4"), ("u64", "u8"), ("f32", "f4")])
def test_compare_and_swap(element: str, dtype: str):
    """A tile of which every other expectation is right."""
    tile = "tile<16x"
    text = f"""func @k(%X: ptr<{element}>, %Y: ptr<{element}>, %Z: ptr<{element}>) {{
      %i = tile.range {{start = 0, end = 16}} : {tile}i32>
      %xs = tile.splat %X {{shape = [16]}} : {tile}ptr<{element}>>
      %xp = mem.offset %xs, %i : {tile}ptr<{element}>>
      %x = mem.load %xp : {tile}{element}>
      %seven = arith.constant {{value = {"7.0" if dtype == "f4" else 7}}} : {tile}{element}>
      %ys = tile.splat %Y {{shape = [16]}} : {tile}ptr<{element}>>
      %yp = mem.offset %ys, %i : {tile}ptr<{element}>>
      %old = mem.atomic_cas %yp, %x, %seven : {tile}{element}>
      %zs = tile.splat %Z {{shape = [16]}} : {tile}ptr<{element}>>
      %zp = mem.offset %zs, %i : {tile}ptr<{element}>>
      mem.store %zp, %old
      cf.return
    }}"""
    y = np.arange(16).astype(dtype)
    x = np.where(np.arange(16) % 2 == 0, y, 99).astype(dtype)
    assert_as_interpreted(text, [x, y, np.zeros(16, dtype)])


def test_locks_made_of_swaps():
    """Threads take turns in a region that a lock guards."""
    text = """func @k(%L: ptr<i32>, %C: ptr<i32>) {
      %zero = arith.constant {value = 0} : i32
      %one = arith.constant {value = 1} : i32
      %start = arith.constant {value = 1} : i32
      %got = cf.while %start : i32 (%held: i32) {
        %go = arith.compare %held, %zero {predicate = "ne"} : i1
        cf.condition %go, %held
      } (%again: i32) {
        %old = mem.atomic_cas %L, %zero, %one : i32
        cf.yield %old
      }
      %c = mem.load %C {volatile = true} : i32
      %d = arith.add %c, %one : i32
      mem.store %C, %d
      %free = mem.atomic %L, %zero {kind = "xchg"} : i32
      cf.return
    }"""
    lock, counter = np.zeros(1, np.int32), np.zeros(1, np.int32)
    run(text, [lock, counter], (2000,))
    assert counter[0] == 2000


# --- products -------------------------------------------------------------------------------------


def product_kernel(shape: tuple[int, ...], element: str, total: str) -> str:
    *outer, m, n, k = shape
    left, right, out = ([*outer, a, b] for a, b in ((m, k), (k, n), (m, n)))

    def array(name: str, dims: list[int], kind: str) -> str:
        tile, numel = f"tile<{'x'.join(map(str, dims))}x", int(np.prod(dims))
        return f"""
          %i{name} = tile.range {{start = 0, end = {numel}}} : tile<{numel}xi32>
          %j{name} = tile.reshape %i{name} {{shape = {dims}}} : {tile}i32>
          %s{name} = tile.splat %{name} {{shape = {dims}}} : {tile}ptr<{kind}>>
          %p{name} = mem.offset %s{name}, %j{name} : {tile}ptr<{kind}>>
          %v{name} = mem.load %p{name} : {tile}{kind}>"""

    return f"""func @k(%A: ptr<{element}>, %B: ptr<{element}>, %C: ptr<{total}>) {{
      {array("A", left, element)}
      {array("B", right, element)}
      {array("C", out, total)}
      %d = tile.dot %vA, %vB, %vC : tile<{"x".join(map(str, out))}x{total}>
      mem.store %pC, %d
      cf.return
    }}"""


@pytest.mark.parametrize(
    ("element", "total", "left", "sum_"),
    [("f32", "f32", "f4", "f4"), ("f64", "f64", "f8", "f8"), ("f16", "f32", "f2", "f4"),
     ("i8", "i32", "i1", "i4")],
)  # fmt: skip
@pytest.mark.parametrize(
    "shape", [(16, 16, 16), (1, 1, 1), (3, 5, 7), (32, 1, 4), (2, 8, 8, 4), (3, 4, 2, 5)]
)
def test_products(shape: tuple[int, ...], element: str, total: str, left: str, sum_: str):
    *outer, m, n, k = shape
    rng = np.random.default_rng(0)
    a, b, c = (
        rng.integers(-5, 6, (*outer, x, y)).astype(kind)
        for x, y, kind in ((m, k, left), (k, n, left), (m, n, sum_))
    )
    assert_as_interpreted(product_kernel(shape, element, total), [a.ravel(), b.ravel(), c.ravel()])


# --- elements -------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("index", ["i8", "i32", "i64", "u8"])
def test_gathers_of_rank_three(axis: int, index: str):
    tile = "tile<4x2x8x"
    extent = (4, 2, 8)[axis]
    text = f"""func @k(%X: ptr<f32>, %Y: ptr<f32>) {{
      %i = tile.range {{start = 0, end = 64}} : tile<64xi32>
      %j = tile.reshape %i {{shape = [4, 2, 8]}} : {tile}i32>
      %xs = tile.splat %X {{shape = [4, 2, 8]}} : {tile}ptr<f32>>
      %xp = mem.offset %xs, %j : {tile}ptr<f32>>
      %x = mem.load %xp : {tile}f32>
      %five = arith.constant {{value = 5}} : {tile}i32>
      %n = arith.constant {{value = {extent}}} : {tile}i32>
      %many = arith.mul %j, %five : {tile}i32>
      %at = arith.rem %many, %n : {tile}i32>
      %index = arith.cast %at : {tile}{index}>
      %g = tile.gather %x, %index {{axis = {axis}}} : {tile}f32>
      %ys = tile.splat %Y {{shape = [4, 2, 8]}} : {tile}ptr<f32>>
      %yp = mem.offset %ys, %j : {tile}ptr<f32>>
      mem.store %yp, %g
      cf.return
    }}"""
    assert_as_interpreted(text, [np.arange(64, dtype=np.float32) ** 2, np.zeros(64, np.float32)])


def test_items_of_tiles():
    """Of a tile in a buffer and of one that is computed."""
    text = """func @k(%Y: ptr<i32>, %n: i32) {
      %one = tile.splat %n {shape = [1, 1]} : tile<1x1xi32>
      %x = tile.item %one : i32
      %s = tile.scan %one {axis = 0} : tile<1x1xi32> (%a: i32, %b: i32) {
        %c = arith.add %a, %b : i32
        cf.yield %c
      }
      %y = tile.item %s : i32
      %z = arith.add %x, %y : i32
      mem.store %Y, %z
      cf.return
    }"""
    assert_as_interpreted(text, [np.zeros(1, np.int32), 21])


@pytest.mark.parametrize("dtype", ["i1", "i8", "i16", "i32", "i64", "f16", "f32", "f64"])
def test_shapes_of_rank_three(dtype: str):
    """Joined, split, concatenated, turned and broadcast tiles, of every size of element."""
    arrays = {"i1": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "f16": "f2",
              "f32": "f4", "f64": "f8"}  # fmt: skip
    text = f"""func @k(%X: ptr<{dtype}>, %Y: ptr<{dtype}>) {{
      %i = tile.range {{start = 0, end = 32}} : tile<32xi32>
      %j = tile.reshape %i {{shape = [4, 8]}} : tile<4x8xi32>
      %xs = tile.splat %X {{shape = [4, 8]}} : tile<4x8xptr<{dtype}>>
      %xp = mem.offset %xs, %j : tile<4x8xptr<{dtype}>>
      %x = mem.load %xp : tile<4x8x{dtype}>
      %turned = tile.transpose %x {{order = [1, 0]}} : tile<8x4x{dtype}>
      %flat = tile.reshape %turned {{shape = [4, 8]}} : tile<4x8x{dtype}>
      %pair = tile.join %x, %flat : tile<4x8x2x{dtype}>
      %mixed = tile.transpose %pair {{order = [2, 0, 1]}} : tile<2x4x8x{dtype}>
      %both = tile.reshape %mixed {{shape = [4, 8, 2]}} : tile<4x8x2x{dtype}>
      %l, %r = tile.split %both : tile<4x8x{dtype}>, tile<4x8x{dtype}>
      %c = tile.cat %l, %r {{axis = 1}} : tile<4x16x{dtype}>
      %d = tile.cat %c, %c {{axis = 0}} : tile<8x16x{dtype}>
      %e = tile.expand_dims %d {{axis = 1}} : tile<8x1x16x{dtype}>
      %b = tile.broadcast %e {{shape = [8, 2, 16]}} : tile<8x2x16x{dtype}>
      %k = tile.range {{start = 0, end = 256}} : tile<256xi32>
      %m = tile.reshape %k {{shape = [8, 2, 16]}} : tile<8x2x16xi32>
      %ys = tile.splat %Y {{shape = [8, 2, 16]}} : tile<8x2x16xptr<{dtype}>>
      %yp = mem.offset %ys, %m : tile<8x2x16xptr<{dtype}>>
      mem.store %yp, %b
      cf.return
    }}"""
    x = (np.arange(32) % 3 if dtype == "i1" else np.arange(32)).astype(arrays[dtype])
    assert_as_interpreted(text, [x, np.zeros(256, arrays[dtype])])
