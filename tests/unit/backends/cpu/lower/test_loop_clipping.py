"""Loops that end at the bound of a mask: that they do, and that nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
import tilewright.language as tl
from tests.unit.backends.cpu.textual import assert_as_interpreted, lowered, run
from tilewright.llvm import host_cpu

EXTENT = 256
COUNTS = [-3, 0, 1, 31, 32, 33, 128, 255, 256, 1000]


def clips(text: str) -> int:
    """How many loops may end early."""
    return lowered(text).text.count("call i32 @llvm.ssub.sat")


def row_kernel(
    body: str, condition: str = "%i, %ns", predicate: str = "lt", fill: float = 0
) -> str:
    """`body` on a masked row %x: it may store at %yp under %m, and at %zp a row of results."""
    tile = f"tile<{EXTENT}x"
    shape = f"{{shape = [{EXTENT}]}}"
    return f"""func @k(%X: ptr<f32>, %Y: ptr<f32>, %Z: ptr<f32>, %n: i32) {{
      %i = tile.range {{start = 0, end = {EXTENT}}} : {tile}i32>
      %ns = tile.splat %n {shape} : {tile}i32>
      %m = arith.compare {condition} {{predicate = "{predicate}"}} : {tile}i1>
      %xs = tile.splat %X {shape} : {tile}ptr<f32>>
      %xp = mem.offset %xs, %i : {tile}ptr<f32>>
      %f = arith.constant {{value = {float(fill)}}} : {tile}f32>
      %x = mem.load %xp, %m, %f : {tile}f32>
      %ys = tile.splat %Y {shape} : {tile}ptr<f32>>
      %yp = mem.offset %ys, %i : {tile}ptr<f32>>
      %zs = tile.splat %Z {shape} : {tile}ptr<f32>>
      %zp = mem.offset %zs, %i : {tile}ptr<f32>>
      {body}
      cf.return
    }}"""


def fold(kind: str, value: str = "%x", name: str = "r") -> str:
    return f"""%{name} = tile.reduce {value} {{axis = 0}} : f32 (%{name}a: f32, %{name}b: f32) {{
        %{name}c = arith.{kind} %{name}a, %{name}b : f32
        cf.yield %{name}c
      }}
      %{name}s = tile.splat %{name} {{shape = [{EXTENT}]}} : tile<{EXTENT}xf32>"""


STORE = "mem.store %yp, %x, %m"
EXP = f"""{fold("max")}
  %d = arith.sub %x, %rs : tile<{EXTENT}xf32>
  %e = arith.math %d {{function = "exp"}} : tile<{EXTENT}xf32>
  {fold("add", "%e", "t")}
  %q = arith.div %e, %ts : tile<{EXTENT}xf32>
