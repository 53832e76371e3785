"""Hints to the compiler, assertions and prints, at compile time and at run time."""

from __future__ import annotations

from typing import Any, TextIO, cast

from tilewright import language as tl
from tilewright.frontend.semantics import constant_arguments
from tilewright.frontend.semantics.broadcasting import broadcast_value
from tilewright.frontend.semantics.formula_tracing import evaluate
from tilewright.frontend.semantics.literal_constants import describe, materialize
from tilewright.frontend.semantics.numeric_operators import as_condition
from tilewright.frontend.semantics.semantic_context import Context, warn_once
from tilewright.frontend.semantics.semantics_registry import implements
from tilewright.frontend.semantics.value_attributes import truth
from tilewright.ir.types import shape_of
from tilewright.language import constexpr, tensor, unwrap
from tilewright.ops import AssertOp, AssumeOp, HintOp, PrintOp
from tilewright.support import errors


def _hint(ctx: Context, function: str, input: object, values: object, attribute: str) -> Any:
    # A hint on a compile-time number adds nothing: the value is a constant.
    if not isinstance(input, tensor):
        return constexpr(input)
    numbers = constant_arguments.integers(ctx, function, "values", values)
    # A hint on a scalar is written with one number, as in Triton.
    rank = max(1, len(shape_of(input.handle.type)))
    if len(numbers) != rank:
        expected = f"one number for each of {rank} dimensions"
        ctx.fail(errors.InvalidValue, function, "values", expected, numbers)
    if min(numbers) < 1:
        ctx.fail(errors.InvalidValue, function, "values", "positive", numbers)
    return ctx.tensor(HintOp(input.handle, **{attribute: numbers}))


@implements(tl.expect_zero)
def expect_zero(ctx: Context, x: object, mask: Any) -> tensor:
    value = tensor(materialize(ctx, x).handle)
    if ctx.options.debug:
        evaluate(ctx, lambda: tl.device_assert(value == 0, "a number is not 0", mask))
    return value


@implements(tl.multiple_of)
def multiple_of(ctx: Context, input: object, values: object) -> Any:
    return _hint(ctx, "multiple_of", input, values, "divisibility")


@implements(tl.max_contiguous)
def max_contiguous(ctx: Context, input: object, values: object) -> Any:
    return _hint(ctx, "max_contiguous", input, values, "contiguity")


@implements(tl.max_constancy)
def max_constancy(ctx: Context, input: object, values: object) -> Any:
    return _hint(ctx, "max_constancy", input, values, "constancy")


@implements(tl.assume)
def assume(ctx: Context, cond: object) -> None:
    if isinstance(cond, tensor):
        ctx.emitter.emit(AssumeOp(truth(ctx, cond)))
    elif not cond:
        ctx.fail(errors.InvalidValue, "assume", "cond", "a condition that can hold", cond)


@implements(tl.static_print)
def static_print(
    ctx: Context,
    *values: object,
    sep: str = " ",
    end: str = "\n",
    file: object = None,
    flush: object = False,
) -> None:
    # Run-time values are unknown at compile time; their type is printed.
    texts = [str(value.type) if isinstance(value, tensor) else str(value) for value in values]
    print(*texts, sep=sep, end=end, file=cast("TextIO | None", file), flush=bool(flush))


@implements(tl.static_assert)
def static_assert(ctx: Context, cond: object, msg: object = "") -> None:
    if isinstance(cond, tensor):
        ctx.fail(errors.NotConstexpr, "the condition of static_assert", cond.type)
    if not cond:
        detail = str(unwrap(msg)) or "the condition is false"
        ctx.fail(errors.CompileTimeAssertionFailure, detail)


@implements(tl.device_print)
def device_print(ctx: Context, prefix: object, *args: object, hex: object = False) -> None:
    # The backends keep the prefix as bytes of a C string.
    if not isinstance(prefix, str) or not prefix.isascii():
        expected = "a compile-time ASCII string"
        ctx.fail(errors.InvalidValue, "device_print", "prefix", expected, describe(prefix))
    for arg in args:
        _check_printed(ctx, unwrap(arg))
    values = tuple(materialize(ctx, arg).handle for arg in args)
    in_hex = constant_arguments.flag(ctx, "device_print", "hex", hex)
    ctx.emitter.emit(PrintOp(values, prefix, in_hex))


def _check_printed(ctx: Context, value: object) -> None:
    """Check that a value is a number. Errors: InvalidOperation."""
    if isinstance(value, tensor | int | float):
        return
    instead = "tl.static_print prints compile-time values, once, when the kernel is compiled"
    if isinstance(value, str):
        instead = "a print has one text, its first argument: print each value in a call of its own"
    reason = "values in a print must be numbers or tensors"
    ctx.fail(errors.InvalidOperation, f"print {describe(value)}", reason, instead)


@implements(tl.device_assert)
def device_assert(ctx: Context, cond: object, msg: object = "", mask: object = None) -> None:
    # As in Triton, device assertions exist in debug builds only.
    if not ctx.options.debug:
        # Programs written for Triton, whose assertions are silent without debug, stay silent.
        if not errors.triton_words.shown:
            hint = "set TILEWRIGHT_DEBUG=1, or pass debug=True to @jit or to the launch"
            warn_once("a device assertion has no effect without debug", ctx.loc, hint)
        return
    condition = as_condition(ctx, cond)
    where = None
    if mask is not None:
        where = as_condition(ctx, mask)
        # Either may be a scalar; it is broadcast to the shape of the other.
        shape = shape_of(condition.type) or shape_of(where.type)
        condition = broadcast_value(ctx, condition, shape, "assert with a mask")
        where = broadcast_value(ctx, where, shape, "assert with a mask")
    ctx.emitter.emit(AssertOp(condition, str(msg), where))
