"""The combine regions of reductions and scans, run on one element of each argument."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering, lowering
from tilewright.backends.nvidia.lower.per_register_ops import lower_one
from tilewright.ir import Block
from tilewright.llvm import Val


def apply_region(state: GpuLowering, block: Block, args: Sequence[Val]) -> list[Val]:
    """What the region yields for these arguments; any control flow is the thread's own."""
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
