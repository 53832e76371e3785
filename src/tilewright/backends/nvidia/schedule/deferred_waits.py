"""Wgmma dots of a loop whose wait is deferred to the next iteration.

    cf.for ... (%k, %acc: tile<128x256xf32>) {
      %a = nvidia.share %x                          %x, %y: copied ahead
      %b = nvidia.share %y
      %c = nvidia.wgmma %a, %b, %acc                nothing else uses %acc and %c
      cf.yield %c
    }

The tensor cores then have the next dot before the last one completes. Nothing in the loop may read
the accumulator, except in branches, which wait; nothing may write the operands before the dot
completes: those in registers must not change at all (PTX ISA, wgmma.fence). An operand that is
computed in the loop and written to shared memory needs two slots there.

    %c = nvidia.wgmma %a, %b, %acc                    %c = nvidia.wgmma %a, %b, %acc
    cf.if %last {                                     %d = cf.if %last {
      mem.store ..., %c                      ->         %e = nvidia.wgmma_wait %c
    }                                                   mem.store ..., %e
    cf.yield %c                                         cf.yield %e
                                                      } { cf.yield %c }
                                                      cf.yield %d
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.buffer_ops import ShareOp, WgmmaOp, WgmmaWaitOp
from tilewright.backends.nvidia.schedule.register_operands import dot_parts
from tilewright.backends.nvidia.schedule.schedule_loop import LoopSchedule
from tilewright.ir import Block, Builder, Op, Rewriter, Value
from tilewright.ir.types import TileType, dtype_of
from tilewright.ops import ForOp, IfOp, TransposeOp
from tilewright.transforms import add_choice

REGISTER_BITS = 32


def deferred_dots(schedule: LoopSchedule) -> list[WgmmaOp]:
    """The dots of a loop in order, if the waits of all can be deferred; otherwise none.

    A dot that is waited for in its iteration completes those before it as well.
    """
    loop = schedule.loop
    dots = [op for op in loop.walk() if isinstance(op, WgmmaOp)]
    if not dots or not all(_only_accumulates(op, loop) for op in dots):
        return []
    parts = dot_parts(schedule, dots)
    # Computed operands in shared memory are one dot late, those in registers one early.
    if parts is None or (computed_operands(dots, schedule) and (parts or not schedule.doubles)):
        return []
    in_turn = {(part.dot, part.operand.value) for part in parts if part.operand is not None}
    others = [(op, v) for op in dots for v in (op.a, op.b) if (op, v) not in in_turn]
    return dots if all(_is_stable(value, loop) for _, value in others) else []


def computed_operands(dots: list[WgmmaOp], schedule: LoopSchedule) -> list[ShareOp]:
    """The operands of deferred dots that each iteration computes and writes to shared memory."""
    copied = {ahead.tile for ahead in schedule.copies}
    operands = dict.fromkeys(value.op for dot in dots for value in (dot.a, dot.b))
    return [
        op
        for op in operands
        if isinstance(op, ShareOp) and op.parent is schedule.loop.body and _source(op) not in copied
    ]


def _only_accumulates(op: WgmmaOp, loop: ForOp) -> bool:
    """Whether a dot adds to its accumulator of the last iteration, or to that of another dot, and
    nothing else uses these."""
    acc, result = carried_accumulator(op), op.result
    if op.parent is not loop.body or acc.owner is not loop.body or acc is loop.index:
        return False
    if list(op.acc.uses) != [op]:
        return False
    if _is_added_to(op):
        return True
    end = loop.body.terminator
    is_yielded = end.operands[acc.index - 1] is result and end.operands.count(result) == 1
    others = [user for user in result.uses if user is not end]
    return is_yielded and all(_branch_around(user, loop) is not None for user in others)


def carried_accumulator(op: WgmmaOp) -> Value:
    """The accumulator of the first dot in a chain of dots."""
    while isinstance(op.acc.op, WgmmaOp):
        op = op.acc.op
    return op.acc


def last_of_chains(dots: Sequence[WgmmaOp]) -> list[WgmmaOp]:
    """The last dot of each chain."""
    return [dot for dot in dots if not _is_added_to(dot)]


def _is_added_to(op: WgmmaOp) -> bool:
    """Whether another dot of the same block adds to the result of a dot."""
    users = list(op.result.uses)
    user = users[0] if len(users) == 1 else None
    return isinstance(user, WgmmaOp) and user.acc is op.result and user.parent is op.parent


def wait_in_branches(dot: WgmmaOp, loop: ForOp) -> None:
    """Make the branches that read a deferred accumulator wait for it."""
    accumulator = value = dot.result
    branches = dict.fromkeys(_branch_around(user, loop) for user in accumulator.uses)
    for branch in [op for op in loop.body if op in branches]:
        assert isinstance(branch, IfOp)
        value = add_choice(branch, [_waited(accumulator, value, block) for block in branch.regions])
    slot = carried_accumulator(dot).index - 1
    loop.body.terminator.set_operand(slot, value)


def _waited(accumulator: Value, value: Value, block: Block) -> Value:
    """The accumulator at the end of a block of a branch; `value` is it before the branch."""
    inside = {region for op in block for inner in op.walk() for region in inner.regions} | {block}
    readers = [user for user in accumulator.uses if user.parent in inside]
    if not readers:
        return value
    ended = Builder(block, block.first).value(WgmmaWaitOp(value))
    for user in readers:
        Rewriter.replace_operand(user, accumulator, ended)
    return ended


def _branch_around(op: Op, loop: ForOp) -> IfOp | None:
    """The branch in the body of a loop that contains an op."""
    block = op.parent
    while block is not None and block is not loop.body and isinstance(block.owner, Op):
        op, block = block.owner, block.owner.parent
    return op if block is loop.body and isinstance(op, IfOp) else None


def _is_stable(value: Value, loop: ForOp) -> bool:
    """Whether an operand is unchanged, or can be kept, for another iteration."""
    if isinstance(value.type, TileType) and dtype_of(value.type).bits < REGISTER_BITS:
        # Elements that share a register are packed for each dot, which writes registers.
        return False
    inside = {region for op in loop.walk() for region in op.regions}
    where = value.block
    return where not in inside or isinstance(value.op, ShareOp)


def _source(op: ShareOp) -> Value:
    """The tile that is written to shared memory, before a transposition."""
    return op.x.op.x if isinstance(op.x.op, TransposeOp) else op.x
