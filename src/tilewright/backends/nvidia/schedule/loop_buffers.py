"""Buffers of loads that are issued ahead, and the dots of a loop whose waits are deferred.

A load for wgmma has the buffer that wgmma reads, in as many slots as the schedule has; another load
has the buffer that suits its copies and the layout in which it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from tilewright.backends.nvidia.buffer_ops import (
    ShareOp,
    TransposeViewOp,
    WgmmaOp,
    buffer_type,
    transposed_buffer,
)
from tilewright.backends.nvidia.schedule.deferred_waits import (
    computed_operands,
    deferred_dots,
)
from tilewright.backends.nvidia.schedule.schedule_loop import AheadLoad, LoopSchedule, readers
from tilewright.backends.nvidia.tensor_map_sources import panelled_buffers
from tilewright.ir import Builder, Op, Rewriter, Value
from tilewright.ir.types import BufferType, DType, TileType
from tilewright.layout import LinearLayout, plan_shared_conversion
from tilewright.ops import TransposeOp


def buffer_of(ahead: AheadLoad, slots: int) -> BufferType:
    """The buffer of a copied load: as wgmma reads it, or as its first conversion does."""
    type_ = ahead.load.type
    assert isinstance(type_, TileType) and isinstance(type_.element, DType)
    found = readers(ahead)
    for reader in found:
        if isinstance(reader.op, ShareOp):
            shared = buffer_type(reader.op.result)
            if reader.order is not None:
                shared = transposed_buffer(shared, _inverse(reader.order))
            return replace_slots(shared, slots)
    if ahead.is_bulk:
        return replace_slots(next(panelled_buffers(type_)), slots)
    source = target = cast("LinearLayout", type_.layout)
    if found:
        target = cast("LinearLayout", cast("TileType", found[0].op.type).layout)
        order = found[0].order
        target = target if order is None else target.transpose(_inverse(order))
    plan = plan_shared_conversion(
        source, target, 8 * type_.element.bytes,
        matrix_loads=True, matrix_stores=False, copy=True, copy_elements=ahead.vector,
    )  # fmt: skip
    return BufferType(type_.shape, type_.element, plan.shared, slots)


def buffers_of(schedule: LoopSchedule) -> list[BufferType]:
    """All buffers of a loop."""
    copied = [buffer_of(ahead, schedule.slots) for ahead in schedule.copies]
    return copied + [doubled_buffer(op) for op in _computed(schedule)]


def replaced_exchanges(schedule: LoopSchedule) -> list[Op]:
    """The ops that buffers of the loop replace."""
    return [
        *(reader.op for ahead in schedule.copies for reader in readers(ahead)),
        *_computed(schedule),
    ]


def deferred_in(schedule: LoopSchedule) -> list[WgmmaOp]:
    """The dots whose waits are deferred to the next iteration."""
    # With two slots the dot reads one while the other is filled: it must complete.
    return deferred_dots(schedule) if schedule.slots > 2 else []


def _computed(schedule: LoopSchedule) -> list[ShareOp]:
    return computed_operands(deferred_in(schedule), schedule)


def doubled_buffer(op: ShareOp) -> BufferType:
    """The buffer of an operand that an iteration computes while a dot reads the previous one."""
    return replace_slots(buffer_type(op.result), 2)


def replace_slots(type_: BufferType, slots: int) -> BufferType:
    return BufferType(type_.shape, type_.element, type_.layout, slots)


def share_after(builder: Builder, tile: Value, view: Value) -> None:
    """Make dots after a loop read its last tile from the slot that holds it."""
    for user in list(tile.uses):
        if isinstance(user, ShareOp) and user.result.type is view.type:
            Rewriter.replace(user, view)
        elif isinstance(user, TransposeOp):
            share_after(
                builder, user.result, builder.value(TransposeViewOp(view, order=user.order))
            )
            if not user.result.uses:
                Rewriter.erase(user)


def _inverse(order: Sequence[int]) -> list[int]:
    return [order.index(dim) for dim in range(len(order))]
