"""Expansion of sorts to steps of a bitonic network, which exchange through buffers between warps.

    %y = tile.sort %x {axis = 0}          runs of 2, 4 ... 64 elements, each in a warp
                                     ->   %a = nvidia.merge_runs %x {bits = 1, falls = 1}
                                          ...
                                          runs of 128, in two warps
                                          nvidia.write %f, %s
                                          %p = nvidia.read_partner %s {bit = 6}
                                          %g = nvidia.order_pairs %f, %p {bit = 6}
                                          %y = nvidia.merge_runs %g {bits = 6}

Once runs are longer than `count`, only the first `count` of each are kept (`nvidia.keep_better`):
the bit of positions in which partners differ is dropped, and threads that differ in it hold copies.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.buffer_ops import AllocOp, WriteOp
from tilewright.backends.nvidia.exchange_ops import (
    KeepBetterOp,
    MergeRunsOp,
    OrderPairsOp,
    ReadPartnerOp,
)
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.shared_memory.shared_usage import by_threads
from tilewright.ir import Builder, Op, Value
from tilewright.ir.types import BufferType, TileType, element_of
from tilewright.layout import REGISTER, WARP, LinearLayout, log2, tile_dims
from tilewright.ops import SortOp


class SortSteps:
    """The steps of one sort. count: of alternating buffers of a type."""

    def __init__(self, build: Builder, op: SortOp, count: int) -> None:
        self.build, self.op, self.axis = build, op, op.axis
        self.value, self.count, self.rounds = op.x, count, 0
        self.buffers: dict[tuple[BufferType, int], Value] = {}

    def run(self) -> Value:
        """The sorted tile."""
        op, levels, kept = self.op, log2(self.op.extent), log2(self.op.count)
        for stage in range(levels if op.bitonic else 1, levels + 1):
            # The bits of positions in which longer runs differ are dropped one by one.
            if stage > kept:
                self._keep(kept)
            falls = None if stage == levels else min(stage, kept)
            self._merge(min(stage, kept), falls)
        return self.value

    def _merge(self, bits: int, falls: int | None) -> None:
        descending = falls is None and self.op.descending
        while bits and self._is_of_warps(bits - 1):
            bits -= 1
            order = OrderPairsOp(
                self.value, self._partner(bits), self.axis, bits, falls, descending
            )
            self.value = self._typed(order, layout_of(self.value))
        if bits:
            merge = MergeRunsOp(self.value, self.axis, bits, falls, descending)
            self.value = self._typed(merge, layout_of(self.value))

    def _keep(self, bit: int) -> None:
        partner = self._partner(bit) if self._is_of_warps(bit) else None
        layout = without_bit(layout_of(self.value), self.axis, bit)
        type_ = TileType(layout.shape, element_of(self.value.type), layout)
        descending = self.op.descending
        keep = KeepBetterOp(self.value, type_, self.axis, bit, descending, partner)
        self.value = self.build.value(keep)

    def _partner(self, bit: int) -> Value:
        """The element of each thread's partner in another warp."""
        type_ = by_threads(layout_of(self.value), element_of(self.value.type))
        key = type_, self.rounds % self.count
        self.rounds += 1
        if key not in self.buffers:
            self.buffers[key] = self.build.value(AllocOp(type_))
        self.build.emit(WriteOp(self.value, self.buffers[key]))
        read = ReadPartnerOp(
            self.buffers[key], result_type=self.value.type, axis=self.axis, bit=bit
        )
        return self.build.value(read)

    def _is_of_warps(self, bit: int) -> bool:
        bases = layout_of(self.value).bases(WARP)
        return any(basis[self.axis] == 1 << bit for basis in bases)

    def _typed(self, op: Op, layout: LinearLayout) -> Value:
        result = self.build.value(op)
        result.type = TileType(layout.shape, element_of(result.type), layout)
        return result


def without_bit(layout: LinearLayout, axis: int, bit: int) -> LinearLayout:
    """The layout of what is left where a bit of positions along an axis is dropped: threads that
    differ in it hold copies."""
    low = (1 << bit) - 1

    def squeezed(basis: Sequence[int]) -> tuple[int, ...]:
        along = basis[axis] & low | basis[axis] >> bit + 1 << bit
        return (*basis[:axis], along, *basis[axis + 1 :])

    bases = {name: [squeezed(basis) for basis in layout.bases(name)] for name in layout.in_names}
    bases[REGISTER] = [basis for basis in bases[REGISTER] if any(basis)]
    shape = (*layout.shape[:axis], layout.shape[axis] // 2, *layout.shape[axis + 1 :])
    return LinearLayout.from_bases(bases, tile_dims(shape))
