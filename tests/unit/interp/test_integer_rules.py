"""Integer arithmetic against Python's unbounded integers, for every width and odd values."""

import operator
import warnings

import numpy as np
import pytest

import tilewright.ops as ops
from tests.unit.interp.tiles import INTEGERS, odd_integers, run, tile, wrapped
from tilewright.ir.types import i1, i8, i32, i64, u8, u64


def pairs(dtype):
    values = odd_integers(dtype)
    xs, ys = np.meshgrid(np.array(values, object), np.array(values, object))
    return list(zip(xs.ravel().tolist(), ys.ravel().tolist(), strict=True))


def assert_computes(op, dtype, expected, usable=lambda x, y: True, **attrs):
    cases = [(x, y) for x, y in pairs(dtype) if usable(x, y)]
    left, right = (np.array(column, object) for column in zip(*cases, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = run(op(tile(dtype, left), tile(dtype, right), **attrs))
    wanted = [wrapped(expected(x, y), dtype) for x, y in cases]
    assert found.tolist() == wanted


def quotient(x, y):
    magnitude = abs(x) // abs(y)
    return -magnitude if (x < 0) != (y < 0) else magnitude


def remainder(x, y):
    return x - quotient(x, y) * y


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize(
    "op, expected",
    [
        (ops.AddOp, operator.add),
        (ops.SubOp, operator.sub),
        (ops.MulOp, operator.mul),
        (ops.AndOp, operator.and_),
        (ops.OrOp, operator.or_),
        (ops.XorOp, operator.xor),
        (ops.MinOp, min),
        (ops.MaxOp, max),
    ],
)
def test_arithmetic_wraps(op, expected, dtype):
    assert_computes(op, dtype, expected)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_high_half_of_the_product(dtype):
    assert_computes(ops.MulHighOp, dtype, lambda x, y: (x * y) >> dtype.bits)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_division_truncates(dtype):
    assert_computes(ops.DivOp, dtype, quotient, lambda x, y: y != 0)
    assert_computes(ops.RemOp, dtype, remainder, lambda x, y: y != 0)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_zero_divides_as_one(dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(ops.DivOp(tile(dtype, [5, 0]), tile(dtype, [0, 0]))).tolist() == [5, 0]
        assert run(ops.RemOp(tile(dtype, [5, 0]), tile(dtype, [0, 0]))).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_shifts(dtype):
    assert_computes(ops.ShlOp, dtype, operator.lshift, lambda x, y: 0 <= y < dtype.bits)
    assert_computes(ops.ShrOp, dtype, operator.rshift, lambda x, y: 0 <= y < dtype.bits)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_negation_and_magnitude(dtype):
    values = odd_integers(dtype)
    assert run(ops.NegOp(tile(dtype, np.array(values, object)))).tolist() == [
        wrapped(-x, dtype) for x in values
    ]
    assert run(ops.AbsOp(tile(dtype, np.array(values, object)))).tolist() == [
        wrapped(abs(x), dtype) for x in values
    ]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("predicate", ops.COMPARISONS)
def test_comparisons(dtype, predicate):
    cases = pairs(dtype)
    left, right = (np.array(column, object) for column in zip(*cases, strict=True))
    found = run(ops.CompareOp(tile(dtype, left), tile(dtype, right), predicate))
    assert found.dtype == np.bool_
    assert found.tolist() == [getattr(operator, predicate)(x, y) for x, y in cases]


def test_bool_is_arithmetic_modulo_two():
    x, y = tile(i1, [False, False, True, True]), tile(i1, [False, True, False, True])
    assert run(ops.AddOp(x, y)).tolist() == [False, True, True, False]
    assert run(ops.SubOp(x, y)).tolist() == [False, True, True, False]
    assert run(ops.MulOp(x, y)).tolist() == [False, False, False, True]
    assert run(ops.MaxOp(x, y)).tolist() == [False, True, True, True]
    assert run(ops.NegOp(x)).tolist() == [False, False, True, True]
    assert run(ops.MulHighOp(x, y)).tolist() == [False] * 4
    assert run(ops.CompareOp(x, y, "lt")).tolist() == [False, True, False, False]


def test_scalars_keep_dtype_and_rank():
    found = run(ops.AddOp(tile(i8, 127), tile(i8, 1)))
    assert found.shape == () and found.dtype == np.int8 and found == -128


def test_select_and_constants():
    condition = tile(i1, [True, False])
    assert run(ops.SelectOp(condition, tile(u8, [1, 2]), tile(u8, [3, 4]))).tolist() == [1, 4]
    assert run(ops.ConstantOp(-7, i32)) == -7
    filled = run(ops.ConstantOp(2**64 - 1, tile(u64, [0, 0, 0]).type))
    assert filled.tolist() == [2**64 - 1] * 3
    assert run(ops.ConstantOp(True, i1)).dtype == np.bool_


def test_division_of_the_most_negative_by_minus_one_wraps():
    low = -(2**63)
    assert run(ops.DivOp(tile(i64, [low]), tile(i64, [-1]))).tolist() == [low]
