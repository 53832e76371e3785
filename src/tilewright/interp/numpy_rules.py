"""NumPy rules of the element-wise ops: `rule(op, *arrays) -> array`.

An array holds the elements of its operand in the shape of the operand's type (0-d for a scalar) and
the dtype of `numpy_dtypes.numpy_dtype`; so does the result. Rules also take arrays that broadcast
with each other, which is how the combine region of a reduction runs on whole slices at once.
Rules give no warnings when run by `evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from tilewright.interp import element_arithmetic
from tilewright.interp.numpy_dtypes import Array, as_array, bits_dtype, numpy_dtype, wide
from tilewright.interp.rounding import convert, round_float
from tilewright.ir import Op, reference
from tilewright.ir.types import DType, PointerType, dtype_of, element_of, f8e4b15, shape_of
from tilewright.ops import (
    AbsOp,
    AddOp,
    AndOp,
    BitcastOp,
    CastOp,
    CompareOp,
    ConstantOp,
    DivOp,
    FmaOp,
    MaxOp,
    MinOp,
    MulHighOp,
    MulOp,
    NegOp,
    OffsetOp,
    OrOp,
    RemOp,
    SelectOp,
    ShlOp,
    ShrOp,
    SubOp,
    XorOp,
)

_COMPARISONS: dict[str, Callable[[Array, Array], object]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def evaluate(op: Op, rule: Callable[..., object], *arrays: Array) -> tuple[Array, ...]:
    """The results of one op: its rule without floating-point warnings, always a tuple."""
    # overflow to infinity and NaN are results of kernels, not reasons to warn
    with np.errstate(all="ignore"):
        result = rule(op, *arrays)
    return cast("tuple[Array, ...]", result) if isinstance(result, tuple) else (as_array(result),)


@reference(ConstantOp)
def constant(op: ConstantOp) -> Array:
    """One value everywhere; fp8 values saturate as in a cast."""
    type_ = op.result_type
    element = element_of(type_)
    dtype = numpy_dtype(type_)
    if not (isinstance(element, DType) and element.is_float):
        return np.full(shape_of(type_), op.value, dtype)
    rounded = round_float(np.array(float(op.value)), element)
    return np.full(shape_of(type_), rounded, dtype)


def _ufunc(function: element_arithmetic.Ufunc) -> Callable[..., Array]:
    def apply(dtype: DType, *arrays: Array) -> Array:
        return element_arithmetic.compute(dtype, function, *arrays)

    return apply


_ELEMENT_FUNCTIONS: dict[type[Op], Callable[..., Array]] = {
    AddOp: _ufunc(np.add),
    SubOp: _ufunc(np.subtract),
    MulOp: _ufunc(np.multiply),
    DivOp: element_arithmetic.divide,
    RemOp: element_arithmetic.remainder,
    MulHighOp: element_arithmetic.multiply_high,
    FmaOp: element_arithmetic.fused_multiply_add,
    NegOp: element_arithmetic.negate,
    AbsOp: element_arithmetic.absolute,
    AndOp: _ufunc(np.bitwise_and),
    OrOp: _ufunc(np.bitwise_or),
    XorOp: _ufunc(np.bitwise_xor),
    ShlOp: _ufunc(np.left_shift),
    ShrOp: _ufunc(np.right_shift),
}
"""Functions (dtype, *arrays) -> array of ops whose operands and result have one dtype."""


def _register(op_class: type[Op], function: Callable[..., Array]) -> None:
    @reference(op_class)
    def rule(op: Op, *arrays: Array) -> Array:  # pyright: ignore[reportUnusedFunction]
        return function(dtype_of(op.results[0].type), *arrays)


for _op_class, _function in _ELEMENT_FUNCTIONS.items():
    _register(_op_class, _function)


@reference(MinOp)
def minimum(op: MinOp, x: Array, y: Array) -> Array:
    return element_arithmetic.minimum(dtype_of(op.type), x, y, op.nan)


@reference(MaxOp)
def maximum(op: MaxOp, x: Array, y: Array) -> Array:
    return element_arithmetic.maximum(dtype_of(op.type), x, y, op.nan)


@reference(CompareOp)
def compare(op: CompareOp, x: Array, y: Array) -> Array:
    """Comparisons of ml_dtypes numbers and of addresses are those of their arrays."""
    if element_of(op.lhs.type) is f8e4b15:
        x, y = wide(x), wide(y)
    return as_array(_COMPARISONS[op.predicate](x, y))


@reference(SelectOp)
def select(op: SelectOp, condition: Array, x: Array, y: Array) -> Array:
    return as_array(np.where(condition, x, y))


@reference(CastOp)
def convert_number(op: CastOp, x: Array) -> Array:
    """Between numbers as `rounding.convert`; between a pointer and 64 bits, the same bits."""
    source, target = element_of(op.x.type), element_of(op.result_type)
    if isinstance(source, PointerType) or isinstance(target, PointerType):
        return x.astype(numpy_dtype(op.result_type))
    return convert(x, source, target, op.rounding)


@reference(BitcastOp)
def bitcast(op: BitcastOp, x: Array) -> Array:
    """ml_dtypes views go through plain integers."""
    integers = x.view(bits_dtype(x.dtype.itemsize * 8))
    return integers.view(numpy_dtype(op.result_type))


@reference(OffsetOp)
def offset(op: OffsetOp, pointer: Array, elements: Array) -> Array:
    """Addresses move by whole elements and wrap at 64 bits."""
    size = np.uint64(element_of_pointer(op).bytes)
    # By way of int64, so that narrow negative offsets are sign-extended.
    return as_array(pointer + elements.astype(np.int64).astype(np.uint64) * size)


def element_of_pointer(op: OffsetOp) -> DType:
    """The element type of an offset's pointers."""
    pointer = element_of(op.pointer.type)
    assert isinstance(pointer, PointerType)
    return pointer.element
