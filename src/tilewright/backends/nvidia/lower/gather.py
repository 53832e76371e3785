"""Reads of a buffer by index. Indices are taken modulo the extent of the axis, and so stay in
the buffer.
"""

from __future__ import annotations

from tilewright.backends.nvidia.buffer_ops import buffer_type
from tilewright.backends.nvidia.exchange_ops import ReadAtOp
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.lower.buffers import element_address
from tilewright.backends.nvidia.lower.global_memory import shared_load
from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering, lowering
from tilewright.backends.nvidia.lower.register_packing import packed_type, unpack
from tilewright.llvm import Val


@lowering(ReadAtOp)
def _read_at(state: GpuLowering, op: ReadAtOp) -> None:
    type_ = buffer_type(op.buffer)
    element, shape = type_.element, type_.shape
    layout = layout_of(op.index)
    results: list[Val] = []
    for r, index in enumerate(state.registers_of(op.index)):
        coords = [state.coordinate(layout, d, r) for d in range(len(shape))]
        coords[op.axis] = _inside(state, index, shape[op.axis])
        address = element_address(state, state.scalar(op.buffer), coords, type_)
        results += unpack(state, [shared_load(state, address, packed_type(element, 1))], 1, element)
    state.set_registers(op.result, results)


def _inside(state: GpuLowering, index: Val, extent: int) -> Val:
    narrow = index
    if index.type == "i64":
        narrow = state.code.let_here(f"trunc i64 {index} to i32", "i32")
    elif index.type != "i32":
        narrow = state.code.let_here(f"zext {index.typed} to i32", "i32")
    # Extents are powers of two: the mask is the remainder.
    return state.code.let_here(f"and i32 {narrow}, {extent - 1}", "i32")
