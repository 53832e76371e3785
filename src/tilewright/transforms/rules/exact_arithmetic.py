"""Arithmetic on constants as the types define it: integers wrap, floats fold only when exact.

Every function returns None where folding could differ from the machine's result: a float result
that needs rounding, NaN or infinity where signs and payloads matter, division by zero, shifts out
of range. Values are Python numbers: bool for i1, int, float.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from fractions import Fraction
from math import ceil, copysign, floor, frexp, isfinite, isinf, isnan, trunc
from typing import Any

from tilewright.ir import Value
from tilewright.ir.types import DType, element_of, nan_as_integer
from tilewright.ops import ConstantOp

Number = int | float


def constant_of(value: Value) -> Number | None:
    """The constant that a value is in every element, rounded to its type; None if unknown."""
    op = value.op
    if not isinstance(op, ConstantOp):
        return None
    element = element_of(op.result_type)
    return in_type(op.value, element) if isinstance(element, DType) else None


def is_constant(value: Value, number: Number) -> bool:
    """Whether a value is this number; 0.0 is not -0.0."""
    constant = constant_of(value)
    return (
        constant is not None and constant == number and str(float(constant)) == str(float(number))
    )


def in_type(value: Number, dtype: DType) -> Number | None:
    """The constant `value` as an element of a type; None for a float that would need rounding."""
    if not dtype.is_float:
        return wrap(int(value), dtype)
    number = float(value)
    if isnan(number) or is_exact(number, dtype):
        return number
    code = {"f32": "<f", "f16": "<e"}.get(dtype.name)
    if code is None:
        return None
    try:
        # struct rounds to the nearest number, ties to even; it has no code for bf16 and fp8
        (rounded,) = struct.unpack(code, struct.pack(code, number))
    except OverflowError:
        return None
    return rounded


def wrap(value: int, dtype: DType) -> int:
    """An integer modulo 2**bits, in the range of the type."""
    return bool(value & 1) if dtype.is_bool else dtype.wrap(value)


def is_exact(value: float, dtype: DType) -> bool:
    """Whether a float type holds this number without rounding; NaN does not count."""
    if value == 0.0:
        return dtype.has_negative_zero or copysign(1.0, value) > 0
    if not isfinite(value):
        return isinf(value) and not dtype.is_fp8  # fp8 saturates
    if abs(value) > dtype.largest:
        return False
    _, exponent = frexp(value)
    # The lowest bit: of a normal number it follows the highest, of a subnormal it is fixed.
    lowest = max(exponent - 1, 1 - dtype.bias) - dtype.mantissa
    return (Fraction(value) / Fraction(2) ** lowest).denominator == 1


def fold_binary(opcode: str, a: Number, b: Number, dtype: DType) -> Number | None:
    """`a <op> b` for two constants of one type."""
    if dtype.is_float:
        return _fold_floats(opcode, float(a), float(b), dtype)
    rule = _INTEGER.get(opcode)
    if rule is None:
        return None
    result = rule(int(a), int(b), dtype)
    return None if result is None else wrap(result, dtype)


def _divide(a: int, b: int, dtype: DType) -> int | None:
    """Divide toward zero, by one if y is zero; the most negative number by -1 is not folded."""
    if b == 0:
        return a
    if b == -1 and a == dtype.min_int:
        return None
    # of the magnitudes, since // rounds down and not toward zero
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int, dtype: DType) -> int | None:
    quotient = _divide(a, b, dtype)
    return None if quotient is None else a - quotient * (b or 1)


def _shift_left(a: int, b: int, dtype: DType) -> int | None:
    return a << b if 0 <= b < dtype.bits else None


def _shift_right(a: int, b: int, dtype: DType) -> int | None:
    return a >> b if 0 <= b < dtype.bits else None


_INTEGER: dict[str, Callable[[int, int, DType], int | None]] = {
    "arith.add": lambda a, b, t: a + b,
    "arith.sub": lambda a, b, t: a - b,
    "arith.mul": lambda a, b, t: a * b,
    "arith.div": _divide,
    "arith.rem": _remainder,
    "arith.and": lambda a, b, t: a & b,
    "arith.or": lambda a, b, t: a | b,
    "arith.xor": lambda a, b, t: a ^ b,
    "arith.shl": _shift_left,
    "arith.shr": _shift_right,
    "arith.min": lambda a, b, t: min(a, b),
    "arith.max": lambda a, b, t: max(a, b),
    "arith.mul_high": lambda a, b, t: (a * b) >> t.bits,
}


def _fold_floats(opcode: str, a: float, b: float, dtype: DType) -> float | None:
    """Fold in double precision; kept if that was exact and the type holds the result."""
    rule = _FLOAT.get(opcode)
    if rule is None or not (isfinite(a) and isfinite(b)):
        return None
    if opcode == "arith.div" and b == 0.0:
        return None
    if opcode in ("arith.min", "arith.max") and a == b:
        # 0.0 equals -0.0, and machines differ in which of them they give
        return a if str(a) == str(b) else None
    computed, exact = rule(a, b), rule(Fraction(a), Fraction(b))
    if not isfinite(computed) or Fraction(computed) != exact:
        return None
    return float(computed) if is_exact(float(computed), dtype) else None


def _quotient(a: Any, b: Any) -> Any:
    return a / b


_FLOAT: dict[str, Callable[[Any, Any], Any]] = {
    "arith.add": operator.add,
    "arith.sub": operator.sub,
    "arith.mul": operator.mul,
    "arith.div": _quotient,
    "arith.min": min,
    "arith.max": max,
}
"""Operations that round on floats and are exact on fractions."""
_COMPARE: dict[str, Callable[[Number, Number], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_ROUNDING: dict[str, Callable[[float], int]] = {
    "floor": floor,
    "ceil": ceil,
    "trunc": trunc,
    "round_even": round,
}


def fold_compare(predicate: str, a: Number, b: Number) -> bool:
    """Compare exactly; Python compares NaN as IEEE 754 does."""
    return _COMPARE[predicate](a, b)


def fold_rounding(function: str, x: float) -> float | None:
    """floor, ceil, trunc and round_even of a constant, if the result is not zero."""
    rule = _ROUNDING.get(function)
    if rule is None or not isfinite(x):
        return None
    result = float(rule(x))
    return result if result != 0.0 else None


def fold_cast(x: Number, source: DType, target: DType) -> Number | None:
    """A constant in another type; None if it would be rounded or is out of range."""
    if target.is_bool:
        return x != 0
    if target.is_float:
        if source.is_float and not isfinite(x):
            return x if isinf(x) and not target.is_fp8 else None  # fp8 saturates
        number = float(x) if abs(x) <= target.largest else None
        return number if number is not None and number == x and is_exact(number, target) else None
    if not source.is_float:
        return wrap(int(x), target)
    if isnan(x):
        return nan_as_integer(source, target)
    if isinf(x):
        return target.max_int if x > 0 else target.min_int
    return min(max(trunc(x), target.min_int), target.max_int)


def is_lossless(source: DType, target: DType) -> bool:
    """Whether every number of one type is a number of the other."""
    if source.is_float:
        wide_enough = source.mantissa <= target.mantissa and source.bias <= target.bias
        return target.is_float and wide_enough and not target.is_fp8
    if target.is_float:
        magnitude = max(source.max_int, -source.min_int)
        fits = source.bits - source.is_signed <= target.mantissa + 1
        return fits and magnitude <= target.largest
    if target.is_bool:
        return source.is_bool
    return target.min_int <= source.min_int and source.max_int <= target.max_int
