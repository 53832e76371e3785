"""Nests: which dimension runs over lanes, how reductions fold, masked and odd-sized tiles."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.unit.backends.cpu.textual import (
    assert_as_interpreted,
    function_of,
    lowered,
    run,
    strided_offsets,
)
from tilewright.backends.cpu.lower.fused_loop_nest import neutral_elements
from tilewright.ops import ReduceOp


def copy_kernel(shape: tuple[int, ...], strides: tuple[int, ...], element: str = "f32") -> str:
    """y = x, dense, where x has the given strides."""
    sizes, numel = "x".join(map(str, shape)), int(np.prod(shape))
    return f"""func @k(%X: ptr<{element}>, %Y: ptr<{element}>) {{
      {strided_offsets(shape, strides)}
      %xs = tile.splat %X {{shape = {list(shape)}}} : tile<{sizes}xptr<{element}>>
      %xp = mem.offset %xs, %at : tile<{sizes}xptr<{element}>>
      %x = mem.load %xp : tile<{sizes}x{element}>
      %j = tile.range {{start = 0, end = {numel}}} : tile<{numel}xi32>
      %k = tile.reshape %j {{shape = {list(shape)}}} : tile<{sizes}xi32>
      %ys = tile.splat %Y {{shape = {list(shape)}}} : tile<{sizes}xptr<{element}>>
      %yp = mem.offset %ys, %k : tile<{sizes}xptr<{element}>>
      mem.store %yp, %x
      cf.return
    }}"""


def widths(text: str) -> set[int]:
    """Lanes of the vectors that are stored."""
    return {int(n) for n in re.findall(r"store <(\d+) x", lowered(text).text)}


def test_lanes_run_along_memory():
    text = lowered(copy_kernel((16, 32), (32, 1))).text
    assert "gather" not in text
    assert "scatter" not in text


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((8, 8), (3, 29)), ((64, 8), (29, 300)), ((4, 8, 8), (3, 100, 29)), ((8, 4, 8), (29, 100, 3))],
)
def test_lanes_gather_rather_than_gather_and_scatter(
    shape: tuple[int, ...], strides: tuple[int, ...]
):
    """Each instruction of a step counts once, whichever dimension the lanes run along."""
    text = lowered(copy_kernel(shape, strides)).text
    assert "gather" in text
    assert "scatter" not in text


def test_lanes_divide_the_extent():
    assert max(widths(copy_kernel((4, 24), (24, 1)))) == 8
    assert max(widths(copy_kernel((5, 6), (6, 1)))) == 2
    assert widths(copy_kernel((8, 5), (5, 1))) == set()


def test_small_elements_have_more_lanes():
    wide = max(widths(copy_kernel((256,), (1,), "f64")))
    assert max(widths(copy_kernel((256,), (1,), "i16"))) == 4 * wide


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((16,), (1,)), ((7,), (1,)), ((1,), (1,)), ((4, 8), (8, 1)), ((4, 8), (1, 4)),
     ((3, 5), (5, 1)), ((4, 8), (0, 1)), ((4, 8), (1, 0)), ((2, 4, 8), (32, 8, 1)),
     ((2, 4, 8), (1, 2, 8)), ((2, 4, 8), (4, 1, 8)), ((1, 1, 16), (0, 0, 1)), ((16, 2), (2, 1)),
     ((8, 8), (3, 29))],
)  # fmt: skip
@pytest.mark.parametrize("element", ["f32", "i8", "i1", "f64"])
def test_every_order_of_memory(shape: tuple[int, ...], strides: tuple[int, ...], element: str):
    numel = int(np.prod(shape))
    dtype = {"f32": "f4", "i8": "i1", "i1": "?", "f64": "f8"}[element]
    x = (np.arange(1 + 8 * 32 + numel) % 5 > 1 if element == "i1" else np.arange(512)).astype(dtype)
    assert_as_interpreted(copy_kernel(shape, strides, element), [x, np.zeros(numel, dtype)])


def fold_kernel(shape: tuple[int, ...], axis: int, kind: str, element: str) -> str:
    """y = fold of x along an axis."""
    sizes, numel = "x".join(map(str, shape)), int(np.prod(shape))
    kept = [n for d, n in enumerate(shape) if d != axis] or [1]
    out = "x".join(map(str, kept))
    result = f"tile<{out}x{element}>" if len(shape) > 1 else element
    back = "" if len(shape) > 1 else f"%s = tile.splat %r {{shape = [1]}} : tile<1x{element}>"
    return f"""func @k(%X: ptr<{element}>, %Y: ptr<{element}>) {{
      %i = tile.range {{start = 0, end = {numel}}} : tile<{numel}xi32>
      %j = tile.reshape %i {{shape = {list(shape)}}} : tile<{sizes}xi32>
      %xs = tile.splat %X {{shape = {list(shape)}}} : tile<{sizes}xptr<{element}>>
      %xp = mem.offset %xs, %j : tile<{sizes}xptr<{element}>>
      %x = mem.load %xp : tile<{sizes}x{element}>
      %r = tile.reduce %x {{axis = {axis}}} : {result} (%a: {element}, %b: {element}) {{
        %c = arith.{kind} %a, %b : {element}
        cf.yield %c
      }}
      {back}
      %k = tile.range {{start = 0, end = {int(np.prod(kept))}}} : tile<{int(np.prod(kept))}xi32>
      %m = tile.reshape %k {{shape = {kept}}} : tile<{out}xi32>
      %ys = tile.splat %Y {{shape = {kept}}} : tile<{out}xptr<{element}>>
      %yp = mem.offset %ys, %m : tile<{out}xptr<{element}>>
      mem.store %yp, {"%r" if len(shape) > 1 else "%s"}
      cf.return
    }}"""


FOLDS = [("add", "i32"), ("max", "i32"), ("min", "u8"), ("xor", "i64"), ("and", "i16"),
         ("or", "u32"), ("mul", "i32"), ("add", "f32"), ("max", "f32"), ("min", "f64")]  # fmt: skip


@pytest.mark.parametrize(("kind", "element"), FOLDS)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((64,), 0), ((1,), 0), ((6,), 0), ((4, 32), 0), ((4, 32), 1), ((32, 2), 0), ((2, 4, 8), 0),
     ((2, 4, 8), 1), ((2, 4, 8), 2), ((3, 5), 1), ((1, 8), 0)],
)  # fmt: skip
def test_folds(shape: tuple[int, ...], axis: int, kind: str, element: str):
    names = {"i32": "i4", "u8": "u1", "i64": "i8", "i16": "i2", "u32": "u4", "f32": "f4",
             "f64": "f8"}  # fmt: skip
    dtype = np.dtype(names[element])
    numel = int(np.prod(shape))
    x = np.random.default_rng(0).integers(1, 100, numel).astype(dtype)
    if dtype.kind != "u":
        x[::3] *= dtype.type(-1)
    assert_as_interpreted(
        fold_kernel(shape, axis, kind, element), [x, np.zeros(numel // shape[axis], dtype)]
    )


def reduce_of(kind: str, element: str) -> ReduceOp:
    function = function_of(fold_kernel((8,), 0, kind, element))
    return next(op for op in function.walk() if isinstance(op, ReduceOp))


@pytest.mark.parametrize(
    ("kind", "element", "start"),
    [("add", "i32", "0"), ("mul", "i32", "1"), ("and", "i8", "-1"), ("or", "i32", "0"),
     ("xor", "u32", "0"), ("add", "f32", "0x8000000000000000")],
)  # fmt: skip
def test_where_folds_start(kind: str, element: str, start: str):
    """A sum of floats starts at -0.0: -0.0 + -0.0 is -0.0."""
    found = neutral_elements(reduce_of(kind, element))
    assert found is not None
    assert [v.text for v in found] == [start]


@pytest.mark.parametrize(("kind", "element"), [("max", "f32"), ("min", "i32"), ("sub", "i32")])
def test_folds_that_start_with_an_element(kind: str, element: str):
    assert neutral_elements(reduce_of(kind, element)) is None


def test_a_sum_of_negative_zeros():
    y = np.ones(1, np.float32)
    run(fold_kernel((16,), 0, "add", "f32"), [np.full(16, -0.0, np.float32), y])
    assert y[0] == 0
    assert np.signbit(y[0])


@pytest.mark.parametrize("nans", [0, 1, 15, 16])
@pytest.mark.parametrize("kind", ["max", "min"])
def test_extrema_of_nans(kind: str, nans: int):
    """A NaN loses; over nothing but NaNs the result is one."""
    x = np.arange(16, dtype=np.float32)
    x[:nans] = np.nan
    assert_as_interpreted(fold_kernel((16,), 0, kind, "f32"), [x, np.zeros(1, np.float32)])


@pytest.mark.parametrize("n", [0, 1])
def test_one_address_with_a_fill_of_each_lane(n: int):
    text = """func @k(%X: ptr<i32>, %Y: ptr<i32>, %n: i32) {
      %i = tile.range {start = 0, end = 64} : tile<64xi32>
      %xs = tile.splat %X {shape = [64]} : tile<64xptr<i32>>
      %zero = arith.constant {value = 0} : i32
      %go = arith.compare %n, %zero {predicate = "gt"} : i1
      %m = tile.splat %go {shape = [64]} : tile<64xi1>
      %x = mem.load %xs, %m, %i : tile<64xi32>
      %ys = tile.splat %Y {shape = [64]} : tile<64xptr<i32>>
      %yp = mem.offset %ys, %i : tile<64xptr<i32>>
      mem.store %yp, %x
      cf.return
    }"""
    assert_as_interpreted(text, [np.array([77], np.int32), np.zeros(64, np.int32), n])


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 63, 64])
@pytest.mark.parametrize("element", ["f32", "f16", "i8", "i1", "i64"])
def test_masked_tiles(count: int, element: str):
    """Nothing beyond the mask is read or written."""
    dtype = {"f32": "f4", "f16": "f2", "i8": "i1", "i1": "?", "i64": "i8"}[element]
    fill = {"f32": "7.0", "f16": "7.0", "i8": "7", "i1": "true", "i64": "7"}[element]
    text = f"""func @k(%X: ptr<{element}>, %Y: ptr<{element}>, %n: i32) {{
      %i = tile.range {{start = 0, end = 64}} : tile<64xi32>
      %ns = tile.splat %n {{shape = [64]}} : tile<64xi32>
      %m = arith.compare %i, %ns {{predicate = "lt"}} : tile<64xi1>
      %xs = tile.splat %X {{shape = [64]}} : tile<64xptr<{element}>>
      %xp = mem.offset %xs, %i : tile<64xptr<{element}>>
      %f = arith.constant {{value = {fill}}} : tile<64x{element}>
      %x = mem.load %xp, %m, %f : tile<64x{element}>
      %last = arith.constant {{value = 63}} : tile<64xi32>
      %back = arith.sub %last, %i : tile<64xi32>
      %ys = tile.splat %Y {{shape = [64]}} : tile<64xptr<{element}>>
      %yp = mem.offset %ys, %i : tile<64xptr<{element}>>
      %zp = mem.offset %ys, %back : tile<64xptr<{element}>>
      mem.store %zp, %x
      mem.store %yp, %x, %m
      cf.return
    }}"""
    x = np.arange(count).astype(dtype) if count else np.zeros(1, dtype)
    assert_as_interpreted(text, [x, np.zeros(64, dtype), count])
