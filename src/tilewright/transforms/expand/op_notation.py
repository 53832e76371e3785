"""Writes arithmetic as ops: the notation in which the expansions of this package are stated.

a = Arithmetic(builder, x.type, fma=True)
t = a.fma(x, 1.5, 0.25)          # numbers become constants of the other operand's type
bits = a.shl(a.bits(t), 23)      # a float's bits as signed integers of its width
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir import Builder, Op, Value
from tilewright.ir.types import DType, Type, dtype_of, f32, f64, i1, i32, i64, with_element
from tilewright.ops import (
    AbsOp,
    AddOp,
    AndOp,
    BitcastOp,
    CastOp,
    CompareOp,
    ConstantOp,
    DivOp,
    FmaOp,
    MathOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    OrOp,
    SelectOp,
    ShlOp,
    ShrOp,
    SubOp,
    XorOp,
)
from tilewright.support.data_class import dataclass

Number = int | float
Operand = Value | Number
_Binary = type[AddOp | SubOp | MulOp | AndOp | OrOp | XorOp | ShlOp | ShrOp]


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


class Arithmetic:
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

    def emit(self, op: Op) -> Value:
        return self.builder.value(op)

    def constant(self, value: Number, type_: Type | None = None) -> Value:
        """A number of `type_`, by default of the float type."""
        type_ = self.type if type_ is None else type_
        # by text, since 0.0 equals -0.0, and a NaN nothing
        key = (repr(value), type_)
        emitted = self._constants.get(key)
        if emitted is None:
            emitted = self._constants[key] = self.emit(ConstantOp(value, type_))
        return emitted

    def like(self, number: Operand, other: Operand) -> Value:
        """A number as a constant of the type of `other`."""
        if isinstance(number, Value):
            return number
        return self.constant(number, other.type if isinstance(other, Value) else None)

    def _binary(self, op: _Binary, x: Operand, y: Operand) -> Value:
        return self.emit(op(self.like(x, y), self.like(y, x)))

    def add(self, x: Operand, y: Operand) -> Value:
        return self._binary(AddOp, x, y)

    def sub(self, x: Operand, y: Operand) -> Value:
        return self._binary(SubOp, x, y)

    def mul(self, x: Operand, y: Operand) -> Value:
        return self._binary(MulOp, x, y)

    def bit_and(self, x: Operand, y: Operand) -> Value:
        return self._binary(AndOp, x, y)

    def bit_or(self, x: Operand, y: Operand) -> Value:
        return self._binary(OrOp, x, y)

    def bit_xor(self, x: Operand, y: Operand) -> Value:
        return self._binary(XorOp, x, y)

    def shl(self, x: Operand, y: Operand) -> Value:
        return self._binary(ShlOp, x, y)

    def shr(self, x: Operand, y: Operand) -> Value:
        return self._binary(ShrOp, x, y)

    def div(self, x: Operand, y: Operand, rounding: str = "nearest") -> Value:
        """x / y; rounding: see `DivOp`."""
        return self.emit(DivOp(self.like(x, y), self.like(y, x), rounding))

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        """a * b + c, rounded once where the machine does so in one instruction."""
        a, b = self.like(a, b), self.like(b, a)
        c = self.like(c, a)
        if self.has_fma:
            return self.emit(FmaOp(a, b, c))
        return self.add(self.mul(a, b), c)

    def polynomial(self, coefficients: Sequence[Number], x: Value) -> Value:
        """Horner's rule; lowest power first."""
        total: Operand = coefficients[-1]
        for c in reversed(coefficients[:-1]):
            total = self.fma(total, x, c)
        assert isinstance(total, Value)
        return total

    def clamp(self, x: Value, low: float, high: float) -> Value:
        """x within [low, high]; a NaN stays. One instruction each: the bounds are no NaN."""
        return self.at_most(self.emit(MaxOp(x, self.like(low, x), True)), high)

    def at_most(self, x: Value, high: float) -> Value:
        """min(x, high); a NaN stays."""
        return self.emit(MinOp(x, self.like(high, x), True))

    def within(self, x: Value, bound: float) -> Value:
        """x between -bound and bound; one of them for a NaN."""
        above = self.emit(MaxOp(x, self.like(-bound, x)))
        return self.emit(MinOp(above, self.like(bound, x)))

    def abs(self, x: Value) -> Value:
        return self.emit(AbsOp(x))

    def neg(self, x: Value) -> Value:
        return self.emit(NegOp(x))

    def compare(self, predicate: str, x: Value, y: Operand) -> Value:
        return self.emit(CompareOp(x, self.like(y, x), predicate))

    def select(self, condition: Value, x: Operand, y: Operand) -> Value:
        return self.emit(SelectOp(condition, self.like(x, y), self.like(y, x)))

    def either(self, x: Value, y: Value) -> Value:
        return self.emit(OrOp(x, y))

    def math(self, function: str, x: Value) -> Value:
        return self.emit(MathOp(x, function))

    def cast(self, x: Value, dtype: DType, rounding: str = "rtne", in_range: bool = True) -> Value:
        """To another element type, whose range expansions know; `x` itself if it has it."""
        if dtype_of(x.type) is dtype:
            return x
        rounds = dtype_of(x.type).is_float and dtype.is_integer
        type_ = with_element(x.type, dtype)
        return self.emit(CastOp(x, type_, rounding, in_range and rounds))

    def bitcast(self, x: Value, dtype: DType) -> Value:
        return self.emit(BitcastOp(x, with_element(x.type, dtype)))

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
        """A float without sign and a sign bit in one."""
        return self.floats(self.bit_or(self.bits(magnitude), sign))

    @property
    def boolean(self) -> Type:
        """i1 in the shape computed with."""
        return with_element(self.type, i1)
