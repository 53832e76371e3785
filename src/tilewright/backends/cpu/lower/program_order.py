"""Decides along which axis of the grid programs follow each other.

    row block = program_id(0), column block = program_id(1): tiles of 16 x 128 of 2048 x 12672

On a GPU they all run at once. On a CPU those of axis 0 would come one right after the other, each
with 16 short runs in other pages than the last one's. Hardware fetches no run ahead that short,
and the rest of each page is read when its address has to be looked up again. So the axis comes
first along which most bytes lie beside those of the program before, or are the same (one thread,
Intel Xeon with AMX; axis 0 first -> axis 1 first, torch):

    relu(x + bias)  4096 x 781 fp32        3345 -> 1386 us   2133
                    2048 x 12672 bf16      37.5 -> 10.6 ms   45.5
    rows by number  2048 x 12672 fp32      29.2 -> 16.6 ms   17.4
    a copy of half of each row, tiles of 32 x 64, 4096 x 781 fp32: 2286 -> 1311 us, 2028
"""

from __future__ import annotations

from math import prod

from tilewright.analysis import Kind, MemoryForms, step_of_programs
from tilewright.ir import Effect, Function
from tilewright.ir.types import element_of, shape_of
from tilewright.ops import (
    AtomicCasOp,
    AtomicOp,
    DotOp,
    LoadOp,
    ProgramIdOp,
    StoreOp,
    WhileOp,
    pointee,
)

__all__ = ["first_axis"]

_WAITS_OR_SHOWS = {Effect.BARRIER, Effect.OBSERVE}
_KEEPS_ORDER = AtomicOp | AtomicCasOp | WhileOp | DotOp
"""Ops that may wait for the programs before; and products, whose kernels choose what they share."""


def first_axis(function: Function) -> int:
    """The axis along which programs are numbered first; 0 unless another one is better."""
    ops = list(function.walk())
    axes = {op.axis for op in ops if isinstance(op, ProgramIdOp)}
    if axes <= {0} or any(isinstance(op, _KEEPS_ORDER) for op in ops):
        return 0
    if any(op.effects & _WAITS_OR_SHOWS for op in ops) or any(
        isinstance(op, LoadOp) and op.volatile for op in ops
    ):
        return 0
    forms = MemoryForms(function)
    accesses = {
        op.pointer: op for op in ops if isinstance(op, LoadOp | StoreOp) and shape_of(op.pointer.type)
    }
    far = {
        axis: sum(_bytes(op) for op in accesses.values() if not _is_near(forms, op, axis))
        for axis in sorted(axes)
    }
    return min(far, key=far.__getitem__)


def _bytes(op: LoadOp | StoreOp) -> int:
    return element_of(pointee(op.pointer.type)).bytes * prod(shape_of(op.pointer.type))


def _is_near(forms: MemoryForms, op: LoadOp | StoreOp, axis: int) -> bool:
    """Whether the next program along an axis accesses the same, or what lies beside it."""
    access = forms.access(op)
    step = step_of_programs(access.form, axis)
    if step is None:
        return False
    runs = [
        access.size * extent
        for dim, extent in enumerate(access.shape)
        if _stride(forms, op, dim) == access.size
    ]
    return abs(step) <= max(runs, default=0)


def _stride(forms: MemoryForms, op: LoadOp | StoreOp, dim: int) -> int | None:
    """Bytes from one element to the next along a dim; None if that is no constant."""
    stride = 0
    for factors, coefficient in forms.access(op).form:
        moving = [s for s in factors if s.over_tile and (s.kind is not Kind.DIM or s.key == dim)]
        if moving and len(factors) > 1 or any(s.kind is not Kind.DIM for s in moving):
            return None
        stride += coefficient if moving else 0
    return stride
