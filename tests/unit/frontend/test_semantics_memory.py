"""Loads, stores, block pointers and atomics: what they do to memory, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.frontend.contexts import BuildBench, EagerBench, data
from tilewright import language as tl
from tilewright.frontend.semantics import binary, compare
from tilewright.ir import types as ir
from tilewright.ops import LoadOp, StoreOp
from tilewright.support import errors


def offset(bench: Any, pointer: tl.tensor, length: int) -> tl.tensor:
    return binary(bench.ctx, "add", pointer, bench.call(tl.arange, length))


def test_masked_load_and_store() -> None:
    bench = EagerBench()
    source, target = np.arange(8, dtype=np.float32), np.zeros(8, np.float16)
    index = bench.call(tl.arange, 8)
    mask = compare(bench.ctx, "lt", index, 5)
    x = bench.call(
        tl.load, binary(bench.ctx, "add", bench.pointer(source, ir.f32), index), mask=mask, other=-1
    )
    assert data(x).tolist() == [0, 1, 2, 3, 4, -1, -1, -1]
    place = binary(bench.ctx, "add", bench.pointer(target, ir.f16), index)
    bench.call(tl.store, place, x, mask=compare(bench.ctx, "ge", index, 4))
    assert target.tolist() == [0, 0, 0, 0, 4, -1, -1, -1]


def test_a_stored_literal_takes_the_element_type() -> None:
    bench = EagerBench()
    target = np.ones(4, np.int8)
    bench.call(tl.store, offset(bench, bench.pointer(target, ir.i8), 4), 300)
    assert target.tolist() == [44] * 4


def test_scalar_access() -> None:
    bench = EagerBench()
    array = np.array([5, 6], np.int32)
    p = bench.pointer(array, ir.i32)
    assert int(data(bench.call(tl.load, p))) == 5
    bench.call(tl.store, binary(bench.ctx, "add", p, 1), bench.tile(2.5, ir.f32))
    bench.call(tl.store, p, 9, mask=False)
    assert array.tolist() == [5, 2]


def test_mask_true_is_no_mask() -> None:
    bench = BuildBench()
    p = bench.tile(ir.PointerType(ir.f32), 4)
    bench.call(tl.load, p, mask=True, other=0.0)
    op = bench.block.last
    assert isinstance(op, LoadOp) and op.mask is None and op.other is None


def test_a_mask_widens_a_tile_of_pointers() -> None:
    bench = BuildBench()
    p = bench.tile(ir.PointerType(ir.f32), 1, 4)
    mask = bench.tile(ir.i1, 2, 1)
    assert bench.call(tl.load, p, mask=mask).shape == (2, 4)


def test_hints_are_kept() -> None:
    bench = BuildBench()
    p = bench.tile(ir.PointerType(ir.f32), 4)
    x = bench.call(
        tl.load, p, cache_modifier=".cg", eviction_policy="evict_last", volatile=tl.constexpr(True)
    )
    load = x.handle.op
    assert isinstance(load, LoadOp)
    assert (load.cache, load.eviction, load.volatile) == (".cg", "evict_last", True)
    bench.call(tl.store, p, x, cache_modifier=".wt", eviction_policy="evict_first")
    store = bench.block.last
    assert isinstance(store, StoreOp) and (store.cache, store.eviction) == (".wt", "evict_first")
    with pytest.raises(errors.InvalidValue, match="cache_modifier"):
        bench.call(tl.load, p, cache_modifier=".xx")
    with pytest.raises(errors.InvalidValue, match="eviction_policy"):
        bench.call(tl.store, p, x, eviction_policy=bench.arg(ir.i32))


def test_what_loads_refuse() -> None:
    bench = BuildBench()
    p, scalar = bench.tile(ir.PointerType(ir.f32), 4), bench.arg(ir.PointerType(ir.f32))
    with pytest.raises(errors.InvalidOperation, match="no pointer"):
        bench.call(tl.load, bench.tile(ir.f32, 4))
    with pytest.raises(errors.InvalidOperation, match="'other' but no 'mask'"):
        bench.call(tl.load, p, other=0.0)
    with pytest.raises(errors.InvalidOperation, match="a mask is int1"):
        bench.call(tl.load, p, mask=bench.tile(ir.i32, 4))
    with pytest.raises(errors.InvalidOperation, match="scalar pointer"):
        bench.call(tl.load, scalar, mask=bench.tile(ir.i1, 4))
    with pytest.raises(errors.ShapeMismatch):
        bench.call(tl.load, p, mask=bench.tile(ir.i1, 8))
    with pytest.raises(errors.InvalidOperation, match="belong to block pointers"):
        bench.call(tl.load, p, boundary_check=(0,))


def test_what_stores_refuse() -> None:
    bench = BuildBench()
    p = bench.tile(ir.PointerType(ir.f32), 4)
    constant = bench.arg(ir.PointerType(ir.f32, True), "weights")
    with pytest.raises(errors.StoreToConst, match="'weights'"):
        bench.call(tl.store, constant, 1.0)
    with pytest.raises(errors.ShapeMismatch):
        bench.call(tl.store, p, bench.tile(ir.f32, 8))
    with pytest.raises(errors.ShapeMismatch):
        bench.call(tl.store, p, bench.tile(ir.f32, 4, 4))
    with pytest.raises(errors.InvalidOperation, match="scalar pointer"):
        bench.call(tl.store, bench.arg(ir.PointerType(ir.f32)), bench.tile(ir.f32, 4))
    with pytest.raises(errors.InvalidOperation, match="no number"):
        bench.call(tl.store, p, "x")


# --- block pointers -------------------------------------------------------------------------------


def window(bench: EagerBench, array: np.ndarray, element: ir.DType, **how: Any) -> Any:
    strides = tuple(s // array.itemsize for s in array.strides)
    arguments = {"offsets": (0, 0), "block_shape": (4, 4), "order": (1, 0), **how}
    base = bench.pointer(array, element)
    return bench.call(tl.make_block_ptr, base, array.shape, strides, **arguments)


def test_block_pointers_load_windows() -> None:
    bench = EagerBench()
    array = np.arange(30, dtype=np.float32).reshape(5, 6)
    p = window(bench, array, ir.f32, offsets=(1, 2))
    assert np.array_equal(data(bench.call(tl.load, p)), array[1:5, 2:6])
    moved = bench.call(tl.advance, p, (2, 1))
    padded = bench.call(tl.load, moved, boundary_check=(0, 1), padding_option="zero")
    expected = np.zeros((4, 4), np.float32)
    expected[:2, :3] = array[3:, 3:]
    assert np.array_equal(data(padded), expected)
    assert np.array_equal(data(bench.call(tl.load, p)), array[1:5, 2:6])


def test_windows_left_of_the_array_are_outside() -> None:
    bench = EagerBench()
    array = np.arange(16, dtype=np.float32).reshape(4, 4)
    p = window(bench, array, ir.f32, offsets=(0, -2))
    found = data(bench.call(tl.load, p, boundary_check=(1,), padding_option="nan"))
    assert np.isnan(found[:, :2]).all() and np.array_equal(found[:, 2:], array[:, :2])


def test_block_pointers_store_inside_only() -> None:
    bench = EagerBench()
    array = np.zeros((5, 6), np.int32)
    p = window(bench, array, ir.i32, offsets=(3, 4))
    bench.call(tl.store, p, 7, boundary_check=(0, 1))
    assert array.sum() == 4 * 7 and (array[3:, 4:] == 7).all()


def test_block_pointers_show_their_element_type() -> None:
    bench = EagerBench()
    p = window(bench, np.zeros((4, 4), np.float16), ir.f16)
    assert p.dtype.element_ty == tl.float16
    assert p.shape == (4, 4)
    assert p.rebuild(p.parts()).parts() == p.parts()


def test_what_block_pointers_refuse() -> None:
    bench = EagerBench()
    array = np.zeros((4, 4), np.int32)
    p = window(bench, array, ir.i32)
    refused: list[tuple[Any, tuple[Any, ...], dict[str, Any], str]] = [
        (tl.load, (p,), {"mask": True}, "'mask' or 'other'"),
        (tl.load, (p,), {"boundary_check": (2,)}, "boundary_check"),
        (tl.load, (p,), {"boundary_check": (0,), "padding_option": "nan"}, "zero for integers"),
        (tl.load, (p,), {"padding_option": "one"}, "padding_option"),
        (tl.advance, (p, (1,)), {}, "of length 2"),
        (tl.advance, (3, (1,)), {}, "a block pointer"),
    ]
    for stub, args, kwargs, text in refused:
        with pytest.raises(errors.CompilationError, match=text):
            bench.call(stub, *args, **kwargs)
    with pytest.raises(errors.InvalidValue, match="permutation"):
        window(bench, array, ir.i32, order=(0, 0))
    with pytest.raises(errors.InvalidValue, match="of length 2, as block_shape"):
        window(bench, array, ir.i32, offsets=(0,))
    with pytest.raises(errors.NonPowerOfTwo):
        window(bench, array, ir.i32, block_shape=(0, 4))


# --- atomics --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stub", "value", "after"),
    [
        (tl.atomic_add, 3, 9),
        (tl.atomic_max, 7, 7),
        (tl.atomic_min, 2, 2),
        (tl.atomic_and, 3, 2),
        (tl.atomic_or, 1, 7),
        (tl.atomic_xor, 5, 3),
        (tl.atomic_xchg, 40, 40),
    ],
)
def test_atomics_return_what_was_there(stub: Any, value: int, after: int) -> None:
    bench = EagerBench()
    array = np.array([6, 6], np.int32)
    p = offset(bench, bench.pointer(array, ir.i32), 2)
    mask = bench.tile([True, False], ir.i1)
    assert int(data(bench.call(stub, p, value, mask=mask))[0]) == 6
    assert array.tolist() == [after, 6]


def test_compare_and_swap() -> None:
    bench = EagerBench()
    array = np.array([1, 2], np.int32)
    p = offset(bench, bench.pointer(array, ir.i32), 2)
    found = bench.call(tl.atomic_cas, p, 1, 10, sem="acquire", scope="sys")
    assert data(found).tolist() == [1, 2] and array.tolist() == [10, 2]


def test_what_atomics_refuse() -> None:
    bench = BuildBench()
    p = bench.tile(ir.PointerType(ir.i8), 4)
    with pytest.raises(errors.InvalidOperation, match="atomic_add on int8"):
        bench.call(tl.atomic_add, p, 1)
    floats = bench.tile(ir.PointerType(ir.f32), 4)
    with pytest.raises(errors.InvalidOperation, match="atomic_xor on fp32"):
        bench.call(tl.atomic_xor, floats, 1)
    with pytest.raises(errors.InvalidValue, match='"relaxed"'):
        bench.call(tl.atomic_add, floats, 1, sem="weak")
    with pytest.raises(errors.InvalidValue, match="scope"):
        bench.call(tl.atomic_add, floats, 1, scope="all")
    with pytest.raises(errors.StoreToConst):
        bench.call(tl.atomic_add, bench.tile(ir.PointerType(ir.f32, True), 4), 1)
