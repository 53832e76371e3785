"""Element-wise mathematics. Floats below 32 bits are computed in fp32 and rounded back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import language as tl
from tilewright.frontend.dtype_promotion import Literal, accumulator_dtype, compute_dtype
from tilewright.frontend.semantics import constant_arguments
from tilewright.frontend.semantics.broadcasting import broadcast_pair
from tilewright.frontend.semantics.dtype_casts import cast_value
from tilewright.frontend.semantics.literal_constants import constant, describe, dtype_of_literal
from tilewright.frontend.semantics.numeric_operators import (
    binary,
    logical,
    operands,
    quotient_rounding,
    result_dtype,
)
from tilewright.frontend.semantics.selection import cast_and_broadcast, common_dtype, shape_of_all
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import implements
from tilewright.ir import Value
from tilewright.ir.types import DType, dtype_named, element_of, u8
from tilewright.language import constexpr, tensor, type_of
from tilewright.support import errors

_FUNCTIONS = (
    "exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf", "sqrt", "sqrt_rn", "rsqrt", "floor",
    "ceil",
)  # fmt: skip


def float_argument(ctx: Context, function: str, x: object) -> Value:
    """A float tensor, or a literal as fp32 (fp64 out of its range). Errors: InvalidOperation."""
    if isinstance(x, int | float):
        # Literals are computed at run time too, so that they round as tensors do.
        number = float(x)
        return constant(ctx, number, dtype_of_literal(ctx, number))
    if isinstance(x, tensor):
        element = element_of(x.handle.type)
        if isinstance(element, DType) and element.is_float:
            if element.bits < 32:
                ctx.refuse_extension(f"{function} of {type_of(element)}")
            return x.handle
        ctx.fail(
            errors.InvalidOperation,
            f"compute {function} of {x.dtype}",
            "it is defined for floats",
            "convert it first: x.to(tl.float32)",
        )
    ctx.fail(errors.InvalidOperation, f"compute {function} of {describe(x)}", "it is no number")


def in_accumulator(ctx: Context, value: Value, compute: Callable[[Value], Value]) -> tensor:
    """`compute` applied in fp32 at least, its result rounded back to the dtype of `value`."""
    element = element_of(value.type)
    assert isinstance(element, DType)
    wide = cast_value(ctx, value, accumulator_dtype(element))
    return tensor(cast_value(ctx, compute(wide), element))


def math_function(ctx: Context, function: str, x: object) -> tensor:
    """One of `ops.MATH_FUNCTIONS` of a float."""
    value = float_argument(ctx, function, x)
    return in_accumulator(ctx, value, lambda wide: _function(ctx, function, wide))


def _function(ctx: Context, function: str, x: Value) -> Value:
    if not ctx.options.ieee_rounding or function not in ("sqrt", "rsqrt"):
        return ctx.math(function, x)
    root = ctx.math("sqrt_rn", x)
    if function == "sqrt":
        return root
    return ctx.div(1, root, "nearest")


def _register(name: str) -> None:
    @implements(getattr(tl.math, name))
    def function(ctx: Context, x: object) -> tensor:  # pyright: ignore[reportUnusedFunction]
        return math_function(ctx, name, x)


for _name in _FUNCTIONS:
    _register(_name)


@implements(tl.math.abs)
def abs_semantics(ctx: Context, x: tensor | Literal) -> Any:
    if not isinstance(x, tensor):
        return constexpr(abs(x))
    element = element_of(x.handle.type)
    if not isinstance(element, DType):
        ctx.fail(errors.InvalidOperation, "compute abs of a pointer", "it is not a number")
    # An unsigned number is its own absolute value.
    if not element.is_float and not element.is_signed:
        return x
    if element.is_fp8 and element.specials != "fnuz":
        bits = ctx.bitcast(x.handle, u8)
        size = ctx.bit_and(bits, 0x7F)
        return tensor(ctx.bitcast(size, x.handle.type))
    # The NaN of the other fp8 is the sign bit alone: abs runs in fp32, and converts without loss.
    value = cast_value(ctx, x.handle, compute_dtype(element))
    return tensor(cast_value(ctx, ctx.abs(value), element))


@implements(tl.math.sigmoid)
def sigmoid(ctx: Context, x: object) -> tensor:
    def compute(wide: Value) -> Value:
        one = constant(ctx, 1, wide.type)
        # exp(-x) may overflow to infinity, for which 1 / (1 + inf) is the right limit 0.
        decay = ctx.math("exp", ctx.neg(wide))
        # The divisor is 1 at least: a fast reciprocal takes only subnormal results for 0.
        rounding = "nearest" if ctx.options.ieee_rounding else "fast"
        return ctx.div(one, ctx.add(one, decay), rounding)

    return in_accumulator(ctx, float_argument(ctx, "sigmoid", x), compute)


@implements(tl.math.fma)
def fma(ctx: Context, x: object, y: object, z: object) -> tensor:
    dtype = common_dtype(ctx, "fma", (x, y, z))
    if not dtype.is_float:
        ctx.fail(
            errors.InvalidOperation,
            f"compute fma of {type_of(dtype)}",
            "it is defined for floats",
            "integers need no fused operation: write x * y + z",
        )
    shape = shape_of_all(ctx, "fma", (x, y, z))
    # In the dtype itself, unlike `exp` and others: a fused fp16 operation rounds once.
    a, b, c = (cast_and_broadcast(ctx, v, compute_dtype(dtype), shape) for v in (x, y, z))
    return tensor(cast_value(ctx, ctx.fma(a, b, c), dtype))


def quotient(ctx: Context, function: str, x: object, y: object, rounding: str) -> tensor:
    """x / y of floats; 16-bit operands give fp32. rounding: of `DivOp`."""
    for operand in (x, y):
        if isinstance(operand, tensor):
            # Only for its error: integers would be divided as floats.
            float_argument(ctx, function, operand)
    dtype = result_dtype(ctx, "truediv", x, y)
    left, right = operands(ctx, "truediv", x, y, dtype)
    return tensor(ctx.div(left, right, rounding))


@implements(tl.math.fdiv)
def fdiv(
    ctx: Context, x: object, y: object, ieee_rounding: object = False, approx: object = False
) -> tensor:
    is_precise = constant_arguments.flag(ctx, "fdiv", "ieee_rounding", ieee_rounding)
    is_fast = constant_arguments.flag(ctx, "fdiv", "approx", approx)
    rounding = "fast" if is_fast else quotient_rounding(ctx)
    return quotient(ctx, "fdiv", x, y, "nearest" if is_precise else rounding)


@implements(tl.math.div_rn)
def div_rn(ctx: Context, x: object, y: object) -> tensor:
    return quotient(ctx, "div_rn", x, y, "nearest")


@implements(tl.math.umulhi)
def umulhi(ctx: Context, x: object, y: object) -> tensor:
    dtype = result_dtype(ctx, "and", x, y, "take the high product of")
    if dtype.bits < 32:
        ctx.fail(
            errors.InvalidOperation,
            f"compute umulhi of {describe(x)} and {describe(y)}",
            "it takes integers of 32 or 64 bits",
        )
    left, right = operands(ctx, "multiply", x, y, dtype)
    bits = [cast_value(ctx, value, dtype_named(f"u{dtype.bits}")) for value in (left, right)]
    # The high word is that of the unsigned product, whatever the signs of the operands.
    high = ctx.mul_high(*broadcast_pair(ctx, "multiply", *bits))
    return tensor(cast_value(ctx, high, dtype))


@implements(tl.math.add)
def add(ctx: Context, x: object, y: object, sanitize_overflow: object = True) -> Any:
    return binary(ctx, "add", x, y, constant_arguments.flag(ctx, "add", "flag", sanitize_overflow))


@implements(tl.math.sub)
def sub(ctx: Context, x: object, y: object, sanitize_overflow: object = True) -> Any:
    return binary(ctx, "sub", x, y, constant_arguments.flag(ctx, "sub", "flag", sanitize_overflow))


@implements(tl.math.mul)
def mul(ctx: Context, x: object, y: object, sanitize_overflow: object = True) -> Any:
    return binary(ctx, "mul", x, y, constant_arguments.flag(ctx, "mul", "flag", sanitize_overflow))


@implements(tl.math.logical_and)
def logical_and(ctx: Context, x: object, y: object) -> Any:
    return logical(ctx, "and", x, y)


@implements(tl.math.logical_or)
def logical_or(ctx: Context, x: object, y: object) -> Any:
    return logical(ctx, "or", x, y)
