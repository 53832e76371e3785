"""The remainder of floats, exact: x - q y for the whole number q that x / y has before the point.

Where q has no more bits than the format, one division finds it, or one more than it, and an FMA
finds the exact remainder. Else, rarely, mantissas are subtracted as integers, bit by bit of q; by a
constant, 20 bits of q at a time. The result has the sign of x.

    before:  q = trunc(x / y); usual = x - q y; if (|q| < 2^mantissa) goto done; goto slow
    fp32:    q = rint(|x| r), r = 1 / |y| an ulp off; usual = |x| - q |y|, + |y| if negative
             if (q < 2^21 and usual < |y|) goto done; goto slow
    slow:    mx, ex = x; my, ey = y; n = ex - ey
    loop:    mx -= my if mx >= my; last = mx; mx *= 2; if (n-- > 0) goto loop
    end:     long = last 2^ey
    steps:   k = max(exponent(v) - exponent(y) - 20, 0); v = remainder of v by 2^k y, as `usual`
             if (k > 0) goto steps                            instead of the loop, for a constant y
    done:    result = (usual or long) with the sign of x
"""

from __future__ import annotations

import struct

from tilewright.backends.nvidia.lower.gpu_lowering import BODY, GpuLowering, lowering
from tilewright.backends.nvidia.lower.integer_division import divide
from tilewright.backends.nvidia.lower.literal_folding import float_number
from tilewright.ir.types import DType, dtype_of, f32
from tilewright.llvm import Code, Val, float_text, integer_literal
from tilewright.ops import RemOp
from tilewright.support.data_class import dataclass


@lowering(RemOp)
def _remainder(state: GpuLowering, op: RemOp) -> None:
    element = dtype_of(op.results[0].type)
    results: list[Val] = []
    for operands in zip(*(state.registers_of(v) for v in op.operands), strict=True):
        results.append(_one(state, op, element, list(operands)))
    state.set_registers(op.results[0], results)


def _one(state: GpuLowering, op: RemOp, element: DType, operands: list[Val]) -> Val:
    if not element.is_float:
        return divide(state, op, operands)
    # All that is computed from them is known in the body only: code stays where it is written.
    x, y = (Val(v.text, v.type, BODY) for v in operands)
    return _FloatRemainder(state.code, element).emit(x, y)


def _number_with_reciprocal(y: Val) -> float | None:
    """A constant of fp32 with a normal reciprocal."""
    number = float_number(y)
    return number if number is not None and 2.0**-126 <= abs(number) <= 2.0**126 else None


def _bits(number: float) -> int:
    """The bits of the nearest fp32."""
    return int.from_bytes(struct.pack("<f", number), "little")


@dataclass(frozen=True, slots=True)
class _Bits:
    """The operands as integers. x: its bits; sign: of x, at its place; ax, ay: of |x| and |y|."""

    x: Val
    sign: Val
    ax: Val
    ay: Val


