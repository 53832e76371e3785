"""Calls of library functions: operands converted as declared, the body run, the result rounded.

tgamma, Operands.FP64:        operands to fp64, the body, rounded to their dtype
erfc, Operands.FLOATS:        in fp32 by the form of fp32 unless the operand is fp64
popc, Operands.INTEGERS:      integers of 32 or 64 bits, of one type
float2int_rd, (tl.float32,):  operands to given dtypes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import unwrap
from typing import Any, NamedTuple, cast

from tilewright import language as tl
from tilewright.frontend.dtype_promotion import accumulator_dtype
from tilewright.frontend.semantics.broadcasting import broadcast_value
from tilewright.frontend.semantics.dtype_casts import cast_to
from tilewright.frontend.semantics.formula_tracing import evaluate
from tilewright.frontend.semantics.literal_constants import describe, materialize
from tilewright.frontend.semantics.math_functions import float_argument, math_function, quotient
from tilewright.frontend.semantics.selection import common_dtype, shape_of_all
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import (
    Implementation,
    implements,
    register,
    signature_of,
)
from tilewright.ir.types import DType, dtype_of, f64
from tilewright.language import dtype, tensor, type_of
from tilewright.support import errors

Operands = tl.library_functions.Operands
Form = tl.library_functions.Form
LibraryFunction = tl.library_functions.LibraryFunction


class Call(NamedTuple):
    """Arguments of the body, the dtype to which its result is rounded, and the form that runs."""

    args: Sequence[Any]
    result: dtype | None = None
    form: Form | None = None


Prepare = Callable[[Context, str, tuple[object, ...]], Call]


# ---- operands ------------------------------------------------------------------------------------


def _float_dtype(ctx: Context, function: str, operands: tuple[object, ...]) -> DType:
    """The float dtype of one operand, or the common one of several. Errors: InvalidOperation."""
    if len(operands) == 1:
        return dtype_of(float_argument(ctx, function, operands[0]).type)
    # Literals adopt the dtype of a tensor; with none they count by their own dtype.
    if not any(isinstance(operand, tensor) for operand in operands):
        operands = tuple(materialize(ctx, operand) for operand in operands)
    found = common_dtype(ctx, function, operands)
    if not found.is_float:
        ctx.fail(
            errors.InvalidOperation,
            f"compute {function} of {' and '.join(describe(operand) for operand in operands)}",
            "it is defined for floats",
            "convert one of them: x.to(tl.float32)",
        )
    return found


def _converted(
    ctx: Context, function: str, operands: Sequence[object], dtypes: Sequence[dtype]
) -> list[tensor]:
    """Operands in given dtypes and in one shape."""
    values = [cast_to(ctx, x, kind) for x, kind in zip(operands, dtypes, strict=True)]
    shape = shape_of_all(ctx, function, values)
    return [tensor(broadcast_value(ctx, x.handle, shape, function)) for x in values]


def _floats(
    compute: Callable[[DType], DType], rounds: bool, ctx: Context, function: str,
    operands: tuple[object, ...],
) -> Call:  # fmt: skip
    own = _float_dtype(ctx, function, operands)
    kinds = [type_of(compute(own))] * len(operands)
    form = Form.FP32 if rounds and own is not f64 else None
    return Call(_converted(ctx, function, operands, kinds), type_of(own) if rounds else None, form)


_accumulated = partial(_floats, accumulator_dtype, True)


def _with_integer(
    of_float: slice, dtypes: Sequence[dtype], ctx: Context, function: str,
    operands: tuple[object, ...],
) -> Call:  # fmt: skip
    """A float, to whose dtype the result is rounded, and an integer."""
    own = _float_dtype(ctx, function, operands[of_float])
    return Call(_converted(ctx, function, operands, dtypes), type_of(own))


def _integers(ctx: Context, function: str, operands: tuple[object, ...]) -> Call:
    """Integers of one type, of at least 32 bits."""
    if not any(isinstance(operand, tensor) for operand in operands):
        operands = tuple(materialize(ctx, operand) for operand in operands)
    first, *rest = operands
    common = common_dtype(ctx, function, (first, *(rest or operands)))
    if common.is_float:
        ctx.fail(errors.InvalidValue, function, "x", "an integer", type_of(common))
    kind = type_of(common) if common.bits >= 32 else tl.int32
    return Call(_converted(ctx, function, operands, [kind] * len(operands)))


def _given(
    dtypes: Sequence[dtype], ctx: Context, function: str, operands: tuple[object, ...]
) -> Call:
    """Operands of given dtypes. Errors: InvalidValue for an integer tensor instead of a float."""
    for operand, kind in zip(operands, dtypes, strict=True):
        number = materialize(ctx, operand)
        if number.dtype.is_floating() != kind.is_floating():
            expected = "a float" if kind.is_floating() else "an integer"
            ctx.fail(errors.InvalidValue, function, "x", expected, number.type)
    return Call(_converted(ctx, function, operands, dtypes))


_PRODUCTS, _NARROW_PRODUCTS = 8, 64
"""Largest literal exponents that are computed by products, within 4 ulp of fp32 and within an ulp
of 16-bit floats."""


def _power(ctx: Context, function: str, operands: tuple[object, ...]) -> Call:
    """By the type of the exponent: a whole literal, a tensor of integers, or a float."""
    x, y = operands
    own = _float_dtype(ctx, function, operands)
    wide = accumulator_dtype(own)
    if not isinstance(y, tensor) and isinstance(x, tensor):
        n, most = float(cast("float", y)), _NARROW_PRODUCTS if own.bits < 32 else _PRODUCTS
        if n.is_integer() and 0 < abs(n) <= most:
            base = cast_to(ctx, x, type_of(wide))
            return Call((base, int(n)), type_of(own), Form.LITERAL_EXPONENT)
    if isinstance(y, tensor) and y.dtype.is_int() and wide is not f64:
        return Call(operands, type_of(own), Form.INTEGER_EXPONENT)
    return _accumulated(ctx, function, operands)


_PREPARE: dict[Operands, Prepare] = {
    Operands.FLOATS: _accumulated,
    Operands.FP64: partial(_floats, lambda own: f64, True),
    Operands.FLOATS_UNROUNDED: partial(_floats, accumulator_dtype, False),
    Operands.FP64_UNROUNDED: partial(_floats, lambda own: f64, False),
    Operands.COMMON_DTYPE: partial(_floats, lambda own: own, False),
    Operands.FP64_AND_INTEGER: partial(_with_integer, slice(0, 1), (tl.float64, tl.int32)),
    Operands.INTEGER_AND_FP64: partial(_with_integer, slice(1, 2), (tl.int32, tl.float64)),
    Operands.INTEGERS: _integers,
    Operands.POWER: _power,
}


# ---- calls ---------------------------------------------------------------------------------------


def implement(stub: Callable[..., Any]) -> Implementation:
    """Register the implementation of a library function."""
    declared = tl.library_functions.LIBRARY[stub]
    name, signature = tl.STUBS[stub], signature_of(unwrap(declared.body))

    def function(ctx: Context, *operands: object, **named: object) -> tensor:
        operands += tuple(named[name] for name in signature.names if name in named)
        if declared.op is not None:
            return math_function(ctx, declared.op, operands[0])
        return _called(ctx, name, declared, operands)

    return register(stub, function, signature)


def _called(
    ctx: Context, name: str, declared: LibraryFunction, operands: tuple[object, ...]
) -> tensor:
    kinds = declared.operands
    prepare = partial(_given, kinds) if isinstance(kinds, tuple) else _PREPARE[kinds]
    args, result, form = prepare(ctx, name, operands)
    body = declared.body if form is None else declared.forms.get(form, declared.body)
    found = evaluate(ctx, lambda: body(*args))
    return found if result is None else cast_to(ctx, found, result)


@implements(tl.extra.libdevice.fast_dividef)
def fast_dividef(ctx: Context, x: object, y: object) -> tensor:
    return quotient(ctx, "fast_dividef", x, y, "fast")
