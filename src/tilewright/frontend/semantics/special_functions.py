"""Special functions of the wider library: error functions, gamma, Bessel. Tensors of fp64.

Series are Chebyshev's, summed by Clenshaw's recurrence, which stays as exact as its largest term.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import language as tl
from tilewright.frontend.semantics import special_coefficients as series
from tilewright.language import tensor

# Formulas name functions as a kernel would, so that nested ones dispatch to the semantics.
lib = tl.extra.libdevice

INFINITY = float("inf")
PI = 3.141592653589793
SQRT_2 = 1.4142135623730951
SQRT_HALF = 0.7071067811865476
SQRT_HALF_LOW = -4.833646656726457e-17
"""sqrt(1/2) = SQRT_HALF + SQRT_HALF_LOW to 106 bits."""
TWO_OVER_SQRT_PI = 1.1283791670955126
TWO_OVER_PI = 0.6366197723675814
LOG_SQRT_2_PI = 0.9189385332046727
WINITZKI = 0.147
"""Of S. Winitzki's approximation of erfinv ("A handy approximation for the error function ...",
2008)."""

STIRLING = (
    0.08333333333333333, -0.002777777777777778, 0.0007936507936507937, -0.0005952380952380953,
    0.0008417508417508417, -0.0019175269175269176, 0.00641025641025641, -0.029550653594771242,
)  # fmt: skip
"""B(2k) / (2k (2k - 1)), k = 1, 2, ...; see `_stirling`."""


def chebyshev(coefficients: Sequence[float], t: tensor) -> tensor:
    """c[0] + c[1] T1(t) + ..., for t in [-1, 1]."""
    twice = t + t
    ahead: Any = 0.0
    here: Any = t * 0.0 + coefficients[-1]
    for c in reversed(coefficients[1:-1]):
        here, ahead = twice * here + (c - ahead), here
    return t * here + (coefficients[0] - ahead)


# ---- error functions -----------------------------------------------------------------------------


def erfcx_of_positive(x: tensor) -> tensor:
    """exp(x^2) erfc(x) for x >= 0."""
    far = tl.minimum(x, 1e150)
    t = (far - 4.0) / (far + 4.0)
    return chebyshev(series.ERFCX, t) / (1.0 + 2.0 * x)


def exp_of_minus_square(x: tensor) -> tensor:
    """exp(-x^2), the square in two parts, as its error would be multiplied by x^2."""
    high = x * x
    low = tl.fma(x, x, -high)
    size = tl.exp(-tl.minimum(high, 1000.0))
    return size - size * low


def erfc(x: tensor) -> tensor:
    """1 - erf(x) near 0, else by erfcx, so that small values keep their digits."""
    size = tl.minimum(tl.abs(x), 30.0)
    tail = erfcx_of_positive(size) * exp_of_minus_square(size)
    return tl.where(tl.abs(x) < 0.5, 1.0 - tl.erf(x), _of_sign(x, tail, 2.0 - tail))


def _of_sign(x: tensor, positive: tensor, negative: tensor) -> tensor:
    """One of two for the sign of x; a NaN for a NaN."""
    return tl.where(x != x, x, tl.where(x < 0.0, negative, positive))


def erfcx(x: tensor) -> tensor:
    """exp(x^2) erfc(x) = 2 exp(x^2) - erfcx(-x)."""
    scaled = erfcx_of_positive(tl.abs(x))
    square = x * x
    growth = tl.exp(square)
    growth = tl.where(growth < INFINITY, growth + growth * tl.fma(x, x, -square), growth)
    return _of_sign(x, scaled, 2.0 * growth - scaled)


def normcdf(x: tensor) -> tensor:
    """erfc(-x / sqrt(2)) / 2; what the product lost counts by the slope of erfc."""
    z = -x * SQRT_HALF
    lost = tl.fma(-x, SQRT_HALF, -z) - x * SQRT_HALF_LOW
    slope = TWO_OVER_SQRT_PI * exp_of_minus_square(tl.minimum(tl.abs(z), 30.0))
    exact = 0.5 * (erfc(z) - tl.where(tl.abs(z) < 30.0, lost * slope, 0.0))
    return tl.where(x != x, x, exact)


def _erfcinv_of_small(y: tensor) -> tensor:
    """Of y in (0, 1/2]: Winitzki's approximation, and three of Halley's steps, each of which
    triples the digits."""
    logarithm = tl.log(y) + tl.log(2.0 - y)
    first = 2.0 / (PI * WINITZKI) + 0.5 * logarithm
    x = tl.sqrt(tl.sqrt(first * first - logarithm / WINITZKI) - first)
    for _ in range(3):
        # (erfc(x) - y) / erfc'(x), scaled by exp(x^2), as both are tiny in the tail.
        square = x * x
        growth = tl.exp(square)
        growth = growth + growth * tl.fma(x, x, -square)
        step = (y * growth - erfcx_of_positive(x)) * (1.0 / TWO_OVER_SQRT_PI)
        x = x - step / (1.0 + x * step)
    return x


def _inverse(x: tensor, complement: tensor) -> tensor:
    """erfinv of |x| <= 1, whose 1 - |x| is `complement`; near 0 by steps with erf."""
    near = tl.minimum(tl.abs(x), 0.5)
    y = near * (1.0 / TWO_OVER_SQRT_PI)
    for _ in range(4):
        step = (tl.erf(y) - near) * (1.0 / TWO_OVER_SQRT_PI) * tl.exp(y * y)
        y = y - step / (1.0 + y * step)
    tail = _erfcinv_of_small(tl.minimum(tl.maximum(complement, 5e-324), 0.5))
    tail = tl.where(complement == 0.0, INFINITY, tail)
    found = lib.copysign(tl.where(complement > 0.5, y, tail), x)
    return tl.where(complement >= 0.0, found, float("nan"))


def erfinv(x: tensor) -> tensor:
    """1 - |x| is exact from 1/2 on."""
    return _inverse(x, 1.0 - tl.abs(x))


def erfcinv(y: tensor) -> tensor:
    """erfinv(1 - y), by the smaller of y and 2 - y, which are exact where that counts."""
    return _inverse(1.0 - y, tl.minimum(y, 2.0 - y, tl.PropagateNan.ALL))


def normcdfinv(y: tensor) -> tensor:
    """-sqrt(2) erfcinv(2 y)."""
    return -SQRT_2 * erfcinv(2.0 * y)


# ---- gamma ---------------------------------------------------------------------------------------


def _stirling(x: tensor) -> tensor:
    """What is to be added to (x - 1/2) log x - x + log sqrt(2 pi), for x >= 8."""
    inverse = 1.0 / x
    square = inverse * inverse
    total: Any = STIRLING[-1]
    for c in STIRLING[-2::-1]:
        total = total * square + c
    return total * inverse


def _sin_pi_size(x: tensor) -> tensor:
    """|sin(pi x)|, of the exact distance to the nearest integer."""
    return tl.abs(tl.sin(PI * (x - lib.rint(x))))


def _lgamma_of_positive(x: tensor) -> tensor:
    """From [1, 3] by products of x - 1, x - 2 ... up to 9, and by Stirling's series."""
    far = tl.maximum(x, 8.0)
    log_far = tl.log(far)
    large = (far - 0.5) * (log_far - 1.0) + (LOG_SQRT_2_PI - 0.5 + _stirling(far))
    product = x * 0.0 + 1.0
    z = tl.where(x < 1.0, x + 1.0, tl.minimum(x, 9.0))
    for _ in range(6):
        down = z > 3.0
        z = tl.where(down, z - 1.0, z)
        product = tl.where(down, product * z, product)
    small = (z - 1.0) * (z - 2.0) * chebyshev(series.LGAMMA, z - 2.0)
    small = small + tl.log(product) - tl.where(x < 1.0, tl.log(tl.maximum(x, 5e-324)), 0.0)
    return tl.where(x < 9.0, small, tl.where(x < INFINITY, large, x))


