"""Bessel functions, in fp64: Chebyshev series near 0, amplitude and phase from 8 on.

Any order is reached by recurrences, which are loops: f(n + 1) = 2 n / x f(n) - f(n - 1), upwards
where that is stable, for Y and for J of n < x; else downwards from an order at which J vanishes,
scaled by J0 + 2 J2 + 2 J4 + ... = 1 (J. C. P. Miller, British Association Mathematical Tables X,
1952).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import language as tl
from tilewright.language.extra.libdevice import chebyshev_coefficients as series
from tilewright.language.extra.libdevice.chebyshev_series import chebyshev
from tilewright.language.extra.libdevice.float_parts import INFINITY, NAN, copysign
from tilewright.language.library_functions import Operands, library_function
from tilewright.language.stub_dispatch import device_function
from tilewright.language.tensors import tensor

SQRT_HALF = 0.7071067811865476
TWO_OVER_PI = 0.6366197723675814
LARGE = tl.constexpr(1e150)


# ---- orders 0 and 1 ------------------------------------------------------------------------------


def _table_argument(x: tensor) -> tensor:
    """The argument t of the tables for [0, 8]."""
    inside = tl.minimum(x, 8.0)
    return inside * inside * (1.0 / 32.0) - 1.0


def _asymptotic(x: tensor, order: int) -> tuple[tensor, tensor]:
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


@library_function(Operands.FP64, ulp=(1, 4))
def j0(x: tensor) -> tensor:
    """Bessel function of the first kind, order 0."""
    size = tl.abs(x)
    near = chebyshev(series.J0, _table_argument(size))
    return tl.where(size < 8.0, near, tl.where(x != x, x, _asymptotic(size, 0)[0]))


@library_function(Operands.FP64, ulp=(1, 4))
def j1(x: tensor) -> tensor:
    """Bessel function of the first kind, order 1."""
    size = tl.abs(x)
    near = chebyshev(series.J1, _table_argument(size)) * size
    found = tl.where(size < 8.0, near, _asymptotic(size, 1)[0])
    return tl.where(x != x, x, tl.where(x < 0.0, -found, found))


def _of_second_kind(x: tensor, near: tensor, far: tensor) -> tensor:
    """-infinity at 0, a NaN below."""
    found = tl.where(x < 8.0, near, far)
    found = tl.where(x == 0.0, -INFINITY, tl.where(x < 0.0, NAN, found))
    return tl.where(x != x, x, found)


@library_function(Operands.FP64, ulp=(1, 6))
def y0(x: tensor) -> tensor:
    """Bessel function of the second kind, order 0."""
    inside = tl.maximum(tl.minimum(x, 8.0), 5e-324)
    near = chebyshev(series.Y0, _table_argument(inside)) + TWO_OVER_PI * tl.log(inside) * j0(inside)
    return _of_second_kind(x, near, _asymptotic(x, 0)[1])


@library_function(Operands.FP64, ulp=(1, 4))
def y1(x: tensor) -> tensor:
    """Bessel function of the second kind, order 1."""
    inside = tl.maximum(tl.minimum(x, 8.0), 5e-324)
    regular = chebyshev(series.Y1, _table_argument(inside)) * inside
    near = regular + TWO_OVER_PI * (tl.log(inside) * j1(inside) - 1.0 / inside)
    return _of_second_kind(x, near, _asymptotic(x, 1)[1])


def _modified(x: tensor, near: tensor, far: Sequence[float]) -> tensor:
    """exp(|x|) times a table; in halves, as exp alone would overflow too early."""
    size = tl.abs(x)
    large = tl.minimum(tl.maximum(size, 8.0), 1e300)
    scaled = tl.where(size < 8.0, near, chebyshev(far, 16.0 / large - 1.0) / tl.sqrt(large))
    half = tl.exp(0.5 * tl.minimum(size, 1450.0))
    return tl.where(x != x, x, (scaled * half) * half)


@library_function(Operands.FP64, ulp=(1, 6))
def cyl_bessel_i0(x: tensor) -> tensor:
    """Modified Bessel function of order 0."""
    t = tl.minimum(tl.abs(x), 8.0) * 0.25 - 1.0
    return _modified(x, chebyshev(series.I0_NEAR, t), series.I0_FAR)


@library_function(Operands.FP64, ulp=(1, 9))
def cyl_bessel_i1(x: tensor) -> tensor:
    """Modified Bessel function of order 1."""
    size = tl.minimum(tl.abs(x), 8.0)
    near = chebyshev(series.I1_NEAR, size * 0.25 - 1.0) * size
    return copysign(_modified(x, near, series.I1_FAR), x)


# ---- any order -----------------------------------------------------------------------------------


@device_function
def upwards(size: Any, x: Any, first: Any, second: Any):
    """f of order `size`, from those of orders 0 and 1."""
    before, here = first, second
    found = tl.where(size == 0, first, second)
    for k in range(1, tl.max(size)):
        after = (2.0 * k) / x * here - before
        before, here = here, after
        found = tl.where(size == k + 1, here, found)
    return found


@device_function
def downwards(size: Any, x: Any):
    """J of order `size`."""
    top = tl.max(size)
    start = 2 * ((top + 24 + (10.0 * tl.sqrt(top.to(tl.float32))).to(tl.int32)) // 2)
    here = x * 0.0 + 1e-30
    ahead, total, found = x * 0.0, x * 0.0, x * 0.0
    for k in range(start, 0, -1):
        below = (2.0 * k) / x * here - ahead
        ahead, here = here, below
        found = tl.where(size == k - 1, here, found)
        total += tl.where(k % 2 == 1, tl.where(k == 1, here, 2.0 * here), 0.0)
        scale = tl.where(tl.abs(here) > LARGE, 1.0 / LARGE, 1.0)
        ahead, here, total, found = ahead * scale, here * scale, total * scale, found * scale
    return found / total


def _of_signed_order(n: tensor, size: tensor, found: tensor) -> tensor:
    """f of order n, from that of order |n|: the sign changes if n is negative and odd."""
    return tl.where((n < 0) & (size % 2 == 1), -found, found)


@library_function(Operands.INTEGER_AND_FP64)
def jn(x: tensor, y: tensor) -> tensor:
    """Bessel function of the first kind, order x, an integer, at y."""
    size, distance = tl.abs(x), tl.abs(y)
    inside = tl.where(distance < 1e-30, 1.0, distance)
    up = upwards(size, inside, j0(inside), j1(inside))
    down = downwards(size, tl.minimum(inside, tl.max(size).to(tl.float64) + 1.0))
    found = tl.where(size.to(tl.float64) < inside, up, down)
    found = tl.where(distance < 1e-30, tl.where(size == 0, 1.0, 0.0), found)
    found = tl.where((y < 0.0) & (size % 2 == 1), -found, found)
    return tl.where(y != y, y, _of_signed_order(x, size, found))


@library_function(Operands.INTEGER_AND_FP64)
def yn(x: tensor, y: tensor) -> tensor:
    """Bessel function of the second kind, order x, an integer, at y."""
    size = tl.abs(x)
    inside = tl.where(y > 0.0, y, 1.0)
    up = upwards(size, inside, y0(inside), y1(inside))
    # Beyond all floats: the recurrence gives inf - inf.
    up = tl.where(up == up, up, -INFINITY)
    found = tl.where(y > 0.0, up, tl.where(y == 0.0, -INFINITY, NAN))
    return tl.where(y != y, y, _of_signed_order(x, size, found))
