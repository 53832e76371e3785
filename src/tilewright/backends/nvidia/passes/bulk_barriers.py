"""The mbarriers of the copies that the copy engine makes ahead in a loop: one for each slot.

A slot is filled once in S iterations, and each filling is one phase of its barrier: in iteration i
the phase number i div S ends. So the parity to wait for changes when the slot number wraps around.
Copies are asked for only for iterations that take place, each of which waits: behind the loop no
copy is on its way.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.buffer_ops import ViewOp
from tilewright.backends.nvidia.bulk_ops import BulkCopyOp, MbarriersOp, MbarrierWaitOp
from tilewright.backends.nvidia.passes.schedule_loop import AheadLoad
from tilewright.ir import Builder, Value
from tilewright.ir.types import BufferType, i32, u64
from tilewright.layout import shared_row_major
from tilewright.ops import CastOp, CompareOp, ConstantOp, XorOp


class BulkBarriers:
    """Those of one loop. copies: of all its copies the bulk ones."""

    def __init__(self, copies: Sequence[AheadLoad], slots: int) -> None:
        self.copies = [ahead for ahead in copies if ahead.is_bulk]
        self.slots = slots
        self._barriers: dict[AheadLoad, Value] = {}

    def make(self, before: Builder) -> list[Value]:
        """Make the barriers; what the loop is to carry: the parity of the first phase."""
        type_ = BufferType((1,), u64, shared_row_major((1,)), self.slots)
        for ahead in self.copies:
            self._barriers[ahead] = before.value(MbarriersOp(result_type=type_))
        return [before.value(ConstantOp(0, i32))] if self.copies else []

    def copy(
        self, builder: Builder, ahead: AheadLoad, tile: Value, view: Value, slot: Value, runs: Value
    ) -> None:
        """Ask for a copy to a slot, which `view` is, if the iteration runs."""
        barrier = builder.value(ViewOp(self._barriers[ahead], slot))
        builder.emit(BulkCopyOp(tile, view, barrier, runs))

    def wait(self, builder: Builder, slot: Value, phase: Sequence[Value]) -> None:
        """Wait for all copies to a slot."""
        for ahead in self.copies:
            barrier = builder.value(ViewOp(self._barriers[ahead], slot))
            builder.emit(MbarrierWaitOp(barrier, phase[0]))

    def following(self, builder: Builder, slot: Value, phase: Sequence[Value]) -> list[Value]:
        """The parity in the next iteration."""
        if not phase:
            return []
        last = builder.value(ConstantOp(self.slots - 1, i32))
        wraps = builder.value(CompareOp(slot, last, predicate="eq"))
        return [builder.value(XorOp(phase[0], builder.value(CastOp(wraps, i32))))]
