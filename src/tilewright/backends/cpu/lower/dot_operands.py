"""Layout of dot operands in scratch memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilewright.analysis import Alignment
from tilewright.backends.cpu.lower.memory_order import reads_columns
from tilewright.backends.cpu.microkernel import (
    DotSpec,
    VectorUnit,
    packs_columns,
    preferred_strides,
)
from tilewright.backends.cpu.ops import Bf16DotOp
from tilewright.ir import Value
from tilewright.ir.types import dtype_of, shape_of
from tilewright.llvm import llvm_type
from tilewright.ops import ConstantOp, DotOp


def dot_spec(unit: VectorUnit, op: DotOp) -> DotSpec:
    """The matmul of one pair of matrices, with the preferred strides."""
    m, k = shape_of(op.a.type)[-2:]
    n = shape_of(op.b.type)[-1]
    return DotSpec(m, n, k, element_of_dot(op), unit)


def _column_major(spec: DotSpec, of_a: bool) -> DotSpec | None:
    """The matmul with A or B column-major; None if the micro-kernel has no such form."""
    if of_a:
        direct = spec.operand.group == 1 and not spec.unit.lane_broadcast
        return replace(spec, a_columns=True) if direct else None
    return replace(spec, b_columns=True) if packs_columns(spec) else None


def element_of_dot(op: DotOp) -> str:
    """The element type that the micro-kernel multiplies (`DotSpec.element`)."""
    kind = dtype_of(op.a.type)
    if isinstance(op, Bf16DotOp):
        return "bfloat"
    return kind.name if kind.bits == 8 else llvm_type(kind)


def is_zero(accumulator: Value) -> bool:
    """Whether an accumulator starts at zero: then a micro-kernel writes it without reading it."""
    op = accumulator.op
    return isinstance(op, ConstantOp) and op.value == 0


def operand_strides(
    unit: VectorUnit, value: Value, alignments: Mapping[Value, Alignment]
) -> tuple[int, ...] | None:
    """Padded strides of a dot operand, so that its rows do not share cache sets; of the columns of
    a column-major one."""
    # The first dot decides; any other works with these strides (see `lower_dot`).
    for user in value.uses:
        if not isinstance(user, DotOp) or value not in (user.a, user.b):
            continue
        shape = shape_of(value.type)
        spec = dot_spec(unit, user)
        only = list(value.uses) == [user]
        if only and len(shape) == 2 and reads_columns(value, alignments):
            columns = _column_major(spec, value is user.a)
            if columns is not None:
                strides = preferred_strides(columns)
                return 1, strides.lda if value is user.a else strides.ldb
        strides = preferred_strides(spec)
        row = strides.lda if value is user.a else strides.ldb
        inner = (row, 1)
        for extent in reversed(shape[1:-1]):
            inner = (inner[0] * extent, *inner)
        return inner if len(shape) > 2 else (row, 1)
    return None
