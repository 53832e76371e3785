"""Lower exchanges between threads within one op to ops on buffers.

    %y = nvidia.convert %x                     %s = nvidia.alloc : buffer<64x64xf32, ...>
                                          ->   nvidia.write %x, %s
                                               %y = nvidia.read %s

    %y = tile.gather %x, %i {axis = 0}         %s = nvidia.alloc : buffer<256xf32, ...>
                                          ->   nvidia.write %x, %s
                                               %y = nvidia.read_at %s, %i {axis = 0}

    %h = tile.histogram %x {bins = 64}         nvidia.write %zeros, %s
                                          ->   nvidia.count %s, %x
                                               %h = nvidia.read %s

    %r = mem.atomic %p, %v                     %o = mem.atomic %p, %v         of one thread each
                                          ->   nvidia.write %o, %s {owners = true}
                                               %r = nvidia.read %s

    %c = nvidia.dot_fma %a, %b, %acc           nvidia.write %a_by_k, %s       and %b
                                          ->   %c = nvidia.dot_fma_shared %s, %t, %acc

    %y = tile.scan %x {axis = 0}               %g = tile.reshape %x : tile<4x256xf32>    of 4 warps
                                          ->   %w = tile.scan %g {axis = 1}
                                               nvidia.write_last %w, %s {axis = 1}
                                               %l = nvidia.read %s          all in each thread
                                               %t = tile.scan %l {axis = 0}
                                               %j = nvidia.scan_join %w, %t
                                               %y = tile.reshape %j

    mem.descriptor_store %p, %x, ...           nvidia.write_panel %x {number = 0}
                                          ->   nvidia.store_panel %p, %x, ... {number = 0}
                                               nvidia.write_panel %x {number = 1}
                                               mem.descriptor_store %p, %x, ...     the last panel

_conversion_rounds.py lowers conversions, and _expand_sorts.py expands sorts.
insert_shared_barriers.py inserts the barriers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.buffer_ops import AllocOp, ReadOp, WriteOp
from tilewright.backends.nvidia.bulk_ops import BulkStoreWaitOp, StorePanelOp, WritePanelOp
from tilewright.backends.nvidia.exchange_ops import (
    CountOp,
    ReadAtOp,
    ScanJoinOp,
    SharedFmaDotOp,
    WriteLastOp,
)
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.ops import FmaDotOp
from tilewright.backends.nvidia.passes._conversion_rounds import RESIDENT_WARPS, lower_conversions
from tilewright.backends.nvidia.passes._expand_sorts import SortSteps
from tilewright.backends.nvidia.passes.split_reductions import emitted, in_each_thread, reshaped
from tilewright.backends.nvidia.shared_memory.shared_accesses import panels_of
from tilewright.backends.nvidia.shared_memory.shared_usage import exchange_buffers, groups_of_scan
from tilewright.ir import Builder, Function, Op, Pass, Rewriter, Value
from tilewright.ir.types import TileType, element_of
from tilewright.layout import LANE, REGISTER, WARP, LinearLayout, slice_of, tile_dims
from tilewright.ops import (
    AtomicCasOp,
    AtomicOp,
    DescriptorReduceOp,
    DescriptorStoreOp,
    GatherOp,
    HistogramOp,
    ItemOp,
    ScanOp,
    SortOp,
    TransposeOp,
)
from tilewright.support.data_class import dataclass


@dataclass(frozen=True)
class LowerExchanges(Pass, name="nvidia-lower-exchanges"):
    """Write and read buffers in place of ops that exchange data between threads.

    warps: of a program instance; capability: of the architecture
    """

    warps: int = 4
    capability: int = 90

    def run(self, function: Function) -> bool:
        sorts = [op for op in function.walk() if isinstance(op, SortOp)]
        for op in sorts:
            steps = SortSteps(Builder.at(op), op, len(exchange_buffers(op)))
            Rewriter.replace(op, steps.run())
        others = [op for op in function.walk() if exchange_buffers(op)]
        for op in others:
            build = Builder.at(op)
            buffers = [build.value(AllocOp(type_)) for type_ in exchange_buffers(op)]
            _EXPANSIONS[type(op)](op, build, buffers, self.warps)
        stores = [
            op for op in function.walk() if isinstance(op, DescriptorStoreOp | DescriptorReduceOp)
        ]
        matrix_stores = row_for(self.capability).stmatrix
        for op in stores:
            _store_by_panels(op, Builder.at(op), matrix_stores)
        # Last: scans and dots lowered above have conversions.
        together = self.warps * row_for(self.capability).shared_sm // RESIDENT_WARPS
        converted = lower_conversions(function, matrix_stores, together)
        return converted or bool(sorts or others or stores)


def _scan(op: ScanOp, build: Builder, buffers: Sequence[Value], _warps: int) -> None:
    axis, shape = op.axis, layout_of(op.inputs[0]).shape
    groups = groups_of_scan(layout_of(op.inputs[0]), axis)
    apart = (*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])
    inputs = tuple(reshaped(build, x, apart) for x in op.inputs)
    layout = layout_of(inputs[0])
    in_warps = ScanOp(inputs, op.combine.clone({}), axis + 1, op.reverse)
    scanned = emitted(build, in_warps, layout)
    for x, buffer in zip(scanned, buffers, strict=True):
        build.emit(WriteLastOp(x, buffer, axis=axis + 1, first=op.reverse))
    here = in_each_thread(slice_of(layout, axis + 1), axis)
    types = [TileType(here.shape, element_of(x.type), here) for x in inputs]
    read = [
        build.value(ReadOp(buffer, result_type=type_))
        for buffer, type_ in zip(buffers, types, strict=True)
    ]
    over_warps = emitted(build, ScanOp(tuple(read), op.combine.clone({}), axis, op.reverse), here)
    join = ScanJoinOp((*scanned, *over_warps), op.combine.clone({}), axis, op.reverse)
    joined = emitted(build, join, layout)
    Rewriter.replace(op, [reshaped(build, x, shape) for x in joined])


def _gather(op: GatherOp, build: Builder, buffers: Sequence[Value], _warps: int) -> None:
    build.emit(WriteOp(op.x, buffers[0]))
    Rewriter.replace(op, build.value(ReadAtOp(buffers[0], op.index, axis=op.axis)))


def _histogram(op: HistogramOp, build: Builder, buffers: Sequence[Value], _warps: int) -> None:
    zeros = build.constant(0, op.type)
    build.emit(WriteOp(zeros, buffers[0]))
    build.emit(CountOp(buffers[0], op.x, op.mask))
    Rewriter.replace(op, build.value(ReadOp(buffers[0], result_type=op.type)))


def _fma_dot(op: FmaDotOp, build: Builder, buffers: Sequence[Value], _warps: int) -> None:
    rank = len(layout_of(op.a).shape)
    order = (*range(rank - 2), rank - 1, rank - 2)
    by_k = build.value(TransposeOp(op.a, order))
    layout = layout_of(op.a).transpose(order)
    by_k.type = TileType(layout.shape, element_of(op.a.type), layout)
    a, b = buffers
    build.emit(WriteOp(by_k, a))
    build.emit(WriteOp(op.b, b))
    dot = build.value(SharedFmaDotOp(a, b, op.acc))
    dot.type = op.type
    Rewriter.replace(op, dot)


def _atomic(
    op: AtomicOp | AtomicCasOp, build: Builder, buffers: Sequence[Value], warps: int
) -> None:
    """Distribute the result of an element's owner to the threads that hold copies."""
    users = list(op.result.uses)
    after, (buffer,) = Builder.after(op), buffers
    own, is_tile = op.result, isinstance(op.type, TileType)
    if not is_tile:
        own = after.splat(own, (1,))
        own.type = TileType((1,), element_of(op.type), _of_one(warps))
    after.emit(WriteOp(own, buffer, owners=True))
    result = after.value(ReadOp(buffer, result_type=own.type))
    result = result if is_tile else after.value(ItemOp(result))
    for user in users:
        Rewriter.replace_operand(user, op.result, result)


