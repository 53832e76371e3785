"""Element-wise arithmetic on scalars and on tiles of one shape.

Integers wrap. Signedness comes from the type. Floats follow IEEE 754 in round-to-nearest-even.
"""

from __future__ import annotations

from tilewright.ir import (
    Op,
    Trait,
    Value,
    any_type,
    attr,
    boolean,
    floating,
    integer,
    number,
    operand,
)
from tilewright.ir.types import DType, Type, element_of, i1, i64, u64, with_element

_ELEMENTWISE = (Trait.PURE, Trait.ELEMENTWISE)
_COMMUTATIVE = (Trait.PURE, Trait.ELEMENTWISE, Trait.COMMUTATIVE)
_MAX = 2**64 - 1
_ADDRESSES = frozenset((i64, u64))

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
QUOTIENT_ROUNDINGS = ("nearest", "exact", "full", "fast", "by_use")
MATH_FUNCTIONS = (
    "exp", "exp2", "log", "log2", "sin", "cos", "tan", "tanh", "erf", "sqrt", "sqrt_rn", "rsqrt",
    "floor", "ceil", "round_even", "trunc", "accurate_exp", "fast_log2", "fast_sin", "fast_cos",
    "fast_tanh",
)  # fmt: skip
"""Functions of one float. `round_even` rounds to an integer, ties to even. `accurate_exp` is `exp`
where that may be off by |x| ulp (docs/adr/0006-hardware-exp.md). The `fast_` functions are the
approximate instructions of GPUs on fp32, within about 2^-21 (`fast_tanh`: 2^-11); on other types
and targets they equal the functions without the prefix."""


class ConstantOp(Op, opcode="arith.constant", traits=(*_ELEMENTWISE, Trait.CONSTANT)):
    """result = value, in every element if the result type is a tile"""

    value: int | float | bool = attr()
    result_type: Type = attr()

    def verify(self) -> str | None:
        element = element_of(self.result_type)
        if isinstance(element, DType) and element.is_float:
            return None
        low, high = (element.min_int, element.max_int) if isinstance(element, DType) else (0, _MAX)
        if isinstance(self.value, int) and low <= self.value <= high:
            return None
        return f"{self.value!r} is not a value of {element}"


class BinaryOp(Op):
    """Base class of ops `result = lhs <op> rhs`, whose operands and result have one type."""

    lhs: Value = operand(number)
    rhs: Value = operand(number)

    def infer(self) -> Type:
        return self.lhs.type

    def verify(self) -> str | None:
        if self.lhs.type is not self.rhs.type:
            return f"operands differ in type: {self.lhs.type} and {self.rhs.type}"
        return None


class IntegerBinaryOp(BinaryOp):
    """Base class of binary ops on integers."""

    lhs: Value = operand(integer)
    rhs: Value = operand(integer)


class AddOp(BinaryOp, opcode="arith.add", traits=_COMMUTATIVE):
    """result = lhs + rhs"""


class SubOp(BinaryOp, opcode="arith.sub", traits=_ELEMENTWISE):
    """result = lhs - rhs"""


class MulOp(BinaryOp, opcode="arith.mul", traits=_COMMUTATIVE):
    """result = lhs * rhs"""


class DivOp(BinaryOp, opcode="arith.div", traits=_ELEMENTWISE):
    """result = lhs / rhs; integers truncate toward zero, and a divisor of zero counts as one

    rounding: the rounding of fp32 quotients; other floats are always correctly rounded.
    "nearest": correctly; "exact": within 2 ulp, and exact where the quotient is a float; "full":
    within 2 ulp; "fast": within 2 ulp where 2^-126 <= |rhs| <= 2^126, and 0 or NaN beyond;
    "by_use": "exact" if a comparison or truncation depends on the quotient, else "full".
    """

    rounding: str = attr(default="by_use", choices=QUOTIENT_ROUNDINGS)


class RemOp(BinaryOp, opcode="arith.rem", traits=_ELEMENTWISE):
    """result = lhs - trunc(lhs / rhs) * rhs: the sign of lhs; fmod for floats

    An integer divisor of zero counts as one, so that the remainder is 0.
    """


class AndOp(IntegerBinaryOp, opcode="arith.and", traits=_COMMUTATIVE):
    """result = lhs & rhs, bitwise"""


class OrOp(IntegerBinaryOp, opcode="arith.or", traits=_COMMUTATIVE):
    """result = lhs | rhs, bitwise"""


class XorOp(IntegerBinaryOp, opcode="arith.xor", traits=_COMMUTATIVE):
    """result = lhs ^ rhs, bitwise"""


class ShlOp(IntegerBinaryOp, opcode="arith.shl", traits=_ELEMENTWISE):
    """result = lhs << rhs; 0 <= rhs < width, else undefined"""


class ShrOp(IntegerBinaryOp, opcode="arith.shr", traits=_ELEMENTWISE):
    """result = lhs >> rhs, copying a signed type's sign; 0 <= rhs < width, else undefined"""


