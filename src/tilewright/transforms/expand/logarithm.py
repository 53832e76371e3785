"""log(x), log2(x) and 1/sqrt(x).

x = 2^k m with sqrt(1/2) <= m < sqrt(2), so that k log(2) and log(m) never cancel; m - 1 is exact.
f32 takes a polynomial in f = m - 1. f64 takes the series in s = f / (2 + f), where log(1 + f) is
2 atanh(s), in the form of fdlibm's e_log.c (Sun Microsystems, 1993), which rounds f last:
log(1 + f) = f - (f^2/2 - s (f^2/2 + s^2 P(s^2))).
"""

from __future__ import annotations

from math import log

from tilewright.ir import Builder, Value
from tilewright.ir.types import u32
from tilewright.transforms.expand import polynomials
from tilewright.transforms.expand.avx512_ops import ExponentOp, SignificandOp
from tilewright.transforms.expand.exponential import LOG2_E, constants_of
from tilewright.transforms.expand.float_arithmetic import FloatArithmetic
from tilewright.transforms.expand.rare_branch import rarely

_SMALLEST_NORMAL, _INFINITY = 0x00800000, 0x7F800000
_RSQRT_ESTIMATE = 0x5F375A86
_SQRT_HALF = {32: 0x3F3504F3, 64: 0x3FE6A09E667F3BCD}
"""Bits of sqrt(1/2)."""


def log_e(a: FloatArithmetic, x: Value) -> Value:
    """The natural logarithm."""
    k, f, scaled = _split(a, x)
    if a.single:
        rest = a.polynomial(polynomials.LOG_32, f)
        result = a.fma(k, log(2), a.fma(a.mul(f, f), rest, f))
    else:
        parts = constants_of(a.format)
        half_square, inner = _log_double(a, f)
        low = a.fma(k, parts.ln2_low, inner)
        result = a.fma(k, parts.ln2_high, a.sub(f, a.sub(half_square, low)))
    return _special(a, scaled, result)


def log_2(a: FloatArithmetic, x: Value) -> Value:
    """The logarithm to base 2; exact for powers of two."""
    k, f, scaled = _split(a, x)
    if a.single:
        rest = a.mul(a.mul(f, f), a.polynomial(polynomials.LOG2_32, f))
        fraction = a.fma(f, LOG2_E, rest)
    else:
        half_square, inner = _log_double(a, f)
        fraction = a.fma(f, LOG2_E, a.mul(a.sub(inner, half_square), LOG2_E))
    return _special(a, scaled, a.add(k, fraction))


def rsqrt(a: FloatArithmetic, x: Value) -> Value:
    """1 / sqrt(x): of f32 by iteration, else a root and a quotient, both rounded."""
    if a.single and a.has_fma:
        inner = a.sub(a.bits(x), _SMALLEST_NORMAL)
        # as unsigned integers: all but positive normal numbers
        other = a.ge(a.bitcast(inner, u32), _INFINITY - _SMALLEST_NORMAL)
        return rarely(a.builder, other, _rsqrt_of_normal(a, x), x, _rsqrt_by_division)
    return a.div(1.0, a.math("sqrt", x))


def _rsqrt_by_division(builder: Builder, x: Value) -> Value:
    a = FloatArithmetic(builder, x.type)
    return a.div(1.0, a.math("sqrt", x))


def _rsqrt_of_normal(a: FloatArithmetic, x: Value) -> Value:
    """Two iterations: half the time of vsqrtps and vdivps in registers of 512 bits.

    The first estimate halves the exponent as an integer (C. Lomont, "Fast inverse square root",
    2003), 3.5 % off at most. With e = 1 - x y^2, 1/sqrt(x) is y (1 + e/2 + 3 e^2/8 + ...): to the
    third power first, then to the first, which only adds to y, so that it is rounded once.
    """
    y = a.floats(a.sub(_RSQRT_ESTIMATE, a.shr(a.bits(x), 1)))
    e = a.fma(a.neg(a.mul(x, y)), y, 1.0)
    y = a.fma(a.mul(y, e), a.polynomial((0.5, 0.375, 0.3125), e), y)
    e = a.fma(a.neg(a.mul(x, y)), y, 1.0)
    return a.fma(a.mul(y, 0.5), e, y)


def _split(a: FloatArithmetic, x: Value) -> tuple[Value, Value, Value]:
    """k as a float, m - 1, and x, scaled if it is subnormal."""
    if a.avx512:
        return *_split_by_instructions(a, x), x
    form = a.format
    # enough to make the smallest subnormal number a normal one
    shift = form.mantissa + 1
    tiny = a.lt(x, 2.0 ** (1 - form.bias))
    scaled = a.select(tiny, a.mul(x, 2.0**shift), x)
    bits = a.bits(scaled)
    # bits of floats are ordered: this borrows from the exponent exactly where m is below sqrt(1/2)
    borrowed = a.sub(bits, _SQRT_HALF[form.dtype.bits])
    if a.single:
        # k times 2^mantissa as an integer is exact as a float
        power = a.bit_and(borrowed, -1 << form.mantissa)
        offset = a.select(tiny, a.constant(-float(shift)), 0.0)
        k = a.fma(a.cast(power, form.dtype), 0.5**form.mantissa, offset)
    else:
        exponent = a.shr(borrowed, form.mantissa)
        power = a.shl(exponent, form.mantissa)
        offset = a.select(tiny, -shift, a.constant(0, exponent.type))
        k = a.cast(a.add(exponent, offset), form.dtype)
    return k, a.sub(a.floats(a.sub(bits, power)), 1.0), scaled


def _split_by_instructions(a: FloatArithmetic, x: Value) -> tuple[Value, Value]:
    """`_split` by instructions: k is the logarithm of zeros and infinities, f is NaN for x < 0."""
    m, k = a.value(SignificandOp(x)), a.value(ExponentOp(x))
    high = a.gt(m, 2**0.5)
    m = a.select(high, a.mul(m, 0.5), m)
    return a.select(high, a.add(k, 1.0), k), a.sub(m, 1.0)


def _log_double(a: FloatArithmetic, f: Value) -> tuple[Value, Value]:
    """f^2/2 and s (f^2/2 + s^2 P(s^2)); log(1 + f) is f - (the first - the second)."""
    s = a.div(f, a.add(f, 2.0))
    square = a.mul(s, s)
    half_square = a.mul(a.mul(f, 0.5), f)
    rest = a.fma(square, a.polynomial(polynomials.ATANH_64, square), half_square)
    return half_square, a.mul(s, rest)


def _special(a: FloatArithmetic, x: Value, result: Value) -> Value:
    """-inf for zero, NaN for negative numbers, x itself for +inf and NaN."""
    if a.avx512:
        return result
    if a.single and a.has_exp2:
        # the instruction is exact where the logarithm is no finite number
        rough = a.math("fast_log2", x)
        return a.select(a.lt(a.abs(rough), float("inf")), result, rough)
    result = a.select(a.lt(x, float("inf")), result, x)
    rest = a.select(a.eq(x, 0.0), a.constant(float("-inf")), float("nan"))
    return a.select(a.gt(x, 0.0), result, rest)
