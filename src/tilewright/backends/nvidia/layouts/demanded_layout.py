"""The layout in which users need a cheap tile that a loop carries or a branch chooses.

    %rows = cf.for ... (%r: tile<128xi32>) {
      %s = cf.if %next { ... } { cf.yield %r }        in which layout?
      %p = tile.expand_dims %s {axis = 1}             made in A without its dim 1
      %q = mem.offset %a, %p                          made in A
      %x = mem.load %q                                coalesced: A
      cf.yield %s
    }

A tile that is made where it is used is made in each layout that is required. One that a loop
carries, or that a branch chooses, has one: any other would be converted in each iteration. A tile
that meets others in an element-wise op follows these:

    %s = nvidia.wgmma ... : tile<128x128xf32, D>
    %m = cf.if %all { cf.yield %zero } else { ... }     made in D
    %t = arith.add %s, %m
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.backends.nvidia.layouts.layout_context import LayoutContext
from tilewright.backends.nvidia.layouts.layout_rules import rule_of
from tilewright.ir import Op, Trait, Value
from tilewright.layout import LinearLayout
from tilewright.ops import BroadcastOp, ExpandDimsOp, ForOp, IfOp, LoadOp, StoreOp, YieldOp


def demanded_layout(value: Value, context: LayoutContext) -> LinearLayout | None:
    """The layout that the first user requires of a tile, through cheap ops; None if none does."""
    return _demand(value, context, set())


def _demand(value: Value, context: LayoutContext, seen: set[Value]) -> LinearLayout | None:
    if value in seen:
        return None
    seen.add(value)
    for user in value.uses:
        layout = _demand_of_user(user, value, context, seen)
        if layout is not None:
            return layout
    return None


def _demand_of_user(
    user: Op, value: Value, context: LayoutContext, seen: set[Value]
) -> LinearLayout | None:
    rule = rule_of(user)
    if isinstance(user, LoadOp):
        return rule.result(user, context)
    if isinstance(user, StoreOp):
        return rule.source(user, context)
    if isinstance(user, YieldOp | ForOp):
        demands = (_demand(slot, context, seen) for slot in _passed_to(user, value))
        return next((layout for layout in demands if layout is not None), None)
    if not (Trait.ELEMENTWISE in user.traits or isinstance(user, BroadcastOp | ExpandDimsOp)):
        return None
    others = [operand for operand in user.operands if operand is not value]
    made = context.deciding_layout(others) or _demand(user.results[0], context, seen)
    return None if made is None else rule.operand(user, user.operands.index(value), made)


def _passed_to(user: YieldOp | ForOp, value: Value) -> Iterator[Value]:
    """Results and loop-carried values that an initial or yielded value becomes."""
    block = user.parent
    owner = user if isinstance(user, ForOp) else block.owner if block is not None else None
    if not isinstance(owner, ForOp | IfOp):
        return
    given = owner.inits if user is owner and isinstance(owner, ForOp) else user.operands
    for slot, operand in enumerate(given):
        if operand is value:
            yield owner.results[slot]
            if isinstance(owner, ForOp):
                yield owner.carried[slot]
