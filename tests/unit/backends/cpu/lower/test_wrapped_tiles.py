"""Tiles of remainders: loaded as runs where they do not wrap around, with the same results."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.backends.cpu.textual import assert_as_interpreted, lowered
from tilewright.ir.types import dtype_named

EXTENT, ELEMENTS = 64, 1024


def kernel(dtype: str = "i32", divisor: str = "%n", more: str = "%xp", result: str = "%x") -> str:
    """Copies x[(s + i) % n] for i < EXTENT, and 0 where that is outside of x."""
    tile, shape = f"tile<{EXTENT}x", f"{{shape = [{EXTENT}]}}"
    return f"""func @k(%X: ptr<f32>, %Y: ptr<f32>, %s: {dtype}, %n: {dtype}) {{
      %i = tile.range {{start = 0, end = {EXTENT}}} : {tile}i32>
      %c = arith.cast %i : {tile}{dtype}>
      %ss = tile.splat %s {shape} : {tile}{dtype}>
      %at = arith.add %ss, %c : {tile}{dtype}>
      %three = arith.constant {{value = 3}} : {dtype}
      %k = arith.constant {{value = {EXTENT // 2}}} : {dtype}
      %ns = tile.splat {divisor} {shape} : {tile}{dtype}>
      %r = arith.rem %at, %ns : {tile}{dtype}>
      %zero = arith.constant {{value = 0}} : {tile}{dtype}>
      %all = arith.constant {{value = {min(ELEMENTS, dtype_named(dtype).max_int)}}} : {tile}{dtype}>
      %low = arith.compare %r, %zero {{predicate = "ge"}} : {tile}i1>
      %high = arith.compare %r, %all {{predicate = "lt"}} : {tile}i1>
      %m = arith.and %low, %high : {tile}i1>
      %xs = tile.splat %X {shape} : {tile}ptr<f32>>
      %xp = mem.offset %xs, %r : {tile}ptr<f32>>
      %f = arith.constant {{value = 0.0}} : {tile}f32>
      %x = mem.load {more}, %m, %f : {tile}f32>
      %ys = tile.splat %Y {shape} : {tile}ptr<f32>>
      %yp = mem.offset %ys, %i : {tile}ptr<f32>>
      mem.store %yp, {result}
      cf.return
    }}"""


def assert_wraps(text: str, start: int, divisor: int) -> None:
    x = np.random.default_rng(0).integers(-99, 99, ELEMENTS).astype(np.float32)
    assert_as_interpreted(text, [x, np.zeros(EXTENT, np.float32), start, divisor])


def variants(text: str) -> tuple[int, int]:
    """How often a tile is gathered, and loaded in runs."""
    code = lowered(text).text
    return code.count("= call <32 x float> @llvm.masked.gather"), code.count(
        "= call <32 x float> @llvm.masked.load"
    )


def test_a_nest_gathers_only_where_its_tile_wraps():
    gathers, runs = variants(kernel())
    assert gathers == runs > 0
    # it always wraps at 32
    assert variants(kernel(divisor="%k"))[1] == 0


def ends(dtype: str) -> tuple[int, int]:
    type_ = dtype_named(dtype)
    return type_.min_int, type_.max_int


STARTS = [0, 1, 16, 63, 64, 100, 936, 937, 1000, 5000]
DIVISORS = [1, 2, 63, 64, 65, 100, 128, 1000, 1024]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("divisor", DIVISORS)
def test_tiles_in_front_of_the_wrap_and_across_it(start: int, divisor: int):
    assert_wraps(kernel(), start, divisor)


@pytest.mark.parametrize("start", [-1, -16, -63, -64, -1000])
@pytest.mark.parametrize("divisor", [1, 64, 65, 100, 1000, -1, -64, -65, -1000])
def test_numbers_below_zero(start: int, divisor: int):
    assert_wraps(kernel(), start, divisor)
    assert_wraps(kernel(), -start, divisor)


@pytest.mark.parametrize("dtype", ["i64", "u32", "u64", "i16", "u8", "i8"])
def test_other_types(dtype: str):
    """At their ends too, where the dividend passes from the largest number to the smallest."""
    low, high = ends(dtype)
    for start in (0, 5, high - 62, high - 63, high - 64, high, *((low, -1) if low else ())):
        for divisor in (1, 63, 64, 65, min(1000, high), high - 1, high):
            assert_wraps(kernel(dtype), start, divisor)


def test_numbers_at_the_ends_of_their_type():
    low, high = ends("i32")
    for start in (high - 63, high - 62, high, low):
        for divisor in (high, high - 1, low, low + 1, 1000):
            assert_wraps(kernel(), start, divisor)
