"""Stores and reductions of whole blocks by TMA.

All threads write a panel to shared memory; after a barrier one issues the store, while all
write the next one (lower_exchanges.py). Sources: PTX ISA, "cp.async.bulk.tensor",
"cp.reduce.async.bulk.tensor", "Async proxy".
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from tilewright.backends.nvidia.bulk_ops import (
    BulkStoreWaitOp,
    ProxyFenceOp,
    StorePanelOp,
    WritePanelOp,
)
from tilewright.backends.nvidia.layouts.store_panels import StorePanels, StorePass
from tilewright.backends.nvidia.lower.buffers import FENCE
from tilewright.backends.nvidia.lower.bulk_copies import first_thread, map_parameter
from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering, lowering
from tilewright.backends.nvidia.lower.layout_conversion import write_shared
from tilewright.backends.nvidia.shared_memory.shared_accesses import (
    BulkStore,
    panels_of,
    pass_number,
    slot_of,
)
from tilewright.backends.nvidia.tensor_map_sources import tensor_map_source
from tilewright.ir.types import element_of
from tilewright.llvm import Val
from tilewright.ops import DescriptorReduceOp, DescriptorStoreOp


def _kind(op: BulkStore) -> str:
    return "" if isinstance(op, DescriptorStoreOp) else op.kind


def store_instruction(op: BulkStore) -> str:
    """The instruction that stores one box."""
    kind, combined = "cp.reduce.async" if _kind(op) else "cp.async", _kind(op)
    combined = f".{combined}" if combined else ""
    return f"{kind}.bulk.tensor.{op.rank}d.global.shared::cta{combined}.tile.bulk_group"


@lowering(WritePanelOp)
def _write(state: GpuLowering, op: WritePanelOp) -> None:
    panels, source = panels_of(op, state.arch.stmatrix), state.registers_of(op.stored)
    registers = [source[register] for register in panels.passes[op.number].registers]
    slot = state.offsets[op] + slot_of(op, panels)
    write_shared(state, panels.access, registers, element_of(op.stored.type), slot)
    state.asm(FENCE, "~{memory}", "void")


@lowering(DescriptorStoreOp, DescriptorReduceOp, StorePanelOp)
def _store(state: GpuLowering, op: BulkStore) -> None:
    panels = panels_of(op, state.arch.stmatrix)
    part = panels.passes[pass_number(op, panels)]
    _store_boxes(state, op, panels, part, state.offsets[op] + slot_of(op, panels))


def _store_boxes(
    state: GpuLowering, op: BulkStore, panels: StorePanels, part: StorePass, slot: int
) -> None:
    """One thread issues the boxes of a pass, as a group of their own."""
    map_ = tensor_map_source(op, panels.box, panels.swizzle, state.parameters, stored=True)
    assert map_ is not None, op
    parameter, issues = map_parameter(state, map_), first_thread(state)
    names = ", ".join(f"${i + 2}" for i in range(op.rank))
    text = f"@${op.rank + 2} {store_instruction(op)} [$1, {{{names}}}], [$0];"
    constraints = ",".join(["r", "l", *["r"] * op.rank, "b", "~{memory}"])
    for number, coordinates in enumerate(_coordinates(state, op, panels, part)):
        start = slot + number * panels.box_bytes
        place = state.code.let_here(f"add i32 {state.shared}, {start}", "i32")
        runs = _is_inside(state, issues, coordinates) if _kind(op) else issues
        state.asm(text, constraints, "void", place, parameter, *coordinates, runs)
    state.asm("cp.async.bulk.commit_group;", "~{memory}", "void")


def _is_inside(state: GpuLowering, issues: Val, coordinates: Sequence[Val]) -> Val:
    """Whether a thread issues a box whose natural coordinates fit 31 bits: negative ones, which
    are an illegal instruction in reductions, are beyond all arrays."""
    for coordinate in coordinates:
        fits = state.code.let_here(f"icmp sge i32 {coordinate}, 0", "i1")
        issues = state.code.let_here(f"and i1 {issues}, {fits}", "i1")
    return issues


def _coordinates(
    state: GpuLowering, op: BulkStore, panels: StorePanels, part: StorePass
) -> Iterator[Sequence[Val]]:
    """Coordinates of each box of a pass, the contiguous dimension first."""
    offsets = [state.scalar(value) for value in op.offsets]
    rows = [number * panels.box[0] for number in range(panels.boxes)]
    for column, row in itertools.product(part.columns, rows):
        moved = list(offsets)
        for dim, step in ((0, row), (op.rank - 1, column)):
            if step:
                moved[dim] = state.code.let_here(f"add i32 {moved[dim]}, {step}", "i32")
        yield moved[::-1]


@lowering(BulkStoreWaitOp)
def _bulk_store_wait(state: GpuLowering, op: BulkStoreWaitOp) -> None:
    """Threads that have issued no store do not wait."""
    kind = "" if op.complete else ".read"
    state.asm(f"cp.async.bulk.wait_group{kind} 0;", "~{memory}", "void")


@lowering(ProxyFenceOp)
def _proxy_fence(state: GpuLowering, op: ProxyFenceOp) -> None:
    state.asm(FENCE if op.shared else "fence.proxy.async.global;", "~{memory}", "void")
