"""Gathers: the source goes to shared memory in row-major order, threads read by index.

An index is taken modulo the extent of the axis, so that no index leaves the buffer.
"""

from __future__ import annotations

from tilewright.backends.nvidia.lower.global_memory import shared_load, shared_store
from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering, layout_of, lowering
from tilewright.backends.nvidia.lower.register_packing import pack, packed_type, unpack
from tilewright.ir import Op
from tilewright.ir.types import element_of, shape_of
from tilewright.llvm import Val, integer_literal
from tilewright.ops import GatherOp


@lowering(GatherOp)
def _gather(state: GpuLowering, op: GatherOp) -> None:
    element, shape = element_of(op.x.type), shape_of(op.x.type)
    strides = _strides(shape)
    layout = layout_of(op.x)
    for r, value in enumerate(state.registers_of(op.x)):
        coords = [state.coordinate(layout, d, r) for d in range(len(shape))]
        (packed_register,) = pack(state, [value], element)
        shared_store(
            state, _address(state, op, coords, strides, element.bytes), packed_register, None
        )
    state.barrier()
    # No barrier behind the reads: insert_shared_barriers.py orders them before later writes.
    results: list[Val] = []
    layout = layout_of(op.index)
    for r, index in enumerate(state.registers_of(op.index)):
        coords = [state.coordinate(layout, d, r) for d in range(len(shape))]
        coords[op.axis] = _inside(state, index, shape[op.axis])
        address = _address(state, op, coords, strides, element.bytes)
        results += unpack(state, [shared_load(state, address, packed_type(element, 1))], 1, element)
    state.set_registers(op.result, results)


def _strides(shape: tuple[int, ...]) -> list[int]:
    strides = [1] * len(shape)
    for dim in reversed(range(len(shape) - 1)):
        strides[dim] = strides[dim + 1] * shape[dim + 1]
    return strides


def _inside(state: GpuLowering, index: Val, extent: int) -> Val:
    narrow = index
    if index.type == "i64":
        narrow = state.code.let_here(f"trunc i64 {index} to i32", "i32")
    elif index.type != "i32":
        narrow = state.code.let_here(f"zext {index.typed} to i32", "i32")
    # Extents are powers of two: the mask is the remainder.
    return state.code.let_here(f"and i32 {narrow}, {extent - 1}", "i32")


def _address(state: GpuLowering, op: Op, coords: list[Val], strides: list[int], size: int) -> Val:
    total = integer_literal(state.offsets[op])
    for coord, stride in zip(coords, strides, strict=True):
        scaled = state.code.let_here(f"mul i32 {coord}, {stride * size}", "i32")
        total = state.code.let_here(f"add i32 {total}, {scaled}", "i32")
    return state.code.let_here(f"add i32 {state.shared}, {total}", "i32")


def gather_bytes(op: GatherOp) -> int:
    """Shared memory for the source."""
    total = element_of(op.x.type).bytes
    for extent in shape_of(op.x.type):
        total *= extent
    return total


__all__ = ["gather_bytes"]
