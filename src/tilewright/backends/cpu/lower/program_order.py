"""Order of the programs of a grid: the axis along which consecutive programs follow each other.

    row block = program_id(0), column block = program_id(1): tiles of 16 x 128 of 2048 x 12672

On a GPU they all run concurrently. On a CPU programs along axis 0 would follow each other, each
with 16 short runs in other pages than those of the last one. Hardware prefetches no run that short,
and when the rest of a page is read, its address has to be translated again. So the first axis is
the one along which most bytes are adjacent to those of the program before, or are the same.

The step to the next program's part of each row is for `prefetch.py`. The figures are in ADR 0033.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import prod

from tilewright.analysis import Kind, MemoryForms, step_of_programs
from tilewright.ir import Effect, Function, Op, Value
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
from tilewright.support.data_class import dataclass

_WAITS_OR_SHOWS = {Effect.BARRIER, Effect.OBSERVE}
_KEEPS_ORDER = AtomicOp | AtomicCasOp | WhileOp | DotOp
"""Ops that may wait for the programs before; and dots, whose micro-kernels share operands."""


@dataclass(frozen=True, slots=True)
class ProgramOrder:
    """The axis along which programs are numbered first. steps: for pointers of matrices outside of
    loops, bytes to the next program's matrix where that is adjacent"""

    axis: int = 0
    steps: Mapping[Value, int] = field(default_factory=dict[Value, int])


def program_order(function: Function) -> ProgramOrder:
    """The order of a kernel's programs: axis 0 first unless another one is better."""
    ops = list(function.walk())
    axes = sorted({op.axis for op in ops if isinstance(op, ProgramIdOp)})
    accesses = {op.pointer: op for op in ops if isinstance(op, LoadOp | StoreOp)}
    dims = {pointer: len(shape_of(pointer.type)) for pointer in accesses}
    if not axes or (axes == [0] and max(dims.values(), default=0) < 2) or _is_bound(ops):
        return ProgramOrder()
    forms = MemoryForms(function)
    tiles = {pointer: op for pointer, op in accesses.items() if dims[pointer]}
    steps = {axis: {p: _step(forms, op, axis) for p, op in tiles.items()} for axis in axes}
    far = {a: sum(_bytes(p) for p in tiles if steps[a][p] is None) for a in axes}
    first = min(far, key=far.__getitem__)
    alone = (p for p, op in tiles.items() if dims[p] == 2 and op.parent is function.body)
    beside = {pointer: step for pointer in alone if (step := steps[first][pointer])}
    return ProgramOrder(first, beside)


def _is_bound(ops: list[Op]) -> bool:
    """Whether programs may depend on the order of their numbers, or expose it."""
    return any(
        isinstance(op, _KEEPS_ORDER)
        or bool(op.effects & _WAITS_OR_SHOWS)
        or (isinstance(op, LoadOp) and op.volatile)
        for op in ops
    )


def _bytes(pointer: Value) -> int:
    return element_of(pointee(pointer.type)).bytes * prod(shape_of(pointer.type))


def _step(forms: MemoryForms, op: LoadOp | StoreOp, axis: int) -> int | None:
    """Bytes to the accesses of the next program along an axis, if they are the same or adjacent."""
    access = forms.access(op)
    step = step_of_programs(access.form, axis)
    if step is None:
        return None
    runs = [
        access.size * extent
        for dim, extent in enumerate(access.shape)
        if _stride(forms, op, dim) == access.size
    ]
    return step if abs(step) <= max(runs, default=0) else None


def _stride(forms: MemoryForms, op: LoadOp | StoreOp, dim: int) -> int | None:
    """Bytes from one element to the next along a dim; None if that is no constant."""
    stride = 0
    for symbols, coefficient in forms.access(op).form:
        moving = [s for s in symbols if s.over_tile and (s.kind is not Kind.DIM or s.key == dim)]
        if moving and len(symbols) > 1 or any(s.kind is not Kind.DIM for s in moving):
            return None
        stride += coefficient if moving else 0
    return stride
