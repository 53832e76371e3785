"""Casts that CPUs or LLVM lack: of fp8 and bf16, truncating ones, and f64 to 16 bits in vectors.

fp8 is held in registers as its 8 bits. From f32 to a format with bias B and t fraction bits:

* normal result:    (bits - ((127 - B) << 23) + half - 1 + odd) >> (23 - t), where odd is the bit
                    that becomes the lowest: a carry runs into the exponent
* subnormal result: |x| + 2^(24 - B - t), whose last place is the smallest subnormal: the sum's low
                    bits are the answer, rounded by the hardware

f8e4b15 rounds ties away from zero, as Triton's conversion does: twice the number of last places,
cut off, plus 1, halved.

bf16 has the exponents of f32, so the first line does for all numbers. LLVM calls a function for
each lane unless the CPU has AVX512-BF16, whose instruction rounds subnormal numbers to zero; so it
is done here. Where there is the instruction (`rounds_bf16`), subnormal numbers go through it with
the exponent of the smallest normal one, which is subtracted from the result: as the exponent field
is 1 then, its bits are the original ones and 1 << 7. Four instructions instead of nine, and the
same bits.

Longer floats go through f32 rounded to odd, which makes the second rounding the only one
(S. Boldo and G. Melquiond, "When double rounding is odd", IMACS 2005); integers of 32 and 64 bits
through f64, the latter made odd first.
"""

from __future__ import annotations

