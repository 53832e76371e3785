"""Helpers of fp32 formulas: polynomials, bits, reciprocals, numbers in two parts.

Formulas take and return tensors of fp32. Their quotients are fast reciprocals, whose operands are
between 2^-126 and 2^126; `tl.exp2`, `tl.sqrt` and `fast_log2f` are a GPU's instructions, which
flush subnormal numbers to 0, and accurate functions on CPUs. docs/libdevice.md states the errors.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright import language as tl
from tilewright.language.tensors import tensor

INFINITY, NAN = float("inf"), float("nan")
LEAST_NORMAL = 2.0**-126
LOG2_E, LOG2_E_LOW = 1.44269502162933349609375, 1.925963033500116e-08
"""log2(e) to 50 bits, both parts positive."""
LN_2 = 0.693147182464599609375
SHIFTER = 1.5 * 2.0**23
"""Adding it to a number leaves the number, rounded to an integer, in the low bits of the sum."""
BIAS = 127
"""The exponent field of 2^0."""
BITS_OF_SQRT_HALF, FRACTION = 0x3F3504F3, 0x7FFFFF


def polynomial(coefficients: Sequence[float], x: tensor) -> tensor:
    """c0 + c1 x + ..., by Horner's rule."""
    *rest, last = coefficients
    found = tl.fma(x, last, rest.pop())
    for coefficient in reversed(rest):
        found = tl.fma(found, x, coefficient)
    return found


def bits_of(x: tensor) -> tensor:
    """The bits of a number as int32."""
    return tl.cast(x, tl.int32, bitcast=True)


def float_of(bits: tensor) -> tensor:
    """The number with these bits."""
    return tl.cast(bits, tl.float32, bitcast=True)


def power_of_two(n: tensor, bias: int = BIAS) -> tensor:
    """2^(n + bias - 127), for an integer n as a number of fp32, whose result is normal."""
    return float_of(bits_of(n + (SHIFTER + bias)) << 23)


def with_sign(size: tensor, x: tensor) -> tensor:
    """A number without a sign, and the sign of x."""
    return float_of(bits_of(size) | (bits_of(x) & -(2**31)))


def reciprocal(x: tensor) -> tensor:
    """1 / x within an ulp, for 2^-126 <= |x| <= 2^126; of infinity 0, of 0 infinity."""
    return tl.fdiv(1.0, x, False, True)


def rounded_product(x: tensor, y: tensor | float) -> tensor:
    """x y, for a sum with its rounding error: backends fuse ordinary products with sums."""
    return tl.fma(x, y, 0.0)


def at_most(x: tensor, bound: float) -> tensor:
    """The smaller of x and a bound; NaN for a NaN."""
    return tl.minimum(x, bound, tl.PropagateNan.ALL)


def exponent_and_fraction(x: tensor) -> tuple[tensor, tensor]:
    """n and f, for x = 2^n (1 + f) > 0, sqrt(1/2) <= 1 + f < sqrt(2)."""
    is_small = x < LEAST_NORMAL
    bits = bits_of(tl.where(is_small, x * 2.0**23, x))
    exponent = (bits - BITS_OF_SQRT_HALF) & ~FRACTION
    f = float_of(bits - exponent) - 1.0
    return tl.fma(exponent.to(tl.float32), 2.0**-23, tl.where(is_small, -23.0, 0.0)), f


def power_in_parts(x: tensor, high: float, low: float) -> tuple[tensor, tensor]:
    """2^(x (high + low)) as a factor and a power of two, whose product is rounded once.

    high and low have one sign. Beyond the normal numbers the power of two stays at the end of its
    range, and the factor has the rest, up to infinity and down to 0.
    """
    inside = tl.minimum(tl.maximum(x * high, -126.0), 127.0)
    return _parts(x, inside, high, low, BIAS)


def _parts(x: tensor, near: tensor, high: float, low: float, bias: int) -> tuple[tensor, tensor]:
    """`power_in_parts`; the power of two is 2^(n + bias - 127) for the integer n next to `near`."""
    whole = near + (SHIFTER + bias)
    n = whole - (SHIFTER + bias)
    rest = tl.fma(x, low, tl.fma(x, high, -n))
    return tl.exp2(rest), float_of(bits_of(whole) << 23)


def half_exponential(x: tensor) -> tensor:
    """e^x / 2 for x >= 0."""
    factor, power = _parts(x, tl.minimum(x * LOG2_E, 127.0), LOG2_E, LOG2_E_LOW, BIAS - 1)
    return factor * power
