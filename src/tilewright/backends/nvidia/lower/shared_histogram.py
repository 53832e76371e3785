"""Histograms in shared memory by atomics.

ptxas aggregates additions of a constant 1 over a warp, by address.
"""

from __future__ import annotations

from tilewright.backends.nvidia.buffer_ops import buffer_type
from tilewright.backends.nvidia.exchange_ops import CountOp
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.lower.global_memory import both
from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering, lowering
from tilewright.llvm import Val

_BYTES = 4
"""Bytes of a bin."""


@lowering(CountOp)
def _count_all(state: GpuLowering, op: CountOp) -> None:
    (bins,) = buffer_type(op.buffer).shape
    owner = state.owner(layout_of(op.x))
    masks = None if op.mask is None else state.registers_of(op.mask)
    for r, x in enumerate(state.registers_of(op.x)):
        inside = state.code.let_here(f"icmp ult {x.typed}, {bins}", "i1")
        counted = both(state, owner, inside)
        _count(state, op, x, counted if masks is None else both(state, counted, masks[r]))


def _count(state: GpuLowering, op: CountOp, x: Val, mask: Val | None) -> None:
    number = x if x.type == "i32" else state.code.let_here(f"trunc {x.typed} to i32", "i32")
    address = _address(state, op, number)
    operands, guard = ([address], "") if mask is None else ([address, mask], "@$1 ")
    constraints = ",".join(["r", *["b"] * (mask is not None), "~{memory}"])
    state.asm(f"{guard}red.shared.add.u32 [$0], 1;", constraints, "void", *operands)


def _address(state: GpuLowering, op: CountOp, number: Val) -> Val:
    scaled = state.code.let_here(f"mul i32 {number}, {_BYTES}", "i32")
    address = state.code.let_here(f"add i32 {state.shared}, {scaled}", "i32")
    return state.code.let_here(f"add i32 {address}, {state.scalar(op.buffer)}", "i32")
