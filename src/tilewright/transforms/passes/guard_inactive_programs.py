"""Guard programs whose stores are all masked off by one condition.

    %in = arith.compare %row, %rows {"lt"}       %in = arith.compare %row, %rows {"lt"}
    %m = tile.splat %in                          cf.if %in {
    %x = mem.load %p, %m                    ->     %x = mem.load %p
    %s = arith.select %m, %x, %zero                mem.store %q, %x
    mem.store %q, %s, %m                         }

Masks of whole rows, with one row per program, are then tested once, not by each load and reduction.
"""

from __future__ import annotations

from functools import reduce

from tilewright.ir import Block, Builder, Effect, Function, Op, Pass, Rewriter, Value
from tilewright.ir.types import TileType
from tilewright.ops import (
    AndOp,
    BarrierOp,
    BroadcastOp,
    ConstantOp,
    DotOp,
    ExpandDimsOp,
    IfOp,
    SplatOp,
    StoreOp,
    YieldOp,
)


class GuardInactivePrograms(Pass, name="guard-inactive-programs"):
    """Branch around all ops after a condition that masks every store."""

    def run(self, function: Function) -> bool:
        # Dots are pipelined by passes that expect loops at the top level.
        if any(isinstance(op, DotOp) for op in function.walk()):
            return False
        conditions = _common_conditions(function)
        chosen = next((op for op in function.body if not conditions.isdisjoint(op.results)), None)
        if chosen is None:
            return False
        _branch(chosen)
        return True


def _common_conditions(function: Function) -> set[Value]:
    """Scalars that mask every store; none if there are other effects."""
    acting = [op for op in function.walk() if op.effects - {Effect.READ}]
    stores = [op for op in acting if not isinstance(op, BarrierOp)]
    if not stores or not all(isinstance(op, StoreOp) and op.mask is not None for op in stores):
        return set()
    found = [_implied(op.mask) for op in stores if isinstance(op, StoreOp) and op.mask is not None]
    return reduce(set[Value].intersection, found)


def _implied(mask: Value) -> set[Value]:
    """Scalars that are true wherever an element of a mask is."""
    op = mask.op
    if isinstance(op, AndOp):
        return _implied(op.lhs) | _implied(op.rhs) | _scalars(mask)
    if isinstance(op, SplatOp | BroadcastOp | ExpandDimsOp):
        return _implied(op.x)
    return _scalars(mask)


def _scalars(value: Value) -> set[Value]:
    is_known = isinstance(value.type, TileType) or isinstance(value.op, ConstantOp)
    return set() if is_known else {value}


def _branch(chosen: Op) -> None:
    """Move all ops after a condition into a branch."""
    condition, block = chosen.result, chosen.parent
    assert block is not None
    then, orelse = Block(), Block()
    builder = Builder(then, None, chosen.loc)
    # all uses of the condition come after it
    Rewriter.replace_uses(condition, builder.constant(True, condition.type))
    following = chosen.next
    while following is not None and following.next is not None:
        op, following = following, following.next
        block.detach(op)
        then.insert(op)
    builder.emit(YieldOp(()))
    Builder(orelse, None, chosen.loc).emit(YieldOp(()))
    assert following is not None
    Builder.at(following).emit(IfOp(condition, then, orelse))
