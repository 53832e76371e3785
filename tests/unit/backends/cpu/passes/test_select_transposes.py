"""Which transpositions go through registers, and that they are right."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.backends.cpu.textual import assert_as_interpreted, function_of, strided_offsets
from tilewright.backends.cpu.ops import BlockTransposeOp
from tilewright.backends.cpu.passes.select_transposes import SelectTransposes
from tilewright.ops import TransposeOp


def kernel(shape: tuple[int, ...], order: tuple[int, ...], strides: tuple[int, ...]) -> str:
    """y = transpose x, where x has the given strides in memory and y is dense."""
    sizes, numel = "x".join(map(str, shape)), int(np.prod(shape))
    turned = [shape[k] for k in order]
    out = "x".join(map(str, turned))
    return f"""func @k(%X: ptr<f32>, %Y: ptr<f32>) {{
      {strided_offsets(shape, strides)}
      %xs = tile.splat %X {{shape = {list(shape)}}} : tile<{sizes}xptr<f32>>
      %xp = mem.offset %xs, %at : tile<{sizes}xptr<f32>>
      %x = mem.load %xp : tile<{sizes}xf32>
      %t = tile.transpose %x {{order = {list(order)}}} : tile<{out}xf32>
      %j = tile.range {{start = 0, end = {numel}}} : tile<{numel}xi32>
      %k = tile.reshape %j {{shape = {turned}}} : tile<{out}xi32>
      %ys = tile.splat %Y {{shape = {turned}}} : tile<{out}xptr<f32>>
      %yp = mem.offset %ys, %k : tile<{out}xptr<f32>>
      mem.store %yp, %t
      cf.return
    }}"""


def chosen(text: str) -> bool:
    function = function_of(text)
    SelectTransposes().run(function)
    kinds = [type(op) for op in function.walk()]
    assert (BlockTransposeOp in kinds) != (TransposeOp in kinds)
    return BlockTransposeOp in kinds


def test_rows_in_memory_go_through_registers():
    assert chosen(kernel((16, 32), (1, 0), (32, 1)))
    assert chosen(kernel((2, 16, 32), (0, 2, 1), (512, 32, 1)))


def test_columns_in_memory_are_read_in_their_order():
    assert not chosen(kernel((16, 32), (1, 0), (1, 16)))


def test_other_permutations_are_free():
    assert not chosen(kernel((4, 8, 2), (2, 0, 1), (16, 2, 1)))
    assert not chosen(kernel((4, 8), (0, 1), (8, 1)))


def test_products_and_scans_have_rows():
    text = """func @k(%X: ptr<f32>) {
      %a = arith.constant {value = 1.0} : tile<8x8xf32>
      %d = tile.dot %a, %a, %a : tile<8x8xf32>
      %t = tile.transpose %d {order = [1, 0]} : tile<8x8xf32>
      cf.return
    }"""
    assert chosen(text)


def test_tiles_of_pointers_stay():
    text = """func @k(%X: ptr<f32>) {
      %i = tile.range {start = 0, end = 64} : tile<64xi32>
      %j = tile.reshape %i {shape = [8, 8]} : tile<8x8xi32>
      %xs = tile.splat %X {shape = [8, 8]} : tile<8x8xptr<f32>>
      %xp = mem.offset %xs, %j : tile<8x8xptr<f32>>
      %t = tile.transpose %xp {order = [1, 0]} : tile<8x8xptr<f32>>
      %x = mem.load %t : tile<8x8xf32>
      mem.store %xp, %x
      cf.return
    }"""
    function = function_of(text)
    SelectTransposes().run(function)
    assert any(isinstance(op, TransposeOp) for op in function.walk())


@pytest.mark.parametrize(
    ("shape", "order"),
    [((16, 32), (1, 0)), ((32, 16), (1, 0)), ((1, 8), (1, 0)), ((8, 1), (1, 0)), ((6, 4), (1, 0)),
     ((3, 5), (1, 0)), ((2, 16, 8), (0, 2, 1)), ((4, 8, 2), (2, 0, 1)), ((4, 8, 2), (1, 0, 2)),
     ((2, 2, 2), (2, 1, 0)), ((64, 128), (1, 0))],
)  # fmt: skip
def test_elements_arrive(shape: tuple[int, ...], order: tuple[int, ...]):
    numel = int(np.prod(shape))
    strides = [int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
    x = np.arange(numel, dtype=np.float32)
    for some in (strides, [int(np.prod(shape[:d])) for d in range(len(shape))]):
        assert_as_interpreted(kernel(shape, order, tuple(some)), [x, np.zeros(numel, np.float32)])
