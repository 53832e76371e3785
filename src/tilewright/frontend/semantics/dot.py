"""`tl.dot`: checks, dtypes and the op."""

from __future__ import annotations

from math import prod

from tilewright import language as tl
from tilewright.frontend.semantics import constant_arguments
from tilewright.frontend.semantics.dtype_casts import cast_value, number_type
from tilewright.frontend.semantics.literal_constants import constant
from tilewright.frontend.semantics.semantic_context import Context, warn_once
from tilewright.frontend.semantics.semantics_registry import implements
from tilewright.ir import Value
from tilewright.ir.types import (
    DType,
    TileType,
    all_dtypes,
    bf16,
    dtype_of,
    element_of,
    f8e4b15,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i8,
    i32,
    shape_of,
    u8,
)
from tilewright.language import tensor, type_of
from tilewright.ops import PRECISIONS, DotOp, ReshapeOp
from tilewright.support import errors

ACCUMULATORS: dict[DType, tuple[DType, ...]] = {
    i8: (i32, i8), u8: (i32, u8), f16: (f32, f16), bf16: (f32,), f32: (f32,), f64: (f64,),
    **{dtype: (f32, f16) for dtype in all_dtypes() if dtype.is_fp8},
}  # fmt: skip
"""Operand dtypes -> the dtypes that the accumulator may have; the first is the default."""


@implements(tl.dot)
def dot(
    ctx: Context,
    input: object,
    other: object,
    acc: object = None,
    input_precision: object = None,
    allow_tf32: object = None,
    max_num_imprecise_acc: object = None,
    out_dtype: object = None,
) -> tensor:
    a, b = _operand(ctx, "input", input), _operand(ctx, "other", other)
    left, right = dtype_of(a.type), dtype_of(b.type)
    # Tensor cores take any combination of the two fp8 formats that they support.
    if left is not right and not (left.is_fp8 and right.is_fp8):
        ctx.fail(errors.DTypeMismatch, "dot", type_of(left), type_of(right))
    if f8e4b15 in (left, right) and ctx.options.triton_limits and ctx.options.capability >= 90:
        message = "fp8e4b15 is converted to fp16: its use in tl.dot is deprecated on Hopper"
        warn_once(message, ctx.loc, hint="use tl.float8e4nv or tl.float8e5")
    if left.is_fp8 and not {left, right} <= {f8e4m3, f8e5m2}:
        # f16 has all the numbers of every fp8 format
        a, b, left = cast_value(ctx, a, f16), cast_value(ctx, b, f16), f16
    shape = _result_shape(ctx, a, b)
    _check_depth(ctx, a)
    result = TileType(shape, _result_dtype(ctx, left, acc, out_dtype))
    # Without acc the accumulator is an explicit zero: DotOp always has three operands.
    start = constant(ctx, 0, result) if acc is None else _accumulator(ctx, acc, result)
    # The low bits of the accumulator are those of the sum of the low bits.
    start = cast_value(ctx, start, ACCUMULATORS[left][0]) if result.element.bits == 8 else start
    precision = _precision(ctx, left, input_precision, allow_tf32)
    # 0: no limit on runs that are accumulated in less than fp32; only fp8 has one.
    run = 0
    if max_num_imprecise_acc is not None and left.is_fp8:
        run = constant_arguments.integer(ctx, "dot", "max_num_imprecise_acc", max_num_imprecise_acc)
        depth = shape_of(a.type)[-1]
        if run > depth:
            expected = f"at most the contracted extent, {depth}"
            triton = f"max_num_imprecise_acc ({run}) must be <= K ({depth})"
            name = "max_num_imprecise_acc"
            ctx.fail(errors.InvalidValue, "dot", name, expected, run, triton=triton)
    left_matrix, right_matrix, accumulator = (_batched(ctx, value) for value in (a, b, start))
    dot = ctx.value(DotOp(left_matrix, right_matrix, accumulator, precision, run))
    dot = dot if len(shape) <= 3 else ctx.value(ReshapeOp(dot, shape))
    return tensor(cast_value(ctx, dot, dtype_of(result)))


def _check_depth(ctx: Context, a: Value) -> None:
    """Refuse a K that the tensor cores have no instruction for, where Triton's limits hold."""
    depth, least = shape_of(a.type)[-1], 32 if dtype_of(a.type).bits == 8 else 16
    if ctx.options.triton_limits and depth < least:
        triton = f"Input shapes should have M >= 1, N >= 1 and K >= {least}"
        expected = f"a tile of at least {least} columns (K) in Triton"
        ctx.fail(errors.InvalidValue, "dot", "input", expected, f"{depth}", triton=triton)


