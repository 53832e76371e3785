"""Mbarriers of TMA loads that a loop issues ahead: one for each slot.

A slot is filled once in S iterations, and each filling is one phase of its barrier: iteration i
waits for phase i div S. So the parity to wait for flips where the slot number wraps around. Loads
are issued only for iterations that exist, and each iteration waits: after the loop no load is in
flight.

A tile that is loaded for the next iteration starts as zeros: TMA fills its first slot with a block
outside of the array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from tilewright.backends.nvidia.buffer_ops import ViewOp
from tilewright.backends.nvidia.bulk_ops import BulkCopyOp, MbarriersOp, MbarrierWaitOp
from tilewright.backends.nvidia.schedule.schedule_loop import AheadLoad
from tilewright.ir import Builder, Value
from tilewright.ir.types import BufferType, i1, i32, u64
from tilewright.layout import shared_row_major
from tilewright.ops import CastOp, DescriptorLoadOp


class SlotBarriers:
    """The barriers of one loop. copies: all its copies, of which TMA issues some."""

    def __init__(self, copies: Sequence[AheadLoad], slots: int) -> None:
        self.copies = [ahead for ahead in copies if ahead.is_bulk]
        self.slots = slots
        self._barriers: dict[AheadLoad, Value] = {}

    def make(self, before: Builder) -> list[Value]:
        """Allocate the barriers; returns the initial values that the loop carries: the first
        parity."""
        type_ = BufferType((1,), u64, shared_row_major((1,)), self.slots)
        for ahead in self.copies:
            self._barriers[ahead] = before.value(MbarriersOp(result_type=type_))
        return [before.constant(0, i32)] if self.copies else []

    def copy(
        self, builder: Builder, ahead: AheadLoad, tile: Value, view: Value, slot: Value, runs: Value
    ) -> None:
        """Issue a load to a slot, viewed by `view`, if the iteration runs."""
        barrier = builder.value(ViewOp(self._barriers[ahead], slot))
        builder.emit(BulkCopyOp(tile, view, barrier, runs)).loc = ahead.load.loc

    def fill_with_zeros(self, builder: Builder, ahead: AheadLoad, view: Value, slot: Value) -> None:
        """Issue the zero tile of the first iteration, for a load of the next one."""
        zeros = load_of_zeros(builder, cast("DescriptorLoadOp", ahead.load)).result
        self.copy(builder, ahead, zeros, view, slot, builder.constant(1, i1))

    def wait(self, builder: Builder, slot: Value, phase: Sequence[Value]) -> None:
        """Wait for all copies to a slot."""
        for ahead in self.copies:
            self.wait_for(builder, ahead, slot, phase)

    def wait_for(
        self, builder: Builder, ahead: AheadLoad, slot: Value, phase: Sequence[Value]
    ) -> None:
        """Wait for one copy to a slot."""
        barrier = builder.value(ViewOp(self._barriers[ahead], slot))
        builder.emit(MbarrierWaitOp(barrier, phase[0]))

    def following(self, builder: Builder, slot: Value, phase: Sequence[Value]) -> list[Value]:
        """The parity in the next iteration."""
        if not phase:
            return []
        wraps = builder.eq(slot, self.slots - 1)
        return [builder.bit_xor(phase[0], builder.cast(wraps, i32))]


def load_of_zeros(builder: Builder, load: DescriptorLoadOp) -> DescriptorLoadOp:
    """A load of a block before the start of the array, which TMA fills with zeros."""
    starts = [builder.constant(-extent, i32) for extent in load.block]
    numbers = (*(_made_again(builder, v) for v in (*load.shape, *load.strides)), *starts)
    outside = DescriptorLoadOp(
        load.base, numbers, load.block_shape, bulk=True, dropped=load.dropped
    )
    outside.results[0].type = load.type
    builder.emit(outside)
    return outside


def _made_again(builder: Builder, number: Value) -> Value:
    """A clone of a launch constant, whose casts may come later in the block."""
    if isinstance(number.op, CastOp):
        return builder.cast(_made_again(builder, number.op.x), number.type)
    return builder.emit(number.op.clone({})).results[0] if number.op is not None else number
