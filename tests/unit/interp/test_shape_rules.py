"""Ops that create tiles or move elements."""

import numpy as np
import pytest

import tilewright.ops as ops
from tests.unit.interp.tiles import run, tile
from tilewright.eager import EagerBuilder
from tilewright.interp import ConcreteValue, Machine, Memory
from tilewright.ir.types import bf16, f32, i32, i64
from tilewright.support import errors

X = np.arange(24).reshape(2, 3, 4)


def test_range_and_splat():
    assert run(ops.RangeOp(3, 7)).tolist() == [3, 4, 5, 6]
    splat = run(ops.SplatOp(tile(bf16, 1.5), (2, 3)))
    assert splat.shape == (2, 3) and splat.dtype == "bfloat16" and (splat == 1.5).all()


def test_shape_changes():
    x = tile(i32, X)
    assert np.array_equal(run(ops.TransposeOp(x, (2, 0, 1))), X.transpose(2, 0, 1))
    assert np.array_equal(run(ops.ReshapeOp(x, (4, 6))), X.reshape(4, 6))
    assert run(ops.ExpandDimsOp(x, 1)).shape == (2, 1, 3, 4)
    assert np.array_equal(
        run(ops.BroadcastOp(tile(i32, [[1], [2]]), (2, 3))), [[1, 1, 1], [2, 2, 2]]
    )
    assert run(ops.HintOp(x, (1, 1, 16))) is not None
    assert run(ops.ItemOp(tile(i32, [[5]]))).shape == ()


def test_reshape_of_a_transposed_tile_is_row_major():
    moved = EagerBuilder(Machine(Memory())).value(ops.TransposeOp(tile(i32, X), (1, 0, 2)))
    assert np.array_equal(run(ops.ReshapeOp(moved, (24,))), X.transpose(1, 0, 2).reshape(-1))


def test_join_split_and_cat():
    x, y = tile(f32, [1, 2]), tile(f32, [3, 4])
    assert run(ops.JoinOp(x, y)).tolist() == [[1, 3], [2, 4]]
    assert run(ops.CatOp(x, y, 0)).tolist() == [1, 2, 3, 4]
    both = tile(f32, [[1, 3], [2, 4]])
    results = EagerBuilder(Machine(Memory())).emit(ops.SplitOp(both)).results
    found = [value.data.tolist() for value in results if isinstance(value, ConcreteValue)]
    assert found == [[1, 2], [3, 4]]


@pytest.mark.parametrize("axis", [0, 1])
def test_gather(axis):
    x = np.arange(12).reshape(3, 4)
    index = np.random.default_rng(0).integers(0, x.shape[axis], (3, 4))
    found = run(ops.GatherOp(tile(f32, x), tile(i64, index), axis))
    for i, j in np.ndindex(3, 4):
        assert found[i, j] == (x[index[i, j], j] if axis == 0 else x[i, index[i, j]])


def test_gather_may_change_the_extent_and_checks_its_index():
    assert run(ops.GatherOp(tile(f32, [1, 2, 3]), tile(i32, [2, 2]), 0)).tolist() == [3, 3]
    with pytest.raises(errors.OutOfBounds, match="index 3 of a gather along an extent of 3"):
        run(ops.GatherOp(tile(f32, [1, 2, 3]), tile(i32, [0, 3]), 0))
