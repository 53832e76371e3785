"""Quotients of fp32, as exact as `DivOp.rounding` says.

full, each divisor of one element:  div.full x, y
full, a divisor of several:         (x s) r
fast:                               div.approx.ftz x, y
exact:                              (x s) high + (x s) low

r = 1 / (y s) is computed once for each divisor, and high + low is 1 / (y s) to 40 bits, so that a
quotient that is a float comes out. s keeps r normal: 1/4 for |y| > 2^126, 2^24 for |y| < 2^-126,
else 1.
"""

from __future__ import annotations

import struct
from collections import Counter

from tilewright.backends.nvidia.lower.gpu_lowering import BODY, GpuLowering, in_body
from tilewright.backends.nvidia.lower.literal_folding import float_number, folded
from tilewright.ir.types import dtype_of, f32
from tilewright.llvm import Val, float_text
from tilewright.ops import DivOp
from tilewright.support.data_class import dataclass

_SMALLER = 1 - 2.0**-21
"""Takes a reciprocal that is an ulp off below the exact one, so that `low` has its sign."""


def is_approximate(op: DivOp) -> bool:
    """Whether a quotient is computed here; the others are correctly rounded by one instruction."""
    return dtype_of(op.type) is f32 and op.rounding != "nearest"


def quotients(state: GpuLowering, op: DivOp) -> list[Val]:
    """The quotients in the registers per thread; registers with one divisor share its part."""
    pairs = list(zip(state.registers_of(op.lhs), state.registers_of(op.rhs), strict=True))
    by_text = {(x.text, y.text): (x, y) for x, y in pairs}
    uses = Counter(y for _, y in by_text)
    uses |= Counter(y.text for y in state.all_registers_of(op.rhs))
    divisors: dict[str, _Divisor] = state.emitted_of(op)
    emitted: dict[tuple[str, str], Val] = {}
    for key, (x, y) in by_text.items():
        if uses[y.text] > 1 and y.text not in divisors:
            divisors[y.text] = _divisor(state, y, op.rounding)
        known = folded(op, (x, y))
        emitted[key] = known or quotient(state, op.rounding, x, y, divisors.get(y.text))
    return [emitted[x.text, y.text] for x, y in pairs]


def quotient(
    state: GpuLowering, rounding: str, x: Val, y: Val, divisor: _Divisor | None = None
) -> Val:
    """x / y. divisor: the part of it that depends on y alone, where several quotients share it."""
    code, is_exact = state.code, rounding in ("exact", "by_use")
    if divisor is None and not is_exact and float_number(y) is None:
        return _by_one_instruction(state, rounding, x, y)
    divisor = divisor or _divisor(state, y, rounding)
    if divisor.scale is not None:
        x = code.let_here(f"fmul float {x}, {divisor.scale}", "float")
    if not is_exact:
        return code.let_here(f"fmul float {x}, {divisor.high}", "float")
    rest = code.let_here(f"fmul float {x}, {divisor.low}", "float")
    return in_body(code.intrinsic("fma", "float", x, divisor.high, rest))


def _by_one_instruction(state: GpuLowering, rounding: str, x: Val, y: Val) -> Val:
    if rounding == "fast" and float_number(x) == 1.0:
        return state.pure_asm("rcp.approx.ftz.f32 $0, $1;", "=f,f", "float", y)
    mode = "approx.ftz" if rounding == "fast" else "full"
    return state.pure_asm(f"div.{mode}.f32 $0, $1, $2;", "=f,f,f", "float", x, y)


@dataclass(frozen=True, slots=True)
class _Divisor:
    """s, None for 1; 1 / (y s) = high + low, of one sign, or high alone if the quotient need not be
    exact. For y = 0, high and low are infinite; for infinite y, 0."""

    scale: Val | None
    high: Val
    low: Val


def _divisor(state: GpuLowering, y: Val, rounding: str) -> _Divisor:
    number = float_number(y)
    if number is not None and 2.0**-100 < abs(number) < 2.0**100:
        return _constant_divisor(number, rounding)
    code = state.code
    size = code.intrinsic("fabs", "float", y)
    large = code.let_here(f"fcmp ogt float {size}, {_literal(2.0**126)}", "i1")
    small = code.let_here(f"fcmp olt float {size}, {_literal(2.0**-126)}", "i1")
    not_down = code.let_here(f"select i1 {small}, float {_literal(2.0**24)}, float 1.0", "float")
    scale = code.let_here(f"select i1 {large}, float 0.25, float {not_down}", "float")
    scaled = code.let_here(f"fmul float {y}, {scale}", "float")
    # .ftz takes subnormals for 0, in and out: the scale keeps y s and its reciprocal normal.
    reciprocal = state.pure_asm("rcp.approx.ftz.f32 $0, $1;", "=f,f", "float", scaled)
    if rounding not in ("exact", "by_use"):
        return _Divisor(scale, reciprocal, reciprocal)
    high = code.let_here(f"fmul float {reciprocal}, {_literal(_SMALLER)}", "float")
    minus = code.let_here(f"fneg float {high}", "float")
    lack = in_body(code.intrinsic("fma", "float", minus, scaled, _literal(1.0)))
    low = code.let_here(f"fmul float {lack}, {high}", "float")
    # Of 0, infinities and NaNs the lack is a NaN.
    known = code.let_here(f"fcmp olt float {lack}, 1.0", "i1")
    low = code.let_here(f"select i1 {known}, float {low}, float {reciprocal}", "float")
    return _Divisor(scale, high, low)


def _constant_divisor(number: float, rounding: str) -> _Divisor:
    if rounding not in ("exact", "by_use"):
        return _Divisor(None, _literal(1 / number), _literal(0.0))
    high = _rounded(_rounded(1 / number) * _SMALLER)
    return _Divisor(None, _literal(high), _literal((1 - high * number) / number))


def _rounded(number: float) -> float:
    """The nearest number of fp32."""
    rounded: float
    (rounded,) = struct.unpack("<f", struct.pack("<f", number))
    return rounded


def _literal(number: float) -> Val:
    return Val(float_text(number, "float"), "float", BODY)
