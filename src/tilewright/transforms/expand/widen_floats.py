"""Compute f16, bf16 and fp8 arithmetic that CPUs lack in f32; dots in f32 or i32.

Every op is rounded to its own type, as if it existed there: the casts stay, op by op. (LLVM would
do the same for f16 and bf16, but scalarizes many of those vectors.)
"""

from __future__ import annotations

from typing import cast

from tilewright.ir import Builder, Op, Value
from tilewright.ir.types import (
    DType,
    dtype_of,
    element_of,
    f16,
    f32,
    f64,
    i32,
    u8,
    u16,
    with_element,
)
from tilewright.ops import (
    AbsOp,
    ConstantOp,
    DotOp,
    MaxOp,
    MinOp,
    NegOp,
    PrintOp,
)


def converted(builder: Builder, x: Value, dtype: DType) -> Value:
    """x as another element type; a zero becomes one of that type, of its sign."""
    if element_of(x.type) is dtype:
        return x
    target = with_element(x.type, dtype)
    source = x.op
    if isinstance(source, ConstantOp) and dtype in (f32, f64) and source.value == 0:
        return builder.constant(float(source.value), target)
    return builder.cast(x, target)


def is_small_float(dtype: object) -> bool:
    """f16, bf16 or fp8."""
    return isinstance(dtype, DType) and dtype.is_float and dtype.bits < 32


def widen_dot(op: Op, builder: Builder) -> Value | None:
    """A dot whose operands and accumulator have one type: f32, f64 or i32."""
    assert isinstance(op, DotOp)
    kinds = [dtype_of(v.type) for v in op.operands]
    wide = f64 if f64 in kinds else f32 if kinds[2].is_float else i32
    if all(kind is wide for kind in kinds):
        return None
    a, b, acc = (converted(builder, v, wide) for v in op.operands)
    product = DotOp(a, b, acc, op.precision, op.max_imprecise)
    return converted(builder, builder.value(product), kinds[2])


def widen_elementwise(op: Op, builder: Builder) -> Value | None:
    """Arithmetic on small floats, computed in f32 and rounded.

    The rounding to f32 before hardly matters: sums, products, quotients and square roots of f16,
    bf16 and fp8 are as if rounded once (S. Figueroa, "When is double rounding innocuous?", 1995);
    a fused product and sum is but for ties.
    """
    small = [is_small_float(element_of(v.type)) for v in op.operands]
    if not any(small):
        return None
    copy = op.clone({})
    for index, value in enumerate(copy.operands):
        if small[index]:
            copy.operands[index] = converted(builder, value, f32)
    result = element_of(op.result.type)
    if not is_small_float(result):
        return builder.value(copy)
    copy.results[0].type = with_element(op.result.type, f32)
    return converted(builder, builder.value(copy), dtype_of(op.result.type))


def widen_extremum(op: Op, builder: Builder) -> Value | None:
    """The smaller or larger of small floats.

    LLVM would narrow min and max of extended f16 again, and call a function for each lane. So min
    and max that ignore a NaN become a comparison and a select.
    """
    assert isinstance(op, MinOp | MaxOp)
    if op.nan or element_of(op.type) is not f16:
        return widen_elementwise(op, builder)
    x, y = (converted(builder, v, f32) for v in op.operands)
    better = builder.compare(x, y, "lt" if isinstance(op, MinOp) else "gt")
    lonely = builder.ne(y, y)
    first = builder.bit_or(better, lonely)
    return builder.select(first, op.lhs, op.rhs)


def widen_sign(op: Op, builder: Builder) -> Value | None:
    """-x or |x| of a small float: a change of the sign bit, also of a NaN."""
    assert isinstance(op, NegOp | AbsOp)
    dtype = dtype_of(op.type)
    if not is_small_float(dtype):
        return None
    integer = with_element(op.type, u8 if dtype.is_fp8 else u16)
    sign = 1 << (dtype.bits - 1)
    bits = builder.bitcast(op.x, integer)
    flips = isinstance(op, NegOp)
    mask = builder.constant(sign if flips else sign - 1, integer)
    changed = builder.bit_xor(bits, mask) if flips else builder.bit_and(bits, mask)
    return builder.bitcast(changed, op.type)


def widen_print(op: Op, builder: Builder) -> None:
    """Prints small floats as f32."""
    for index, value in enumerate(cast("PrintOp", op).args):
        if is_small_float(element_of(value.type)):
            op.set_operand(index, converted(builder, value, f32))
