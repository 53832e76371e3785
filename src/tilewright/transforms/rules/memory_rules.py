"""Identities of pointer arithmetic, loads and stores. None adds or moves a memory access."""

from __future__ import annotations

from tilewright.ir import Rule, RuleContext, RuleSet, Value, rule
from tilewright.ir.types import dtype_of, i64
from tilewright.ops import AddOp, AtomicOp, LoadOp, OffsetOp, StoreOp
from tilewright.transforms.rules.constant_builders import constant
from tilewright.transforms.rules.exact_arithmetic import constant_of, is_constant


@rule(OffsetOp)
def offset_zero(op: OffsetOp, ctx: RuleContext) -> Value | None:
    """p + 0 -> p"""
    return op.pointer if is_constant(op.offset, 0) else None


@rule(OffsetOp)
def offset_of_offset(op: OffsetOp, ctx: RuleContext) -> Value | None:
    """(p + c1) + c2 -> p + (c1 + c2), if the sum fits its type"""
    inner = op.pointer.op
    if not isinstance(inner, OffsetOp) or inner.offset.type is not op.offset.type:
        return None
    a, b = constant_of(inner.offset), constant_of(op.offset)
    if a is None or b is None:
        return None
    dtype, total = dtype_of(op.offset.type), int(a) + int(b)
    # each offset is widened before it is added, so a sum that wraps first would point elsewhere
    if not dtype.min_int <= total <= dtype.max_int:
        return None
    return ctx.value(OffsetOp(inner.pointer, constant(ctx, total, op.offset.type)))


@rule(OffsetOp)
def offset_of_wide_offset(op: OffsetOp, ctx: RuleContext) -> Value | None:
    """(p + a) + b -> p + (a + b), for 64-bit a and b: both wrap as addresses do"""
    inner = op.pointer.op
    if not isinstance(inner, OffsetOp) or inner.offset.type is not op.offset.type:
        return None
    if dtype_of(op.offset.type) is not i64:
        return None
    return ctx.value(OffsetOp(inner.pointer, ctx.value(AddOp(inner.offset, op.offset))))


@rule(LoadOp)
def load_all(op: LoadOp, ctx: RuleContext) -> Value | None:
    """load(p, true, other) -> load(p)"""
    if op.mask is None or not is_constant(op.mask, 1):
        return None
    return ctx.value(LoadOp(op.pointer, **op.attrs))


@rule(LoadOp)
def load_nothing(op: LoadOp, ctx: RuleContext) -> Value | None:
    """load(p, false, other) -> other"""
    if op.mask is None or op.other is None or not is_constant(op.mask, 0):
        return None
    return op.other


@rule(StoreOp)
def store_all(op: StoreOp, ctx: RuleContext) -> tuple[()] | None:
    """store(p, x, true) -> store(p, x)"""
    if op.mask is None or not is_constant(op.mask, 1):
        return None
    ctx.emit(StoreOp(op.pointer, op.stored, None, op.cache, op.eviction))
    return ()


@rule(StoreOp)
def store_nothing(op: StoreOp, ctx: RuleContext) -> tuple[()] | None:
    """store(p, x, false) -> nothing"""
    return () if op.mask is not None and is_constant(op.mask, 0) else None


@rule(AtomicOp)
def atomic_all(op: AtomicOp, ctx: RuleContext) -> Value | None:
    """atomic(p, x, true) -> atomic(p, x)"""
    if op.mask is None or not is_constant(op.mask, 1):
        return None
    return ctx.value(AtomicOp(op.pointer, op.operand, None, op.kind, op.order, op.scope))


MEMORY = RuleSet(item for item in globals().values() if isinstance(item, Rule))
"""All of the above, in the order in which they stand."""