def _store_by_panels(
    op: DescriptorStoreOp | DescriptorReduceOp, build: Builder, matrix_stores: bool
) -> None:
    """Store panels through alternating slots; the op itself stores the last one."""
    panels, (base, stored, *numbers) = panels_of(op, matrix_stores), op.operands
    last, shape = len(panels.passes) - 1, op.block_shape
    kind = op.kind if isinstance(op, DescriptorReduceOp) else ""
    for number in range(last + 1):
        build.emit(WritePanelOp(stored, shape, number))
        if panels.slots <= number + 1 <= last:
            # TMA has read the next slot: the same barrier publishes this as well.
            build.emit(BulkStoreWaitOp())
        if number < last:
            build.emit(StorePanelOp(base, stored, tuple(numbers), shape, number, kind))


def _of_one(warps: int) -> LinearLayout:
    """The layout of one element that all threads have."""
    none = {REGISTER: [], LANE: [(0,)] * 5, WARP: [(0,)] * (warps.bit_length() - 1)}
    return LinearLayout.from_bases(none, tile_dims((1,)))


_EXPANSIONS: dict[type[Op], Callable[[Any, Builder, Sequence[Value], int], None]] = {
    ScanOp: _scan,
    GatherOp: _gather,
    HistogramOp: _histogram,
    FmaDotOp: _fma_dot,
    AtomicOp: _atomic,
    AtomicCasOp: _atomic,
}
