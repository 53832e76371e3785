"""Copies of whole blocks by the copy engine (TMA), and the mbarriers that tell of their arrival.

One thread of a program asks for copies; all wait. Sources: PTX ISA, "cp.async.bulk.tensor",
"Parallel Synchronization and Communication Instructions: mbarrier".
"""

from __future__ import annotations

from math import prod
from typing import cast

from tilewright.backends.nvidia.buffer_ops import buffer_type
from tilewright.backends.nvidia.bulk_ops import (
    BulkCopyOp,
    MbarrierArriveOp,
    MbarriersOp,
    MbarrierWaitOp,
)
from tilewright.backends.nvidia.lower.gpu_lowering import BODY, GpuLowering, lowering
from tilewright.backends.nvidia.tensor_maps import TensorMapSource, load_map
from tilewright.llvm import Val
from tilewright.ops import DescriptorLoadOp

_BARRIER_BYTES = 8

_WAIT = (
    "{ .reg .pred done; WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; "
    "@done bra DONE; bra WAIT; DONE: }"
)


@lowering(DescriptorLoadOp)
def _load(state: GpuLowering, op: DescriptorLoadOp) -> None:
    """No instruction: `nvidia.bulk_copy` takes its place."""
    state.registers[op.result] = ()


def first_thread(state: GpuLowering) -> Val:
    """Whether this is the thread that asks for copies: a producer is that thread alone."""
    if state.is_producer:
        return Val("true", "i1", BODY)
    return state.code.let_here("icmp eq i32 %tid, 0", "i1")


@lowering(MbarriersOp)
def _mbarriers(state: GpuLowering, op: MbarriersOp) -> None:
    offset, first = state.offsets[op], state.code.let_here("icmp eq i32 %thread, 0", "i1")
    for slot in range(buffer_type(op.result).slots):
        start = offset + slot * _BARRIER_BYTES
        address = state.code.let_here(f"add i32 {state.shared}, {start}", "i32")
        text = f"@$1 mbarrier.init.shared::cta.b64 [$0], {op.arrivals};"
        state.asm(text, "r,b,~{memory}", "void", address, first)
    # The copy engine sees them, too.
    state.asm("fence.mbarrier_init.release.cluster;", "~{memory}", "void")
    state.set_registers(op.result, [Val(str(offset), "i32", BODY)])


@lowering(BulkCopyOp)
def _bulk_copy(state: GpuLowering, op: BulkCopyOp) -> None:
    load, type_ = cast("DescriptorLoadOp", op.x.op), buffer_type(op.target)
    source = load_map(load, type_, state.parameters)
    assert source is not None, op
    code, shared = state.code, state.shared
    asks = code.let_here(f"and i1 {first_thread(state)}, {state.scalar(op.runs)}", "i1")
    barrier = code.let_here(f"add i32 {shared}, {state.scalar(op.barrier)}", "i32")
    start = code.let_here(f"add i32 {shared}, {state.scalar(op.target)}", "i32")
    text = f"@$1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {type_.slot_bytes};"
    state.asm(text, "r,b,~{memory}", "void", barrier, asks)
    *outer, column = (state.scalar(value) for value in load.offsets)
    columns, box_bytes = source.box[-1], prod(source.box) * source.element_bytes
    coordinates = ", ".join(f"${4 + dim}" for dim in range(load.rank))
    text = (
        f"@$3 cp.async.bulk.tensor.{load.rank}d.shared::cluster.global.tile"
        f".mbarrier::complete_tx::bytes [$0], [$1, {{{coordinates}}}], [$2];"
    )
    for panel in range(type_.shape[1] // columns):
        place = code.let_here(f"add i32 {start}, {panel * box_bytes}", "i32")
        left = code.let_here(f"add i32 {column}, {panel * columns}", "i32")
        operands = (place, map_parameter(state, source), barrier, asks, left, *reversed(outer))
        state.asm(text, f"r,l,r,b,{'r,' * load.rank}~{{memory}}", "void", *operands)


def map_parameter(state: GpuLowering, source: TensorMapSource) -> Val:
    """The parameter that holds a map."""
    number = state.tensor_maps.setdefault(source, len(state.tensor_maps))
    return Val(f"%map{number}", "ptr", BODY)


@lowering(MbarrierWaitOp)
def _wait(state: GpuLowering, op: MbarrierWaitOp) -> None:
    barrier = state.scalar(op.barrier)
    address = state.code.let_here(f"add i32 {state.shared}, {barrier}", "i32")
    state.asm(_WAIT, "r,r,~{memory}", "void", address, state.scalar(op.parity))


@lowering(MbarrierArriveOp)
def _arrive(state: GpuLowering, op: MbarrierArriveOp) -> None:
    code, barrier = state.code, state.scalar(op.barrier)
    address = code.let_here(f"add i32 {state.shared}, {barrier}", "i32")
    first = code.let_here(f"icmp eq i32 {state.lane}, 0", "i1")
    arrives = code.let_here(f"and i1 {first}, {state.scalar(op.runs)}", "i1")
    text = "@$1 mbarrier.arrive.shared::cta.b64 _, [$0];"
    state.asm(text, "r,b,~{memory}", "void", address, arrives)
