"""Groups of consumers that take turns at the programs of a block's loop.

    cf.for %p = %first, %n, %step {           cf.for %p = %first + %group * %step, %n, 2 * %step {
      cf.for %k ... (ring) { ... }    ->        nvidia.mbarrier_wait %turns[%group]
      mem.store ...                             cf.for %k ... (ring, other slots) { ... }
    }                                           nvidia.mbarrier_arrive %turns[1 - %group]
                                                mem.store ...
                                              }

One multiplies while the other stores. Its slots are those behind the other's.
"""

from __future__ import annotations

from tilewright.backends.nvidia.buffer_ops import ViewOp, buffer_type
from tilewright.backends.nvidia.bulk_ops import MbarrierArriveOp, MbarrierWaitOp
from tilewright.backends.nvidia.passes.producer_slice import enclosing
from tilewright.backends.nvidia.passes.schedule_loop import LoopSchedule
from tilewright.ir import Block, Builder, Value
from tilewright.ir.types import i1, i32, u32
from tilewright.ops import (
    AddOp,
    AndOp,
    CastOp,
    CompareOp,
    ConstantOp,
    DivOp,
    ForOp,
    MulOp,
    RemOp,
    SelectOp,
    XorOp,
)
from tilewright.transforms import add_slot, trip_count, yield_more


def take_turns(consumers: Block, schedule: LoopSchedule, turns: Value) -> None:
    """Let each group run some programs of a block's loop: one multiplies while the other stores.

    turns: an mbarrier for each group, whose phase ends when it may read the ring: when the group
    before has. Otherwise it might take the phase before for the one that it waits for, as they are
    told apart by their parity alone.
    """
    loop, group = schedule.loop, consumers.args[0]
    programs, groups = enclosing(loop, consumers)[-1], buffer_type(turns).slots
    assert isinstance(programs, ForOp)
    before = Builder.at(programs)
    first = before.value(AddOp(programs.lower, before.value(MulOp(programs.step, group))))
    count = before.value(ConstantOp(groups, u32))
    programs.set_operand(2, before.value(MulOp(programs.step, count)))
    programs.set_operand(0, first)
    _skip_others(loop, programs, group, schedule.slots, groups)
    # The first group begins.
    number = before.value(CastOp(group, i32))
    parity = before.value(XorOp(number, before.value(ConstantOp(1, i32))))
    (turn,) = add_slot(programs, parity, "turn")
    builder = Builder.at(loop)
    builder.emit(MbarrierWaitOp(builder.value(ViewOp(turns, number)), turn))
    builder = Builder.after(loop)
    following = builder.value(XorOp(number, builder.value(ConstantOp(1, i32))))
    always = builder.value(ConstantOp(1, i1))
    builder.emit(MbarrierArriveOp(builder.value(ViewOp(turns, following)), always))
    yield_more(programs, builder.value(XorOp(turn, builder.value(ConstantOp(1, i32)))))


def _skip_others(loop: ForOp, programs: ForOp, group: Value, slots: int, groups: int) -> None:
    """Begin behind the slots of other groups' programs: all have as many iterations."""
    builder = Builder.at(loop)
    trips = builder.value(CastOp(trip_count(builder, loop), u32))
    is_first = builder.value(CompareOp(programs.index, programs.lower, predicate="eq"))
    others = builder.value(ConstantOp(groups - 1, u32))
    skipped = builder.value(MulOp(trips, builder.value(SelectOp(is_first, group, others))))
    size = builder.value(ConstantOp(slots, u32))
    *_, slot, parity = loop.operands
    # The trips fit into i32, and so do the slots: sums do not wrap.
    moved = builder.value(AddOp(builder.value(CastOp(slot, u32)), skipped))
    rounds = builder.value(DivOp(moved, size))
    odd = builder.value(AndOp(rounds, builder.value(ConstantOp(1, u32))))
    start = builder.value(CastOp(builder.value(RemOp(moved, size)), i32))
    last = len(loop.operands) - 1
    loop.set_operand(last - 1, start)
    loop.set_operand(last, builder.value(XorOp(parity, builder.value(CastOp(odd, i32)))))
