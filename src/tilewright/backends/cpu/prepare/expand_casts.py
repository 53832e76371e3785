"""Casts that CPUs or LLVM lack: from and to fp8, truncating ones, and f64 to 16 bits in vectors.

fp8 travels in registers as its 8 bits. From f32 to a format with bias B and t fraction bits:

* normal result:    (bits - ((127 - B) << 23) + half - 1 + odd) >> (23 - t), where odd is the bit
                    that becomes the lowest: a carry runs into the exponent
* subnormal result: |x| + 2^(24 - B - t), whose last place is the smallest subnormal: the sum's low
                    bits are the answer, rounded by the hardware

Longer floats go through f32 rounded to odd, which makes the second rounding the only one
(S. Boldo and G. Melquiond, "When double rounding is odd", IMACS 2005).
"""

from __future__ import annotations

from math import copysign

from tilewright.backends.cpu.prepare.arithmetic import SINGLE, Arithmetic, Number
from tilewright.ir import Builder, Op, Value
from tilewright.ir.types import (
    DType,
    bf16,
    element_of,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    u8,
    u16,
    with_element,
)
from tilewright.ops import BitcastOp, CastOp, ConstantOp

_LARGEST = {f8e4m3: 448.0, f8e5m2: 57344.0}
_NAN = {f8e4m3: 0x7F, f8e5m2: 0x7E}


def expand_cast(op: Op, builder: Builder) -> Value | None:
    """The value of a cast; None if LLVM does it well."""
    assert isinstance(op, CastOp)
    source, target = element_of(op.x.type), element_of(op.type)
    if not (isinstance(source, DType) and isinstance(target, DType)) or source is target:
        return None
    truncates = op.rounding == "rtz" and source.is_float and _narrows(source, target)
    odd = source is f64 and target.is_float and target.bits < 32
    if not (source.is_fp8 or target.is_fp8 or truncates or odd):
        return None
    a = Arithmetic(builder, with_element(op.x.type, f32))
    if not target.is_float:
        return a.cast(from_fp8(a, op.x, source), target)
    x = from_fp8(a, op.x, source) if source.is_fp8 else op.x
    return _narrowed(a, x, target, truncates)


def expand_constant(op: Op, builder: Builder) -> Value | None:
    """An fp8 constant, as the bits of its rounded value."""
    assert isinstance(op, ConstantOp)
    dtype = element_of(op.result_type)
    if not (isinstance(dtype, DType) and dtype.is_fp8):
        return None
    bits = fp8_bits(float(op.value), dtype)
    constant = ConstantOp(bits, with_element(op.result_type, u8))
    return builder.value(BitcastOp(builder.value(constant), op.result_type))


def fp8_bits(value: float, dtype: DType) -> int:
    """The bits of the nearest fp8 number, ties to even; beyond the largest finite, that one."""
    if value != value:
        return _NAN[dtype]
    sign = 0x80 if copysign(1.0, value) < 0 else 0
    magnitude = min(abs(value), _LARGEST[dtype])
    return sign | min(range(0x7F), key=lambda c: (abs(_fp8_value(c, dtype) - magnitude), c & 1))


def _fp8_value(code: int, dtype: DType) -> float:
    """The number with these bits, taking the highest exponent for a normal one."""
    exponent, fraction = code >> dtype.mantissa, code & ((1 << dtype.mantissa) - 1)
    unit = 2.0 ** (1 - dtype.bias - dtype.mantissa)
    if exponent == 0:
        return fraction * unit
    return ((1 << dtype.mantissa) | fraction) * unit * 2.0 ** (exponent - 1)


def from_fp8(a: Arithmetic, x: Value, source: DType) -> Value:
    """An fp8 value as f32, exactly; other types by a cast."""
    if not source.is_fp8:
        return a.cast(x, f32)
    if source is f8e5m2:
        # the upper byte of an f16
        half = a.bitcast(a.shl(a.cast(a.bitcast(x, u8), u16), 8), f16)
        return a.cast(half, f32)
    # the same exponent and fraction in f16 have the bias 15 and not 7; the sign is copied twice
    moved = a.shl(a.cast(a.bitcast(x, i8), i16), 7)
    half = a.bitcast(a.bit_and(moved, -0x4080), f16)
    scaled = a.mul(a.cast(half, f32), 256.0)
    return a.select(a.compare("eq", a.abs(scaled), 480.0), float("nan"), scaled)


