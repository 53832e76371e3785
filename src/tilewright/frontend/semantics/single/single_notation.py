"""What formulas of fp32 have in common: polynomials, bits, reciprocals, numbers in two parts."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright import language as tl
from tilewright.language import tensor

# Formulas name functions as a kernel would, so that nested ones dispatch to the semantics.
lib = tl.extra.libdevice

INFINITY, NAN = float("inf"), float("nan")
LEAST_NORMAL = 2.0**-126
LOG2_E, LOG2_E_LOW = 1.44269502162933349609375, 1.925963033500116e-08
"""log2(e) to 50 bits, both parts positive."""
LN_2 = 0.693147182464599609375
SHIFTER = 1.5 * 2.0**23
"""Added, it leaves a number rounded to an integer in the low bits of the sum."""


BIAS = 127
"""Of the exponent of 2^0."""


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
    return lib.fast_dividef(1.0, x)


def rounded_product(x: tensor, y: tensor | float) -> tensor:
    """x y for a sum with what its rounding lost: backends fuse ordinary products with sums."""
    return tl.fma(x, y, 0.0)


def at_most(x: tensor, bound: float) -> tensor:
    """The smaller of x and a bound; a NaN stays."""
    return tl.minimum(x, bound, tl.PropagateNan.ALL)


def power_in_parts(x: tensor, high: float, low: float) -> tuple[tensor, tensor]:
    """2^(x (high + low)) as a factor and a power of two, whose product is rounded once.

    high and low have one sign. Beyond the normal numbers the power of two stays at its end, and
    the factor has the rest, up to infinity and down to 0.
    """
    inside = tl.minimum(tl.maximum(x * high, -126.0), 127.0)
    return _parts(x, inside, high, low, BIAS)


def _parts(x: tensor, near: tensor, high: float, low: float, bias: int) -> tuple[tensor, tensor]:
    """The power of two is 2^(n + bias - 127) for the integer n next to `near`."""
    whole = near + (SHIFTER + bias)
    n = whole - (SHIFTER + bias)
    rest = tl.fma(x, low, tl.fma(x, high, -n))
    return tl.exp2(rest), float_of(bits_of(whole) << 23)


def half_exponential(x: tensor) -> tensor:
    """e^x / 2 for x >= 0."""
    factor, power = _parts(x, tl.minimum(x * LOG2_E, 127.0), LOG2_E, LOG2_E_LOW, BIAS - 1)
    return factor * power