"""


def arguments(count: int, seed: int = 0) -> list[np.ndarray | int | float]:
    x = np.random.default_rng(seed).integers(-9, 9, max(1, min(count, EXTENT)) + 1)
    return [x.astype(np.float32), np.zeros(EXTENT, np.float32), np.zeros(EXTENT, np.float32), count]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    ("condition", "predicate"),
    [("%i, %ns", "lt"), ("%i, %ns", "le"), ("%ns, %i", "gt"), ("%ns, %i", "ge")],
)
def test_every_form_of_a_bound(count: int, condition: str, predicate: str):
    text = row_kernel(STORE, condition, predicate)
    assert clips(text) == 1
    assert_as_interpreted(text, arguments(count))


@pytest.mark.parametrize("count", [-(2**31), -(2**31) + 5, 2**31 - 1])
@pytest.mark.parametrize("predicate", ["lt", "le"])
def test_bounds_at_the_ends_of_their_type(count: int, predicate: str):
    args = arguments(count)
    args[0] = np.arange(EXTENT, dtype=np.float32)
    assert_as_interpreted(row_kernel(STORE, predicate=predicate), args)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("fill", [0.0, -0.0, 1.0, -100.0, 100.0, float("inf"), float("nan")])
@pytest.mark.parametrize("kind", ["add", "max", "min", "mul"])
def test_folds_take_in_what_is_masked_off(count: int, fill: float, kind: str):
    """A sum of ones over what is masked off counts it."""
    values = np.asarray(arguments(count)[0])
    if kind == "mul":
        values = np.where(values < 0, -1, 1).astype(np.float32)
    text = row_kernel(fold(kind) + "\nmem.store %yp, %rs, %m\nmem.store %zp, %rs", fill=fill)
    assert_as_interpreted(text, [values, *arguments(count)[1:]])
    assert clips(row_kernel(fold(kind) + "\nmem.store %yp, %rs, %m", fill=fill)) == 2


def test_a_sum_of_negative_zeros_past_the_bound():
    y = np.ones(EXTENT, np.float32)
    for fill in (-0.0, 0.0):
        args = [np.full(EXTENT, -0.0, np.float32), y, y, 3]
        run(row_kernel(fold("add") + "\nmem.store %zp, %rs", fill=fill), args)
        assert np.signbit(y).all() == np.signbit(fill)


@pytest.mark.parametrize("count", COUNTS)
def test_buffers_are_filled_to_the_end(count: int):
    """What two nests need is kept; the second may read it past the bound."""
    text = row_kernel(EXP + "mem.store %yp, %q, %m\nmem.store %zp, %q", fill=-2.0)
    assert clips(text) == 2
    assert_as_interpreted(text, arguments(count), tolerance=1e-6)


@pytest.mark.parametrize("count", COUNTS[2:])
def test_softmax(count: int):
    text = row_kernel(EXP + "mem.store %yp, %q, %m", fill=float("-inf"))
    assert clips(text) == 3
    assert_as_interpreted(text, arguments(count), tolerance=1e-6)


@pytest.mark.parametrize("count", COUNTS)
def test_what_is_selected_by_the_mask(count: int):
    tile = f"tile<{EXTENT}xf32>"
    body = f"""%j = arith.cast %i : {tile}
      %k = arith.select %m, %j, %f : {tile}
      {fold("add", "%k")}
      mem.store %yp, %rs, %m"""
    assert clips(row_kernel(body)) == 2
    assert_as_interpreted(row_kernel(body), arguments(count))


@pytest.mark.parametrize(
    "body",
    [
        "mem.store %yp, %f",
        fold("add", "%j") + "\nmem.store %zp, %rs",
        f"%k = arith.select %m, %f, %j : tile<{EXTENT}xf32>\n"
        + fold("add", "%k") + "\nmem.store %zp, %rs",
        "%ks = arith.compare %i, %xsum {predicate = \"ge\"} : tile<256xi1>\n"
        "mem.store %yp, %f, %ks",
    ],
    ids=["no mask", "an index", "an index where the mask is false", "a rising mask"],
)  # fmt: skip
def test_what_goes_on_past_the_bound(body: str):
    prelude = f"""%j = arith.cast %i : tile<{EXTENT}xf32>
      %xsum = arith.constant {{value = 200}} : tile<{EXTENT}xi32>
    """
    text = row_kernel(prelude + body)
    assert clips(text) == 0
    assert_as_interpreted(text, arguments(33))


def test_unsigned_indices_may_wrap():
    text = f"""func @k(%Y: ptr<f32>, %s: u32, %n: u32) {{
      %i = tile.range {{start = 0, end = {EXTENT}}} : tile<{EXTENT}xi32>
      %u = arith.cast %i : tile<{EXTENT}xu32>
      %ss = tile.splat %s {{shape = [{EXTENT}]}} : tile<{EXTENT}xu32>
      %o = arith.add %u, %ss : tile<{EXTENT}xu32>
      %ns = tile.splat %n {{shape = [{EXTENT}]}} : tile<{EXTENT}xu32>
      %m = arith.compare %o, %ns {{predicate = "lt"}} : tile<{EXTENT}xi1>
      %f = arith.constant {{value = 1.0}} : tile<{EXTENT}xf32>
      %ys = tile.splat %Y {{shape = [{EXTENT}]}} : tile<{EXTENT}xptr<f32>>
      %yp = mem.offset %ys, %i : tile<{EXTENT}xptr<f32>>
      mem.store %yp, %f, %m
      cf.return
    }}"""
    assert "ssub.sat" not in lowered(text).text
    assert_as_interpreted(text, [np.zeros(EXTENT, np.float32), 2**32 - 7, 20])


def table_kernel(condition: str, axis: int) -> str:
    """z = sums along an axis of a masked 64 x 64 table, which is stored to y as well."""
    tile = "tile<64x64x"
    return f"""func @k(%X: ptr<f32>, %Y: ptr<f32>, %Z: ptr<f32>, %m: i32, %n: i32) {{
      %r = tile.range {{start = 0, end = 64}} : tile<64xi32>
      %k = arith.constant {{value = 64}} : {tile}i32>
      %r1 = tile.expand_dims %r {{axis = 1}} : tile<64x1xi32>
      %c1 = tile.expand_dims %r {{axis = 0}} : tile<1x64xi32>
      %i = tile.broadcast %r1 {{shape = [64, 64]}} : {tile}i32>
      %j = tile.broadcast %c1 {{shape = [64, 64]}} : {tile}i32>
      %ms = tile.splat %m {{shape = [64, 1]}} : tile<64x1xi32>
      %ns = tile.splat %n {{shape = [64, 64]}} : {tile}i32>
      %row1 = arith.compare %r1, %ms {{predicate = "lt"}} : tile<64x1xi1>
      %row = tile.broadcast %row1 {{shape = [64, 64]}} : {tile}i1>
      %column = arith.compare %j, %ns {{predicate = "lt"}} : {tile}i1>
      %causal = arith.compare %j, %i {{predicate = "le"}} : {tile}i1>
      %both = arith.and %row, %column : {tile}i1>
      %at0 = arith.mul %i, %k : {tile}i32>
      %at = arith.add %at0, %j : {tile}i32>
      %xs = tile.splat %X {{shape = [64, 64]}} : {tile}ptr<f32>>
      %xp = mem.offset %xs, %at : {tile}ptr<f32>>
      %f = arith.constant {{value = 2.0}} : {tile}f32>
      %x = mem.load %xp, {condition}, %f : {tile}f32>
      %s = tile.reduce %x {{axis = {axis}}} : tile<64xf32> (%a: f32, %b: f32) {{
        %c = arith.add %a, %b : f32
        cf.yield %c
      }}
      %zs = tile.splat %Z {{shape = [64]}} : tile<64xptr<f32>>
      %zp = mem.offset %zs, %r : tile<64xptr<f32>>
      mem.store %zp, %s
      %ys = tile.splat %Y {{shape = [64, 64]}} : {tile}ptr<f32>>
      %yp = mem.offset %ys, %at : {tile}ptr<f32>>
      mem.store %yp, %x, {condition}
      cf.return
    }}"""


@pytest.mark.parametrize("condition", ["%row", "%column", "%both", "%causal"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("rows", "columns"), [(5, 40), (64, 1), (0, 0), (33, 64)])
def test_tables(condition: str, axis: int, rows: int, columns: int):
    x = np.random.default_rng(1).integers(-9, 9, 64 * 64).astype(np.float32)
    args = [x, np.zeros(64 * 64, np.float32), np.zeros(64, np.float32), rows, columns]
    assert_as_interpreted(table_kernel(condition, axis), args)


@pytest.mark.parametrize("condition", ["%row", "%both"])
def test_rows_past_the_bound_are_left_out(condition: str):
    assert clips(table_kernel(condition, 0)) > 0


@tw.jit
def masked_rows_kernel(x, sums, peaks, n, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    value = tl.load(x + row * n + i, mask=i < n, other=OTHER)
    tl.store(sums + row, tl.sum(value))
    tl.store(peaks + row, tl.max(value))


@pytest.mark.parametrize("n", [1, 31, 32, 33, 64, 95, 96, 97, 127, 128])
@pytest.mark.parametrize("other", [0.0, 5.0])
def test_whole_steps_and_the_rest_of_reductions(n: int, other: float):
    """What a mask leaves out is taken in as often as the tile has it, and only then."""
    x = -np.arange(1, 3 * n + 1, dtype=np.float32).reshape(3, n)
    sums, peaks = np.zeros(3, np.float32), np.zeros(3, np.float32)
    kernel = masked_rows_kernel[(3,)](x, sums, peaks, n, OTHER=other, BLOCK=128)
    tile = np.full((3, 128), other, np.float32)
    tile[:, :n] = x
    np.testing.assert_array_equal(sums, tile.sum(1))
    np.testing.assert_array_equal(peaks, tile.max(1))
    if host_cpu().vector_bits == 512 and n % 16 and n != 1:
        program = kernel.asm["llir"]
        assert " = load <32 x float>" in program


CARRIED = f"""%low = arith.constant {{value = 0}} : i32
  %one = arith.constant {{value = 1}} : i32
  %end = arith.constant {{value = 3}} : i32
  %sum = cf.for %low, %end, %one, %f : tile<{EXTENT}xf32> (%k: i32, %s: tile<{EXTENT}xf32>) {{
    %kp = mem.offset %X, %k : ptr<f32>
    %ks = tile.splat %kp {{shape = [{EXTENT}]}} : tile<{EXTENT}xptr<f32>>
    %ka = mem.offset %ks, %i : tile<{EXTENT}xptr<f32>>
    %v = mem.load %ka, %m, %f : tile<{EXTENT}xf32>
    %next = arith.add %s, %v : tile<{EXTENT}xf32>
    cf.yield %next
  }}
  mem.store %yp, %sum"""


@pytest.mark.parametrize("count", COUNTS[:-1])
def test_carried_sums_take_whole_steps_without_a_mask(count: int):
    text = row_kernel(CARRIED)
    x, y = np.arange(EXTENT + 2, dtype=np.float32), np.full(EXTENT, np.nan, np.float32)
    run(text, [x, y, y, count])
    below = np.arange(EXTENT) < count
    np.testing.assert_array_equal(y, np.where(below, 3 * x[:EXTENT] + 3, 0))
    assert clips(text) == 1
