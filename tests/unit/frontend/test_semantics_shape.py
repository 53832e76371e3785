"""Creation, shapes, indexing: what they compute, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.frontend.contexts import BuildBench, EagerBench, data
from tilewright import language as tl
from tilewright.frontend.semantics import getitem
from tilewright.ir import types as ir
from tilewright.support import errors

FULL = slice(None)


def test_the_grid() -> None:
    bench = BuildBench()
    assert bench.call(tl.program_id, 0).handle.type is ir.i32
    assert bench.call(tl.num_programs, axis=tl.constexpr(2)).handle.type is ir.i32
    with pytest.raises(errors.InvalidValue, match="0, 1 or 2"):
        bench.call(tl.program_id, 3)
    with pytest.raises(errors.NotConstexpr, match="'axis' of program_id"):
        bench.call(tl.program_id, bench.arg(ir.i32))


def test_arange() -> None:
    bench = EagerBench()
    assert data(bench.call(tl.arange, 4)).tolist() == [0, 1, 2, 3]
    assert data(bench.call(tl.arange, -2, 2)).tolist() == [-2, -1, 0, 1]
    assert bench.call(tl.arange, 0, 1).shape == (1,)


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        ((4, 4), errors.InvalidValue, "above 'start', which is 4"),
        ((0, 1.5), errors.InvalidValue, "an integer"),
        ((0, 2**21), errors.BlockTooLarge, "2097152 elements; the limit is 1048576"),
        ((2**31 - 1, 2**31 + 1), errors.LiteralOutOfRange, "int32"),
    ],
)
def test_arange_refuses(args: tuple[int, int], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        BuildBench().call(tl.arange, *args)


def test_power_of_two_hint_and_switch() -> None:
    strict = BuildBench(strict_triton=True)
    with pytest.raises(errors.NonPowerOfTwo, match="length of arange .*, found 3"):
        strict.call(tl.arange, 0, 3)
    with pytest.raises(errors.NonPowerOfTwo) as caught:
        strict.call(tl.zeros, (4, 6), tl.float32)
    assert "use 8" in str(caught.value.hint)
    assert BuildBench().call(tl.zeros, (4, 6), tl.float32).shape == (4, 6)


def test_full_and_zeros() -> None:
    bench = EagerBench()
    tile = bench.call(tl.full, (2, tl.constexpr(2)), float("inf"), tl.float16)
    assert tile.dtype == tl.float16 and np.isinf(data(tile)).all()
    assert bench.call(tl.full, [4], 7).dtype == tl.int32
    assert data(bench.call(tl.full, (2,), bench.tile(3, ir.i32), tl.float32)).tolist() == [3, 3]
    assert bench.call(tl.full, (), 1.0, tl.float32).shape == ()
    assert data(bench.call(tl.zeros, (2,), tl.uint8)).tolist() == [0, 0]
    assert bench.call(tl.zeros_like, tile).type == tile.type
    with pytest.raises(errors.LiteralOutOfRange):
        bench.call(tl.full, (2,), 300, tl.int8)
    with pytest.raises(errors.NotConstexpr, match="shape"):
        bench.call(tl.zeros, (bench.tile(4, ir.i32),), tl.float32)


def test_indexing_adds_dimensions() -> None:
    bench = EagerBench()
    x = bench.tile([1, 2], ir.i32)
    assert getitem(bench.ctx, x, (FULL, None)).shape == (2, 1)
    assert getitem(bench.ctx, x, (None, FULL, None)).shape == (1, 2, 1)
    assert getitem(bench.ctx, x, (tl.constexpr(None), FULL)).shape == (1, 2)
    assert getitem(bench.ctx, bench.tile(3, ir.i32), (None,)).shape == (1,)
    assert getitem(bench.ctx, x, FULL).shape == (2,)


def test_other_indices_are_refused() -> None:
    bench = BuildBench()
    x = bench.tile(ir.i32, 4)
    scalar = bench.arg(ir.i32)
    for index, kind, text in (
        (scalar, errors.NotConstexpr, "an index of a tile"),
        (slice(scalar, None), errors.NotConstexpr, "a bound of this slice"),
        ("0", errors.UnsupportedLanguageConstruct, "indexing a tensor with"),
        (4, errors.InvalidValue, "-4 to 3"),
        (slice(3, 1), errors.InvalidOperation, "it is empty"),
        (slice(None, None, 0), errors.InvalidValue, "other than 0"),
        ((FULL, FULL), errors.InvalidOperation, "its rank is 1"),
    ):
        with pytest.raises(kind, match=text):
            getitem(bench.ctx, x, index)
    with pytest.raises(errors.BeyondTriton, match="an index or slice of a tile"):
        getitem(BuildBench(strict_triton=True).ctx, x, 0)


def test_tuples_index_as_in_python() -> None:
    ctx = BuildBench().ctx
    items = tl.tuple((1, 2, 3))
    assert getitem(ctx, items, tl.constexpr(-1)) == 3
    assert getitem(ctx, items, slice(0, 2)) == (1, 2)
    with pytest.raises(errors.InvalidOperation, match="out of range"):
        getitem(ctx, items, 5)
    with pytest.raises(errors.NotConstexpr):
        getitem(ctx, items, BuildBench().arg(ir.i32))


def test_broadcasts() -> None:
    bench = EagerBench()
    row = bench.tile([1, 2], ir.i32)
    assert data(bench.call(tl.broadcast_to, row, 2, 2)).tolist() == [[1, 2], [1, 2]]
    assert bench.call(tl.broadcast_to, 5, (4,)).shape == (4,)
    x, y = bench.call(tl.broadcast, row, bench.tile([[1], [2]], ir.i32))
    assert x.shape == y.shape == (2, 2)
    with pytest.raises(errors.ShapeMismatch):
        bench.call(tl.broadcast_to, row, (4,))
    with pytest.raises(errors.ShapeMismatch):
        bench.call(tl.broadcast_to, bench.tile([[1], [2]], ir.i32), (2,))


def test_reshapes_keep_row_major_order() -> None:
    bench = EagerBench()
    x = bench.tile(np.arange(8).reshape(2, 4), ir.i32)
    assert data(bench.call(tl.reshape, x, 4, 2)).tolist() == np.arange(8).reshape(4, 2).tolist()
    assert bench.call(tl.reshape, x, (8,), can_reorder=True).shape == (8,)
    assert bench.call(tl.view, x, [2, 2, 2]).shape == (2, 2, 2)
    assert bench.call(tl.ravel, x).shape == (8,)
    assert bench.call(tl.reshape, bench.tile(1, ir.i32), (1, 1)).shape == (1, 1)
    with pytest.raises(errors.ShapeMismatch, match="reshape"):
        bench.call(tl.reshape, x, (4, 4))


def test_expand_squeeze_item() -> None:
    bench = EagerBench()
    x = bench.tile([1, 2], ir.i32)
    assert bench.call(tl.expand_dims, x, -1).shape == (2, 1)
    assert bench.call(tl.expand_dims, x, (0, 2)).shape == (1, 2, 1)
    assert bench.call(tl.unsqueeze, x, 0).shape == (1, 2)
    assert bench.call(tl.squeeze, bench.call(tl.unsqueeze, x, 0), 0).shape == (2,)
    one = bench.tile([[7]], ir.i32)
    assert bench.call(tl.item, one).shape == () and int(data(bench.call(tl.item, one))) == 7
    assert bench.call(tl.squeeze, bench.tile([7], ir.i32), 0).shape == ()
    for stub, args in ((tl.item, (x,)), (tl.squeeze, (x, 0)), (tl.expand_dims, (x, (0, 0)))):
        with pytest.raises(errors.InvalidValue):
            bench.call(stub, *args)


def test_transposes() -> None:
    bench = EagerBench()
    values = np.arange(16).reshape(2, 2, 4)
    x = bench.tile(values, ir.i32)
    assert np.array_equal(data(bench.call(tl.trans, x)), values.swapaxes(1, 2))
    assert np.array_equal(data(bench.call(tl.permute, x, 2, 0, 1)), values.transpose(2, 0, 1))
    assert np.array_equal(data(bench.call(tl.trans, x, (0, -1, 1))), values.swapaxes(1, 2))
    with pytest.raises(errors.InvalidValue, match="permutation"):
        bench.call(tl.permute, x, (0, 0, 1))
    with pytest.raises(errors.InvalidOperation, match="one dimension"):
        bench.call(tl.trans, bench.tile([1, 2], ir.i32))


def test_join_split_interleave() -> None:
    bench = EagerBench()
    x, y = bench.tile([1, 2], ir.i32), bench.tile([3, 4], ir.i32)
    joined = bench.call(tl.join, x, y)
    assert data(joined).tolist() == [[1, 3], [2, 4]]
    first, second = bench.call(tl.split, joined)
    assert data(first).tolist() == [1, 2] and data(second).tolist() == [3, 4]
    assert data(bench.call(tl.interleave, x, y)).tolist() == [1, 3, 2, 4]
    assert data(bench.call(tl.join, 1, 2)).tolist() == [1, 2]
    assert bench.call(tl.join, x, 1.5).dtype == tl.float32
    low, high = bench.call(tl.split, bench.tile([5, 6], ir.i32))
    assert low.shape == () and int(data(high)) == 6
    with pytest.raises(errors.InvalidValue, match="last extent is 2"):
        bench.call(tl.split, bench.tile([1, 2, 3, 4], ir.i32))


def test_cat_gather_flip() -> None:
    bench = EagerBench()
    x = bench.tile([[1, 2], [3, 4]], ir.i32)
    assert data(bench.call(tl.cat, x, x, dim=1)).tolist() == [[1, 2, 1, 2], [3, 4, 3, 4]]
    index = bench.tile([[1, 1], [0, 0]], ir.i32)
    assert data(bench.call(tl.gather, x, index, 0)).tolist() == [[3, 4], [1, 2]]
    assert data(bench.call(tl.gather, x, index, axis=1)).tolist() == [[2, 2], [3, 3]]
    assert data(bench.call(tl.flip, x)).tolist() == [[2, 1], [4, 3]]
    assert data(bench.call(tl.flip, x, 0)).tolist() == [[3, 4], [1, 2]]
    with pytest.raises(errors.DTypeMismatch, match="concatenate"):
        bench.call(tl.cat, x, bench.tile([[1.0, 2.0]], ir.f32))
    with pytest.raises(errors.ShapeMismatch, match="gather"):
        bench.call(tl.gather, x, bench.tile([[1, 1, 1, 1]], ir.i32), 0)
    with pytest.raises(errors.InvalidValue, match="integer tile"):
        bench.call(tl.gather, x, bench.tile([[1.0, 1.0]], ir.f32), 0)
