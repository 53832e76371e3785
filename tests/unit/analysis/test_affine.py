"""Affine queries: directions, trends, linearity, quotients, spans, addends and factors."""

from __future__ import annotations

import pytest

from tilewright.analysis import affine
from tilewright.analysis.affine import Quotient, Span
from tilewright.ir import Value, parse_module, verify
from tilewright.ops import ForOp, RemOp


def values(text: str) -> dict[str, Value]:
    """The named values of a kernel, its arguments and those of its loops."""
    kernel = parse_module(text).kernel
    assert not verify(kernel), verify(kernel)
    found = {arg.name: arg for arg in kernel.args}
    for op in kernel.walk():
        found.update((v.name, v) for v in op.results)
        found.update((arg.name, arg) for block in op.regions for arg in block.args)
    return found


INDICES = """func @k(%n: i32, %m: i64) {
  %i = tile.range {start = 0, end = 16} : tile<16xi32>
  %below_zero = tile.range {start = -8, end = 8} : tile<16xi32>
  %ns = tile.splat %n {shape = [16]} : tile<16xi32>
  %k = arith.constant {value = -3} : tile<16xi32>
  %up = arith.add %i, %ns : tile<16xi32>
  %down = arith.sub %ns, %i : tile<16xi32>
  %falling = arith.mul %i, %k : tile<16xi32>
  %still = arith.sub %ns, %k : tile<16xi32>
  %mixed = arith.sub %i, %i : tile<16xi32>
  %wide = arith.cast %up : tile<16xi64>
  %narrow = arith.cast %up : tile<16xi8>
  %unsigned = arith.cast %below_zero : tile<16xu32>
  %still_unsigned = arith.cast %ns : tile<16xu32>
  %wide_unsigned = arith.cast %still_unsigned : tile<16xi64>
  %square = arith.mul %i, %i : tile<16xi32>
  %five = arith.constant {value = 5} : tile<16xi32>
  %above = arith.add %up, %five : tile<16xi32>
  %twice = arith.add %up, %ns : tile<16xi32>
  %row = tile.expand_dims %up {axis = 0} : tile<1x16xi32>
  %rows = tile.broadcast %row {shape = [4, 16]} : tile<4x16xi32>
  cf.return
}"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [("i", 1), ("ns", 0), ("k", 0), ("up", 1), ("down", -1), ("falling", -1), ("still", 0),
     ("mixed", None), ("wide", 1), ("narrow", None), ("unsigned", None), ("still_unsigned", 0),
     ("wide_unsigned", 0), ("square", None), ("rows", 1), ("n", 0)],
)  # fmt: skip
def test_directions(name: str, expected: int | None) -> None:
    assert affine.of(values(INDICES)[name]).direction() == expected


def test_spans_are_a_scalar_and_natural_numbers_above_it() -> None:
    found = values(INDICES)
    n = found["n"]
    expected = {
        "i": Span(None, 0, 15), "ns": Span(n, 0, 0), "up": Span(n, 0, 15),
        "above": Span(n, 5, 20), "rows": Span(n, 0, 15),
        # two scalars, a negative start, a negative number, a difference
        "twice": None, "below_zero": None, "k": None, "down": None,
    }  # fmt: skip
    assert {name: affine.of(found[name]).span() for name in expected} == expected


def test_a_span_that_may_leave_32_bits_is_none() -> None:
    half = Span(None, 0, 2**30)
    assert half.plus(half) is None and half.plus(Span(None, 1, 1)) == Span(None, 1, 2**30 + 1)


SCALARS = """func @k(%n: i32, %p: ptr<f32>) {
  %c2 = arith.constant {value = 2} : i32
  %c6 = arith.constant {value = 6} : i32
  %c8 = arith.constant {value = 8} : i32
  %more = arith.add %n, %c6 : i32
  %further = arith.add %c2, %more : i32
  %wide = arith.cast %further : i64
  %eight = arith.constant {value = 8} : i64
  %parts = arith.div %wide, %eight : i64
  %halves = arith.div %parts, %eight : i64
  %minus = arith.sub %n, %c6 : i32
  %scaled = arith.mul %n, %c8 : i32
  %again = arith.mul %scaled, %minus : i32
  %q = mem.offset %p, %n : ptr<f32>
  %pid = cf.program_id {axis = 1} : i32
  %rows = arith.mul %pid, %c8 : i32
  %left = arith.sub %n, %rows : i32
  %last = arith.min %left, %c6 : i32
  %tiles = arith.div %last, %c2 : i32
  %size = arith.abs %pid : i32
  cf.return
}"""


def test_quotients() -> None:
    found = values(SCALARS)
    n, wide = found["n"], found["wide"]
    queried = {name: affine.of(found[name]).quotient() for name in found if name}
    assert queried["further"] == Quotient(n, 8) and queried["parts"] == Quotient(n, 8, 8)
    assert queried["c6"] == Quotient(None, 6)
    # a quotient of a quotient, a difference and a product are their own bases
    for name in ("halves", "minus", "scaled", "n"):
        assert queried[name] == Quotient(found[name])
    assert affine.of(wide).quotient(through_casts=False) == Quotient(wide)


def test_factors_and_addends() -> None:
    found = values(SCALARS)
    assert list(affine.of(found["again"]).factors()) == [found["n"], found["c8"], found["minus"]]
    assert list(affine.of(found["minus"]).factors()) == [found["minus"]]
    assert affine.of(found["more"]).addend(found["n"]) is found["c6"]
    assert affine.of(found["further"]).addend(found["more"]) is found["c2"]
    assert affine.of(found["q"]).addend(found["p"]) is found["n"]
    assert affine.of(found["minus"]).addend(found["n"]) is None
    assert affine.of(found["more"]).addend(found["c2"]) is None


@pytest.mark.parametrize(
    ("name", "trend"),
    [("rows", 1), ("left", -1), ("last", -1), ("tiles", -1), ("n", 0), ("size", 0), ("c6", 0)],
)
def test_trends_along_an_axis_of_the_grid(name: str, trend: int) -> None:
    value = affine.of(values(SCALARS)[name])
    assert (value.trend(1), value.trend(0)) == (trend, 0)


def test_ranges() -> None:
    found = values(INDICES)
    bounds = affine.of(found["below_zero"]).range()
    assert bounds is not None and (bounds.low, bounds.high) == (-8, 7)


LOOP = """func @k(%n: i32, %p: ptr<f32>) {
  %c0 = arith.constant {value = 0} : i32
  %c4 = arith.constant {value = 4} : i32
  %i = tile.range {start = 0, end = 16} : tile<16xi32>
  %ns = tile.splat %n {shape = [16]} : tile<16xi32>
  %wrapped = arith.rem %i, %ns : tile<16xi32>
  %end = cf.for %c0, %n, %c4, %n : i32 (%k: i32, %carried: i32) {
    %ks = tile.splat %k {shape = [16]} : tile<16xi32>
    %sum = arith.add %ks, %i : tile<16xi32>
    %scaled = arith.mul %sum, %ns : tile<16xi32>
    %square = arith.mul %sum, %sum : tile<16xi32>
    %wide = arith.cast %sum : tile<16xi64>
    %narrow = arith.cast %sum : tile<16xi8>
    %inside = arith.rem %sum, %ns : tile<16xi32>
    %through = arith.add %wrapped, %ks : tile<16xi32>
    %still = arith.abs %ns : tile<16xi32>
    %more = arith.add %carried, %c4 : i32
    cf.yield %more
  }
  cf.return
}"""


def test_linearity_in_coordinates_and_iterations() -> None:
    found = values(LOOP)
    loop = found["k"].owner.owner  # type: ignore[union-attr]
    assert isinstance(loop, ForOp)
    linear = affine.Linear(loop)
    degrees = {"sum": 1, "scaled": 1, "square": None, "wide": 1, "narrow": None, "inside": None,
               "still": 0, "carried": 1, "c4": 0}  # fmt: skip
    assert {name: linear.degree(found[name]) for name in degrees} == degrees
    assert linear.remainders == []
    assert affine.of(found["through"]).is_linear_in(linear)
    assert affine.of(found["ns"]).is_invariant_in(linear)
    assert not affine.of(found["sum"]).is_invariant_in(linear)
    # of the dividend, as long as it does not wrap
    (remainder,) = linear.remainders
    assert isinstance(remainder, RemOp) and remainder.result is found["wrapped"]
