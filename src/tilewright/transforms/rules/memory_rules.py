"""Identities of pointer arithmetic, loads and stores. None adds or moves a memory access."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from tilewright.ir import Op, Rule, RuleContext, RuleSet, Value, rule
from tilewright.ir.types import DType, dtype_of, element_of, i64
from tilewright.ops import (
    AbsOp,
    AtomicOp,
    BinaryOp,
    CastOp,
    ConstantOp,
    LoadOp,
    MathOp,
    NegOp,
    OffsetOp,
    SelectOp,
    StoreOp,
)
from tilewright.transforms.rules.exact_arithmetic import (
    constant_of,
    fold_binary,
    fold_cast,
    fold_rounding,
    in_type,
    is_constant,
)


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
    return ctx.value(OffsetOp(inner.pointer, ctx.constant(total, op.offset.type)))


@rule(OffsetOp)
def offset_of_wide_offset(op: OffsetOp, ctx: RuleContext) -> Value | None:
    """(p + a) + b -> p + (a + b), for 64-bit a and b: both wrap as addresses do"""
    inner = op.pointer.op
    if not isinstance(inner, OffsetOp) or inner.offset.type is not op.offset.type:
        return None
    if dtype_of(op.offset.type) is not i64:
        return None
    return ctx.value(OffsetOp(inner.pointer, ctx.add(inner.offset, op.offset)))


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


@rule(SelectOp)
def select_of_masked_load(op: SelectOp, ctx: RuleContext) -> Value | None:
    """select(m, load(p, m, c), c) -> load(p, m, c); select(m, f(load(p, m, c)), f(c)) too"""
    number = _number_without(op.x, op.condition, _DEEPEST)
    return op.x if number is not None and is_constant(op.y, number) else None


_DEEPEST = 6
"""Most ops between a load and the select: shared operands are visited once per path.
"""


def _number_without(value: Value, mask: Value, depth: int) -> int | float | None:
    """The constant that a value is wherever a mask is false, if known."""
    op = value.op
    if isinstance(op, LoadOp) and op.mask is mask:
        return 0 if op.other is None else constant_of(op.other)
    if isinstance(op, ConstantOp) or depth == 0:
        return constant_of(value)
    if not isinstance(op, CastOp | NegOp | AbsOp | MathOp | BinaryOp):
        return None
    if not all(isinstance(element_of(v.type), DType) for v in (value, *op.operands)):
        return None
    numbers = [_number_without(operand, mask, depth - 1) for operand in op.operands]
    known = [number for number in numbers if number is not None]
    return _folded(op, known) if len(known) == len(numbers) else None


def _folded(op: Op, numbers: Sequence[int | float]) -> int | float | None:
    """The exact result of an op on constants."""
    dtype, first = dtype_of(op.results[0].type), numbers[0]
    if isinstance(op, CastOp):
        return fold_cast(first, dtype_of(op.x.type), dtype)
    if first != first:
        return None
    if isinstance(op, NegOp):
        return -first if dtype.is_float else in_type(-first, dtype)
    if isinstance(op, AbsOp):
        return in_type(abs(first), dtype)
    if isinstance(op, MathOp):
        is_power = op.function in ("exp", "exp2") and first == -inf
        return 0.0 if is_power else fold_rounding(op.function, float(first))
    return fold_binary(op.opcode, first, numbers[1], dtype)


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
"""All of the above, in this order."""
