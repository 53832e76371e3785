"""Reductions, scans, softmax and dot: values, dtypes, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.unit.frontend.contexts import BuildBench, EagerBench, data
from tilewright import language as tl
from tilewright.ir import types as ir
from tilewright.ops import DotOp, ReduceOp
from tilewright.support import errors


@tl.device_function
def combine_sum(a: Any, b: Any) -> Any:
    return a + b


@tl.device_function
def combine_affine(a1: Any, b1: Any, a2: Any, b2: Any) -> Any:
    return a1 * a2, a2 * b1 + b2


@tl.device_function
def combine_wrongly(a: Any, b: Any) -> Any:
    return (a + b).to(tl.float64)


VALUES = np.array([[3, 1, 2, 1], [4, 0, 4, 9]])


def test_sums() -> None:
    bench = EagerBench()
    x = bench.tile(VALUES, ir.i32)
    assert data(bench.call(tl.sum, x, 1)).tolist() == [7, 17]
    assert data(bench.call(tl.sum, x, axis=0)).tolist() == [7, 1, 6, 10]
    assert int(data(bench.call(tl.sum, x))) == 24
    assert bench.call(tl.sum, x, -1, keep_dims=True).shape == (2, 1)
    assert bench.call(tl.sum, x, keep_dims=True).shape == (1, 1)
    assert bench.call(tl.sum, x, 0, dtype=tl.float64).dtype == tl.float64


def test_narrow_sums_do_not_lose_small_terms() -> None:
    bench = EagerBench()
    x = bench.tile(np.full(4096, 1.0), ir.bf16)
    total = bench.call(tl.sum, x, 0)
    assert total.dtype == tl.bfloat16 and float(data(total)) == 4096.0
    assert int(data(bench.call(tl.sum, bench.tile(np.full(64, 100), ir.i8), 0))) == 6400


def test_extrema_ignore_nans() -> None:
    bench = EagerBench()
    x = bench.tile([math.nan, 2.0, -5.0, 2.0], ir.f32)
    assert float(data(bench.call(tl.max, x))) == 2.0
    assert float(data(bench.call(tl.min, x, 0))) == -5.0
    value, index = bench.call(tl.max, x, 0, return_indices=True)
    assert (float(data(value)), int(data(index))) == (2.0, 1)
    assert int(data(bench.call(tl.argmin, x, 0))) == 2


def test_indices_break_ties_to_the_left() -> None:
    bench = EagerBench()
    x = bench.tile(VALUES, ir.i32)
    assert data(bench.call(tl.argmin, x, 1)).tolist() == [1, 1]
    assert data(bench.call(tl.argmax, bench.tile([[4, 4], [1, 4]], ir.i32), 1)).tolist() == [0, 1]
    assert int(data(bench.call(tl.argmax, x, None))) == 7
    value, index = bench.call(tl.max, x, return_indices=True, keep_dims=True)
    assert value.shape == index.shape == (1, 1) and int(data(index)[0, 0]) == 7
    value, index = bench.call(tl.min, x, 1, return_indices=True, keep_dims=True)
    assert data(value).tolist() == [[1], [0]] and index.dtype == tl.int32
    free = bench.call(tl.max, x, 1, return_indices=True, return_indices_tie_break_left=False)
    assert data(free[0]).tolist() == [3, 9]


def test_bitwise_reductions() -> None:
    bench = EagerBench()
    x = bench.tile(VALUES, ir.i32)
    assert data(bench.call(tl.xor_sum, x, 1)).tolist() == [1, 9]
    assert data(bench.call(tl.reduce_or, x, 1)).tolist() == [3, 13]
    with pytest.raises(errors.InvalidOperation, match="xor_sum of fp32"):
        bench.call(tl.xor_sum, bench.tile([1.0], ir.f32))


def test_user_reductions() -> None:
    bench = EagerBench()
    x = bench.tile(VALUES, ir.i32)
    assert data(bench.call(tl.reduce, x, 0, combine_sum)).tolist() == [7, 1, 6, 10]
    assert int(data(bench.call(tl.reduce, x, None, combine_sum))) == 24
    kept = bench.call(tl.reduce, (x, x), 1, combine_affine, keep_dims=True)
    assert isinstance(kept, tuple) and kept[0].shape == (2, 1)
    assert data(bench.call(tl.reduce, x, 1, tl.maximum)).tolist() == [3, 9]


def test_user_scans() -> None:
    bench = EagerBench()
    a, b = bench.tile([2.0, 3.0, 4.0], ir.f32), bench.tile([1.0, 1.0, 1.0], ir.f32)
    product, total = bench.call(tl.associative_scan, (a, b), 0, combine_affine)
    assert data(product).tolist() == [2, 6, 24] and data(total).tolist() == [1, 4, 17]
    x = bench.tile([1, 2, 3, 4], ir.i32)
    backwards = bench.call(tl.associative_scan, x, 0, combine_sum, reverse=True)
    assert data(backwards).tolist() == [10, 9, 7, 4]


def test_scans() -> None:
    bench = EagerBench()
    x = bench.tile(VALUES, ir.i32)
    assert np.array_equal(data(bench.call(tl.cumsum, x, 1)), VALUES.cumsum(1))
    assert data(bench.call(tl.cumprod, x)).tolist() == [[3, 1, 2, 1], [12, 0, 8, 9]]
    assert data(bench.call(tl.cumsum, x, 1, reverse=True))[0].tolist() == [7, 4, 3, 1]
    assert bench.call(tl.cumsum, x, 0, dtype=tl.float32).dtype == tl.float32


def test_what_reductions_refuse() -> None:
    bench = BuildBench()
    x = bench.tile(ir.i32, 4)
    with pytest.raises(errors.InvalidValue, match=r"'axis' must be in \[-1, 1\), found 1"):
        bench.call(tl.sum, x, 1)
    with pytest.raises(errors.InvalidValue, match="a tile"):
        bench.call(tl.sum, bench.arg(ir.i32), 0)
    with pytest.raises(errors.DTypeMismatch, match="int32 and fp64"):
        bench.call(tl.reduce, x, 0, combine_wrongly)
    with pytest.raises(errors.ArgumentCount):
        bench.call(tl.reduce, (x, x), 0, lambda_of_one_result)
    with pytest.raises(errors.ShapeMismatch):
        bench.call(tl.reduce, (x, bench.tile(ir.i32, 8)), 0, combine_affine)
    with pytest.raises(errors.InvalidOperation, match="no function of the language"):
        bench.call(tl.reduce, x, 0, max)
    with pytest.raises(errors.InvalidValue, match="numbers"):
        bench.call(tl.sum, bench.tile(ir.PointerType(ir.f32)))


@tl.device_function
def lambda_of_one_result(a: Any, b: Any, c: Any, d: Any) -> Any:
    return a


def test_regions_leave_the_emitter_as_it_was() -> None:
    bench = BuildBench()
    emitter = bench.ctx.emitter
    bench.call(tl.sum, bench.tile(ir.f32, 4))
    reduce = next(op for op in bench.block if isinstance(op, ReduceOp))
    assert [op.opcode for op in reduce.combine] == ["arith.add", "cf.yield"]
    with pytest.raises(errors.DTypeMismatch):
        bench.call(tl.reduce, bench.tile(ir.i32, 4), 0, combine_wrongly)
    assert bench.ctx.emitter is emitter


def test_softmax_of_either_axis() -> None:
    bench = EagerBench()
    values = np.array([[1.0, 2.0], [3.0, 5.0]])
    for axis in (0, 1):
        found = bench.call(tl.softmax, bench.tile(values, ir.f16), axis)
        weights = np.exp(values - values.max(axis, keepdims=True))
        assert np.allclose(data(found), weights / weights.sum(axis, keepdims=True), rtol=1e-6)
        assert found.dtype == tl.float32


# --- dot ------------------------------------------------------------------------------------------


def test_dot_multiplies_and_accumulates() -> None:
    bench = EagerBench()
    a, b = np.arange(8.0).reshape(2, 4), np.arange(8.0).reshape(4, 2)
    x, y = bench.tile(a, ir.f16), bench.tile(b, ir.f16)
    assert np.array_equal(data(bench.call(tl.dot, x, y)), a @ b)
    acc = bench.call(tl.full, (2, 2), 1.0, tl.float32)
    assert np.array_equal(data(bench.call(tl.dot, x, y, acc)), a @ b + 1)
    assert bench.call(tl.dot, x, y, out_dtype=tl.float16).dtype == tl.float16
    batch = bench.call(tl.dot, bench.tile(a[None], ir.f32), bench.tile(b[None], ir.f32))
    assert np.array_equal(data(batch), (a @ b)[None])


@pytest.mark.parametrize(
    ("element", "result"),
    [
        (ir.i8, "int32"),
        (ir.u8, "int32"),
        (ir.f16, "fp32"),
        (ir.bf16, "fp32"),
        (ir.f32, "fp32"),
        (ir.f64, "fp64"),
        (ir.f8e4m3, "fp32"),
    ],
)
def test_result_dtypes_of_dot(element: ir.DType, result: str) -> None:
    bench = BuildBench()
    x, y = bench.tile(element, 16, 32), bench.tile(element, 32, 16)
    assert bench.call(tl.dot, x, y).dtype.name == result
    assert bench.call(tl.dot, x, y, out_dtype=tl.float32).dtype.name == result


@pytest.mark.parametrize("element", [ir.i8, ir.u8, ir.bf16, ir.f32, ir.f64], ids=str)
@pytest.mark.parametrize(
    "out_dtype", [tl.int8, tl.int32, tl.float16, tl.float32, tl.float64], ids=str
)
def test_operands_with_one_accumulator_ignore_out_dtype(
    element: ir.DType, out_dtype: tl.dtype
) -> None:
    """As in Triton 3.6, where only fp16 and fp8 have a choice."""
    bench = BuildBench()
    x, y = bench.tile(element, 16, 32), bench.tile(element, 32, 16)
    usual = bench.call(tl.dot, x, y).dtype
    assert bench.call(tl.dot, x, y, out_dtype=out_dtype).dtype == usual
    acc = bench.call(tl.dot, x, y)
    assert bench.call(tl.dot, x, y, acc, out_dtype=out_dtype).dtype == usual


def test_precision_of_dot() -> None:
    bench = BuildBench(f32_default_precision="tf32")
    x, y = bench.tile(ir.f32, 16, 16), bench.tile(ir.f32, 16, 16)

    def precision(**how: Any) -> str:
        op = bench.call(tl.dot, x, y, **how).handle.op
        assert isinstance(op, DotOp)
        return op.precision

    assert precision() == "tf32"
    assert precision(allow_tf32=False) == "ieee"
    assert precision(input_precision="bf16x3") == "bf16x3"
    half = bench.tile(ir.f16, 16, 16)
    op = bench.call(tl.dot, half, half, input_precision="tf32").handle.op
    assert isinstance(op, DotOp) and op.precision == "ieee"


def test_what_dot_refuses() -> None:
    bench = BuildBench()
    x, y = bench.tile(ir.f16, 16, 32), bench.tile(ir.f16, 16, 32)
    acc = bench.tile(ir.f32, 16, 16)
    with pytest.raises(
        errors.ShapeMismatch, match=r"dot tiles of shapes \(16, 32\) and \(16, 32\)"
    ):
        bench.call(tl.dot, x, y)
    square = bench.tile(ir.f16, 32, 16)
    cases: list[tuple[tuple[Any, ...], dict[str, Any], type[Exception]]] = [
        ((x, bench.tile(ir.bf16, 32, 16)), {}, errors.DTypeMismatch),
        ((bench.tile(ir.i32, 16, 16), acc), {}, errors.InvalidOperation),
        ((x, square), {"out_dtype": tl.bfloat16}, errors.InvalidValue),
        ((x, square), {"out_dtype": tl.float64}, errors.InvalidValue),
        ((acc, acc), {"out_dtype": tl.bfloat16}, errors.InvalidValue),
        ((x, square, acc), {"out_dtype": tl.float16}, errors.DTypeMismatch),
        ((x, square, bench.tile(ir.f32, 16, 32)), {}, errors.ShapeMismatch),
        ((x, square), {"input_precision": "fp8"}, errors.InvalidValue),
        ((x, square), {"input_precision": "ieee", "allow_tf32": True}, errors.InvalidOperation),
        ((bench.tile(ir.f16), square), {}, errors.InvalidValue),
    ]
    for args, kwargs, error in cases:
        with pytest.raises(error):
            bench.call(tl.dot, *args, **kwargs)
