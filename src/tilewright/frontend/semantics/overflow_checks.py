"""Checks of integer overflow, for kernels compiled in debug mode."""

from __future__ import annotations

from tilewright.frontend.semantics.dtype_casts import cast_value
from tilewright.frontend.semantics.literal_constants import constant
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.ir import Value
from tilewright.ir.types import DType, dtype_of, i64
from tilewright.language import type_of
from tilewright.ops import AddOp, AssertOp, MulOp, SubOp

_WIDE_OPS = {"add": AddOp, "sub": SubOp, "mul": MulOp}


def check_overflow(ctx: Context, name: str, x: Value, y: Value) -> None:
    """Assert at run time that `x <name> y` fits its type; only for integers below 64 bits.

    name: add, sub or mul; others are not checked. Products of two uint32 may exceed int64 and are
    not checked either.
    """
    element = dtype_of(x.type)
    wide = _WIDE_OPS.get(name)
    if wide is None or not _is_checked(name, element):
        return
    # i64 holds every sum, difference and signed product of 32-bit operands.
    result = ctx.value(wide(cast_value(ctx, x, i64), cast_value(ctx, y, i64)))
    low = constant(ctx, element.min_int, result.type)
    high = constant(ctx, element.max_int, result.type)
    fits = ctx.bit_and(ctx.ge(result, low), ctx.le(result, high))
    ctx.emitter.emit(AssertOp(fits, f"{type_of(element)} overflow detected for operation {name}"))


def _is_checked(name: str, element: DType) -> bool:
    if not element.is_integer or element.bits >= 64:
        return False
    # A product of two uint32 needs up to 64 unsigned bits, which int64 does not have.
    return name != "mul" or element.is_signed or element.bits < 32
