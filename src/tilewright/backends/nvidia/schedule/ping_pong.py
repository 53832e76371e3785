"""Ping-pong schedule: groups of consumers alternate between MMAs and stores.

    cf.for %p = %first, %n, %step {           cf.for %p = %first + %group * %step, %n, 2 * %step {
      cf.for %k ... (ring) { ... }    ->        nvidia.mbarrier_wait %turns[%group]
      mem.store ...                             cf.for %k ... (ring, other slots) { ... }
    }                                           nvidia.mbarrier_arrive %turns[1 - %group]
                                                mem.store ...
                                              }

One group issues MMAs while the other stores; its slots follow those of the other group.
"""

from __future__ import annotations

from tilewright.backends.nvidia.buffer_ops import ViewOp, buffer_type
from tilewright.backends.nvidia.bulk_ops import MbarrierArriveOp, MbarrierWaitOp
from tilewright.backends.nvidia.schedule.producer_slice import enclosing
from tilewright.backends.nvidia.schedule.schedule_loop import LoopSchedule
from tilewright.ir import Block, Builder, Value
from tilewright.ir.types import i1, i32, u32
from tilewright.ops import (
    ForOp,
)
from tilewright.transforms import add_slot, trip_count, yield_more


def take_turns(consumers: Block, schedule: LoopSchedule, turns: Value) -> None:
    """Distribute the programs of a block's loop over the groups.

    turns: an mbarrier for each group, whose phase completes when the group may read the ring: when
    the previous group has. Without it a group could mistake the phase before for the one that it
    waits for, since only their parity tells them apart.
    """
    loop, group = schedule.loop, consumers.args[0]
    programs, groups = enclosing(loop, consumers)[-1], buffer_type(turns).slots
    assert isinstance(programs, ForOp)
    before = Builder.at(programs)
    first = before.add(programs.lower, before.mul(programs.step, group))
    programs.set_operand(2, before.mul(programs.step, groups))
    programs.set_operand(0, first)
    _skip_others(loop, programs, group, schedule.slots, groups)
    # The first group starts.
    number = before.cast(group, i32)
    parity = before.bit_xor(number, 1)
    (turn,) = add_slot(programs, parity, "turn")
    builder = Builder.at(loop)
    builder.emit(MbarrierWaitOp(builder.value(ViewOp(turns, number)), turn))
    builder = Builder.after(loop)
    following = builder.bit_xor(number, 1)
    always = builder.constant(1, i1)
    builder.emit(MbarrierArriveOp(builder.value(ViewOp(turns, following)), always))
    yield_more(programs, builder.bit_xor(turn, 1))


def _skip_others(loop: ForOp, programs: ForOp, group: Value, slots: int, groups: int) -> None:
    """Start after the slots of other groups' programs: all have equal numbers of iterations."""
    builder = Builder.at(loop)
    trips = builder.cast(trip_count(builder, loop), u32)
    is_first = builder.eq(programs.index, programs.lower)
    skipped = builder.mul(trips, builder.select(is_first, group, groups - 1))
    *_, slot, parity = loop.operands
    # The trips fit into i32, and so do the slots: additions do not wrap.
    moved = builder.expr(builder.cast(slot, u32)) + skipped
    odd = (moved // slots) & 1
    start = builder.cast(moved % slots, i32)
    last = len(loop.operands) - 1
    loop.set_operand(last - 1, start)
    loop.set_operand(last, builder.bit_xor(parity, builder.cast(odd, i32)))
