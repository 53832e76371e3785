"""Histograms: bins in shared memory, counted by atomics.

All threads set the bins to 0; after a barrier each adds 1 where its elements belong; after another
all read. Of an addition of a constant 1 ptxas makes one that a warp does once for each address.
"""

from __future__ import annotations

from tilewright.backends.nvidia.lower.global_memory import both, shared_load, shared_store
from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering, layout_of, lowering
from tilewright.layout import REGISTER
from tilewright.llvm import Val, integer_literal
from tilewright.ops import HistogramOp

_BYTES = 4
"""Of a bin."""


@lowering(HistogramOp)
def _histogram(state: GpuLowering, op: HistogramOp) -> None:
    code = state.code
    shifted = code.let_here(f"shl i32 {state.warp}, 5", "i32")
    thread = code.let_here(f"or i32 {shifted}, {state.lane}", "i32")
    threads = 32 * state.warps
    zero = integer_literal(0)
    for first in range(0, op.bins, threads):
        number = code.let_here(f"add i32 {thread}, {first}", "i32") if first else thread
        mask = None
        if op.bins < threads:
            mask = code.let_here(f"icmp ult i32 {number}, {op.bins}", "i1")
        shared_store(state, _address(state, op, number), zero, mask)
    state.barrier()
    owner = state.owner(layout_of(op.x))
    masks = None if op.mask is None else state.registers_of(op.mask)
    for r, x in enumerate(state.registers_of(op.x)):
        inside = code.let_here(f"icmp ult {x.typed}, {op.bins}", "i1")
        counted = both(state, owner, inside)
        _count(state, op, x, counted if masks is None else both(state, counted, masks[r]))
    state.barrier()
    # No barrier behind the reads: insert_shared_barriers.py orders them before later writes.
    layout = layout_of(op.result)
    numbers = [state.coordinate(layout, 0, r) for r in range(layout.in_size(REGISTER))]
    counts = [shared_load(state, _address(state, op, number), "i32") for number in numbers]
    state.set_registers(op.result, counts)


def _count(state: GpuLowering, op: HistogramOp, x: Val, mask: Val | None) -> None:
    number = x if x.type == "i32" else state.code.let_here(f"trunc {x.typed} to i32", "i32")
    address = _address(state, op, number)
    operands, guard = ([address], "") if mask is None else ([address, mask], "@$1 ")
    constraints = ",".join(["r", *["b"] * (mask is not None), "~{memory}"])
    state.asm(f"{guard}red.shared.add.u32 [$0], 1;", constraints, "void", *operands)


def _address(state: GpuLowering, op: HistogramOp, number: Val) -> Val:
    scaled = state.code.let_here(f"mul i32 {number}, {_BYTES}", "i32")
    address = state.code.let_here(f"add i32 {state.shared}, {scaled}", "i32")
    return state.code.let_here(f"add i32 {address}, {state.offsets[op]}", "i32")


def histogram_bytes(op: HistogramOp) -> int:
    """Shared memory for the bins."""
    return _BYTES * op.bins


__all__ = ["histogram_bytes"]
