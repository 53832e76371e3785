"""Result dtypes of operators: the promotion rules of the language.

A pair of dtypes without a result is an error. A Python literal, unlike a number that a variable
holds, is weak: if its kind (bool < int < float) is not above the tensor's, it takes the tensor's
dtype; otherwise it counts as a tensor of `literal_dtype`.
The rules are those of Triton, with the choices of docs/adr/0010-promotion-and-semantics.md.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.ir.types import (
    DType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i32,
    i64,
    u32,
    u64,
)

Literal = int | float | bool
Rule = Callable[[DType, DType], DType | None]

_DOMINANT_FLOATS = (f64, f32, f16)
"""The result is the first of these that is an operand."""

_KINDS = {"bool": 0, "int": 1, "uint": 1, "float": 2}

_SMALLEST_NORMAL_F32 = 2.0**-126
_LARGEST_F32 = (2 - 2.0**-23) * 2.0**127
_LITERAL_INTEGERS = (i32, u32, i64, u64)
"""An integer literal takes the first of these that holds it."""


def _promote_integers(a: DType, b: DType) -> DType:
    """Same signedness: the wider. Mixed: the unsigned unless it is narrower. int1 is unsigned."""
    if a.is_signed == b.is_signed:
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.is_signed else (b, a)
    return unsigned if unsigned.bits >= signed.bits else signed


def _promote(a: DType, b: DType) -> DType | None:
    """Result of `+ - *`."""
    for dominant in _DOMINANT_FLOATS:
        if dominant in (a, b):
            return dominant
    if bf16 in (a, b):
        # Triton's rule: bf16 with fp16 was f16 above; with an integer or fp8 it is f32.
        return bf16 if a is b else f32
    if a.is_fp8 and b.is_fp8:
        # Two fp8 formats promote to f16, which holds every value of both.
        return a if a is b else f16
    if a.is_float or b.is_float:
        # The remaining case of floats is fp8 with an integer, for which there is no rule.
        return None
    return _promote_integers(a, b)


def _promote_quotient(a: DType, b: DType) -> DType | None:
    """As `_promote`, but floats have 32 bits or more, and integers must agree in signedness."""
    both_integers = not a.is_float and not b.is_float
    if both_integers and a.is_signed != b.is_signed:
        # C would convert to unsigned and divide, with surprising results for negative operands.
        return None
    result = _promote(a, b)
    # Quotients of 16-bit floats are computed and kept in fp32, as in Triton.
    return f32 if result is not None and result.is_float and result.bits < 32 else result


def _promote_true_quotient(a: DType, b: DType) -> DType | None:
    """As `_promote_quotient`; f32 for integers."""
    result = _promote_quotient(a, b)
    return f32 if result is not None and not result.is_float else result


def _of_integers(rule: Rule) -> Rule:
    return lambda a, b: None if a.is_float or b.is_float else rule(a, b)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("add", "sub", "mul", "common"), _promote),
    "truediv": _promote_true_quotient,
    "floordiv": _of_integers(_promote_quotient),
    "mod": _promote_quotient,
    **dict.fromkeys(("and", "or", "xor", "lshift", "rshift"), _of_integers(_promote)),
}
OPERATORS = tuple(_RULES)


def promoted_dtype(operator: str, a: DType, b: DType) -> DType | None:
    """The dtype of `a operator b` for two tensors; None if there is no rule. operator: one of
    OPERATORS, where "common" is that of comparisons, `where`, `maximum` ..."""
    return _RULES[operator](a, b)


def common_dtype(a: DType, b: DType) -> DType:
    """The dtype in which two integers, or two literals, are computed."""
    found = _promote(a, b)
    assert found is not None
    return found


def typed_as(value: object) -> DType | None:
    """The dtype of a typed number (`typed_numbers`); None for a literal."""
    dtype = getattr(value, "dtype", None)
    # NumPy scalars are Python numbers with a dtype of another kind.
    return dtype if isinstance(dtype, DType) else None


def literal_dtype(value: Literal) -> DType | None:
    """The dtype of a literal by itself; None for an integer beyond 64 bits.

    bool: i1. int: the first of i32, u32, i64, u64 that holds it. float: f32, unless it is finite,
    not zero, and outside the normal range of f32. A typed number: its own.
    """
    typed = typed_as(value)
    if typed is not None:
        return typed
    if isinstance(value, bool):
        return i1
    if isinstance(value, int):
        return next((t for t in _LITERAL_INTEGERS if fits(value, t)), None)
    size = abs(value)
    special = value != value or size in (0.0, float("inf"))
    return f32 if special or _SMALLEST_NORMAL_F32 <= size <= _LARGEST_F32 else f64


def fits(value: Literal, dtype: DType) -> bool:
    """Whether an integer literal is in the range of an integer dtype; floats take every literal."""
    return not dtype.is_integer or dtype.min_int <= value <= dtype.max_int


def is_weak(value: Literal, dtype: DType) -> bool:
    """Whether a literal takes the dtype of the other operand, a tensor."""
    kind = 0 if isinstance(value, bool) else 1 if isinstance(value, int) else 2
    return kind <= _KINDS[dtype.kind]


def operand_dtype(value: Literal, other: Literal) -> DType | None:
    """The dtype of a compile-time number in an operation with one that may be typed."""
    partner = typed_as(other)
    if partner is None or typed_as(value) is not None:
        return literal_dtype(value)
    # With a typed number, a literal that does not fit is wider, as with another literal.
    weak = is_weak(value, partner) and fits(value, partner)
    return partner if weak else literal_dtype(value)


def sum_dtype(dtype: DType) -> DType:
    """Result dtype of `sum`, `cumsum` and `cumprod`: integers widen to 32 bits, signedness kept."""
    if dtype.is_float or dtype.bits >= 32:
        return dtype
    return i32 if dtype.is_signed else u32


def extremum_dtype(dtype: DType) -> DType:
    """Result dtype of `max` and `min`: integers below 32 bits widen to i32, floats to f32."""
    if dtype.bits >= 32:
        return dtype
    return f32 if dtype.is_float else i32


def compute_dtype(dtype: DType) -> DType:
    """The dtype of arithmetic on `dtype`: fp8 has no arithmetic of its own."""
    return f32 if dtype.is_fp8 else dtype


def accumulator_dtype(dtype: DType) -> DType:
    """The dtype of long sums of `dtype`, and of functions such as exp."""
    return f32 if dtype.is_float and dtype.bits < 32 else dtype
