"""Operators on integers as C defines them: promotions first, then the usual conversions.

    char a, b;   a + b     ->   (int) a + (int) b                  100 + 100 is 200
    int i; unsigned u;     i < u   ->   (unsigned) i < u
    char c; long n;        c << n  ->   (int) c << n               the left side decides

Literals and compile-time results of them also have a type (`TypedInteger`), so that `1u - 2` is
4294967295. Operators with floats or pointers are those of the semantics that all front ends share,
where a literal takes the type of the other operand.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import copysign, fmod, inf, isnan, nan
from typing import cast

from tilewright import language as tl
from tilewright.frontend import semantics
from tilewright.frontend.c import syntax
from tilewright.frontend.c.c_types import c_spelling
from tilewright.frontend.c.lower.function_frame import FunctionFrame, TypedInteger, call, null
from tilewright.frontend.dtype_promotion import common_dtype, literal_dtype, promoted_dtype
from tilewright.frontend.semantics.broadcasting import common_shape
from tilewright.ir.types import (
    DType,
    PointerType,
    Type,
    element_of,
    i32,
    shape_of,
    with_shape,
)
from tilewright.language import constexpr, tensor, type_of, unwrap
from tilewright.support import errors

_BINARY = {
    "+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor", "<<": "lshift",
    ">>": "rshift", "/": "floordiv", "%": "mod",
}  # fmt: skip
"""The operators of C by the names of the semantics, for integers."""

# `/` of floats is the true quotient; for integers C truncates, as floordiv of the IR does.
_OF_FLOATS = {**_BINARY, "/": "truediv"}
_COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_UNARY = {"-": "neg", "+": "pos", "~": "invert"}

_FOLDS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b, "==": operator.eq,
    "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def integer_type(value: object) -> DType | None:
    """The integer type, or bool, of a value; None for floats, pointers and non-numbers."""
    if isinstance(value, tensor):
        element = element_of(value.handle.type)
        return element if isinstance(element, DType) and not element.is_float else None
    if isinstance(value, TypedInteger):
        return value.dtype
    number = unwrap(value)
    return literal_dtype(number) if isinstance(number, int) else None


def integer_types(left: object, right: object) -> tuple[DType, DType] | None:
    """The integer types of both sides; None unless both are integers."""
    a, b = integer_type(left), integer_type(right)
    return None if a is None or b is None else (a, b)


def is_number(value: object) -> bool:
    """Whether a value is an integer, a bool or a float, in every element of a tile."""
    if isinstance(value, tensor):
        return isinstance(element_of(value.handle.type), DType)
    return isinstance(unwrap(value), int | float)


def promoted(dtype: DType) -> DType:
    """The promoted type of an integer: `int` for all shorter types."""
    # C17 6.3.1.1: also for unsigned char and short, as int holds all their values.
    return i32 if dtype.bits < i32.bits else dtype


def common_type(a: DType, b: DType) -> DType:
    """The type in which two integers are combined."""
    # After promotion, the rules of the language are those of C17 6.3.1.8 for these types.
    return common_dtype(promoted(a), promoted(b))


def as_type(frame: FunctionFrame, value: object, dtype: DType) -> tensor | TypedInteger:
    """An integer in another integer type."""
    if isinstance(value, tensor):
        return semantics.cast_to(frame.ctx, value, type_of(dtype))
    return TypedInteger(cast("int", unwrap(value)), dtype)


def usual_conversions(
    frame: FunctionFrame, node: syntax.Node, left: object, right: object
) -> tuple[object, object]:
    """Convert two integers to their common type; other values are unchanged."""
    types = integer_types(left, right)
    if types is None:
        return left, right
    frame.at(node)
    both = common_type(*types)
    return as_type(frame, left, both), as_type(frame, right, both)


def promote(frame: FunctionFrame, node: syntax.Node, value: object) -> object:
    """Promote an integer shorter than `int`; other values are unchanged."""
    dtype = integer_type(value)
    if dtype is None or promoted(dtype) is dtype:
        return value
    frame.at(node)
    return as_type(frame, value, promoted(dtype))


def joined_type(frame: FunctionFrame, left: tensor, right: tensor) -> Type | None:
    """The common type of two run-time values, including shapes; None if there is none."""
    shape = common_shape(frame.ctx, "select", *(shape_of(v.handle.type) for v in (left, right)))
    types = integer_types(left, right)
    if types is not None:
        return with_shape(common_type(*types), shape)
    a, b = (element_of(v.handle.type) for v in (left, right))
    if a is b:
        return with_shape(a, shape)
    if isinstance(a, PointerType) or isinstance(b, PointerType):
        return None
    both = promoted_dtype("common", a, b)
    return None if both is None else with_shape(both, shape)


# --- binary operators -----------------------------------------------------------------------------


def apply_binary(
    frame: FunctionFrame, node: syntax.Expression, symbol: str, left: object, right: object
) -> object:
    """`left <symbol> right` for any operator but `&&` and `||`."""
    if symbol == "@":
        return call(frame, node, tl.dot, left, right)
    # Not the usual conversions: a long amount does not widen the left side (C17 6.5.7).
    if symbol in ("<<", ">>"):
        left, right = _shift_operands(frame, node, left, right)
    else:
        left, right = usual_conversions(frame, node, left, right)
    ctx = frame.at(node)
    if not isinstance(left, tensor) and not isinstance(right, tensor):
        return _folded(frame, node, symbol, left, right)
    if symbol in _COMPARISONS:
        left, right = _with_null_pointer(frame, node, left, right)
        return semantics.compare(ctx, _COMPARISONS[symbol], left, right)
    if integer_types(left, right) is not None:
        return semantics.binary(ctx, _BINARY[symbol], left, right)
    # With a float or a pointer small integers are promoted as well.
    left, right = promote(frame, node, left), promote(frame, node, right)
    return semantics.binary(ctx, _OF_FLOATS[symbol], left, right)


def _shift_operands(
    frame: FunctionFrame, node: syntax.Node, left: object, right: object
) -> tuple[object, object]:
    """Both sides in the promoted type of the left one. Errors: InvalidOperation."""
    types = integer_types(left, right)
    if types is None:
        return left, right
    frame.at(node)
    dtype = promoted(types[0])
    if not isinstance(right, tensor):
        amount = cast("int", unwrap(right))
        # C leaves such shifts undefined; constants are rejected.
        if not 0 <= amount < dtype.bits:
            operation = f"shift {c_spelling(dtype)} by {amount}"
            reason = f"the amount must be from 0 to {dtype.bits - 1}"
            instead = "make the left side long: 1l << n" if 0 <= amount < 64 else ""
            frame.fail(node, errors.InvalidOperation(operation, reason, instead))
    return as_type(frame, left, dtype), as_type(frame, right, dtype)


def _with_null_pointer(
    frame: FunctionFrame, node: syntax.Expression, left: object, right: object
) -> tuple[object, object]:
    """The operands of a comparison; the literal 0 compared with a pointer is a null pointer."""
    sides = [left, right]
    for index, (side, other) in enumerate(((left, right), (right, left))):
        if isinstance(other, tensor) and not isinstance(side, tensor) and unwrap(side) == 0:
            type_ = other.handle.type
            # `p == 0` and `p != NULL`: C's null pointer constant.
            if isinstance(element_of(type_), PointerType):
                sides[index] = tensor(null(frame.at(node), type_))
    return sides[0], sides[1]


# --- constants ------------------------------------------------------------------------------------


def _folded(
    frame: FunctionFrame, node: syntax.Expression, symbol: str, left: object, right: object
) -> object:
    """Fold an operator on two compile-time values, which have one type if they are integers."""
    dtype = integer_type(left)
    a, b = unwrap(left), unwrap(right)
    if dtype is None or integer_type(right) is None:
        if symbol in ("/", "%") and all(isinstance(side, int | float) for side in (a, b)):
            return constexpr(_divided(symbol, float(a), float(b)))
        name = _COMPARISONS.get(symbol)
        if name is not None:
            return semantics.compare(frame.ctx, name, a, b)
        return semantics.binary(frame.ctx, _OF_FLOATS[symbol], a, b)
    if symbol in ("/", "%"):
        return TypedInteger(_fold_division(frame, node, symbol, a, b), dtype)
    result = _FOLDS[symbol](a, b)
    return constexpr(result) if symbol in _COMPARISONS else TypedInteger(result, dtype)


def _fold_division(
    frame: FunctionFrame, node: syntax.Expression, symbol: str, a: int, b: int
) -> int:
    """C's quotient and remainder, towards zero."""
    if b == 0:
        frame.fail(
            node, errors.InvalidOperation(f"compute {a} {symbol} 0", "it is a division by 0")
        )
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient if symbol == "/" else a - quotient * b


def _divided(symbol: str, a: float, b: float) -> float:
    """Quotient and remainder of floats by IEEE 754."""
    if symbol == "%":
        return nan if b == 0 or abs(a) == inf else fmod(a, b)
    if b == 0:
        # Python would raise for 1.0 / 0; C's floats give infinity or a NaN.
        return nan if a == 0 or isnan(a) else copysign(inf, a) * copysign(1.0, b)
    return a / b


# --- unary operators ------------------------------------------------------------------------------


def apply_unary(
    frame: FunctionFrame, node: syntax.Expression, symbol: str, value: object
) -> object:
    """`-x`, `+x`, `~x`, `!x`."""
    if symbol == "!":
        # `!x` is 0 or 1 whatever x is: no promotion.
        return semantics.unary(frame.at(node), "not", value)
    value = promote(frame, node, value)
    dtype = integer_type(value)
    if isinstance(value, tensor) or dtype is None:
        return semantics.unary(frame.at(node), _UNARY[symbol], value)
    number = unwrap(value)
    return TypedInteger({"-": -number, "+": number, "~": ~number}[symbol], dtype)