def _batched(ctx: Context, value: Value) -> Value:
    """All leading dimensions as one: DotOp has at most one batch dimension."""
    shape = shape_of(value.type)
    if len(shape) <= 3:
        return value
    return ctx.value(ReshapeOp(value, (prod(shape[:-2]), *shape[-2:])))


def _operand(ctx: Context, name: str, value: object) -> Value:
    argument = constant_arguments.tile(ctx, "dot", name, value)
    tile = argument.handle
    element, rank = element_of(tile.type), len(shape_of(tile.type))
    if element not in ACCUMULATORS:
        dtype = type_of(element)
        ctx.fail(
            errors.InvalidOperation,
            f"dot with a tile of {dtype}",
            "it takes int8, uint8, fp8, fp16, bf16, fp32 and fp64",
            "convert it with .to(...)",
        )
    if rank < 2:
        ctx.fail(errors.InvalidValue, "dot", name, "a tile of rank 2 or more", argument.type)
    return tile


def _result_shape(ctx: Context, a: Value, b: Value) -> tuple[int, ...]:
    left, right = shape_of(a.type), shape_of(b.type)
    reason = ""
    if len(left) != len(right):
        reason = f"their ranks are {len(left)} and {len(right)}"
    elif left[-1] != right[-2]:
        reason = f"K is {left[-1]} and {right[-2]}"
    elif left[:-2] != right[:-2]:
        batches = (" x ".join(map(str, shape[:-2])) for shape in (left, right))
        reason = f"the batch is {' and '.join(batches)}"
    if reason:
        notes = ("dot takes (..., M, K) x (..., K, N)",)
        ctx.fail(errors.ShapeMismatch, "dot", left, right, reason, notes=notes)
    return (*left[:-1], right[-1])


def _result_dtype(ctx: Context, operand: DType, acc: object, out_dtype: object) -> DType:
    """The accumulator dtype: out_dtype for fp16 and fp8, else that of acc, else the operands' own.

    As in Triton, out_dtype is ignored for other operands, which have one accumulator dtype each.
    """
    choices = ACCUMULATORS[operand]
    chosen = None if out_dtype is None else number_type(ctx, "dot", out_dtype)
    if chosen is not None and operand.is_float and (chosen is bf16 or f16 in choices):
        if chosen in choices:
            return chosen
        names = " or ".join(str(type_of(choice)) for choice in choices)
        expected = f"{names} for operands of {type_of(operand)}"
        ctx.fail(errors.InvalidValue, "dot", "out_dtype", expected, type_of(chosen))
    if isinstance(acc, tensor):
        given = element_of(acc.handle.type)
        # An acc of another dtype is ignored here; `_accumulator` reports it.
        if isinstance(given, DType) and given in choices:
            return given
    return choices[0]


def _accumulator(ctx: Context, acc: object, result: TileType) -> Value:
    argument = constant_arguments.tile(ctx, "dot", "acc", acc)
    value = argument.handle
    if shape_of(value.type) != result.shape:
        reason = "the result of dot is the first, 'acc' the second"
        ctx.fail(errors.ShapeMismatch, "sum", result.shape, shape_of(value.type), reason)
    # No implicit conversion: it would round the accumulator in every iteration of a loop.
    if element_of(value.type) is not result.element:
        dtype = type_of(result.element)
        ctx.fail(errors.DTypeMismatch, "dot: add the result and acc,", dtype, argument.dtype)
    return value


def _precision(ctx: Context, operand: DType, input_precision: object, allow_tf32: object) -> str:
    """How fp32 operands may be rounded; other operands are exact."""
    if input_precision is not None and allow_tf32 is not None:
        ctx.fail(
            errors.InvalidOperation,
            "dot with both 'input_precision' and 'allow_tf32'",
            "they set the same option",
            "remove allow_tf32",
        )
    default = ctx.options.f32_default_precision
    if allow_tf32 is not None:
        default = (
            "tf32" if constant_arguments.flag(ctx, "dot", "allow_tf32", allow_tf32) else "ieee"
        )
    precision = constant_arguments.choice(
        ctx, "dot", "input_precision", input_precision, PRECISIONS, default
    )
    # Only fp32 has a cheaper approximation (tf32 and the like); others multiply exactly.
    return precision if operand is f32 else "ieee"
