"""Folded constants against the NumPy reference rules, and the exactness of float types."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.interp import NUMPY_DTYPES, round_float, run_function
from tilewright.interp.numpy_dtypes import wide
from tilewright.ir import OPS, Block, Builder, Function, Op, rewrite
from tilewright.ir.types import DType, PointerType, all_dtypes, f8e4m3, f16, f32, f64, i1
from tilewright.ops import (
    BinaryOp,
    CastOp,
    CompareOp,
    ConstantOp,
    ReturnOp,
    StoreOp,
)
from tilewright.transforms.rules import CANONICAL, constant_of, is_constant
from tilewright.transforms.rules.exact_arithmetic import (
    fold_binary,
    fold_cast,
    in_type,
    is_exact,
    is_lossless,
)

FLOATS = [dtype for dtype in all_dtypes() if dtype.is_float]
INTEGERS = [dtype for dtype in all_dtypes() if not dtype.is_float]
BINARY = [
    opcode
    for opcode, cls in OPS.items()
    if issubclass(cls, BinaryOp) and fold_binary(opcode, 6, 1, INTEGERS[3]) is not None
]


def _numbers(dtype: DType) -> list[Any]:
    if dtype.is_float:
        return [v for v in (0.0, -0.0, 1.0, -1.5, 0.1, 3.0, 448.0, 65504.0, 1e30, math.inf, 2**-24)]
    near = (0, 1, 2, 3, 7, -1, -2, -7, dtype.min_int, dtype.max_int, dtype.bits - 1)
    return sorted({n for n in near if dtype.min_int <= n <= dtype.max_int})


def _value_of(op: Op, *operands: Op) -> Any:
    """What the interpreter computes for an op on constants."""
    dtype = op.type
    assert isinstance(dtype, DType)
    body = Block((PointerType(dtype),), ("X",))
    builder = Builder(body)
    for part in (*operands, op):
        builder.emit(part)
    builder.emit(StoreOp(body.args[0], op.result))
    builder.emit(ReturnOp())
    array = np.zeros(1, NUMPY_DTYPES[dtype])
    run_function(Function("f", body), [array])
    return round_float(wide(array), f64)[0] if dtype.is_fp8 else array[0]


def _binary(opcode: str, left: Op, right: Op) -> Op:
    operands: dict[str, Any] = {"lhs": left.result, "rhs": right.result}
    return OPS[opcode](**operands)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("opcode", BINARY)
def test_integers_fold_as_they_compute(opcode: str, dtype: DType) -> None:
    numbers = _numbers(dtype)
    for a, b in itertools.product(numbers, numbers):
        folded = fold_binary(opcode, a, b, dtype)
        if folded is None:
            continue
        left, right = ConstantOp(a, dtype), ConstantOp(b, dtype)
        op = _binary(opcode, left, right)
        assert dtype.min_int <= folded <= dtype.max_int
        assert folded == _value_of(op, left, right), (a, b)


@pytest.mark.parametrize("dtype", [d for d in FLOATS if not d.is_fp8], ids=str)
@pytest.mark.parametrize("opcode", ["arith.add", "arith.sub", "arith.mul", "arith.div",
                                    "arith.min", "arith.max"])  # fmt: skip
def test_floats_fold_only_to_what_they_compute(opcode: str, dtype: DType) -> None:
    folded_some = False
    numbers = [x for n in _numbers(dtype) if (x := in_type(n, dtype)) is not None]
    for a, b in itertools.product(numbers, numbers):
        folded = fold_binary(opcode, a, b, dtype)
        if folded is None:
            continue
        folded_some = True
        left, right = ConstantOp(a, dtype), ConstantOp(b, dtype)
        found = float(_value_of(_binary(opcode, left, right), left, right))
        assert (folded, math.copysign(1, folded)) == (found, math.copysign(1, found)), (a, b)
    assert folded_some


@pytest.mark.parametrize("target", all_dtypes(), ids=str)
@pytest.mark.parametrize("source", all_dtypes(), ids=str)
def test_casts_fold_to_what_they_compute(source: DType, target: DType) -> None:
    for number in _numbers(source):
        x = in_type(number, source)
        folded = None if x is None else fold_cast(x, source, target)
        if x is None or folded is None:
            continue
        constant = ConstantOp(x, source)
        found = _value_of(CastOp(constant.result, target), constant)
        assert float(folded) == float(found), number


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_numbers_of_a_type_are_exact(dtype: DType) -> None:
    bits = min(dtype.bits, 12)
    patterns = np.arange(1 << bits, dtype=np.uint64) << np.uint64(dtype.bits - bits)
    unsigned = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[dtype.bits]
    with np.errstate(invalid="ignore"):  # NaN patterns
        values = wide(patterns.astype(unsigned).view(NUMPY_DTYPES[dtype])).astype(np.float64)
    for value in values[np.isfinite(values) & (np.abs(values) <= dtype.largest)]:
        assert is_exact(float(value), dtype)
        between = float(np.nextafter(value, math.inf))
        if dtype.bits < 64 and value != 0:
            assert not is_exact(between, dtype)


def test_numbers_outside_a_type_are_not_exact() -> None:
    assert is_exact(448.0, f8e4m3)
    assert not is_exact(480.0, f8e4m3)
    assert not is_exact(math.inf, f8e4m3)
    assert is_exact(math.inf, f16)
    assert not is_exact(65536.0, f16)
    assert not is_exact(math.nan, f32)


@given(st.floats(width=64))
def test_constants_are_rounded_to_single_precision(number: float) -> None:
    found = in_type(number, f32)
    with np.errstate(over="ignore"):
        rounded = float(np.float32(number))
    if math.isfinite(number) and math.isinf(rounded):
        assert found is None
    else:
        assert found == rounded or (math.isnan(number) and found is not None and math.isnan(found))


@pytest.mark.parametrize("target", all_dtypes(), ids=str)
@pytest.mark.parametrize("source", all_dtypes(), ids=str)
def test_lossless_casts_return(source: DType, target: DType) -> None:
    if not is_lossless(source, target):
        return
    for number in _numbers(source):
        x = in_type(number, source)
        if x is None or math.isinf(x):
            continue
        constant = ConstantOp(x, source)
        there = CastOp(constant.result, target)
        back = CastOp(there.result, source)
        assert float(_value_of(back, constant, there)) == float(x)


def test_what_is_lossless() -> None:
    by_name = {dtype.name: dtype for dtype in all_dtypes()}
    pairs = {"i8 i32": True, "u8 i16": True, "u8 i8": False, "i32 f32": False, "i32 f64": True,
             "i16 f32": True, "f16 bf16": False, "bf16 f32": True, "f32 f16": False, "i1 u8": True,
             "f8e4m3 f16": True, "f8e5m2 bf16": True, "f16 i32": False, "i8 i1": False}  # fmt: skip
    for text, expected in pairs.items():
        source, target = (by_name[name] for name in text.split())
        assert is_lossless(source, target) is expected, text


def test_constants_are_told_apart_by_sign_of_zero() -> None:
    plus, minus, integer = ConstantOp(0.0, f32), ConstantOp(-0.0, f32), ConstantOp(0, INTEGERS[1])
    assert is_constant(plus.result, 0) and not is_constant(minus.result, 0)
    assert is_constant(minus.result, -0.0) and is_constant(integer.result, 0)
    assert constant_of(ConstantOp(0.1, f32).result) == float(np.float32(0.1))


@given(st.sampled_from(INTEGERS[1:]), st.data())
def test_comparisons_fold(dtype: DType, data: st.DataObject) -> None:
    numbers = st.integers(dtype.min_int, dtype.max_int)
    left, right = (ConstantOp(data.draw(numbers), dtype) for _ in range(2))
    predicate = data.draw(st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]))
    body = Block((PointerType(i1),), ("X",))
    builder = Builder(body)
    builder.emit(left)
    builder.emit(right)
    compared = builder.value(CompareOp(left.result, right.result, predicate))
    store = builder.emit(StoreOp(body.args[0], compared))
    builder.emit(ReturnOp())
    array = np.zeros(1, np.bool_)
    function = Function("f", body)
    run_function(function, [array])
    rewrite(function, CANONICAL)
    assert constant_of(store.stored) == array[0]
