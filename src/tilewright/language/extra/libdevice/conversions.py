"""Conversions with a rounding mode, and between floats and their bits.

Conversions to integers saturate, and convert a NaN as a GPU's instruction does.
"""

from __future__ import annotations

from typing import Any

from tilewright import language as tl
from tilewright.language.dtypes import dtype
from tilewright.language.extra.libdevice.directed_rounding import (
    MODE_NAMES,
    MODES,
    Rounded,
    with_overflow,
)
from tilewright.language.extra.libdevice.float_parts import bits_of_float
from tilewright.language.extra.libdevice.whole_numbers import rint, trunc
from tilewright.language.library_functions import Body, Unary, library_function
from tilewright.language.tensors import tensor

TO_INTEGER: dict[str, Any] = {"rn": rint, "rz": trunc, "rd": tl.floor, "ru": tl.ceil}


def _declared(name: str, meaning: str, source: dtype, body: Body) -> Unary:
    body.__name__, body.__qualname__, body.__doc__ = name, name, meaning
    return library_function((source,))(body)


def _conversion(name: str, source: dtype, target: dtype) -> Unary:
    """A conversion with the rounding mode that ends its name."""
    mode = name[-2:]

    def to_integer(x: tensor) -> tensor:
        return TO_INTEGER[mode](x).to(target)

    def from_integer(x: tensor) -> tensor:
        return MODES[mode](_of_integer(x, target))

    def narrowed(x: tensor) -> tensor:
        nearest = x.to(target)
        return MODES[mode](with_overflow(nearest, x - nearest.to(source), x))

    body = from_integer if source.is_int() else to_integer if target.is_int() else narrowed
    return _declared(name, f"{source} to {target}, {MODE_NAMES[mode]}.", source, body)


def _of_integer(x: tensor, target: dtype) -> Rounded:
    """An integer as a float: the upper and the lower half are floats."""
    nearest = x.to(target)
    if x.dtype.primitive_bitwidth < 64:
        return Rounded(nearest, x.to(tl.float64) - nearest.to(tl.float64))
    high = ((x >> 32).to(tl.float64)) * 4294967296.0
    low = (x & 0xFFFFFFFF).to(tl.float64)
    return Rounded(nearest, (high - nearest.to(tl.float64)) + low)


