"""Arithmetic and conversions that round toward zero, up or down.

The result to nearest and the sign of what it lacks: where that points the wrong way, the neighbour.
The lack is exact by error-free transformations (T. J. Dekker, Numerische Mathematik 18, 1971; for
the fused product S. Boldo and J.-M. Muller, "Exact and approximated error of the FMA", 2011), in
fp64 for fp32; of fp64 it is where it does not underflow, that is where results exceed 2^-960.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tilewright import language as tl
from tilewright.language import dtype, tensor


class Rounded(NamedTuple):
    """A result to nearest, and a number with the sign of what it lacks (0: nothing)."""

    nearest: tensor
    lack: tensor


def neighbour(x: tensor, up: tensor) -> tensor:
    """The next float above x, where `up`, else the next below; those of 0 have a sign."""
    integer = tl.get_int_dtype(x.dtype.primitive_bitwidth, True)
    bits = tl.cast(x, integer, bitcast=True)
    # Bits of floats of one sign are ordered as their sizes are.
    away = (x > 0.0) == up
    moved = bits + tl.where(away, 1, -1).to(integer)
    least = tl.where(up, 1, integer.get_int_min_value() + 1).to(integer)
    return tl.cast(tl.where(x == 0.0, least, moved), x.dtype, bitcast=True)


def to_nearest(result: Rounded) -> tensor:
    """As it is."""
    return result.nearest


def upward(result: Rounded) -> tensor:
    """To the next above where something lacks."""
    above = neighbour(result.nearest, result.lack == result.lack)
    return tl.where(result.lack > 0.0, above, result.nearest)


def downward(result: Rounded) -> tensor:
    """To the next below where something is too much."""
    below = neighbour(result.nearest, result.lack != result.lack)
    return tl.where(result.lack < 0.0, below, result.nearest)


def toward_zero(result: Rounded) -> tensor:
    """Up where the result is negative, else down."""
    return tl.where(result.nearest < 0.0, upward(result), downward(result))


MODES: dict[str, Callable[[Rounded], tensor]] = {
    "rn": to_nearest, "rz": toward_zero, "rd": downward, "ru": upward,
}  # fmt: skip


def _two_sum(x: tensor, y: tensor) -> tuple[tensor, tensor]:
    """The sum, and exactly what it lacks (D. E. Knuth)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _finite(*operands: tensor) -> tensor:
    size = tl.abs(operands[0])
    for x in operands[1:]:
        size = tl.maximum(size, tl.abs(x), tl.PropagateNan.ALL)
    return size < float("inf")


def _of_overflow(nearest: tensor, lack: tensor, *operands: tensor) -> Rounded:
    """An infinite result of finite numbers is too large by something."""
    over = (tl.abs(nearest) == float("inf")) & _finite(*operands)
    return Rounded(nearest, tl.where(over, -nearest, lack))


def _is_double(x: tensor) -> bool:
    return x.dtype.is_fp64()


def add(x: tensor, y: tensor) -> Rounded:
    nearest = x + y
    total, low = _two_sum(x.to(tl.float64), y.to(tl.float64))
    lack = low if _is_double(x) else (total - nearest.to(tl.float64)) + low
    return _of_overflow(nearest, lack, x, y)


def sub(x: tensor, y: tensor) -> Rounded:
    return add(x, -y)


def mul(x: tensor, y: tensor) -> Rounded:
    nearest = x * y
    if _is_double(x):
        return _of_overflow(nearest, tl.fma(x, y, -nearest), x, y)
    # 48 bits: exact.
    lack = x.to(tl.float64) * y.to(tl.float64) - nearest.to(tl.float64)
    return _of_overflow(nearest, lack, x, y)


def fma(x: tensor, y: tensor, z: tensor) -> Rounded:
    nearest = tl.fma(x, y, z)
    a, b, c = (value.to(tl.float64) for value in (x, y, z))
    product = _unfused(a * b)
    rest = tl.fma(a, b, -product)
    first, first_low = _two_sum(c, rest)
    second, second_low = _two_sum(product, first)
    lack = ((second - nearest.to(tl.float64)) + second_low) + first_low
    return _of_overflow(nearest, lack, x, y, z)


def _unfused(product: tensor) -> tensor:
    """A product that backends do not fuse with sums of it: what is chosen is no product."""
    return tl.where(product != product, float("nan"), product)


def div(x: tensor, y: tensor) -> Rounded:
    nearest = tl.div_rn(x, y)
    a, b, q = (value.to(tl.float64) for value in (x, y, nearest))
    rest = tl.fma(-q, b, a)
    lack = tl.where(y < 0.0, -rest, rest)
    # By 0, or an infinite number: exact.
    exact = (y == 0.0) | (tl.abs(y) == float("inf"))
    return _of_overflow(nearest, tl.where(exact, 0.0, lack), x, tl.where(exact, nearest, y))


def rcp(x: tensor) -> Rounded:
    return div(_one(x), x)


def _one(x: tensor) -> tensor:
    return tl.full(x.shape, 1.0, x.dtype) if x.shape else tl.cast(1.0, x.dtype)


def sqrt(x: tensor) -> Rounded:
    nearest = tl.sqrt_rn(x)
    wide, root = x.to(tl.float64), nearest.to(tl.float64)
    lack = tl.fma(-root, root, wide)
    return Rounded(nearest, tl.where(x < float("inf"), lack, 0.0))


def narrowed(x: tensor) -> Rounded:
    """fp64 as fp32."""
    nearest = x.to(tl.float32)
    return _of_overflow(nearest, x - nearest.to(tl.float64), x)


def of_integer(x: tensor, target: dtype) -> Rounded:
    """An integer as a float: the upper and the lower half are floats."""
    nearest = x.to(target)
    if x.dtype.primitive_bitwidth < 64:
        return Rounded(nearest, x.to(tl.float64) - nearest.to(tl.float64))
    high = ((x >> 32).to(tl.float64)) * 4294967296.0
    low = (x & 0xFFFFFFFF).to(tl.float64)
    return Rounded(nearest, (high - nearest.to(tl.float64)) + low)