def lgamma(x: tensor) -> tensor:
    """log |gamma(x)|; of negative numbers by reflection, infinite at 0, -1, -2 ..."""
    size = tl.abs(x)
    positive = _lgamma_of_positive(size)
    # gamma(x) gamma(-x) = -pi / (x sin(pi x))
    tiny = tl.maximum(_sin_pi_size(x) * size, 5e-324)
    negative = tl.log(PI / tiny) - positive
    negative = tl.where(size < 1e-20, -tl.log(tl.maximum(size, 5e-324)), negative)
    is_pole = (x <= 0.0) & ((lib.trunc(x) == x) | (size == INFINITY))
    found = tl.where(x < 0.0, negative, positive)
    return tl.where(x != x, x, tl.where(is_pole, INFINITY, found))


def _gamma_of_positive(x: tensor) -> tensor:
    """From [2, 3] by products up to 12; beyond by Stirling's formula, its power in two halves."""
    product = x * 0.0 + 1.0
    z = tl.where(x < 1.0, x + 2.0, tl.where(x < 2.0, x + 1.0, tl.minimum(x, 12.0)))
    for _ in range(10):
        down = z > 3.0
        z = tl.where(down, z - 1.0, z)
        product = tl.where(down, product * z, product)
    below = tl.where(x < 1.0, x * (x + 1.0), tl.where(x < 2.0, x, 1.0))
    small = chebyshev(series.GAMMA, 2.0 * z - 5.0) * product / below
    far = tl.maximum(tl.minimum(x, 180.0), 12.0)
    half_power = tl.exp(0.5 * (far - 0.5) * tl.log(far))
    large = half_power * tl.exp(LOG_SQRT_2_PI - far + _stirling(far)) * half_power
    return tl.where(x < 12.0, small, tl.where(x < 171.7, large, INFINITY))


