"""Arithmetic that rounds toward zero (`_rz`), down (`_rd`) or up (`_ru`).

Each is the result to nearest, or its neighbour where the rounding error has the wrong sign. The
error is exact by error-free transformations (T. J. Dekker, Numerische Mathematik 18, 1971; for the
fused product S. Boldo and J.-M. Muller, "Exact and approximated error of the FMA", 2011), in fp64
for fp32; of fp64 it is where it does not underflow, that is where results exceed 2^-960.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, overload

from tilewright import language as tl
from tilewright.language.extra.libdevice.float_parts import INFINITY, NAN, neighbour
from tilewright.language.library_functions import (
    Binary,
    Body,
    Operands,
    Ternary,
    Unary,
    library_function,
)
from tilewright.language.tensors import tensor


class Rounded(NamedTuple):
    """A result to nearest, and a number with the sign of the exact result less that (0: exact)."""

    nearest: tensor
    lack: tensor


# ---- modes ---------------------------------------------------------------------------------------


def to_nearest(result: Rounded) -> tensor:
    """The result as it is."""
    return result.nearest


def upward(result: Rounded) -> tensor:
    """The next float above where the result is too small."""
    above = neighbour(result.nearest, result.lack == result.lack)
    return tl.where(result.lack > 0.0, above, result.nearest)


def downward(result: Rounded) -> tensor:
    """The next float below where the result is too large."""
    below = neighbour(result.nearest, result.lack != result.lack)
    return tl.where(result.lack < 0.0, below, result.nearest)


def toward_zero(result: Rounded) -> tensor:
    """Up where the result is negative, else down."""
    return tl.where(result.nearest < 0.0, upward(result), downward(result))


MODES: dict[str, Callable[[Rounded], tensor]] = {
    "rn": to_nearest, "rz": toward_zero, "rd": downward, "ru": upward,
}  # fmt: skip
MODE_NAMES = {
    "rn": "rounded to nearest", "rz": "rounded toward zero", "rd": "rounded down",
    "ru": "rounded up",
}  # fmt: skip


# ---- operations ----------------------------------------------------------------------------------


def _two_sum(x: tensor, y: tensor) -> tuple[tensor, tensor]:
    """The sum, and its exact rounding error (D. E. Knuth)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _finite(*operands: tensor) -> tensor:
    size = tl.abs(operands[0])
    for x in operands[1:]:
        size = tl.maximum(size, tl.abs(x), tl.PropagateNan.ALL)
    return size < INFINITY


def with_overflow(nearest: tensor, lack: tensor, *operands: tensor) -> Rounded:
    """A result; where it is infinite although the operands are finite, it is too large."""
    over = (tl.abs(nearest) == INFINITY) & _finite(*operands)
    return Rounded(nearest, tl.where(over, -nearest, lack))


def _is_double(x: tensor) -> bool:
    return x.dtype.is_fp64()


def _add(x: tensor, y: tensor) -> Rounded:
    nearest = x + y
    total, low = _two_sum(x.to(tl.float64), y.to(tl.float64))
    lack = low if _is_double(x) else (total - nearest.to(tl.float64)) + low
    return with_overflow(nearest, lack, x, y)


def _sub(x: tensor, y: tensor) -> Rounded:
    return _add(x, -y)


def _mul(x: tensor, y: tensor) -> Rounded:
    nearest = x * y
    if _is_double(x):
        return with_overflow(nearest, tl.fma(x, y, -nearest), x, y)
    # 48 bits: exact.
    lack = x.to(tl.float64) * y.to(tl.float64) - nearest.to(tl.float64)
    return with_overflow(nearest, lack, x, y)


def _fma(x: tensor, y: tensor, z: tensor) -> Rounded:
    nearest = tl.fma(x, y, z)
    a, b, c = (value.to(tl.float64) for value in (x, y, z))
    product = _unfused(a * b)
    rest = tl.fma(a, b, -product)
    first, first_low = _two_sum(c, rest)
    second, second_low = _two_sum(product, first)
    lack = ((second - nearest.to(tl.float64)) + second_low) + first_low
    return with_overflow(nearest, lack, x, y, z)


