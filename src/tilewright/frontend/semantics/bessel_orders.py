"""Bessel functions of any order, as functions in the language: their recurrences are loops.

f(n + 1) = 2 n / x f(n) - f(n - 1), upwards where that is stable, for Y and for J of n < x; else
downwards from an order at which J is nothing, scaled by J0 + 2 J2 + 2 J4 + ... = 1 (J. C. P.
Miller, British Association Mathematical Tables X, 1952).
"""

from __future__ import annotations

from typing import Any

from tilewright import language as tl
from tilewright.language import device_function

LARGE = tl.constexpr(1e150)


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


@device_function
def of_signs(n: Any, size: Any, found: Any):
    """Of a negative order: with the other sign if it is odd."""
    return tl.where((n < 0) & (size % 2 == 1), -found, found)


@device_function
def bessel_j(n: Any, x: Any):
    """J of order n, an int32, at x, an fp64 of the same shape."""
    size, distance = tl.abs(n), tl.abs(x)
    inside = tl.where(distance < 1e-30, 1.0, distance)
    up = upwards(size, inside, tl.extra.libdevice.j0(inside), tl.extra.libdevice.j1(inside))
    down = downwards(size, tl.minimum(inside, tl.max(size).to(tl.float64) + 1.0))
    found = tl.where(size.to(tl.float64) < inside, up, down)
    found = tl.where(distance < 1e-30, tl.where(size == 0, 1.0, 0.0), found)
    found = tl.where((x < 0.0) & (size % 2 == 1), -found, found)
    return tl.where(x != x, x, of_signs(n, size, found))


@device_function
def bessel_y(n: Any, x: Any):
    """Y of order n, an int32, at x, an fp64 of the same shape."""
    size = tl.abs(n)
    inside = tl.where(x > 0.0, x, 1.0)
    up = upwards(size, inside, tl.extra.libdevice.y0(inside), tl.extra.libdevice.y1(inside))
    # Beyond all floats: the recurrence gives inf - inf.
    up = tl.where(up == up, up, float("-inf"))
    found = tl.where(x > 0.0, up, tl.where(x == 0.0, float("-inf"), float("nan")))
    return tl.where(x != x, x, of_signs(n, size, found))
