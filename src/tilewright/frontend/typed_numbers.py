"""Compile-time numbers with a dtype: the value of a variable after `n = 3` or `scale = 0.5`.

A literal is weak: it takes the dtype of the other operand. An assignment or a `return` gives it its
own dtype, as in Triton, where the variable is a scalar tensor from then on. Here it also stays a
compile-time constant: `tl.arange(0, n)` and `if n > 2` accept it.

Arithmetic is that of scalar tensors: the operands promote by `dtype_promotion`, integers wrap, fp32
rounds after each operation, `//` and `%` truncate. `n ** 2`, which tensors lack, is Python's.
"""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

from tilewright.frontend.dtype_promotion import (
    OPERATORS,
    Literal,
    common_dtype,
    literal_dtype,
    operand_dtype,
    promoted_dtype,
)
from tilewright.ir.types import DType, f32

_FP32_DIGITS = range(6, 9)
"""Significant decimal digits that may identify an fp32; 9 always do."""


class TypedInt(int):
    """An integer of `dtype`: int32, uint32, int64 or uint64."""

    dtype: DType

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)


class TypedFloat(float):
    """A float of `dtype`: fp32 or fp64."""

    dtype: DType

    def __reduce__(self) -> tuple[Any, ...]:
        return float, (float(self),)

    def __repr__(self) -> str:
        value = float(self)
        if self.dtype is f32 and math.isfinite(value):
            texts = (repr(float(f"{value:.{digits}g}")) for digits in _FP32_DIGITS)
            return next((t for t in texts if _rounded(float(t)) == value), repr(value))
        return repr(value)

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else repr(self)


def typed_number(value: Any) -> Any:
    """A plain int or float with its own dtype; anything else is returned unchanged.

    Unchanged are also bool, whose dtype is int1 in either case, and integers beyond 64 bits.
    """
    if type(value) not in (int, float):
        return value
    dtype = literal_dtype(value)
    return value if dtype is None else converted(value, dtype)


def converted(value: Literal, dtype: DType) -> TypedInt | TypedFloat:
    """A number in a dtype: an integer wraps, a float is rounded."""
    if dtype.is_float:
        number = TypedFloat(_rounded(float(value)) if dtype is f32 else value)
    else:
        number = TypedInt(_wrapped(int(value), dtype))
    number.dtype = dtype
    return number


def joined(result: Any, operands: Iterable[Any]) -> Any:
    """One of the operands, in the dtype of all of them if one has a dtype."""
    numbers = list(operands)
    if not any(isinstance(number, TypedInt | TypedFloat) for number in numbers):
        return result
    first, *others = numbers
    dtype = literal_dtype(first)
    for other in others:
        left, right = operand_dtype(first, other), operand_dtype(other, first)
        if dtype is None or left is None or right is None:
            return result
        dtype = common_dtype(dtype, common_dtype(left, right))
    return result if dtype is None else converted(result, dtype)


def _rounded(value: float) -> float:
    return ctypes.c_float(value).value


def _wrapped(value: int, dtype: DType) -> int:
    low = value & ((1 << dtype.bits) - 1)
    return low - (1 << dtype.bits) if low > dtype.max_int else low


def _truncated_quotient(x: int, y: int) -> int:
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def _remainder(x: Any, y: Any) -> Any:
    """x - trunc(x / y) * y."""
    return math.fmod(x, y) if isinstance(x, float) else x - _truncated_quotient(x, y) * y


_OPERATORS = (*(name for name in OPERATORS if name != "common"), "pow")
_TRUNCATING = {"floordiv": _truncated_quotient, "mod": _remainder}
"""Operators that are not Python's, on plain numbers of one dtype."""

_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def plain_number(value: Any) -> Any:
    """The number without its dtype; anything else as it is."""
    if isinstance(value, TypedInt):
        return int(value)
    return float(value) if isinstance(value, TypedFloat) else value


def _promoted(name: str, a: Literal, b: Literal) -> DType | None:
    left, right = operand_dtype(a, b), operand_dtype(b, a)
    return None if left is None or right is None else promoted_dtype(name, left, right)


def _arithmetic(name: str, a: Literal, b: Literal) -> Any:
    """`a <name> b`; by Python's rules where tensors of these dtypes have no such operator."""
    dtype = None if name == "pow" else _promoted(name, a, b)
    if dtype is None:
        return typed_number(_of_python(name)(plain_number(a), plain_number(b)))
    x, y = plain_number(converted(a, dtype)), plain_number(converted(b, dtype))
    compute = _TRUNCATING.get(name) or _of_python(name)
    return converted(compute(x, y), dtype)


def _of_python(name: str) -> Callable[[Any, Any], Any]:
    return getattr(operator, {"and": "and_", "or": "or_"}.get(name, name))


def _comparison(name: str, a: Literal, b: Literal) -> Any:
    dtype = _promoted("common", a, b)
    x, y = (a, b) if dtype is None else (converted(a, dtype), converted(b, dtype))
    return getattr(operator, name)(plain_number(x), plain_number(y))


def _define(kind: type, method: str, compute: Callable[[Any, Any], Any]) -> None:
    """Give a class an operator; other types than numbers are left to Python."""

    def apply(self: Literal, other: object) -> Any:
        return compute(self, other) if isinstance(other, int | float) else NotImplemented

    setattr(kind, method, apply)


def _define_operators(kind: type) -> None:
    for name in _OPERATORS:
        _define(kind, f"__{name}__", lambda a, b, name=name: _arithmetic(name, a, b))
        _define(kind, f"__r{name}__", lambda a, b, name=name: _arithmetic(name, b, a))
    for name in _COMPARISONS:
        _define(kind, f"__{name}__", lambda a, b, name=name: _comparison(name, a, b))
    for name in ("neg", "pos", "abs", "invert"):
        _define_unary(kind, f"__{name}__", getattr(operator, name))
    # Python's messages name the class, which users do not know.
    kind.__name__ = kind.__mro__[1].__name__


def _define_unary(kind: type, method: str, compute: Callable[[Any], Any]) -> None:
    def apply(self: TypedInt | TypedFloat) -> Any:
        return converted(compute(plain_number(self)), self.dtype)

    setattr(kind, method, apply)


_define_operators(TypedInt)
_define_operators(TypedFloat)
