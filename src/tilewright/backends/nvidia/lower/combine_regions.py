"""Regions of scalars: of reductions and scans, run on one element of each argument, and of maps."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering, lowering
from tilewright.backends.nvidia.lower.per_register_ops import lower_one
from tilewright.ir import Block
from tilewright.layout import REGISTER, LinearLayout
from tilewright.llvm import Val
from tilewright.ops import MapOp


def apply_region(state: GpuLowering, block: Block, args: Sequence[Val]) -> list[Val]:
    """Values that the region yields for these arguments; control flow may diverge."""
    for arg, value in zip(block.args, args, strict=True):
        state.set_registers(arg, [value])
    for op in block:
        # The terminator: its operands are returned.
        if op.next is None:
            break
        if lowering.has(op):
            lowering.lower(state, op)
        else:
            operands = [state.scalar(v) for v in op.operands]
            state.set_registers(op.results[0], [lower_one(state, op, operands)])
    return [state.scalar(v) for v in block.terminator.operands]


@lowering(MapOp)
def _map(state: GpuLowering, op: MapOp) -> None:
    """The region for each group of the thread's own elements."""
    columns = [state.registers_of(value) for value in op.inputs]
    results: list[list[Val]] = [list(columns[0]) for _ in op.results]
    for group in register_groups(layout_of(op.results[0]), op.pack):
        args = [column[r] for column in columns for r in group]
        found = iter(apply_region(state, op.function, args))
        for result in results:
            for r in group:
                result[r] = next(found)
    for value, registers in zip(op.results, results, strict=True):
        state.set_registers(value, registers)


def register_groups(layout: LinearLayout, pack: int) -> list[list[int]]:
    """The registers of each `pack` neighbours along the last dimension, in order."""
    groups: dict[tuple[int, ...], dict[int, int]] = {}
    for r in range(layout.in_size(REGISTER)):
        *others, last = layout.apply(register=r)
        groups.setdefault((*others, last // pack), {})[last % pack] = r
    return [[group[i] for i in sorted(group)] for group in groups.values()]