class MinOp(BinaryOp, opcode="arith.min", traits=_COMMUTATIVE):
    """result = min(lhs, rhs); of a NaN and a number the number, or the NaN if `nan`"""

    nan: bool = attr(default=False)


class MaxOp(BinaryOp, opcode="arith.max", traits=_COMMUTATIVE):
    """result = max(lhs, rhs); of a NaN and a number the number, or the NaN if `nan`"""

    nan: bool = attr(default=False)


class MulHighOp(IntegerBinaryOp, opcode="arith.mul_high", traits=_COMMUTATIVE):
    """result = (lhs * rhs) >> width: the high half of the full product"""


class FmaOp(Op, opcode="arith.fma", traits=_ELEMENTWISE):
    """result = a * b + c, rounded once"""

    a: Value = operand(floating)
    b: Value = operand(floating)
    c: Value = operand(floating)

    def infer(self) -> Type:
        return self.a.type

    def verify(self) -> str | None:
        if self.a.type is self.b.type and self.a.type is self.c.type:
            return None
        return f"operands differ in type: {self.a.type}, {self.b.type} and {self.c.type}"


class UnaryOp(Op):
    """Base class of ops `result = <op> x`, whose operand and result have one type."""

    x: Value = operand(number)

    def infer(self) -> Type:
        return self.x.type


class NegOp(UnaryOp, opcode="arith.neg", traits=_ELEMENTWISE):
    """result = -x; flips the sign of a float zero and of a NaN"""


class AbsOp(UnaryOp, opcode="arith.abs", traits=_ELEMENTWISE):
    """result = |x|; the most negative integer is unchanged"""


class CompareOp(Op, opcode="arith.compare", traits=_ELEMENTWISE):
    """result = lhs <predicate> rhs as i1; with a NaN only `ne` is true; pointers as addresses"""

    lhs: Value = operand(any_type)
    rhs: Value = operand(any_type)
    predicate: str = attr(choices=COMPARISONS)

    def infer(self) -> Type:
        return with_element(self.lhs.type, i1)

    def verify(self) -> str | None:
        if self.lhs.type is not self.rhs.type:
            return f"operands differ in type: {self.lhs.type} and {self.rhs.type}"
        return None


class SelectOp(Op, opcode="arith.select", traits=_ELEMENTWISE):
    """result = x if condition else y, element by element"""

    condition: Value = operand(boolean)
    x: Value = operand(any_type)
    y: Value = operand(any_type)

    def infer(self) -> Type:
        return self.x.type

    def verify(self) -> str | None:
        if self.x.type is not self.y.type:
            return f"operands differ in type: {self.x.type} and {self.y.type}"
        return None


class CastOp(Op, opcode="arith.cast", traits=_ELEMENTWISE):
    """result = x converted to another number type

    float to float rounds (`rtne`) or truncates (`rtz`), and fp8 saturates to its largest finite
    value; float to integer truncates toward zero, and saturates as in the table; integer to integer
    wraps; to i1 is x != 0; pointer from and to a 64-bit integer keeps the address.

    in_range: the float is in the range of the integer; otherwise, and for NaN, the result is
    undefined.

    | float to integer | i8, i16, i32 | u8, u16, u32 | i64 | u64 |
    |---|---|---|---|---|
    | below the least number | the least | 0 | -2^63 | 0 |
    | above the largest number | the largest | the largest | 2^63 - 1 | 2^64 - 1 |
    | NaN of f64 | the least | 2^(width - 1) | -2^63 | 2^63 |
    | NaN of other floats | 0 | 0 | -2^63 | 2^63 |

    The results are those of PTX's `cvt.rzi` (PTX ISA, `cvt`: float-to-integer conversions).
    """

    x: Value = operand(any_type)
    result_type: Type = attr()
    rounding: str = attr(default="rtne", choices=("rtne", "rtz"))
    in_range: bool = attr(default=False)

    def verify(self) -> str | None:
        source, target = element_of(self.x.type), element_of(self.result_type)
        pointers = [type_ for type_ in (source, target) if not isinstance(type_, DType)]
        if not pointers or (len(pointers) == 1 and {source, target} & _ADDRESSES):
            return None
        return f"cannot convert {source} to {target}: addresses are 64-bit integers"


class BitcastOp(Op, opcode="arith.bitcast", traits=_ELEMENTWISE):
    """result = the same bits as another type of the same width"""

    x: Value = operand(any_type)
    result_type: Type = attr()

    def verify(self) -> str | None:
        if element_of(self.x.type).bits == element_of(self.result_type).bits:
            return None
        return f"{self.x.type} and {self.result_type} differ in width"


class MathOp(UnaryOp, opcode="arith.math", traits=_ELEMENTWISE):
    """result = function(x)"""

    x: Value = operand(floating)
    function: str = attr(choices=MATH_FUNCTIONS)