double2float_rn = _conversion("double2float_rn", tl.float64, tl.float32)
double2float_rz = _conversion("double2float_rz", tl.float64, tl.float32)
double2float_rd = _conversion("double2float_rd", tl.float64, tl.float32)
double2float_ru = _conversion("double2float_ru", tl.float64, tl.float32)
float2int_rn = _conversion("float2int_rn", tl.float32, tl.int32)
float2int_rz = _conversion("float2int_rz", tl.float32, tl.int32)
float2int_rd = _conversion("float2int_rd", tl.float32, tl.int32)
float2int_ru = _conversion("float2int_ru", tl.float32, tl.int32)
float2uint_rn = _conversion("float2uint_rn", tl.float32, tl.uint32)
float2uint_rz = _conversion("float2uint_rz", tl.float32, tl.uint32)
float2uint_rd = _conversion("float2uint_rd", tl.float32, tl.uint32)
float2uint_ru = _conversion("float2uint_ru", tl.float32, tl.uint32)
float2ll_rn = _conversion("float2ll_rn", tl.float32, tl.int64)
float2ll_rz = _conversion("float2ll_rz", tl.float32, tl.int64)
float2ll_rd = _conversion("float2ll_rd", tl.float32, tl.int64)
float2ll_ru = _conversion("float2ll_ru", tl.float32, tl.int64)
float2ull_rn = _conversion("float2ull_rn", tl.float32, tl.uint64)
float2ull_rz = _conversion("float2ull_rz", tl.float32, tl.uint64)
float2ull_rd = _conversion("float2ull_rd", tl.float32, tl.uint64)
float2ull_ru = _conversion("float2ull_ru", tl.float32, tl.uint64)
double2int_rn = _conversion("double2int_rn", tl.float64, tl.int32)
double2int_rz = _conversion("double2int_rz", tl.float64, tl.int32)
double2int_rd = _conversion("double2int_rd", tl.float64, tl.int32)
double2int_ru = _conversion("double2int_ru", tl.float64, tl.int32)
double2uint_rn = _conversion("double2uint_rn", tl.float64, tl.uint32)
double2uint_rz = _conversion("double2uint_rz", tl.float64, tl.uint32)
double2uint_rd = _conversion("double2uint_rd", tl.float64, tl.uint32)
double2uint_ru = _conversion("double2uint_ru", tl.float64, tl.uint32)
double2ll_rn = _conversion("double2ll_rn", tl.float64, tl.int64)
double2ll_rz = _conversion("double2ll_rz", tl.float64, tl.int64)
double2ll_rd = _conversion("double2ll_rd", tl.float64, tl.int64)
double2ll_ru = _conversion("double2ll_ru", tl.float64, tl.int64)
double2ull_rn = _conversion("double2ull_rn", tl.float64, tl.uint64)
double2ull_rz = _conversion("double2ull_rz", tl.float64, tl.uint64)
double2ull_rd = _conversion("double2ull_rd", tl.float64, tl.uint64)
double2ull_ru = _conversion("double2ull_ru", tl.float64, tl.uint64)
# fp64 has all integers of 32 bits: there is one way to convert them.
int2float_rn = _conversion("int2float_rn", tl.int32, tl.float32)
int2float_rz = _conversion("int2float_rz", tl.int32, tl.float32)
int2float_rd = _conversion("int2float_rd", tl.int32, tl.float32)
int2float_ru = _conversion("int2float_ru", tl.int32, tl.float32)
int2double_rn = _conversion("int2double_rn", tl.int32, tl.float64)
uint2float_rn = _conversion("uint2float_rn", tl.uint32, tl.float32)
uint2float_rz = _conversion("uint2float_rz", tl.uint32, tl.float32)
uint2float_rd = _conversion("uint2float_rd", tl.uint32, tl.float32)
uint2float_ru = _conversion("uint2float_ru", tl.uint32, tl.float32)
uint2double_rn = _conversion("uint2double_rn", tl.uint32, tl.float64)
ll2float_rn = _conversion("ll2float_rn", tl.int64, tl.float32)
ll2float_rz = _conversion("ll2float_rz", tl.int64, tl.float32)
ll2float_rd = _conversion("ll2float_rd", tl.int64, tl.float32)
ll2float_ru = _conversion("ll2float_ru", tl.int64, tl.float32)
ll2double_rn = _conversion("ll2double_rn", tl.int64, tl.float64)
ll2double_rz = _conversion("ll2double_rz", tl.int64, tl.float64)
ll2double_rd = _conversion("ll2double_rd", tl.int64, tl.float64)
ll2double_ru = _conversion("ll2double_ru", tl.int64, tl.float64)
ull2float_rn = _conversion("ull2float_rn", tl.uint64, tl.float32)
ull2float_rz = _conversion("ull2float_rz", tl.uint64, tl.float32)
ull2float_rd = _conversion("ull2float_rd", tl.uint64, tl.float32)
ull2float_ru = _conversion("ull2float_ru", tl.uint64, tl.float32)
ull2double_rn = _conversion("ull2double_rn", tl.uint64, tl.float64)
ull2double_rz = _conversion("ull2double_rz", tl.uint64, tl.float64)
ull2double_rd = _conversion("ull2double_rd", tl.uint64, tl.float64)
ull2double_ru = _conversion("ull2double_ru", tl.uint64, tl.float64)


# ---- bits ----------------------------------------------------------------------------------------


def _bitcast(name: str, meaning: str, source: dtype, target: dtype) -> Unary:
    def body(x: tensor) -> tensor:
        return tl.cast(x, target, bitcast=True)

    return _declared(name, meaning, source, body)


int_as_float = _bitcast(
    "int_as_float", "The float with the bits of an int32.", tl.int32, tl.float32
)
float_as_int = _bitcast("float_as_int", "The bits of a float as int32.", tl.float32, tl.int32)
uint_as_float = _bitcast(
    "uint_as_float", "The float with the bits of a uint32.", tl.uint32, tl.float32
)
float_as_uint = _bitcast("float_as_uint", "The bits of a float as uint32.", tl.float32, tl.uint32)
longlong_as_double = _bitcast(
    "longlong_as_double", "The double with the bits of an int64.", tl.int64, tl.float64
)
double_as_longlong = _bitcast(
    "double_as_longlong", "The bits of a double as int64.", tl.float64, tl.int64
)


@library_function((tl.float64,))
def double2hiint(x: tensor) -> tensor:
    """The upper half of the bits of a double, int32."""
    return (bits_of_float(x) >> 32).to(tl.int32)


@library_function((tl.float64,))
def double2loint(x: tensor) -> tensor:
    """The lower half of the bits of a double, int32."""
    return bits_of_float(x).to(tl.int32)


@library_function((tl.int32, tl.int32))
def hiloint2double(x: tensor, y: tensor) -> tensor:
    """The double whose halves are two int32, the upper first."""
    bits = (x.to(tl.int64) << 32) | (y.to(tl.int64) & 0xFFFFFFFF)
    return tl.cast(bits, tl.float64, bitcast=True)


@library_function((tl.float64,))
def rcp64h(x: tensor) -> tensor:
    """1 / x of doubles, the lower half of its bits 0."""
    return hiloint2double(double2hiint(1.0 / x), double2loint(x) & 0)