def _narrowed(a: Arithmetic, x: Value, target: DType, truncates: bool) -> Value:
    """A float as a float of fewer bits, rounded once."""
    source = element_of(x.type)
    if source is f64 and target is not f32:
        x, source = _f64_to_f32(a, x, "odd" if not truncates else "rtz"), f32
    if not truncates:
        return to_fp8(a, a.cast(x, f32), target) if target.is_fp8 else a.cast(x, target)
    if target is f32:
        return _f64_to_f32(a, x, "rtz")
    return _truncated(a, a.cast(x, f32), target)


def _f64_to_f32(a: Arithmetic, x: Value, rounding: str) -> Value:
    """Toward zero, or to the neighbour with an odd last bit."""
    near = a.cast(x, f32)
    back = a.cast(near, f64)
    bits = _one_less_if(a, a.bits(near), a.compare("gt", a.abs(back), a.abs(x)))
    if rounding == "odd":
        inexact = a.cast(a.compare("ne", back, x), i32)
        bits = a.bit_or(bits, inexact)
    return a.floats(bits)


def _truncated(a: Arithmetic, x: Value, target: DType) -> Value:
    """f32 to f16, bf16 or fp8, toward zero."""
    if target is bf16:
        upper = a.cast(a.shr(a.bits(x), 16), i16)
        nan = a.constant(0x7FC0, upper.type)
        return a.bitcast(a.select(a.compare("ne", x, x), nan, upper), bf16)
    near = to_fp8(a, x, target) if target.is_fp8 else a.cast(x, target)
    back = from_fp8(a, near, target)
    too_far = a.compare("gt", a.abs(back), a.abs(x))
    integer = u8 if target.is_fp8 else u16
    return a.bitcast(_one_less_if(a, a.bitcast(near, integer), too_far), target)


def _one_less_if(a: Arithmetic, bits: Value, condition: Value) -> Value:
    """The bits of the next number toward zero where the condition holds."""
    return a.select(condition, a.sub(bits, 1), bits)


def to_fp8(a: Arithmetic, x: Value, target: DType) -> Value:
    """f32 as fp8, to nearest, ties to even, saturating; a NaN stays one."""
    mantissa, bias = target.mantissa, target.bias
    size = a.at_most(a.abs(x), _LARGEST[target])
    small = _subnormal_code(a, size, 24 - bias - mantissa)
    large = _normal_code(a, size, 23 - mantissa, (SINGLE.bias - bias) << mantissa)
    code = a.select(a.compare("lt", size, 2.0 ** (1 - bias)), small, large)
    code = a.select(a.compare("ne", x, x), _NAN[target], code)
    sign = a.bit_and(a.shr(a.bits(x), 24), 0x80)
    return a.bitcast(a.cast(a.bit_or(code, sign), u8), target)


def _subnormal_code(a: Arithmetic, size: Value, exponent: int) -> Value:
    magic = 2.0**exponent
    bits_of_magic: Number = (exponent + SINGLE.bias) << SINGLE.mantissa
    return a.sub(a.bits(a.add(size, magic)), bits_of_magic)


def _normal_code(a: Arithmetic, size: Value, shift: int, rebias: int) -> Value:
    bits = a.bits(size)
    odd = a.bit_and(a.shr(bits, shift), 1)
    rounded = a.add(a.add(bits, (1 << (shift - 1)) - 1), odd)
    return a.sub(a.shr(rounded, shift), rebias)


def _narrows(source: DType, target: DType) -> bool:
    """Whether a float type has numbers that another has not."""
    if not target.is_float:
        return False
    return source.mantissa > target.mantissa or source.bias > target.bias
