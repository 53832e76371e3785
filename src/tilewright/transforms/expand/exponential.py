"""e^x, 2^x and tanh.

The reduction is the classical one (W. J. Cody and W. Waite, "Software Manual for the Elementary
Functions", 1980): x = n ln(2) + r with an integer n and |r| <= ln(2)/2, so that e^x = 2^n e^r.
Adding 1.5 * 2^mantissa rounds to the integer n and leaves it in the low bits of the sum, whence
one shift moves it to an exponent field (as N. Schraudolph's exp does, Neural Computation 11, 1999).
ln(2) is split in two, the first part short, so that n times it is exact.
"""

from __future__ import annotations

from math import log

from tilewright.ir import Value
from tilewright.support.data_class import dataclass
from tilewright.transforms.expand import polynomials
from tilewright.transforms.expand.avx512_ops import ScaleOp
from tilewright.transforms.expand.float_arithmetic import SINGLE, FloatArithmetic, Format
from tilewright.transforms.expand.piecewise import piecewise

LOG2_E = 1 / log(2)
_BITS_OF_SIXTEENTH = 0x3D800000
_HALF_LN2 = 0.34665
"""ln(2) / 2, rounded up. The reduced argument exceeds it, or is NaN, only where the result is 0,
infinite or NaN: any clamped value serves there, since scaling by n gives the right result."""


@dataclass(frozen=True, slots=True)
class Constants:
    """The constants of one float format.

    ln2_high has at least 9 (f32) or 11 (f64) trailing zero bits, so that its product with n is
    exact; low and high: e^x is 0 below and infinite above; wide: tanh is 1 from there on.
    """

    ln2_high: float
    ln2_low: float
    low: float
    high: float
    low2: float
    high2: float
    wide: float
    exp: tuple[float, ...]
    exp2: tuple[float, ...]
    tanh: tuple[float, ...]


_SINGLE = Constants(
    0.693145751953125, 1.428606765330187e-06, -104.5, 89.0, -151.0, 128.0, 9.1,
    polynomials.EXP_32, polynomials.EXP2_32, polynomials.TANH_32,
)  # fmt: skip
_DOUBLE = Constants(
    0.6931471803691238, 1.9082149292705877e-10, -746.0, 710.0, -1076.0, 1024.0, 19.1,
    polynomials.EXP_64, polynomials.EXP2_64, polynomials.TANH_64,
)  # fmt: skip


def constants_of(form: Format) -> Constants:
    return _SINGLE if form is SINGLE else _DOUBLE


def exp(a: FloatArithmetic, x: Value) -> Value:
    """e^x: 18 instructions of f32, two of them the clamps; 13 with `arith.scale`."""
    k = constants_of(a.format)
    if a.avx512:
        n = a.sub(a.fma(x, LOG2_E, a.format.shifter), a.format.shifter)
        r = a.within(_less_ln2(a, x, n), _HALF_LN2)
        return a.value(ScaleOp(one_plus(a, r, k.exp), n))
    x = a.clamp(x, k.low, k.high)
    whole = a.fma(x, LOG2_E, _biased_shifter(a))
    r = reduced(a, x, whole)
    # n / 2 may be rounded either way: the rest of n is computed from it
    return _scaled(a, one_plus(a, r, k.exp), whole, a.fma(x, LOG2_E / 2, _biased_shifter(a)))


def exp2(a: FloatArithmetic, x: Value) -> Value:
    """2^x; the reduction is exact."""
    k = constants_of(a.format)
    if a.avx512:
        n = a.sub(a.add(x, a.format.shifter), a.format.shifter)
        r = a.within(a.sub(x, n), 0.5)
        return a.value(ScaleOp(a.fma(a.polynomial(k.exp2, r), r, 1.0), n))
    x = a.clamp(x, k.low2, k.high2)
    whole = a.add(x, _biased_shifter(a))
    r = a.sub(x, a.sub(whole, _biased_shifter(a)))
    mantissa = a.fma(a.polynomial(k.exp2, r), r, 1.0)
    return _scaled(a, mantissa, whole, a.fma(x, 0.5, _biased_shifter(a)))


