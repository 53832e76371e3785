"""TMA copies of whole blocks, and the mbarriers that signal their arrival.

One thread of a program issues copies; all wait. Sources: PTX ISA, "cp.async.bulk.tensor",
"Parallel Synchronization and Communication Instructions: mbarrier".
"""

from __future__ import annotations

from math import prod
from typing import cast

from tilewright.backends.nvidia.buffer_ops import ViewOp, buffer_type
from tilewright.backends.nvidia.bulk_ops import (
    BulkCopyOp,
    MbarrierArriveOp,
    MbarriersOp,
    MbarrierWaitOp,
)
from tilewright.backends.nvidia.lower.gpu_lowering import BODY, GpuLowering, lowering
from tilewright.backends.nvidia.role_ops import CLUSTER_BLOCKS
from tilewright.backends.nvidia.tensor_map_sources import load_map
from tilewright.backends.nvidia.tensor_maps import TensorMapSource
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
    """Whether this is the thread that issues copies: a producer is that thread alone."""
    if state.is_producer:
        return Val("true", "i1", BODY)
    return state.code.let_here("icmp eq i32 %tid, 0", "i1")


@lowering(MbarriersOp)
def _mbarriers(state: GpuLowering, op: MbarriersOp) -> None:
    offset, first = state.offsets[op], state.code.let_here("icmp eq i32 %thread, 0", "i1")
    blocks = [state.register("cluster.nctarank")] if op.in_cluster else []
    all_arrive = [state.code.let_here(f"mul i32 {n}, {op.arrivals}", "i32") for n in blocks]
    count, kinds = ("$2", "r,b,r") if op.in_cluster else (op.arrivals, "r,b")
    address = state.code.let_here(f"add i32 {state.shared}, {offset}", "i32")
    starts = [slot * _BARRIER_BYTES for slot in range(buffer_type(op.result).slots)]
    inits = " ".join(f"mbarrier.init.shared::cta.b64 [$0+{start}], {count};" for start in starts)
    text = f"{{ @!$1 bra DONE; {inits} DONE: }}"
    state.asm(text, f"{kinds},~{{memory}}", "void", address, first, *all_arrive)
    if not isinstance(op.next, MbarriersOp):
        # TMA sees them.
        state.asm("fence.mbarrier_init.release.cluster;", "~{memory}", "void")
    state.set_registers(op.result, [Val(str(offset), "i32", BODY)])


@lowering(BulkCopyOp)
def _bulk_copy(state: GpuLowering, op: BulkCopyOp) -> None:
    load, type_ = cast("DescriptorLoadOp", op.x.op), buffer_type(op.target)
    source = load_map(load, type_, state.parameters)
    assert source is not None, op
    code, shared = state.code, state.shared
    issues = code.let_here(f"and i1 {first_thread(state)}, {state.scalar(op.runs)}", "i1")
    barrier = code.let_here(f"add i32 {shared}, {state.scalar(op.barrier)}", "i32")
    start = code.let_here(f"add i32 {shared}, {state.scalar(op.target)}", "i32")
    text = f"@$1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {type_.slot_bytes};"
    state.asm(text, "r,b,~{memory}", "void", barrier, issues)
    *outer, column = (state.scalar(value) for value in load.offsets)
    columns, box_bytes = source.box[-1], prod(source.box) * source.element_bytes
    alone, shares = _shares(state, op, issues, type_.shape[1] // columns)
    for panel, share in enumerate(shares):
        place = code.let_here(f"add i32 {start}, {panel * box_bytes}", "i32")
        left = code.let_here(f"add i32 {column}, {panel * columns}", "i32")
        coordinates = (left, *reversed(outer))
        _copy(state, alone, "", (place, map_parameter(state, source), barrier), coordinates)
        if share is not None:
            target = (place, map_parameter(state, source), barrier)
            _copy(state, share, ".multicast::cluster", target, coordinates)


def _copy(
    state: GpuLowering, issues: Val, how: str, target: tuple[Val, Val, Val], at: tuple[Val, ...]
) -> None:
    """Copy one box, if the thread issues copies.

    target: its address, its map and its mbarrier; how: "" for this block, or PTX's suffix for
    both blocks of a cluster"""
    coordinates = ", ".join(f"${4 + dim}" for dim in range(len(at)))
    blocks = f", {(1 << CLUSTER_BLOCKS) - 1}" if how else ""
    text = (
        f"@$3 cp.async.bulk.tensor.{len(at)}d.shared::cluster.global.tile"
        f".mbarrier::complete_tx::bytes{how} [$0], [$1, {{{coordinates}}}], [$2]{blocks};"
    )
    state.asm(text, f"r,l,r,b,{'r,' * len(at)}~{{memory}}", "void", *target, issues, *at)


def _shares(
    state: GpuLowering, op: BulkCopyOp, issues: Val, panels: int
) -> tuple[Val, list[Val | None]]:
    """Whether a block copies for itself, and for each panel, whether it does for both.

    Both take every other one, and of an odd number the one more in every other slot.
    """
    if op.is_shared is None:
        return issues, [None] * panels
    code, shared = state.code, state.scalar(op.is_shared)
    alone = code.let_here(f"xor i1 {shared}, true", "i1")
    issues_alone = code.let_here(f"and i1 {issues}, {alone}", "i1")
    issues_shared = code.let_here(f"and i1 {issues}, {shared}", "i1")
    view = cast("ViewOp", op.target.op)
    rank = state.register("cluster.ctarank")
    turn = code.let_here(f"xor i32 {rank}, {state.scalar(view.slot)}", "i32")
    odd = code.let_here(f"trunc i32 {turn if panels % 2 else rank} to i1", "i1")
    even = code.let_here(f"xor i1 {odd}, true", "i1")
    mine = [code.let_here(f"and i1 {issues_shared}, {who}", "i1") for who in (even, odd)]
    return issues_alone, [mine[panel % 2] for panel in range(panels)]


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
    if op.in_both is not None:
        _arrive_in_cluster(state, address, state.scalar(op.runs), state.scalar(op.in_both))
        return
    first = code.let_here(f"icmp eq i32 {state.lane}, 0", "i1")
    arrives = code.let_here(f"and i1 {first}, {state.scalar(op.runs)}", "i1")
    text = "@$1 mbarrier.arrive.shared::cta.b64 _, [$0];"
    state.asm(text, "r,b,~{memory}", "void", address, arrives)


def _arrive_in_cluster(state: GpuLowering, barrier: Val, runs: Val, in_both: Val) -> None:
    """Each of the first lanes arrives, in the block of its number or in its own.

    Not with `.release.cluster`, which ptxas makes a fence of all memory: what is released are
    reads, which have ended.
    """
    code = state.code
    blocks = state.register("cluster.nctarank")
    first = code.let_here(f"icmp ult i32 {state.lane}, {blocks}", "i1")
    arrives = code.let_here(f"and i1 {first}, {runs}", "i1")
    text = "mapa.shared::cluster.u32 $0, $1, $2;"
    own = state.register("cluster.ctarank")
    # Any block will do for lanes that do not arrive.
    spreads = code.let_here(f"and i1 {first}, {in_both}", "i1")
    block = code.let_here(f"select i1 {spreads}, {state.lane.typed}, {own.typed}", "i32")
    there = state.pure_asm(text, "=r,r,r", "i32", barrier, block)
    text = "@$1 mbarrier.arrive.shared::cluster.b64 _, [$0];"
    state.asm(text, "r,b,~{memory}", "void", there, arrives)