def tgamma(x: tensor) -> tensor:
    """gamma(x); a NaN at -1, -2 ..., infinite at 0 with its sign."""
    size = tl.abs(x)
    positive = _gamma_of_positive(size)
    # gamma(x) gamma(-x) = -pi / (x sin(pi x)), whose sign alternates between integers.
    below = lib.trunc(size)
    sign = tl.where(lib.fmod(below, 2.0) == 0.0, -1.0, 1.0)
    sine = tl.maximum(_sin_pi_size(x), 5e-324)
    negative = sign * (PI / (size * sine)) / positive
    found = tl.where(x < 0.0, negative, positive)
    found = tl.where(size < 1e-300, 1.0 / x, found)
    is_pole = (x < 0.0) & (below == size)
    return tl.where(x != x, x, tl.where(is_pole, float("nan"), found))


# ---- Bessel functions ----------------------------------------------------------------------------


def _near(x: tensor) -> tensor:
    """t of the tables for [0, 8]."""
    inside = tl.minimum(x, 8.0)
    return inside * inside * (1.0 / 32.0) - 1.0


def _waves(x: tensor, order: int) -> tuple[tensor, tensor]:
    """J and Y from 8 on: their common amplitude, and a phase that is close to x - pi/4."""
    far = tl.minimum(tl.maximum(x, 8.0), 1e300)
    t = 2.0 * (8.0 / far) * (8.0 / far) - 1.0
    p, q = (series.P0, series.Q0) if order == 0 else (series.P1, series.Q1)
    even, odd = chebyshev(p, t), chebyshev(q, t) / far
    sine, cosine = tl.sin(far), tl.cos(far)
    # cos and sin of x - pi/4, or of x - 3 pi/4, without rounding the difference.
    plus, minus = (cosine + sine) * SQRT_HALF, (sine - cosine) * SQRT_HALF
    c, s = (plus, minus) if order == 0 else (minus, -plus)
    size = tl.sqrt(TWO_OVER_PI / far)
    # Beyond all floats the waves are 0.
    size = tl.where(x < 1e300, size, 0.0)
    return size * (even * c - odd * s), size * (even * s + odd * c)


def j0(x: tensor) -> tensor:
    """Bessel's function of the first kind and order 0."""
    size = tl.abs(x)
    near = chebyshev(series.J0, _near(size))
    return tl.where(size < 8.0, near, tl.where(x != x, x, _waves(size, 0)[0]))


def j1(x: tensor) -> tensor:
    """Of order 1, which is odd."""
    size = tl.abs(x)
    near = chebyshev(series.J1, _near(size)) * size
    found = tl.where(size < 8.0, near, _waves(size, 1)[0])
    return tl.where(x != x, x, tl.where(x < 0.0, -found, found))


def _of_second_kind(x: tensor, near: tensor, far: tensor) -> tensor:
    found = tl.where(x < 8.0, near, far)
    found = tl.where(x == 0.0, -INFINITY, tl.where(x < 0.0, float("nan"), found))
    return tl.where(x != x, x, found)


def y0(x: tensor) -> tensor:
    """Bessel's function of the second kind and order 0; -infinity at 0, a NaN below."""
    inside = tl.maximum(tl.minimum(x, 8.0), 5e-324)
    near = chebyshev(series.Y0, _near(inside)) + TWO_OVER_PI * tl.log(inside) * j0(inside)
    return _of_second_kind(x, near, _waves(x, 0)[1])


def y1(x: tensor) -> tensor:
    """Of order 1."""
    inside = tl.maximum(tl.minimum(x, 8.0), 5e-324)
    regular = chebyshev(series.Y1, _near(inside)) * inside
    near = regular + TWO_OVER_PI * (tl.log(inside) * j1(inside) - 1.0 / inside)
    return _of_second_kind(x, near, _waves(x, 1)[1])


def _modified(x: tensor, near: tensor, far: Sequence[float]) -> tensor:
    """exp(|x|) times a table; in halves, as exp alone would overflow too early."""
    size = tl.abs(x)
    large = tl.minimum(tl.maximum(size, 8.0), 1e300)
    scaled = tl.where(size < 8.0, near, chebyshev(far, 16.0 / large - 1.0) / tl.sqrt(large))
    half = tl.exp(0.5 * tl.minimum(size, 1450.0))
    return tl.where(x != x, x, (scaled * half) * half)


def cyl_bessel_i0(x: tensor) -> tensor:
    """The modified Bessel function of order 0."""
    t = tl.minimum(tl.abs(x), 8.0) * 0.25 - 1.0
    return _modified(x, chebyshev(series.I0_NEAR, t), series.I0_FAR)


def cyl_bessel_i1(x: tensor) -> tensor:
    """Of order 1, which is odd."""
    size = tl.minimum(tl.abs(x), 8.0)
    near = chebyshev(series.I1_NEAR, size * 0.25 - 1.0) * size
    return lib.copysign(_modified(x, near, series.I1_FAR), x)
