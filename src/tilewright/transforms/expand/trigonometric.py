"""sin and cos: reduction to |r| <= pi/4 and a quarter turn, then a polynomial each.

x = n pi/2 + r. For common arguments pi/2 is split in three numbers (W. J. Cody and W. Waite, 1980),
of full precision with fused multiply-add (as P. Markstein describes in "IA-64 and
Elementary Functions", 2000), else short, so that their products with n are exact. For larger ones
x times 2/pi is computed modulo 4 in integers from the bits of 2/pi that matter (M. Payne and
R. Hanek, "Radian reduction for trigonometric functions", SIGNUM Newsletter 18, 1983). That costs
ten times as much and is in an `arith.rare`: common arguments pay a comparison and a branch.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import pi

from tilewright.ir import Builder, Value
from tilewright.ir.types import f32, f64, i64, u64
from tilewright.support.data_class import dataclass
from tilewright.transforms.expand import polynomials
from tilewright.transforms.expand.float_arithmetic import FloatArithmetic
from tilewright.transforms.expand.rare_branch import rarely

_WORD = 64
_LOW_HALF = (1 << 32) - 1
_ELEVEN_BITS = (1 << 11) - 1
_FORTY_BITS = (1 << 40) - 1


@dataclass(frozen=True, slots=True)
class Reduction:
    """Constants of the reduction in one float format.

    limit: largest |x| of the common form; parts: pi/2 in numbers of so many bits
    """

    limit: float
    bits: int
    parts: int


# Unfused, n of at most 11 (f64: 19) bits times a part of 13 (33) must fit the 24 (53) bits of the
# format.
_FUSED = {32: Reduction(2.0**17, 24, 3), 64: Reduction(2.0**30, 53, 3)}
_UNFUSED = {32: Reduction(2.0**11, 13, 4), 64: Reduction(2.0**19, 33, 4)}
_PADDING = {32: 14, 64: 35}
"""Zeros before the bits of 2/pi, so that no window starts before them: the window of
x = m 2^e starts at bit e - 2, and x is large from e = -12 (f32) or -33 (f64) if unfused."""


def sin(a: FloatArithmetic, x: Value) -> Value:
    return _periodic(a, x, 0)


def cos(a: FloatArithmetic, x: Value) -> Value:
    return _periodic(a, x, 1)


def tan(a: FloatArithmetic, x: Value) -> Value:
    """tan(r), or -1 / tan(r) after an odd number of quarter turns."""
    plan = (_FUSED if a.has_fma else _UNFUSED)[a.format.dtype.bits]
    y = a.abs(x)
    r, turn = _reduce_common(a, y, plan)
    common = _tangent(a, r, turn, a.sign_of(x))

    def slow(builder: Builder, x: Value) -> Value:
        inner = FloatArithmetic(builder, x.type, a.has_fma)
        y = inner.abs(x)
        r, turn = _reduce_large(inner, y)
        result = _tangent(inner, r, turn, inner.sign_of(x))
        return inner.select(inner.lt(y, float("inf")), result, float("nan"))

    return rarely(a.builder, a.gt(y, plan.limit), common, x, slow)


def _tangent(a: FloatArithmetic, r: Value, turn: Value, sign: Value) -> Value:
    """tan(r + turn * pi/2), with `sign` flipped in."""
    odd = a.ne(a.bit_and(turn, 1), 0)
    square = a.mul(r, r)
    if a.single:
        t = a.fma(a.mul(square, a.polynomial(polynomials.TAN_32, square)), r, r)
        # |t| is 1 at most: a fast reciprocal serves.
        found = a.select(odd, a.neg(a.div(1.0, t, "fast")), t)
    else:
        sine, cosine = _sine(a, r, square), _cosine(a, square)
        found = a.div(a.select(odd, a.neg(cosine), sine), a.select(odd, sine, cosine))
    return a.floats(a.bit_xor(a.bits(found), sign))


def _sine(a: FloatArithmetic, r: Value, square: Value) -> Value:
    fit = polynomials.SIN_32 if a.single else polynomials.SIN_64
    return a.fma(a.mul(square, a.polynomial(fit, square)), r, r)


def _cosine(a: FloatArithmetic, square: Value) -> Value:
    fit = polynomials.COS_32 if a.single else polynomials.COS_64
    return a.fma(a.fma(a.polynomial(fit, square), square, -0.5), square, 1.0)


def _periodic(a: FloatArithmetic, x: Value, quarters: int) -> Value:
    """sin(x + quarters * pi/2)"""
    table = _FUSED if a.has_fma else _UNFUSED
    plan = table[a.format.dtype.bits]
    y = a.abs(x)
    # sin is odd, cos even
    sign = a.sign_of(x) if quarters == 0 else None
    r, turn = _reduce_common(a, y, plan)
    common = _evaluate(a, r, _plus_quarters(a, turn, quarters), sign)

    def slow(builder: Builder, x: Value) -> Value:
        inner = FloatArithmetic(builder, x.type, a.has_fma)
        y = inner.abs(x)
        sign = inner.sign_of(x) if quarters == 0 else None
        r, turn = _reduce_large(inner, y)
        result = _evaluate(inner, r, _plus_quarters(inner, turn, quarters), sign)
        return inner.select(inner.lt(y, float("inf")), result, float("nan"))

    return rarely(a.builder, a.gt(y, plan.limit), common, x, slow)


def _plus_quarters(a: FloatArithmetic, turn: Value, quarters: int) -> Value:
    return a.add(turn, quarters) if quarters else turn


def _evaluate(a: FloatArithmetic, r: Value, turn: Value, sign: Value | None) -> Value:
    """sin(r + turn * pi/2), with `sign` flipped in; turn counts modulo 4."""
    square = a.mul(r, r)
    sine, cosine = _sine(a, r, square), _cosine(a, square)
    odd = a.ne(a.bit_and(turn, 1), 0)
    # bit 1 of the turn, which is half of a turn, becomes the sign bit
    flip = a.shl(a.shr(turn, 1), a.format.dtype.bits - 1)
    if sign is not None:
        flip = a.bit_xor(flip, sign)
    return a.floats(a.bit_xor(a.bits(a.select(odd, cosine, sine)), flip))


def _reduce_common(a: FloatArithmetic, y: Value, plan: Reduction) -> tuple[Value, Value]:
    """r and n, in the low bits, for |y| <= plan.limit."""
    shifter = a.format.shifter
    whole = a.fma(y, 2 / pi, shifter)
    n = a.sub(whole, shifter)
    r = y
    for part in _half_pi(plan.bits, plan.parts, a.format.mantissa + 1):
        r = a.fma(n, -part, r)
    return r, a.bits(whole)


def _reduce_large(a: FloatArithmetic, y: Value) -> tuple[Value, Value]:
    """r and n, in the low bits, for any finite y from 2^11 (f32) or 2^19 (f64) up."""
    form = a.format
    bits = a.bits(y)
    fraction = a.bit_or(a.bit_and(bits, (1 << form.mantissa) - 1), 1 << form.mantissa)
    m = a.cast(fraction, u64)
    exponent = a.cast(a.shr(bits, form.mantissa), u64)
    offset = _PADDING[form.dtype.bits] - 2 - form.bias - form.mantissa
    position = a.add(exponent, offset % (1 << _WORD))
    window = _window(a, position, 2 if a.single else 3)
    if a.single:
        # m has 24 bits: the upper half of the second word is enough
        tail = a.shr(a.mul(m, a.shr(window[1], 32)), 32)
        high, low = a.add(a.mul(m, window[0]), tail), None
    else:
        high, low = _product(a, m, window)
    # rounded to the nearest quarter turn, so that |r| <= pi/4
    turn = a.shr(a.add(high, 1 << (_WORD - 3)), _WORD - 2)
    return _from_turns(a, high, low), a.cast(turn, form.integer)


def _product(a: FloatArithmetic, m: Value, words: list[Value]) -> tuple[Value, Value]:
    """The upper two words of m times three words, modulo 2^192, for m below 2^53."""
    middle = a.mul(m, words[1])
    low = a.add(middle, _mul_high(a, m, words[2]))
    one, zero = (a.constant(k, m.type) for k in (1, 0))
    carry = a.select(a.lt(low, middle), one, zero)
    high = a.add(a.mul(m, words[0]), a.add(_mul_high(a, m, words[1]), carry))
    return high, low


def _mul_high(a: FloatArithmetic, m: Value, word: Value) -> Value:
    """m * word >> 64 from products of half words, which vectors have."""
    m_low, m_high = a.bit_and(m, _LOW_HALF), a.shr(m, 32)
    low, high = a.bit_and(word, _LOW_HALF), a.shr(word, 32)
    cross = a.add(a.mul(m_low, high), a.shr(a.mul(m_low, low), 32))
    other = a.add(a.mul(m_high, low), a.bit_and(cross, _LOW_HALF))
    return a.add(a.mul(m_high, high), a.add(a.shr(cross, 32), a.shr(other, 32)))


def _from_turns(a: FloatArithmetic, high: Value, low: Value | None) -> Value:
    """r from the fraction below the upper two bits, a signed count of 2^-64 quarter turns."""
    moved = a.shl(high, 2)
    if low is None:
        # In two numbers of f32: GPUs have few units of f64.
        word = a.bitcast(moved, i64)
        last = a.bit_and(word, _FORTY_BITS)  # f32 holds the others exactly
        quarter, rest = a.cast(a.sub(word, last), f32), a.cast(last, f32)
        half_pi_high, half_pi_low = (p * 2.0**-_WORD for p in _half_pi(24, 2, 24))
        small = a.fma(quarter, half_pi_low, a.mul(rest, half_pi_high))
        return a.fma(quarter, half_pi_high, small)
    word = a.bitcast(a.bit_or(moved, a.shr(low, _WORD - 2)), i64)
    last = a.bit_and(word, _ELEVEN_BITS)  # f64 holds the others exactly
    quarter = a.cast(a.sub(word, last), f64)
    rest = a.fma(a.cast(a.shl(low, 2), f64), 2.0**-_WORD, a.cast(last, f64))
    half_pi_high, half_pi_low = _half_pi(53, 2, 53)
    small = a.fma(quarter, half_pi_low, a.mul(rest, half_pi_high))
    return a.mul(a.fma(quarter, half_pi_high, small), 2.0**-_WORD)


def _window(a: FloatArithmetic, position: Value, count: int) -> list[Value]:
    """`count` words of 2/pi from a bit position on; bits of the position select the words."""
    levels = 1 if a.single else 4
    bits_of = _two_over_pi_words((1 << levels) + count, _PADDING[a.format.dtype.bits])
    words = [a.constant(word, position.type) for word in bits_of]
    for level in reversed(range(levels)):
        step = 1 << level
        bit = a.ne(a.bit_and(position, _WORD << level), 0)
        words = [a.select(bit, words[j + step], words[j]) for j in range(count + step)]
    shift = a.bit_and(position, _WORD - 1)
    rest = a.bit_xor(shift, _WORD - 1)
    return [
        # in two steps, since a shift by 64 - 0 at once would be out of range
        a.bit_or(a.shl(words[j], shift), a.shr(a.shr(words[j + 1], 1), rest))
        for j in range(count)
    ]


@cache
def _half_pi_exact() -> Fraction:
    """pi/2 with an error below 2^-1250, by Machin's formula."""
    one = 1 << 1280

    def arctan_of_inverse(n: int) -> int:
        total, power, k = 0, one // n, 1
        while power:
            total += power // k if k % 4 == 1 else -(power // k)
            power //= n * n
            k += 2
        return total

    return Fraction(8 * arctan_of_inverse(5) - 2 * arctan_of_inverse(239), one)


@cache
def _half_pi(bits: int, parts: int, last_bits: int) -> tuple[float, ...]:
    """pi/2 as a sum of numbers of `bits` bits each, the last rounded to `last_bits`."""
    rest, terms = _half_pi_exact(), list[float]()
    for index in range(parts):
        precision = last_bits if index == parts - 1 else bits
        part = _rounded(rest, precision)
        terms.append(float(part))
        rest -= part
    return tuple(terms)


def _rounded(value: Fraction, bits: int) -> Fraction:
    """The nearest number of so many significant bits."""
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    scale = Fraction(2) ** (exponent + 1 - bits)
    return round(value / scale) * scale


@cache
def _two_over_pi_words(count: int, padding: int) -> tuple[int, ...]:
    """Zeros and the bits of 2/pi after the point, in words of 64 bits, the first bits highest."""
    bits = count * _WORD - padding
    number = int((1 << bits) / _half_pi_exact())
    return tuple(number >> (_WORD * (count - 1 - i)) & ((1 << _WORD) - 1) for i in range(count))
