"""Operators on numbers and pointers: promotion, weak literals, broadcasting, then one op.

Operands are tensors or compile-time values. Two compile-time values fold in Python and stay
compile-time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn, cast

from tilewright.frontend.dtype_promotion import (
    compute_dtype,
    fits,
    is_weak,
    promoted_dtype,
    typed_as,
)
from tilewright.frontend.semantics.broadcasting import broadcast_pair
from tilewright.frontend.semantics.dtype_casts import cast_value
from tilewright.frontend.semantics.literal_constants import (
    constant,
    describe,
    dtype_of_literal,
    is_pointer,
    materialize,
)
from tilewright.frontend.semantics.overflow_checks import check_overflow
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.typed_numbers import plain_number
from tilewright.ir import Value
from tilewright.ir.types import (
    DType,
    PointerType,
    dtype_named,
    dtype_of,
    element_of,
    i1,
    i64,
)
from tilewright.language import constexpr, tensor, type_of, unwrap
from tilewright.ops import (
    AddOp,
    AndOp,
    BinaryOp,
    DivOp,
    MulOp,
    OffsetOp,
    OrOp,
    RemOp,
    ShlOp,
    ShrOp,
    SubOp,
    XorOp,
)
from tilewright.support import errors
from tilewright.support.asynchronous_exceptions import synchronous

VERBS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "divide (//)", "mod": "take the remainder of", "and": "combine by &",
    "or": "combine by |", "xor": "combine by ^", "lshift": "shift (<<)", "rshift": "shift (>>)",
    "pow": "raise to a power", "eq": "compare", "ne": "compare", "lt": "compare", "le": "compare",
    "gt": "compare", "ge": "compare", "common": "combine",
}  # fmt: skip
"""The verb for each operator in messages: "cannot <verb> a and b"."""

_OPS: dict[str, Callable[[Value, Value], BinaryOp]] = {
    "add": AddOp, "sub": SubOp, "mul": MulOp, "truediv": DivOp, "floordiv": DivOp, "mod": RemOp,
    "and": AndOp, "or": OrOp, "xor": XorOp, "lshift": ShlOp, "rshift": ShrOp,
}  # fmt: skip

_FOLDS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, {"and": "and_", "or": "or_"}.get(name, name))
    for name in VERBS
    if name != "common"
}

_BOOL_OPS: dict[str, Callable[[Value, Value], BinaryOp]] = {
    "add": XorOp,
    "sub": XorOp,
    "mul": AndOp,
}
"""Arithmetic modulo 2: int1 wraps."""


def binary(ctx: Context, name: str, lhs: object, rhs: object, sanitize: bool = True) -> Any:
    """`lhs <name> rhs`; two compile-time values give a constexpr.

    name: add, sub, mul, truediv, floordiv, mod, pow, and, or, xor, lshift, rshift.
    sanitize: check integers for overflow if the options request it.
    Errors: DTypeMismatch, ShapeMismatch, LiteralOutOfRange, InvalidOperation.
    """
    lhs, rhs = unwrap(lhs), unwrap(rhs)
    if not isinstance(lhs, tensor) and not isinstance(rhs, tensor):
        return _fold(ctx, name, lhs, rhs)
    if is_pointer(lhs) or is_pointer(rhs):
        return _pointer_arithmetic(ctx, name, lhs, rhs)
    if name == "pow":
        ctx.fail(
            errors.InvalidOperation,
            "raise a tensor to a power",
            "'**' works on compile-time numbers only",
            "multiply, or use tl.exp2(y * tl.log2(x))",
        )
    result = result_dtype(ctx, name, lhs, rhs)
    x, y = operands(ctx, name, lhs, rhs, _computed_in(name, lhs, compute_dtype(result)))
    # Both options are needed, as in Triton: checks cost an assertion per operation.
    if sanitize and ctx.options.debug and ctx.options.sanitize_overflow:
        check_overflow(ctx, name, x, y)
    return tensor(cast_value(ctx, _apply(ctx, name, x, y), result))


def _computed_in(name: str, lhs: object, dtype: DType) -> DType:
    """The dtype of an operation whose result is converted: a right shift of a signed tensor copies
    the sign, as in Triton, also where the result is unsigned."""
    if name != "rshift" or not isinstance(lhs, tensor) or not dtype_of(lhs.handle.type).is_signed:
        return dtype
    return dtype_named(f"i{dtype.bits}")


def compare(ctx: Context, name: str, lhs: object, rhs: object) -> Any:
    """`lhs <name> rhs` as int1, name out of eq, ne, lt, le, gt, ge; compile-time values fold."""
    lhs, rhs = unwrap(lhs), unwrap(rhs)
    if not isinstance(lhs, tensor) and not isinstance(rhs, tensor):
        return _fold(ctx, name, lhs, rhs)
    if is_pointer(lhs) and is_pointer(rhs):
        x, y = broadcast_pair(ctx, "compare", lhs.handle, rhs.handle)
        # Addresses of different element types are not comparable, as in C.
        if x.type is not y.type:
            _mismatch(ctx, name, lhs, rhs)
    else:
        x, y = common_operands(ctx, name, lhs, rhs)
    return tensor(ctx.compare(x, y, name))


def common_operands(ctx: Context, verb: str, lhs: object, rhs: object) -> tuple[Value, Value]:
    """Both operands in their common dtype and shape (fp8: in fp32)."""
    common = result_dtype(ctx, "common", lhs, rhs, verb)
    return operands(ctx, verb, lhs, rhs, compute_dtype(common))


def result_dtype(ctx: Context, name: str, lhs: object, rhs: object, verb: str = "") -> DType:
    """The dtype of an operator's result; `name` is one of `dtype_promotion.OPERATORS`.

    Errors: DTypeMismatch, LiteralOutOfRange, InvalidOperation.
    """
    left, right = _operand_dtype(ctx, lhs, rhs), _operand_dtype(ctx, rhs, lhs)
    dtype = promoted_dtype(name, left, right)
    if dtype is not None:
        return dtype
    if typed_as(lhs) is None and typed_as(rhs) is None:
        _mismatch(ctx, verb or name, lhs, rhs)
    # As a literal the number has the tensor's dtype: fp8 * n, uint32 // n.
    ctx.refuse_extension(f"a variable of {type_of(right if typed_as(rhs) else left)} here")
    return result_dtype(ctx, name, plain_number(lhs), plain_number(rhs), verb)


def operands(ctx: Context, verb: str, lhs: Any, rhs: Any, dtype: DType) -> tuple[Value, Value]:
    """Both operands converted to `dtype` and broadcast to their common shape."""
    if isinstance(lhs, tensor):
        x = cast_value(ctx, lhs.handle, dtype)
        if isinstance(rhs, tensor):
            y = cast_value(ctx, rhs.handle, dtype)
            # Types are interned, so identity decides whether anything has to be broadcast.
            return (x, y) if x.type is y.type else broadcast_pair(ctx, VERBS.get(verb, verb), x, y)
        # A literal is made in the shape of the tensor at once, without a broadcast.
        return x, constant(ctx, rhs, x.type)
    if isinstance(rhs, tensor):
        y = cast_value(ctx, rhs.handle, dtype)
        return constant(ctx, lhs, y.type), y
    return constant(ctx, lhs, dtype), constant(ctx, rhs, dtype)


def negate(ctx: Context, x: object) -> Any:
    """`-x`; int1 is unchanged, as modulo 2."""
    x = unwrap(x)
    if not isinstance(x, tensor):
        return _fold_unary(ctx, "neg", x)
    element = element_of(x.handle.type)
    if element is i1:
        return x
    if not isinstance(element, DType):
        ctx.fail(errors.InvalidOperation, "negate a pointer", "it is not a number")
    value = cast_value(ctx, x.handle, compute_dtype(element))
    return tensor(cast_value(ctx, ctx.neg(value), element))


def invert(ctx: Context, x: object) -> Any:
    """`~x` of integers: all bits flipped."""
    x = unwrap(x)
    if not isinstance(x, tensor):
        return _fold_unary(ctx, "invert", x)
    element = element_of(x.handle.type)
    if not isinstance(element, DType) or element.is_float:
        ctx.fail(
            errors.InvalidOperation, f"invert (~) {x.type}", "only integers and int1 have bits"
        )
    # XOR with all ones; for an unsigned type -1 would be out of range.
    ones = -1 if element.is_signed else element.max_int
    return tensor(ctx.bit_xor(x.handle, constant(ctx, ones, x.handle.type)))


def as_condition(ctx: Context, x: object) -> Value:
    """A tensor or literal as int1: `x != 0`, in its shape."""
    x = unwrap(x)
    if not isinstance(x, tensor):
        return constant(ctx, _truth_of_literal(ctx, x), i1)
    value = x.handle
    element = element_of(value.type)
    if isinstance(element, PointerType):
        ctx.fail(errors.InvalidOperation, "use a pointer as a condition", "it is not a number")
    return cast_value(ctx, value, i1)


def logical_not(ctx: Context, x: object) -> Any:
    """`not x` as int1, element by element."""
    x = unwrap(x)
    if not isinstance(x, tensor):
        return constexpr(not x)
    condition = as_condition(ctx, x)
    # int1 has no complement op of its own.
    return tensor(ctx.bit_xor(condition, True))


def logical(ctx: Context, name: str, lhs: object, rhs: object) -> Any:
    """`lhs and rhs`, `lhs or rhs` as int1, element by element; both sides are evaluated."""
    lhs, rhs = unwrap(lhs), unwrap(rhs)
    if not isinstance(lhs, tensor) and not isinstance(rhs, tensor):
        return constexpr((lhs and rhs) if name == "and" else (lhs or rhs))
    x, y = broadcast_pair(ctx, "combine", as_condition(ctx, lhs), as_condition(ctx, rhs))
    return tensor(ctx.bit_and(x, y) if name == "and" else ctx.bit_or(x, y))


def unary(ctx: Context, name: str, x: object) -> Any:
    """`-x`, `+x`, `~x`, `not x`: name out of neg, pos, invert, not."""
    if name == "pos":
        return x
    return {"neg": negate, "invert": invert, "not": logical_not}[name](ctx, x)


def _apply(ctx: Context, name: str, x: Value, y: Value) -> Value:
    """Emit the op of an operator on operands of one type."""
    if element_of(x.type) is i1 and name not in ("and", "or", "xor"):
        return _apply_to_bools(ctx, name, x, y)
    if name == "truediv":
        return ctx.div(x, y, quotient_rounding(ctx))
    return ctx.value(_OPS[name](x, y))


def quotient_rounding(ctx: Context) -> str:
    """The rounding of `/`, as in `DivOp`."""
    return "nearest" if ctx.options.ieee_rounding else "by_use"


def _apply_to_bools(ctx: Context, name: str, x: Value, y: Value) -> Value:
    """int1 arithmetic; dividing by False and shifting by True are undefined."""
    if name in _BOOL_OPS:
        return ctx.value(_BOOL_OPS[name](x, y))
    # x % True is 0 for int1; the other operators that reach this do not change x.
    return constant(ctx, False, x.type) if name == "mod" else x


def _operand_dtype(ctx: Context, operand: object, other: object) -> DType:
    """The dtype of an operand in an operation with another."""
    if isinstance(operand, tensor):
        element = element_of(operand.handle.type)
        if isinstance(element, PointerType):
            ctx.fail(
                errors.InvalidOperation, f"combine {operand.type} with numbers", "it is a pointer"
            )
        return element
    if not isinstance(operand, int | float):
        ctx.fail(
            errors.InvalidOperation, f"combine {describe(operand)} with a tensor", "it is no number"
        )
    typed = typed_as(operand)
    if typed is not None:
        return typed
    if isinstance(other, tensor):
        partner = element_of(other.handle.type)
        # Only literals of no higher kind adopt the dtype; 2.5 with an int tensor stays a float.
        if isinstance(partner, DType) and is_weak(operand, partner):
            if not fits(operand, partner):
                ctx.fail(errors.LiteralOutOfRange, operand, type_of(partner))
            return partner
    return dtype_of_literal(ctx, operand)


def _pointer_arithmetic(ctx: Context, name: str, lhs: object, rhs: object) -> tensor:
    """pointer + integer, integer + pointer, pointer - integer, in elements."""
    # As in C, integer + pointer is defined, integer - pointer is not.
    swapped = not is_pointer(lhs)
    base, offset = cast("tuple[tensor, object]", (rhs, lhs) if swapped else (lhs, rhs))
    if is_pointer(offset) or name not in ("add", "sub") or (swapped and name == "sub"):
        _pointer_mismatch(ctx, name, lhs, rhs)
    if not isinstance(offset, tensor):
        if isinstance(offset, bool) or not isinstance(offset, int):
            # bool is an int in Python; as an offset it is a mistake.
            _pointer_mismatch(ctx, name, lhs, rhs)
        # Folding the sign into the literal saves the negation at run time.
        offset = materialize(ctx, -offset if name == "sub" else offset)
        name = "add"
    if dtype_of(offset.handle.type).is_float:
        _pointer_mismatch(ctx, name, lhs, rhs)
    distance = offset.handle
    if name == "sub":
        if not dtype_of(distance.type).is_signed:
            # An unsigned distance has no negative; every 32-bit one fits i64.
            distance = cast_value(ctx, distance, i64)
        distance = ctx.neg(distance)
    pointer, distance = broadcast_pair(ctx, VERBS[name], base.handle, distance)
    return ctx.tensor(OffsetOp(pointer, distance))


def _pointer_mismatch(ctx: Context, name: str, lhs: object, rhs: object) -> NoReturn:
    ctx.fail(
        errors.InvalidOperation,
        f"{VERBS[name]} {describe(lhs)} and {describe(rhs)}",
        "pointers take integer offsets only: pointer + integer, pointer - integer",
        "",
        (describe(lhs), describe(rhs)),
    )


def _mismatch(ctx: Context, name: str, lhs: object, rhs: object) -> NoReturn:
    notes: tuple[str, ...] = ()
    if name in ("truediv", "floordiv", "mod"):
        notes = ("integers divide only if both are signed or both unsigned; '//' takes integers",)
    elif name in ("and", "or", "xor", "lshift", "rshift"):
        notes = ("bitwise operators take integers",)
    ctx.fail(
        errors.DTypeMismatch, VERBS.get(name, name), _dtype_name(lhs), _dtype_name(rhs), notes=notes
    )


def _dtype_name(operand: object) -> str:
    if isinstance(operand, tensor):
        return str(type_of(element_of(operand.handle.type)))
    return describe(operand)


def _fold(ctx: Context, name: str, lhs: object, rhs: object) -> Any:
    try:
        result: object = _FOLDS[name](lhs, rhs)
    except synchronous(TypeError, ValueError, ArithmeticError) as error:
        what = f"{VERBS[name]} {describe(lhs)} and {describe(rhs)}"
        ctx.fail(errors.InvalidOperation, what, str(error))
    # Sequences, from + and * of Python tuples, stay values that can be unpacked.
    return cast("Any", result) if isinstance(result, tuple | list) else constexpr(result)


def _fold_unary(ctx: Context, name: str, x: object) -> Any:
    try:
        # Unary operators come from constexpr itself, which implements Python's protocol.
        return getattr(constexpr(x), f"__{name}__")()
    except TypeError as error:
        ctx.fail(errors.InvalidOperation, f"apply {name} to {describe(x)}", str(error))


def _truth_of_literal(ctx: Context, x: object) -> bool:
    # None and strings have a truth in Python, and kernels test them: `if BIAS is None`.
    if x is not None and not isinstance(x, int | float | str):
        ctx.fail(errors.InvalidOperation, f"use {describe(x)} as a condition", "it is no number")
    return bool(x)
