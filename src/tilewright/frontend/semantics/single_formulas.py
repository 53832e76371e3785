"""Elementary functions of fp32 in fp32: what losses, activations and their gradients compute for
each element, where fp64 takes several times the instructions.

The polynomials are minimax by Lawson's iteration, with coefficients rounded to fp32 one after the
other; docs/libdevice.md states the errors.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright import language as tl
from tilewright.language import tensor

lib = tl.extra.libdevice

INFINITY, NAN = float("inf"), float("nan")
LN_2 = 0.693147182464599609375
LN_2_HIGH, LN_2_LOW = 0.693145751953125, 1.42860677e-6
"""LN_2_HIGH has 15 bits: its products by exponents are exact."""
LOG2_E = 1.44269504

BITS_OF_3_4, BITS_OF_4 = 0x3F400000, 0x40800000

LOG1P_COEFFICIENTS = (
    -0.5, 0.3333345055580139, -0.2500010132789612, 0.1999080777168274, -0.1664705127477646,
    0.14478613436222076, -0.13163983821868896, 0.1046781986951828, -0.045099541544914246,
)  # fmt: skip
"""log1p(m) = m + m^2 (c0 + c1 m + ...), -1/4 <= m <= 1/2."""
MINUS_EXPM1_COEFFICIENTS = (
    -0.5000000596046448, -0.1666666865348816, -0.041664958000183105, -0.008332853205502033,
    -0.0014010841259732842, -0.00020086157019250095,
)  # fmt: skip
"""-expm1(f) = -f + f^2 (c0 + c1 f + ...), |f| <= 1/2."""


def log1p(x: tensor) -> tensor:
    """n log(2) + log1p(m), for 1 + x = 2^n (1 + m), with all digits of x in m. Of -0, m and what is
    added to it are -0."""
    exponent = (_bits(1.0 + x) - BITS_OF_3_4) & ~0x7FFFFF
    scale = _float(BITS_OF_4 - exponent)
    m = _float(_bits(x) - exponent) - tl.fma(scale, -0.25, 1.0)
    minus_n = (0 - exponent).to(tl.float32) * 2.0**-23
    near = tl.fma(m * m, _polynomial(LOG1P_COEFFICIENTS, m), m)
    found = tl.where(x < INFINITY, tl.fma(minus_n, -LN_2, near), x)
    return tl.where(x > -1.0, found, tl.where(x == -1.0, -INFINITY, NAN))


def expm1(x: tensor) -> tensor:
    """2 (2^(n - 1) expm1(f) + 2^(n - 1) - 1/2), for x = n log(2) + f; of -0, all but 0 is -0."""
    # beyond, the result is the limit; NaNs stay
    inside = tl.where(x > 89.0, 89.0, tl.where(x < -50.0, -50.0, x))
    n = tl.where(tl.abs(x) < 0.5, 0.0, lib.rint(inside * LOG2_E))
    f = tl.fma(n, -LN_2_LOW, tl.fma(n, -LN_2_HIGH, inside))
    half = _float((n.to(tl.int32) + 126) << 23)
    near = tl.fma(f * f, _polynomial(MINUS_EXPM1_COEFFICIENTS, f), -f)
    return 2.0 * tl.fma(half, -near, -(0.5 - half))


def _polynomial(coefficients: Sequence[float], x: tensor) -> tensor:
    *rest, last = coefficients
    found = tl.fma(x, last, rest.pop())
    for coefficient in reversed(rest):
        found = tl.fma(found, x, coefficient)
    return found


def _bits(x: tensor) -> tensor:
    return tl.cast(x, tl.int32, bitcast=True)


def _float(bits: tensor) -> tensor:
    return tl.cast(bits, tl.float32, bitcast=True)
