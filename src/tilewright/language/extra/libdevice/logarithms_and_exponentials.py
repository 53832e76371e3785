"""exp, exp10, expm1, log1p and log10."""

from __future__ import annotations

from tilewright import language as tl
from tilewright.language.extra.libdevice import fp32_coefficients as fits
from tilewright.language.extra.libdevice.fp32_notation import (
    BIAS,
    FRACTION,
    INFINITY,
    LN_2,
    NAN,
    bits_of,
    exponent_and_fraction,
    float_of,
    polynomial,
    power_in_parts,
    power_of_two,
)
from tilewright.language.extra.libdevice.whole_numbers import rint
from tilewright.language.library_functions import Operands, fp32_form, library_function
from tilewright.language.tensors import tensor

LOG_10, LOG_10_LOW = 2.302585092994046, -2.1707562233822494e-16
"""log(10) to 106 bits."""
LOG10_OF_2 = 0.3010299956639812

# Numbers of fp32
LN_2_HIGH, LN_2_LOW = 0.693145751953125, 1.42860677e-6
"""LN_2_HIGH has 15 bits: its products by exponents are exact."""
LOG2_E = 1.44269504
LOG10_E, LOG10_E_LOW = 0.4342944920063019, -1.0103049952192578e-08
LOG10_2_HIGH, LOG10_2_LOW = 0.301025390625, 4.605038981195214e-06
"""LOG10_2_HIGH has 12 bits."""
LOG2_10, LOG2_10_LOW = 3.3219280242919922, 7.059537005844e-08
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


# ---- exponentials --------------------------------------------------------------------------------


@library_function(Operands.FLOATS, op="accurate_exp")
def exp(x: tensor) -> tensor:
    """e^x, within 4 ulp in fp32 where `tl.exp` on a GPU is off by |x| ulp."""
    ...


@library_function(Operands.FLOATS, ulp=(2, 2))
def exp10(x: tensor) -> tensor:
    """10 to the power of x."""
    # e^t (1 + r), where r is the rounding error of t = x log(10)
    t = x * LOG_10
    lost = tl.fma(x, LOG_10, -t) + x * LOG_10_LOW
    power = tl.exp(t)
    return tl.where((power < INFINITY) & (power > 0.0), power + power * lost, power)


@fp32_form(exp10)
def exp10_fp32(x: tensor) -> tensor:
    """2^(x log2(10))"""
    factor, power = power_in_parts(x, LOG2_10, LOG2_10_LOW)
    return factor * power


@library_function(Operands.FLOATS, ulp=(1.5, 3))
def expm1(x: tensor) -> tensor:
    """exp(x) - 1, exact near 0."""
    # u - 1 for u = exp(x), corrected by x / log(u): log(u) sees the same rounded u.
    u = tl.exp(x)
    corrected = (u - 1.0) * (x / tl.log(u))
    # There log(u) is infinite, or u is so small that u - 1 is -1 exactly; no correction applies.
    extreme = (u == INFINITY) | (u < 1e-16)
    return tl.where(u == 1.0, x, tl.where(extreme, u - 1.0, corrected))


@fp32_form(expm1)
def expm1_fp32(x: tensor) -> tensor:
    """2 (2^(n - 1) expm1(f) + 2^(n - 1) - 1/2), for x = n log(2) + f; for -0, all but 0 is -0."""
    # beyond, the result is the limit; NaNs stay
    inside = tl.where(x > 89.0, 89.0, tl.where(x < -50.0, -50.0, x))
    n = tl.where(tl.abs(x) < 0.5, 0.0, rint(inside * LOG2_E))
    f = tl.fma(n, -LN_2_LOW, tl.fma(n, -LN_2_HIGH, inside))
    half = power_of_two(n, BIAS - 1)
    near = tl.fma(f * f, polynomial(MINUS_EXPM1_COEFFICIENTS, f), -f)
    return 2.0 * tl.fma(half, -near, -(0.5 - half))


# ---- logarithms ----------------------------------------------------------------------------------


@library_function(Operands.FLOATS, ulp=(1.5, 3))
def log1p(x: tensor) -> tensor:
    """log(1 + x), exact near 0."""
    # log(u), corrected for the rounding of u = 1 + x
    u = 1.0 + x
    # For u = 1 the quotient below is 0 / 0, for infinity inf / inf; the answer is x in both cases.
    exact = (u == 1.0) | (u == INFINITY)
    return tl.where(exact, x, tl.log(u) * (x / (u - 1.0)))


@fp32_form(log1p)
def log1p_fp32(x: tensor) -> tensor:
    """`finite_log1p`, and the limits of the range."""
    found = tl.where(x < INFINITY, finite_log1p(x), x)
    return tl.where(x > -1.0, found, tl.where(x == -1.0, -INFINITY, NAN))


def finite_log1p(x: tensor) -> tensor:
    """n log(2) + log1p(m), for 1 + x = 2^n (1 + m) > 0, with all digits of x in m.

    For -0, m and all terms added to it are -0.
    """
    exponent = (bits_of(1.0 + x) - BITS_OF_3_4) & ~FRACTION
    scale = float_of(BITS_OF_4 - exponent)
    m = float_of(bits_of(x) - exponent) - tl.fma(scale, -0.25, 1.0)
    minus_n = (0 - exponent).to(tl.float32) * 2.0**-23
    near = tl.fma(m * m, polynomial(LOG1P_COEFFICIENTS, m), m)
    return tl.fma(minus_n, -LN_2, near)


@library_function(Operands.FLOATS, ulp=(2, 2))
def log10(x: tensor) -> tensor:
    """Logarithm to base 10."""
    return tl.log2(x) * LOG10_OF_2


@fp32_form(log10)
def log10_fp32(x: tensor) -> tensor:
    """n log10(2) + log10(1 + f), for x = 2^n (1 + f), sqrt(1/2) <= 1 + f < sqrt(2)."""
    n, f = exponent_and_fraction(x)
    near = tl.fma(f, LOG10_E_LOW, (f * f) * polynomial(fits.LOG10, f))
    found = tl.fma(n, LOG10_2_HIGH, tl.fma(f, LOG10_E, tl.fma(n, LOG10_2_LOW, near)))
    found = tl.where(x < INFINITY, found, x)
    return tl.where(x > 0.0, found, tl.where(x == 0.0, -INFINITY, NAN))
