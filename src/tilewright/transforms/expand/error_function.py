"""erf: near 0 an odd polynomial, beyond 1 by the logarithm of its complement.

With tables in registers f32 has a polynomial for each 8/31 of an argument instead (`piecewise.py`).
erf(x) = 1 - e^(h(x)) with h = log(erfc): h is close to a parabola, and its error counts only by
erfc(x) <= 0.16 (the form that N. Juffa published for CUDA's erff; fitted anew here).
"""

from __future__ import annotations

from tilewright.ir import Value
from tilewright.transforms.expand import polynomials
from tilewright.transforms.expand.exponential import exp_in_range
from tilewright.transforms.expand.float_arithmetic import FloatArithmetic
from tilewright.transforms.expand.piecewise import piecewise

_PIECES_PER_ONE = 31 / 8


def erf(a: FloatArithmetic, x: Value) -> Value:
    """The error function; both forms are computed, and the right one is kept."""
    if a.single and a.avx512:
        y = a.at_most(a.abs(x), 3.99)  # the last number of the last piece is 4
        shifted = a.fma(y, _PIECES_PER_ONE, a.format.shifter)
        first = a.eq(shifted, a.format.shifter)
        result = piecewise(a, polynomials.ERF_PIECES, y, a.bits(shifted), first)
        return a.with_sign(result, a.sign_of(x))
    if a.single:
        near, far, end = polynomials.ERF_SMALL_32, polynomials.ERF_LARGE_32, 4.0
    else:
        near, far, end = polynomials.ERF_SMALL_64, polynomials.ERF_LARGE_64, 6.0
    # from `end` on, erf rounds to 1; beyond it the polynomial is not fitted
    y = a.at_most(a.abs(x), end)
    small = a.fma(a.polynomial(near, a.mul(y, y)), y, y)
    mantissa, scale = exp_in_range(a, a.polynomial(far, y))
    large = a.fma(a.neg(mantissa), scale, 1.0)
    return a.with_sign(a.select(a.lt(y, 1.0), small, large), a.sign_of(x))