def _unfused(product: tensor) -> tensor:
    """A product that backends do not fuse with a sum: a selection is no product."""
    return tl.where(product != product, NAN, product)


def _div(x: tensor, y: tensor) -> Rounded:
    nearest = tl.div_rn(x, y)
    a, b, q = (value.to(tl.float64) for value in (x, y, nearest))
    rest = tl.fma(-q, b, a)
    lack = tl.where(y < 0.0, -rest, rest)
    # By 0, or an infinite number: exact.
    exact = (y == 0.0) | (tl.abs(y) == INFINITY)
    return with_overflow(nearest, tl.where(exact, 0.0, lack), x, tl.where(exact, nearest, y))


def _rcp(x: tensor) -> Rounded:
    one = tl.full(x.shape, 1.0, x.dtype) if x.shape else tl.cast(1.0, x.dtype)
    return _div(one, x)


def _sqrt(x: tensor) -> Rounded:
    nearest = tl.sqrt_rn(x)
    wide, root = x.to(tl.float64), nearest.to(tl.float64)
    lack = tl.fma(-root, root, wide)
    return Rounded(nearest, tl.where(x < INFINITY, lack, 0.0))


# ---- functions -----------------------------------------------------------------------------------


@overload
def _rounded(operation: Callable[[tensor], Rounded], mode: str, meaning: str) -> Unary: ...
@overload
def _rounded(operation: Callable[[tensor, tensor], Rounded], mode: str, meaning: str) -> Binary: ...
@overload
def _rounded(
    operation: Callable[[tensor, tensor, tensor], Rounded], mode: str, meaning: str
) -> Ternary: ...
def _rounded(operation: Callable[..., Rounded], mode: str, meaning: str) -> Body:
    """An operation with a mode as a library function."""

    @wraps(operation)
    def body(*x: tensor) -> Any:
        return MODES[mode](operation(*x))

    body.__name__ = body.__qualname__ = f"{operation.__name__[1:]}_{mode}"
    body.__doc__ = f"{meaning}, {MODE_NAMES[mode]}."
    return library_function(Operands.FLOATS)(body)


add_rz = _rounded(_add, "rz", "x + y")
add_rd = _rounded(_add, "rd", "x + y")
add_ru = _rounded(_add, "ru", "x + y")
sub_rz = _rounded(_sub, "rz", "x - y")
sub_rd = _rounded(_sub, "rd", "x - y")
sub_ru = _rounded(_sub, "ru", "x - y")
mul_rz = _rounded(_mul, "rz", "x y")
mul_rd = _rounded(_mul, "rd", "x y")
mul_ru = _rounded(_mul, "ru", "x y")
fma_rz = _rounded(_fma, "rz", "x y + z")
fma_rd = _rounded(_fma, "rd", "x y + z")
fma_ru = _rounded(_fma, "ru", "x y + z")
div_rz = _rounded(_div, "rz", "x / y")
div_rd = _rounded(_div, "rd", "x / y")
div_ru = _rounded(_div, "ru", "x / y")
rcp_rn = _rounded(_rcp, "rn", "1 / x")
rcp_rz = _rounded(_rcp, "rz", "1 / x")
rcp_rd = _rounded(_rcp, "rd", "1 / x")
rcp_ru = _rounded(_rcp, "ru", "1 / x")
sqrt_rz = _rounded(_sqrt, "rz", "The root of x")
sqrt_rd = _rounded(_sqrt, "rd", "The root of x")
sqrt_ru = _rounded(_sqrt, "ru", "The root of x")

add_rn, sub_rn, mul_rn, fma_rn = tl.add, tl.sub, tl.mul, tl.fma
