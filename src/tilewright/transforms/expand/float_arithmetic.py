"""The builder of float arithmetic in which the expansions of this package are written.

a = FloatArithmetic(builder, x.type, fma=True)
t = a.fma(x, 1.5, 0.25)          # numbers become constants of the other operand's type
bits = a.shl(a.bits(t), 23)      # a float's bits as signed integers of its width
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir import ArithmeticBuilder, Builder, Expr, Number, Op, Operand, Value
from tilewright.ir.types import DType, Type, dtype_of, f32, f64, i1, i32, i64, with_element
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """A float format that expansions compute in.

    integer: signed integer of its width; mantissa: stored fraction bits; bias: of the exponent;
    shifter: 1.5 * 2^mantissa: adding it leaves round-to-nearest-integer in the low bits.
    """

    dtype: DType
    integer: DType

    @property
    def mantissa(self) -> int:
        return self.dtype.mantissa

    @property
    def bias(self) -> int:
        return self.dtype.bias

    @property
    def shifter(self) -> float:
        return 1.5 * 2.0**self.mantissa

    @property
    def sign(self) -> int:
        """The sign bit, as a signed integer."""
        return self.integer.min_int

    @property
    def infinity(self) -> int:
        """The bits of infinity."""
        return self.dtype.infinity_bits


SINGLE = Format(f32, i32)
DOUBLE = Format(f64, i64)
FORMATS = {f32: SINGLE, f64: DOUBLE}


class FloatArithmetic(ArithmeticBuilder):
    """Emits ops on values of one shape; `type` is the float type computed in.

    native: floats of less than 32 bits that the machine converts from and to f32; avx512: it has
    the ops of `avx512_ops`, and that of bf16 if `rounds_bf16`; exp2: it has 2^x and a fast
    reciprocal of f32
    """

    __slots__ = (
        "_constants", "avx512", "builder", "format", "has_exp2", "has_fma", "native",
        "rounds_bf16", "type",
    )  # fmt: skip

    def __init__(
        self,
        builder: Builder,
        type_: Type,
        fma: bool = True,
        native: frozenset[DType] = frozenset(),
        avx512: bool = False,
        rounds_bf16: bool = False,
        exp2: bool = False,
    ) -> None:
        self.has_exp2 = exp2
        self.avx512 = avx512
        self.rounds_bf16 = rounds_bf16
        self.builder = builder
        self.type = type_
        self.has_fma = fma
        self.native = native
        self.format = FORMATS.get(dtype_of(type_), SINGLE)
        self._constants: dict[tuple[str, Type], Value] = {}

    @property
    def single(self) -> bool:
        """Whether it computes in f32."""
        return self.format is SINGLE

    def value(self, op: Op) -> Value:
        return self.builder.value(op)

    def constant(self, value: Number, type_: Type | None = None) -> Value:
        """A number of `type_`, by default of the float type; each is emitted once."""
        type_ = self.type if type_ is None else type_
        # by text, since 0.0 equals -0.0 and a NaN does not equal itself
        key = (repr(value), type_)
        emitted = self._constants.get(key)
        if emitted is None:
            emitted = self._constants[key] = super().constant(value, type_)
        return emitted

    def like(self, x: Operand, other: Operand) -> Value:
        """Two numbers have the float type."""
        if isinstance(x, Number) and isinstance(other, Number):
            return self.constant(x)
        return super().like(x, other)

    def div(self, x: Operand, y: Operand, rounding: str = "nearest") -> Value:
        """x / y; rounding: see `DivOp`."""
        return super().div(x, y, rounding)

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        """a * b + c, rounded once where the machine does so in one instruction."""
        return super().fma(a, b, c) if self.has_fma else self.add(self.mul(a, b), c)

    def polynomial(self, coefficients: Sequence[Number], x: Value) -> Value:
        """Horner's rule; lowest power first."""
        total: Operand = coefficients[-1]
        for c in reversed(coefficients[:-1]):
            total = self.fma(total, x, c)
        assert isinstance(total, Value)
        return total

    def clamp(self, x: Value, low: float, high: float) -> Value:
        """x within [low, high]; a NaN stays. One instruction each: the bounds are no NaN."""
        return self.at_most(self.max(x, low, nan=True), high)

    def at_most(self, x: Value, high: float) -> Value:
        """min(x, high); a NaN stays."""
        return self.min(x, high, nan=True)

    def within(self, x: Value, bound: float) -> Value:
        """x between -bound and bound; one of them for a NaN."""
        return self.min(self.max(x, -bound), bound)

    def cast(
        self, x: Value | Expr, type_: Type, rounding: str = "rtne", in_range: bool = True
    ) -> Value:
        """Convert to another element type; to integers, `x` is in range by construction."""
        rounds = dtype_of(x.type).is_float and dtype_of(type_).is_integer
        return super().cast(x, type_, rounding, in_range and rounds)

    def bits(self, x: Value) -> Value:
        """The bits of a float of the format as signed integers."""
        return self.bitcast(x, self.format.integer)

    def floats(self, bits: Value) -> Value:
        """Integers as the floats of the format with these bits."""
        return self.bitcast(bits, self.format.dtype)

    def sign_of(self, x: Value) -> Value:
        """The sign bit of a float, alone."""
        return self.bit_and(self.bits(x), self.format.sign)

    def with_sign(self, magnitude: Value, sign: Value) -> Value:
        """A non-negative float combined with a sign bit."""
        return self.floats(self.bit_or(self.bits(magnitude), sign))

    @property
    def boolean(self) -> Type:
        """i1 in the shape of the operands."""
        return with_element(self.type, i1)