from tilewright.ir import Builder, Op, Value
from tilewright.ir.types import (
    DType,
    bf16,
    dtype_of,
    element_of,
    f8e4b15,
    f8e5b16,
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
from tilewright.ops import CastOp
from tilewright.transforms.expand.avx512_ops import RoundNormalToBf16Op
from tilewright.transforms.expand.float_arithmetic import SINGLE, FloatArithmetic, Number


def expand_cast(
    op: Op, builder: Builder, native: frozenset[DType] = frozenset(), rounds_bf16: bool = False
) -> Value | None:
    """Expand a cast; None if LLVM's own code is good.

    native: floats of less than 32 bits that the machine converts from and to f32; with f16 among
    them, from f64 too. rounds_bf16: it has `arith.round_normal_to_bf16`.
    """
    assert isinstance(op, CastOp)
    if is_native_cast(op, native):
        return None
    source, target = dtype_of(op.x.type), dtype_of(op.type)
    truncates = _truncates(op)
    type_ = with_element(op.x.type, f32)
    a = FloatArithmetic(builder, type_, native=native, rounds_bf16=rounds_bf16)
    if source.is_float and source.bits < 32:
        wide = to_f32(a, op.x)
        if target.is_float:
            return _narrowed(a, wide, target, truncates)
        return a.cast(wide, target, in_range=op.in_range)
    if source is not f64 and source is not f32:
        return _narrowed(a, _from_integer(a, op.x, source), target, False)
    return _narrowed(a, op.x, target, truncates)


def is_native_cast(op: CastOp, native: frozenset[DType] = frozenset()) -> bool:
    """Whether a cast is left to LLVM; `native` as for `expand_cast`."""
    source, target = element_of(op.x.type), element_of(op.type)
    if not (isinstance(source, DType) and isinstance(target, DType)) or source is target:
        return True
    return not (_truncates(op) or _lacking(source, target, native))


def _truncates(op: CastOp) -> bool:
    source, target = dtype_of(op.x.type), dtype_of(op.type)
    return op.rounding == "rtz" and source.is_float and _narrows(source, target)


def _lacking(source: DType, target: DType, native: frozenset[DType]) -> bool:
    """Whether LLVM has no good instructions for a cast to nearest."""
    if f32 in (source, target) and (source in native or target in native):
        return False
    narrow = source is f64 and target.is_float and target.bits < 32 and target not in native
    return narrow or _is_by_hand(source) or _is_by_hand(target)


def _is_by_hand(dtype: DType) -> bool:
    return dtype is bf16 or dtype.is_fp8


def _from_integer(a: FloatArithmetic, x: Value, source: DType) -> Value:
    """An integer as a float whose rounding to bf16 or fp8 is the integer's."""
    if source.bits <= 16:
        return a.cast(x, f32)
    if source.bits == 64:
        x = _odd_if_long(a, x)
    return a.cast(x, f64)


def _odd_if_long(a: FloatArithmetic, x: Value) -> Value:
    """A 64-bit integer that f64 holds exactly: one of 54 bits or more loses its last 11 to an odd
    bit above them."""
    # 64 bits less the 53 of an f64
    dropped = 11
    rest = a.bit_and(x, (1 << dropped) - 1)
    sticky = a.cast(a.ne(rest, 0), dtype_of(x.type))
    merged = a.shl(a.bit_or(a.shr(x, dropped), sticky), dropped)
    # 0 or -1 where all bits from 53 on are equal: then the integer is short enough
    sign = a.shr(x, 53)
    short = a.eq(sign, 0)
    if dtype_of(x.type).is_signed:
        short = a.bit_or(short, a.eq(sign, -1))
    return a.select(short, x, merged)


def to_f32(a: FloatArithmetic, x: Value) -> Value:
    """A float of fewer bits as f32, exactly."""
    source = dtype_of(x.type)
    if source in a.native:
        return a.cast(x, f32)
    if source is bf16:
        return a.floats(a.shl(a.cast(a.bitcast(x, i16), i32), 16))
    if not source.is_fp8:
        return a.cast(x, f32)
    if source is f8e5m2:
        # the upper byte of an f16
        half = a.bitcast(a.shl(a.cast(a.bitcast(x, u8), u16), 8), f16)
        return a.cast(half, f32)
    if source is f8e5b16:
        return _e5b16_to_f32(a, x)
    # the same exponent and fraction in f16 have the bias 15; the sign is copied twice
    moved = a.shl(a.cast(a.bitcast(x, i8), i16), 7)
    # -0x4080 is 0xBF80 in 16 bits: all but bit 14, the second copy of the sign
    half = a.bitcast(a.bit_and(moved, -0x4080), f16)
    scaled = a.mul(a.cast(half, f32), 2.0 ** (f16.bias - source.bias))
    if source.specials == "none":
        return scaled
    if source.specials == "fn":
        # 480 is what the bits of the NaN, 0x7F, read as
        return a.select(a.eq(a.abs(scaled), 480.0), float("nan"), scaled)
    return _nan_for_negative_zero(a, x, scaled)


def _e5b16_to_f32(a: FloatArithmetic, x: Value) -> Value:
    """f16 has its exponents but the highest, so the bits move to where f32 has them."""
    code = a.cast(a.bitcast(x, u8), i32)
    size = a.bit_and(code, 0x7F)
    rebias = (SINGLE.bias - f8e5b16.bias) << SINGLE.mantissa
    normal = a.floats(a.add(a.shl(size, SINGLE.mantissa - f8e5b16.mantissa), rebias))
    small = a.mul(a.cast(size, f32), 2.0 ** (1 - f8e5b16.bias - f8e5b16.mantissa))
    magnitude = a.select(a.lt(size, 1 << f8e5b16.mantissa), small, normal)
    sign = a.shl(a.bit_and(code, 0x80), 24)
    return _nan_for_negative_zero(a, x, a.floats(a.bit_or(a.bits(magnitude), sign)))


def _nan_for_negative_zero(a: FloatArithmetic, x: Value, number: Value) -> Value:
    return a.select(a.eq(a.bitcast(x, u8), 0x80), float("nan"), number)


def _narrowed(a: FloatArithmetic, x: Value, target: DType, truncates: bool) -> Value:
    """f32 or f64 as any float type, rounded once."""
    if dtype_of(x.type) is f64 and target.bits < 64:
        if target is f32 and not truncates:
            return a.cast(x, f32)
        x = _f64_to_f32(a, x, odd=target is not f32 and not truncates)
    if truncates and target is not f32:
        return _truncated(a, x, target)
    return _rounded(a, x, target)


def _rounded(a: FloatArithmetic, x: Value, target: DType) -> Value:
    """f32 as any float type, to nearest."""
    if target in a.native:
        return a.cast(x, target)
    if target.is_fp8:
        return to_fp8(a, x, target)
    return to_bf16(a, x) if target is bf16 else a.cast(x, target)


def _f64_to_f32(a: FloatArithmetic, x: Value, odd: bool) -> Value:
    """Toward zero, or to the neighbour with an odd last bit."""
    near = a.cast(x, f32)
    back = a.cast(near, f64)
    bits = _one_less_if(a, a.bits(near), a.gt(a.abs(back), a.abs(x)))
    if odd:
        inexact = a.cast(a.ne(back, x), i32)
        bits = a.bit_or(bits, inexact)
    return a.floats(bits)


def _truncated(a: FloatArithmetic, x: Value, target: DType) -> Value:
    """f32 to f16, bf16 or fp8, toward zero."""
    if target is bf16:
        # bf16 is the upper half of f32: cutting the rest off rounds toward zero
        return _upper_half(a, x, a.bits(x))
    near = _rounded(a, x, target)
    too_far = a.gt(a.abs(to_f32(a, near)), a.abs(x))
    integer = u8 if target.is_fp8 else u16
    bits = _one_less_if(a, a.bitcast(near, integer), too_far)
    if not target.has_negative_zero:
        # one less than the smallest negative number is not -0, which would be the NaN
        bits = a.select(a.bit_or(a.ne(bits, 0x80), a.ne(x, x)), bits, 0)
    return a.bitcast(bits, target)


def to_bf16(a: FloatArithmetic, x: Value) -> Value:
    """f32 as bf16, to nearest, ties to even."""
    bits = a.bits(x)
    if a.rounds_bf16:
        return _to_bf16_by_instruction(a, bits)
    odd = a.bit_and(a.shr(bits, 16), 1)
    return _upper_half(a, x, a.add(a.add(bits, 0x7FFF), odd))


def _to_bf16_by_instruction(a: FloatArithmetic, bits: Value) -> Value:
    subnormal = a.eq(a.bit_and(bits, f32.infinity_bits), 0)
    normal = a.select(subnormal, a.bit_or(bits, 1 << f32.mantissa), bits)
    rounded = a.value(RoundNormalToBf16Op(a.floats(normal)))
    less = a.sub(rounded, 1 << bf16.mantissa)
    return a.bitcast(a.select(subnormal, less, rounded), bf16)


def _upper_half(a: FloatArithmetic, x: Value, bits: Value) -> Value:
    """The upper 16 of the bits as bf16; if x is a NaN, those of x, quiet."""
    # without the quiet bit, a NaN whose payload is in the lower half alone would become infinity
    quiet = a.bit_or(a.bits(x), 1 << 22)
    whole = a.select(a.ne(x, x), quiet, bits)
    return a.bitcast(a.cast(a.shr(whole, 16), i16), bf16)


def _one_less_if(a: FloatArithmetic, bits: Value, condition: Value) -> Value:
    """The bits of the next number toward zero where the condition holds."""
    # Bits of floats of one sign are ordered as the numbers are; below infinity is the largest
    # finite number.
    return a.select(condition, a.sub(bits, 1), bits)


def to_fp8(a: FloatArithmetic, x: Value, target: DType) -> Value:
    """f32 as fp8, to nearest, saturating; a NaN stays one where the format has one."""
    # before the rounding: this saturates, and no carry can overflow the format
    size = a.at_most(a.abs(x), target.largest)
    small = _subnormal_code(a, size, target)
    large = _normal_code(a, size, target)
    code = a.select(a.lt(size, 2.0 ** (1 - target.bias)), small, large)
    code = a.select(a.ne(x, x), target.nan_bits, code)
    sign = a.bit_and(a.shr(a.bits(x), 24), 0x80)
    if not target.has_negative_zero:
        sign = a.select(a.eq(code, 0), 0, sign)
    return a.bitcast(a.cast(a.bit_or(code, sign), u8), target)


def _subnormal_code(a: FloatArithmetic, size: Value, target: DType) -> Value:
    if target is f8e4b15:
        twice = a.cast(a.mul(size, 2.0 ** (target.bias + target.mantissa)), i32)
        return a.shr(a.add(twice, 1), 1)
    exponent = SINGLE.mantissa + 1 - target.bias - target.mantissa
    bits_of_magic: Number = (exponent + SINGLE.bias) << SINGLE.mantissa
    return a.sub(a.bits(a.add(size, 2.0**exponent)), bits_of_magic)


def _normal_code(a: FloatArithmetic, size: Value, target: DType) -> Value:
    bits, shift = a.bits(size), SINGLE.mantissa - target.mantissa
    half = 1 << (shift - 1)
    if target is f8e4b15:
        rounded = a.add(bits, half)
    else:
        odd = a.bit_and(a.shr(bits, shift), 1)
        rounded = a.add(a.add(bits, half - 1), odd)
    return a.sub(a.shr(rounded, shift), (SINGLE.bias - target.bias) << target.mantissa)


def _narrows(source: DType, target: DType) -> bool:
    """Whether a float type has numbers that another has not."""
    if not target.is_float:
        return False
    return source.mantissa > target.mantissa or source.bias > target.bias
