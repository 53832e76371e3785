"""sin and cos of multiples of pi, of fp32."""

from __future__ import annotations

from tilewright import language as tl
from tilewright.frontend.semantics.single import single_coefficients as fits
from tilewright.frontend.semantics.single.single_notation import (
    SHIFTER,
    bits_of,
    float_of,
    polynomial,
)
from tilewright.language import tensor

# Formulas name functions as a kernel would, so that nested ones dispatch to the semantics.
lib = tl.extra.libdevice

PI, PI_LOW = 3.1415927410125732, -8.742277657347586e-08


def _halves(x: tensor) -> tuple[tensor, tensor, tensor]:
    """sin and cos of pi times the distance to the nearest half, and the number of that half."""
    # 2 is a period, and what is left of it is exact; of infinities a NaN is.
    inside = tl.fma(lib.rint(x * 0.5), -2.0, x)
    shifted = tl.fma(inside, 2.0, SHIFTER)
    halves = shifted - SHIFTER
    rest = tl.fma(halves, -0.5, inside)
    square = rest * rest
    sine = tl.fma(square * polynomial(fits.SINPI, square), rest, rest * PI_LOW)
    cosine = tl.fma(polynomial(fits.COSPI, square), square, 1.0)
    return tl.fma(rest, PI, sine), cosine, bits_of(shifted)


def _flipped(x: tensor, half: tensor) -> tensor:
    """-x where bit 1 of a number of halves is set."""
    return float_of(bits_of(x) ^ ((half & 2) << 30))


def sinpi(x: tensor) -> tensor:
    """sin(pi x), a zero of the sign of x at all integers."""
    sine, cosine, half = _halves(x)
    return tl.where((half & 1) == 0, _flipped(sine, half), _flipped(cosine, half))


def cospi(x: tensor) -> tensor:
    """cos(pi x)."""
    sine, cosine, half = _halves(x)
    return _flipped(tl.where((half & 1) == 0, cosine, sine), half + (half & 1))
