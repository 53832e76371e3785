"""Replace bf16 and fp8 values by their bits.

After the other passes, values of these types are only moved: loads, stores, selects, shapes. LLVM
scalarizes vectors of `bfloat` in many of those and has no type for fp8; it moves integers well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import copysign, floor, frexp, inf, isnan, ldexp
from typing import cast

from tilewright.ir import Function, Op, Value
from tilewright.ir.types import (
    DType,
    PointerType,
    TileType,
    Type,
    all_dtypes,
    bf16,
    element_of,
    f8e4b15,
    u8,
    u16,
)
from tilewright.ops import AtomicOp, ConstantOp, IfOp

_INTEGERS: dict[DType, DType] = {
    bf16: u16, **{dtype: u8 for dtype in all_dtypes() if dtype.is_fp8},
}  # fmt: skip


def store_as_bits(function: Function) -> bool:
    """Give every value of type bf16 or fp8 the unsigned integer of its width; whether any was.

    A type stays where it is if an atomic op computes in it.
    """
    ops = list(function.walk())
    kinds = _present(function, ops) - {_computed_atomically(op) for op in ops}
    if not kinds:
        return False
    swapped = _swapping(frozenset(kinds))
    for op in ops:
        _swap_attributes(op, swapped)
    for value in _values(function, ops):
        value.type = swapped(value.type)
    return True


def float_bits(value: float, dtype: DType) -> int:
    """The bits of the nearest number of bf16 or fp8; ties to even, in f8e4b15 away from zero."""
    if isnan(value):
        return dtype.nan_bits
    sign = (1 << (dtype.bits - 1)) if copysign(1.0, value) < 0 else 0
    magnitude = abs(value)
    too_large = dtype.largest_bits if dtype.is_fp8 else dtype.infinity_bits
    if magnitude == inf:
        return sign | too_large
    smallest = 1 - dtype.bias
    exponent = max(frexp(magnitude)[1] - 1, smallest) if magnitude else smallest
    scaled = ldexp(magnitude, dtype.mantissa - exponent)
    fraction = floor(scaled + 0.5) if dtype is f8e4b15 else round(scaled)
    # a normal fraction includes its leading one, which adds the 1 that the exponent lacks; a carry
    # of the rounding propagates into the exponent
    code = ((exponent + dtype.bias - 1) << dtype.mantissa) + fraction
    code = min(code, too_large)
    return code if code == 0 and not dtype.has_negative_zero else sign | code


def _values(function: Function, ops: list[Op]) -> Iterator[Value]:
    yield from function.args
    for op in ops:
        yield from op.results
        for block in op.regions:
            yield from block.args


def _present(function: Function, ops: list[Op]) -> set[DType | None]:
    types = {value.type for value in _values(function, ops)}
    elements = {element_of(type_) for type_ in types}
    pointed = {e.element if isinstance(e, PointerType) else e for e in elements}
    return {kind for kind in pointed if kind in _INTEGERS}


def _computed_atomically(op: Op) -> DType | None:
    """The type in which an atomic op adds or compares."""
    if isinstance(op, AtomicOp) and op.kind in ("add", "max", "min"):
        return cast("DType", element_of(op.operand.type))
    return None


def _swapping(kinds: frozenset[DType | None]) -> Callable[[Type], Type]:
    """Types with integers in place of some float types."""
    built_types: dict[Type, Type] = {kind: _INTEGERS[kind] for kind in kinds if kind is not None}

    def swapped(type_: Type) -> Type:
        built = built_types.get(type_)
        if built is None:
            built = built_types[type_] = build(type_)
        return built

    def build(type_: Type) -> Type:
        match type_:
            case PointerType():
                return PointerType(cast("DType", swapped(type_.element)), type_.const)
            case TileType():
                element = cast("DType | PointerType", swapped(type_.element))
                return TileType(type_.shape, element, type_.layout)
            case _:
                return type_

    return swapped


def _swap_attributes(op: Op, swapped: Callable[[Type], Type]) -> None:
    if isinstance(op, ConstantOp):
        dtype = element_of(op.result_type)
        if swapped(dtype) is not dtype and isinstance(dtype, DType):
            op.attrs["value"] = float_bits(float(op.value), dtype)
    if "result_type" in op.attrs:
        op.attrs["result_type"] = swapped(op.attrs["result_type"])
    if isinstance(op, IfOp):
        op.attrs["result_types"] = tuple(map(swapped, op.result_types))
