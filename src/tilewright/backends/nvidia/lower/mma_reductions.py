"""Sum reductions of 16-bit floats over a warp by MMAs with a matrix of ones.

    %y = arith.cast %x : tile<1024xf32>         d = [x0 .. x7 of each thread] @ ones + 0
    %s = tile.reduce %y, arith.add       ->     d = [x8 .. x15] @ ones + d
                                                s = d[0] + d[2], then over 8 lanes by shuffles

Multiplication by 1 is exact, and the accumulators are f32. A sum of 32 elements per thread takes
4 MMAs instead of 32 conversions and 31 additions, and three shuffles instead of five.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.lower.gpu_lowering import BODY, GpuLowering
from tilewright.backends.nvidia.lower.register_packing import pack
from tilewright.backends.nvidia.lower.tensor_cores import mma
from tilewright.ir import Value
from tilewright.ir.types import DType, dtype_of, f32
from tilewright.layout import LANE, REGISTER
from tilewright.llvm import Val, integer_literal
from tilewright.ops import AddOp, CastOp, ReduceOp, ReshapeOp, TransposeOp

_SHAPE = (16, 8, 16)
_WORDS = 4
"""Packed registers per thread in the left operand."""

_LEAST_ELEMENTS = 8
"""Elements per thread that fill one left operand."""

_ONES = {"bf16": 0x3F803F80, "f16": 0x3C003C00}
"""Two ones in a packed register, by the type of elements."""

LANES = (2, 3, 4)
"""The bits of a lane over which rows of the accumulator are left to be added."""


def summed_by_mma(state: GpuLowering, op: ReduceOp) -> Value | None:
    """The 16-bit floats that a reduction adds over whole warps; None for any other reduction.

    A thread has all of them in the order of the operand's registers, or in any if it adds all.
    """
    layout = layout_of(op.inputs[0])
    source = _cast_source(op.inputs[0]) if len(op.inputs) == 1 else None
    if source is None or not _is_sum(op) or not all(b[op.axis] for b in layout.bases(LANE)):
        return None
    added = [bool(basis[op.axis]) for basis in layout.bases(REGISTER)]
    if not (all(added) or isinstance(op.inputs[0].op, CastOp)):
        return None
    has_mma = any(
        form.operand == dtype_of(source.type).name and form.shape == _SHAPE
        for form in state.arch.mma
    )
    return source if has_mma and 1 << sum(added) >= _LEAST_ELEMENTS else None


def _is_sum(op: ReduceOp) -> bool:
    first = op.combine.first
    return (
        isinstance(first, AddOp)
        and set(first.operands) == set(op.combine.args)
        and op.combine.terminator.operands == [first.result]
    )


def _cast_source(value: Value) -> Value | None:
    """The 16-bit floats of which a tile is a copy in f32 that is only reduced."""
    while isinstance(value.op, ReshapeOp | TransposeOp):
        value = value.op.operands[0]
    if not isinstance(value.op, CastOp) or dtype_of(value.type) is not f32:
        return None
    source = value.op.x
    return source if dtype_of(source.type).name in _ONES and _is_only_reduced(value) else None


def _is_only_reduced(value: Value) -> bool:
    return all(
        isinstance(user, ReduceOp)
        or (isinstance(user, ReshapeOp | TransposeOp) and _is_only_reduced(user.results[0]))
        for user in value.uses
    )


def sum_by_mma(state: GpuLowering, element: DType, values: Sequence[Val]) -> Val:
    """The sum of the values of four threads, whose lanes have equal `LANES` bits."""
    words = pack(state, values, element)
    words += [integer_literal(0)] * (-len(words) % _WORDS)
    m, n, k = _SHAPE
    text = f"mma.sync.aligned.m{m}n{n}k{k}.row.col.f32.{element.name}.{element.name}.f32"
    ones = [integer_literal(_ONES[element.name])] * 2
    accumulators = [Val("0.0", "float", BODY)] * 4
    for start in range(0, len(words), _WORDS):
        accumulators = mma(state, text, words[start : start + _WORDS], ones, accumulators)
    # Columns are equal; rows are those of the lane and 8 below.
    return state.code.let_here(f"fadd {accumulators[0].typed}, {accumulators[2]}", "float")