@dataclass(frozen=True, slots=True)
class _FloatRemainder:
    """Emits the remainder of one pair of floats of a format."""

    code: Code
    element: DType

    def emit(self, x: Val, y: Val) -> Val:
        code = self.code
        before, slow, done = (code.label(hint) for hint in ("before", "slow", "done"))
        code.line(f"br label %{before}")
        code.line(f"{before}:")
        bits = self._bits_of(x, y)
        if self.element is f32:
            usual, is_exact = self._by_reciprocal(x, y, bits)
        else:
            quotient, first = self._by_one_division(x, y)
            usual, is_exact = self._corrected(x, quotient, first, bits)
        code.line(f"br i1 {is_exact}, label %{done}, label %{slow}")
        code.line(f"{slow}:")
        number = _number_with_reciprocal(y) if self.element is f32 else None
        if number is None:
            long = self._by_long_division(bits, slow)
        else:
            long = self._by_scaled_steps(x, abs(number), slow)
        code.line(f"br label %{done}")
        code.line(f"{done}:")
        sources = f"[ {usual}, %{before} ], [ {long}, %{slow}.end ]"
        remainder = code.let_here(f"phi {usual.type} {sources}", usual.type)
        # The sign of x, also where the remainder is 0.
        magnitude = code.binary("and", remainder, self._magnitude_mask)
        return code.convert("bitcast", code.binary("or", magnitude, bits.sign), x.type)

    # -- the format -------------------------------------------------------------------------------

    def _number(self, value: int) -> Val:
        return integer_literal(value, f"i{self.element.bits}")

    @property
    def _magnitude_mask(self) -> Val:
        """All bits but the sign; as a number, a NaN."""
        return self._number((1 << (self.element.bits - 1)) - 1)

    @property
    def _infinity(self) -> Val:
        return self._number(self.element.infinity_bits)

    @property
    def _fraction_mask(self) -> Val:
        return self._number((1 << self.element.mantissa) - 1)

    def _bits_of(self, x: Val, y: Val) -> _Bits:
        code, integer = self.code, f"i{self.element.bits}"
        x_bits, y_bits = (code.convert("bitcast", v, integer) for v in (x, y))
        sign = code.binary("and", x_bits, self._number(1 << (self.element.bits - 1)))
        ay, ax = (code.binary("and", v, self._magnitude_mask) for v in (y_bits, x_bits))
        return _Bits(x_bits, sign, ax, ay)

    # -- a reciprocal -----------------------------------------------------------------------------

    def _by_reciprocal(self, x: Val, y: Val, bits: _Bits) -> tuple[Val, Val]:
        """The bits of the remainder, and whether it is exact.

        The quotient is rounded to nearest, by an addition, so that the rest is at most |y| / 2 and
        exact, however x r was rounded. Beyond the quotients that the sum rounds, and for y
        that have no fast reciprocal, the rest is not below |y|, or a NaN.
        """
        code = self.code
        size, (divisor, inverse, is_known) = code.intrinsic("fabs", x.type, x), self._divisor(y)
        quotient, found = self._nearest(size, inverse, divisor)
        is_exact = code.compare("fcmp olt", quotient, self._float(2.0**21))
        if not is_known:
            is_exact = code.binary("and", is_exact, code.compare("fcmp olt", found, divisor))
        return code.convert("bitcast", found, bits.x.type), is_exact

    def _divisor(self, y: Val) -> tuple[Val, Val, bool]:
        """|y|, its reciprocal, and whether y is a number that has a normal one."""
        number = _number_with_reciprocal(y)
        if number is not None:
            return self._float(abs(number)), self._float(1 / abs(number)), True
        divisor = self.code.intrinsic("fabs", y.type, y)
        assembly = 'call float asm "rcp.approx.ftz.f32 $0, $1;", "=f,f"'
        return divisor, self.code.let_here(f"{assembly}({divisor.typed})", y.type), False

    def _by_scaled_steps(self, x: Val, divisor: float, slow: str) -> Val:
        """The bits of the remainder of |x| by a constant, in the blocks `slow` to `slow`.end.

        Each step leaves a remainder by a multiple 2^k of the constant, at most 2^21 times smaller
        than the value, so that it is exact; the last has k = 0. NaN for x infinite or NaN.
        """
        code, type_ = self.code, "i32"
        start = code.intrinsic("fabs", x.type, x)
        size, number = Val(code.name("size"), x.type, BODY), self._number
        code.line(f"br label %{slow}.loop")
        code.line(f"{slow}.loop:")
        source = f"[ {start}, %{slow} ], [ {size}, %{slow}.loop ]"
        value = code.let_here(f"phi {x.type} {source}", x.type)
        exponent = code.binary("lshr", code.convert("bitcast", value, type_), number(23))
        above = code.binary("sub", exponent, number((_bits(divisor) >> 23) + 20))
        k = code.intrinsic("smax", type_, above, number(0))
        scale = code.binary("shl", k, number(23))
        scaled = code.convert("bitcast", code.binary("add", number(_bits(divisor)), scale), x.type)
        inverse = code.binary("sub", number(_bits(1 / divisor)), scale)
        _, rest = self._nearest(value, code.convert("bitcast", inverse, x.type), scaled)
        code.line(f"{size} = fadd {rest.typed}, 0.0")
        is_finite = code.compare("icmp ult", exponent, number(255))
        more = code.binary("and", code.compare("icmp sgt", k, number(0)), is_finite)
        code.line(f"br i1 {more}, label %{slow}.loop, label %{slow}.end")
        code.line(f"{slow}.end:")
        return code.convert("bitcast", size, type_)

    def _nearest(self, size: Val, inverse: Val, divisor: Val) -> tuple[Val, Val]:
        """The quotient, rounded to nearest by an addition, and the remainder, not negative."""
        code = self.code
        shifted = code.intrinsic("fma", size.type, size, inverse, self._float(1.5 * 2.0**23))
        quotient = code.binary("fsub", shifted, self._float(1.5 * 2.0**23))
        negated = code.let(f"fneg {quotient.typed}", size.type, quotient)
        left = code.intrinsic("fma", size.type, negated, divisor, size)
        is_negative = code.compare("fcmp olt", left, self._float(0.0))
        return quotient, code.select(is_negative, code.binary("fadd", left, divisor), left)

    def _float(self, number: float) -> Val:
        return Val(float_text(number, "float"), "float")

    # -- one division -----------------------------------------------------------------------------

    def _by_one_division(self, x: Val, y: Val) -> tuple[Val, Val]:
        """q = trunc(x / y), and x - q y by one FMA."""
        code = self.code
        quotient = code.intrinsic("trunc", x.type, code.binary("fdiv", x, y))
        negated = code.let(f"fneg {quotient.typed}", x.type, quotient)
        return quotient, code.intrinsic("fma", x.type, negated, y, x)

    def _corrected(self, x: Val, quotient: Val, first: Val, bits: _Bits) -> tuple[Val, Val]:
        """The bits of the remainder by one division, and whether it is exact."""
        code, infinity = self.code, self._infinity
        inside = self._stepped_back(first, bits)
        # A finite x stays as it is for an infinite y, where 0 * inf is NaN.
        is_endless = code.compare("icmp eq", bits.ay, infinity)
        is_finite = code.compare("icmp ult", bits.ax, infinity)
        keeps = code.binary("and", is_endless, is_finite)
        usual = code.convert("bitcast", code.select(keeps, x, inside), bits.x.type)
        limit = Val(float_text(2.0**self.element.mantissa, x.type), x.type)
        size = code.intrinsic("fabs", x.type, quotient)
        return usual, code.binary("or", code.compare("fcmp olt", size, limit), keeps)

    def _stepped_back(self, first: Val, bits: _Bits) -> Val:
        """The remainder for a quotient that may have been rounded up, and then is one too large:
        the remainder has the other sign, and |y| with the sign of x is added."""
        code = self.code
        differs = code.binary("xor", code.convert("bitcast", first, bits.x.type), bits.x)
        has_other_sign = code.compare("icmp slt", differs, self._number(0))
        is_something = code.compare("fcmp une", first, Val("0.0", first.type))
        is_beyond = code.binary("and", has_other_sign, is_something)
        step = code.convert("bitcast", code.binary("or", bits.ay, bits.sign), first.type)
        return code.select(is_beyond, code.binary("fadd", first, step), first)

    # -- long division ----------------------------------------------------------------------------

    def _by_long_division(self, bits: _Bits, slow: str) -> Val:
        """The remainder of |x| and |y|, as bits, in the blocks `slow` to `slow`.end; NaN for x
        infinite or NaN and for y 0 or NaN, where the loop ends at once."""
        code, zero = self.code, self._number(0)
        is_zero = code.compare("icmp eq", bits.ay, zero)
        is_large = code.compare("icmp uge", bits.ax, self._infinity)
        is_none = code.compare("icmp ugt", bits.ay, self._infinity)
        is_bad = code.binary("or", code.binary("or", is_zero, is_large), is_none)
        x_mantissa, x_exponent = self._split(bits.ax)
        y_mantissa, y_exponent = self._split(bits.ay)
        # As many doublings as the exponents differ by.
        count = code.select(is_bad, zero, code.binary("sub", x_exponent, y_exponent))
        last = self._subtract_and_double(x_mantissa, y_mantissa, count, slow)
        # The loop subtracts once at least. An infinite y is above all finite x.
        is_below = code.compare("icmp ult", bits.ax, bits.ay)
        remainder = code.select(is_below, bits.ax, self._joined(last, y_exponent))
        return code.select(is_bad, self._magnitude_mask, remainder)

    def _split(self, magnitude: Val) -> tuple[Val, Val]:
        """The mantissa with its leading bit at the place that it has in normal numbers, subnormals
        shifted up to it, and the biased exponent, which may be below 1 then."""
        code, mantissa, zero = self.code, self.element.mantissa, self._number(0)
        exponent = code.binary("lshr", magnitude, self._number(mantissa))
        fraction = code.binary("and", magnitude, self._fraction_mask)
        missing = self._missing_bits(magnitude)
        is_subnormal = code.compare("icmp eq", exponent, zero)
        shift = code.select(is_subnormal, missing, zero)
        leading_bit = code.select(is_subnormal, zero, self._number(1 << mantissa))
        whole = code.binary("shl", code.binary("or", fraction, leading_bit), shift)
        lowered = code.binary("sub", self._number(1), missing)
        return whole, code.select(is_subnormal, lowered, exponent)

    def _missing_bits(self, mantissa: Val) -> Val:
        """How many bits a mantissa is short of that of a normal number."""
        zeros = self.code.intrinsic("ctlz", mantissa.type, mantissa, integer_literal(0, "i1"))
        return self.code.binary("sub", zeros, self._number(self._leading_zeros))

    @property
    def _leading_zeros(self) -> int:
        """The leading bit of a normal number's mantissa."""
        return self.element.bits - 1 - self.element.mantissa

    def _subtract_and_double(self, start: Val, divisor: Val, count: Val, slow: str) -> Val:
        """The loop; what the last subtraction, of count + 1, leaves."""
        code, type_ = self.code, start.type
        doubled, following = (Val(code.name(hint), type_, BODY) for hint in ("twice", "left"))
        code.line(f"br label %{slow}.loop")
        code.line(f"{slow}.loop:")
        left, mantissa = (
            code.let_here(f"phi {type_} [ {init}, %{slow} ], [ {later}, %{slow}.loop ]", type_)
            for init, later in ((count, following), (start, doubled))
        )
        fits = code.compare("icmp uge", mantissa, divisor)
        part = code.select(fits, divisor, self._number(0))
        rest = code.binary("sub", mantissa, part)
        # Under the names by which the phis above refer to them.
        code.line(f"{doubled} = shl {rest.typed}, 1")
        code.line(f"{following} = sub {left.typed}, 1")
        more = code.compare("icmp sgt", left, self._number(0))
        code.line(f"br i1 {more}, label %{slow}.loop, label %{slow}.end")
        code.line(f"{slow}.end:")
        return rest

    def _joined(self, rest: Val, exponent: Val) -> Val:
        """The bits of the float rest 2^exponent, with as many bits as it has: 0, normal or not."""
        code, zero = self.code, self._number(0)
        missing = self._missing_bits(rest)
        lowered = code.binary("sub", exponent, missing)
        is_normal = code.compare("icmp sgt", lowered, zero)
        is_nothing = code.compare("icmp eq", rest, zero)
        whole = code.binary("shl", rest, code.select(is_nothing, zero, missing))
        fraction = code.binary("and", whole, self._fraction_mask)
        field = code.binary("shl", lowered, self._number(self.element.mantissa))
        normal = code.binary("or", fraction, field)
        under = code.select(is_nothing, zero, code.binary("sub", self._number(1), lowered))
        subnormal = code.binary("lshr", whole, code.select(is_normal, zero, under))
        number = code.select(is_normal, normal, subnormal)
        return code.select(is_nothing, zero, number)