def tanh(a: FloatArithmetic, x: Value) -> Value:
    """Near 0 an odd polynomial, beyond 0.625 sign(x) (1 - 2 / (e^(2|x|) + 1)).

    Both forms are computed; with tables in registers f32 has a polynomial for each quarter of a
    power of two instead, from 1/16 to 10 (`piecewise.py`). e^(2|x|) / (e^(2|x|) + 1) alone would
    cost less, and be 2.5 ulp off.
    """
    k = constants_of(a.format)
    if a.single and a.has_exp2:
        return _tanh_by_exp2(a, x)
    y = a.at_most(a.abs(x), k.wide)
    if a.single and a.avx512:
        number = a.shr(a.max(a.bits(y), _BITS_OF_SIXTEENTH), 21)
        result = piecewise(a, polynomials.TANH_PIECES, y, number, a.lt(y, 0.078125))
        return a.with_sign(result, a.sign_of(x))
    square = a.mul(y, y)
    small = a.fma(a.mul(square, a.polynomial(k.tanh, square)), y, y)
    mantissa, scale = exp_in_range(a, a.add(y, y))
    large = a.sub(1.0, a.div(2.0, a.fma(mantissa, scale, 1.0)))
    return a.with_sign(a.select(a.lt(y, 0.625), small, large), a.sign_of(x))


def _tanh_by_exp2(a: FloatArithmetic, x: Value) -> Value:
    """tanh with the hardware's 2^y and reciprocal, whose errors enter the result by a third at
    most."""
    size, square = a.abs(x), a.mul(x, x)
    # + 0: with a factor of -0, -0 would become 0
    small = a.fma(a.fma(square, a.polynomial(polynomials.TANH_32, square), 0.0), x, x)
    grown = a.math("exp2", a.mul(size, 2 * LOG2_E))
    large = a.fma(a.div(1.0, a.add(grown, 1.0), "fast"), -2.0, 1.0)
    signed = a.with_sign(large, a.sign_of(x))
    return a.select(a.lt(size, 0.625), small, signed)


def exp_in_range(a: FloatArithmetic, x: Value) -> tuple[Value, Value]:
    """e^x as (mantissa, power of two), for x where both are normal numbers."""
    whole = a.fma(x, LOG2_E, _biased_shifter(a))
    mantissa = one_plus(a, reduced(a, x, whole), constants_of(a.format).exp)
    return mantissa, power_of_two(a, whole)


def one_plus(a: FloatArithmetic, r: Value, coefficients: tuple[float, ...]) -> Value:
    """1 + r + r^2 (c0 + c1 r + ...)"""
    return a.polynomial((1.0, 1.0, *coefficients), r)


def reduced(a: FloatArithmetic, x: Value, whole: Value) -> Value:
    """x - n ln(2), for n in the low bits of `whole`."""
    return _less_ln2(a, x, a.sub(whole, _biased_shifter(a)))


def _less_ln2(a: FloatArithmetic, x: Value, n: Value) -> Value:
    """x - n ln(2)"""
    k = constants_of(a.format)
    return a.fma(n, -k.ln2_low, a.fma(n, -k.ln2_high, x))


def power_of_two(a: FloatArithmetic, whole: Value) -> Value:
    """2^n, for n in the low bits of `whole` plus the exponent bias."""
    return a.floats(a.shl(a.bits(whole), a.format.mantissa))


def _biased_shifter(a: FloatArithmetic) -> float:
    """A summand that rounds to an integer and adds the exponent's bias."""
    return a.format.shifter + a.format.bias


def _scaled(a: FloatArithmetic, mantissa: Value, whole: Value, half: Value) -> Value:
    """mantissa * 2^n, in two steps, so that it underflows gradually and overflows to infinity.

    whole: n plus the bias in its low bits; half: the same of about n / 2. The first step adds
    n - n/2 to the exponent field, the second multiplies.
    """
    rest = a.sub(a.bits(whole), a.bits(half))
    first = a.floats(a.add(a.bits(mantissa), a.shl(rest, a.format.mantissa)))
    return a.mul(first, power_of_two(a, half))
