"""Functions of f32 by a short polynomial for each of 16 or 32 pieces of their arguments.

The coefficients of all pieces are in registers, one number for each piece, and one instruction
selects those of each lane: on AVX-512, erf takes 20 instructions, compared with 34 for two
polynomials and an exponential.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir import Value
from tilewright.transforms.expand.avx512_ops import LookupOp
from tilewright.transforms.expand.float_arithmetic import FloatArithmetic

Table = Sequence[tuple[float, ...]]


def piecewise(a: FloatArithmetic, table: Table, y: Value, number: Value, first: Value) -> Value:
    """base + u p(u), u = y - center, with the base y itself in the first piece, whose center is 0.

    table: centers, bases and coefficients of p, the lowest first, each a number for each piece;
    number: of the piece, modulo their count; first: whether it is the first one
    """
    center, base, *coefficients = (a.value(LookupOp(number, row)) for row in table)
    u = a.sub(y, center)
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = a.fma(total, u, c)
    return a.fma(total, u, a.select(first, y, base))
