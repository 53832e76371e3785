"""Computes in f32 what the CPU does not compute in f16, bf16 and fp8; products in f32 or i32.

Every op is rounded to its own type, as if it existed there: the casts stay, op by op.
"""

from __future__ import annotations

from typing import cast

from tilewright.ir import Builder, Op, Value
from tilewright.ir.types import DType, dtype_of, element_of, f32, f64, i32, u8, with_element
from tilewright.ops import (
    AbsOp,
    AndOp,
    BitcastOp,
    CastOp,
    ConstantOp,
    DotOp,
    FmaOp,
    MathOp,
    NegOp,
    PrintOp,
    XorOp,
)


def converted(builder: Builder, x: Value, dtype: DType) -> Value:
    """x as another element type; a float constant becomes one of that type."""
    if element_of(x.type) is dtype:
        return x
    target = with_element(x.type, dtype)
    source = x.op
    if isinstance(source, ConstantOp) and dtype in (f32, f64) and source.value == 0:
        return builder.value(ConstantOp(0.0, target))
    return builder.value(CastOp(x, target))


def is_small_float(dtype: object) -> bool:
    """f16, bf16 or fp8."""
    return isinstance(dtype, DType) and dtype.is_float and dtype.bits < 32


def widen_math(op: Op, builder: Builder) -> Value | None:
    """A function of f16 or bf16, computed in f32 and rounded."""
    assert isinstance(op, MathOp)
    dtype = dtype_of(op.x.type)
    if not is_small_float(dtype):
        return None
    wide = builder.value(MathOp(converted(builder, op.x, f32), op.function))
    return converted(builder, wide, dtype)


def widen_dot(op: Op, builder: Builder) -> Value | None:
    """A product whose operands and sum are of one type: f32, f64 or i32."""
    assert isinstance(op, DotOp)
    kinds = [dtype_of(v.type) for v in op.operands]
    wide = f64 if f64 in kinds else f32 if kinds[2].is_float else i32
    if all(kind is wide for kind in kinds):
        return None
    a, b, acc = (converted(builder, v, wide) for v in op.operands)
    product = DotOp(a, b, acc, op.precision, op.max_imprecise)
    return converted(builder, builder.value(product), kinds[2])


def widen_elementwise(op: Op, builder: Builder) -> Value | None:
    """Arithmetic on fp8, computed in f32 and rounded."""
    kinds = [element_of(v.type) for v in op.operands]
    if not any(isinstance(kind, DType) and kind.is_fp8 for kind in kinds):
        return None
    copy = op.clone({})
    for index, value in enumerate(copy.operands):
        kind = kinds[index]
        if isinstance(kind, DType) and kind.is_fp8:
            copy.operands[index] = converted(builder, value, f32)
    result = dtype_of(op.result.type)
    if not result.is_fp8:
        return builder.value(copy)
    copy.results[0].type = with_element(copy.results[0].type, f32)
    return converted(builder, builder.value(copy), result)


def widen_sign(op: Op, builder: Builder) -> Value | None:
    """-x or |x| of fp8: a change of the sign bit, also of a NaN."""
    assert isinstance(op, NegOp | AbsOp)
    if not dtype_of(op.type).is_fp8:
        return None
    byte = with_element(op.type, u8)
    bits = builder.value(BitcastOp(op.x, byte))
    flips = isinstance(op, NegOp)
    mask = builder.value(ConstantOp(0x80 if flips else 0x7F, byte))
    changed = XorOp(bits, mask) if flips else AndOp(bits, mask)
    return builder.value(BitcastOp(builder.value(changed), op.type))


def widen_print(op: Op, builder: Builder) -> None:
    """Prints fp8 as f32."""
    for index, value in enumerate(cast("PrintOp", op).args):
        kind = element_of(value.type)
        if isinstance(kind, DType) and kind.is_fp8:
            op.set_operand(index, converted(builder, value, f32))


def widen_fma(op: Op, builder: Builder) -> Value | None:
    """A fused product and sum of fewer than 32 bits, computed in f32 and rounded a second time.

    The product is exact in f32, so the result is that of one rounding but for ties of the sum.
    """
    assert isinstance(op, FmaOp)
    dtype = dtype_of(op.type)
    if not is_small_float(dtype):
        return None
    operands = (converted(builder, v, f32) for v in op.operands)
    return converted(builder, builder.value(FmaOp(*operands)), dtype)
