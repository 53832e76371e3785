"""Identities of structured control flow: branches and loops with compile-time conditions."""

from __future__ import annotations

from tilewright.ir import RuleContext, RuleSet, Value, rule
from tilewright.ops import ForOp, IfOp, WhileOp
from tilewright.transforms.region_slots import Loop, passes_through, remove_slots, views, yielded
from tilewright.transforms.rules.counted_while import counted_while
from tilewright.transforms.rules.exact_arithmetic import constant_of


@rule(IfOp)
def constant_branch(op: IfOp, ctx: RuleContext) -> tuple[Value, ...] | None:
    """if true: a else: b -> a"""
    condition = constant_of(op.condition)
    if condition is None:
        return None
    return ctx.inline(op.then if condition else op.orelse)


@rule(ForOp)
def loop_without_trip(op: ForOp, ctx: RuleContext) -> tuple[Value, ...] | None:
    """for i in range(c1, c2): ... -> initial values, if c1 >= c2"""
    lower, upper = constant_of(op.lower), constant_of(op.upper)
    if lower is None or upper is None or lower < upper:
        return None
    return op.inits


@rule(ForOp)
def loop_with_one_trip(op: ForOp, ctx: RuleContext) -> tuple[Value, ...] | None:
    """for i in range(c1, c2, c3): body(i) -> body(c1), if c1 < c2 <= c1 + c3"""
    lower, upper, step = constant_of(op.lower), constant_of(op.upper), constant_of(op.step)
    # as Python's integers, i + step of a `cf.for` does not wrap
    if lower is None or upper is None or step is None or not lower < upper <= lower + step:
        return None
    return ctx.inline(op.body, (op.lower, *op.inits))


@rule(ForOp, WhileOp)
def unchanging_carried(op: Loop, ctx: RuleContext) -> tuple[Value, ...] | None:
    """for ... carries x: yield x -> the initial x, inside and after the loop; also for while"""
    same = [slot for slot in range(len(op.results)) if _is_unchanging(op, slot)]
    if not same:
        return None
    # a copy without the slots, since the driver erases the matched op
    fresh = ctx.emit(op.clone({}))
    replaced = list(fresh.results)
    for slot in same:
        replaced[slot] = op.inits[slot]
        for view in views(fresh, slot):
            ctx.replace_uses(view, op.inits[slot])
    remove_slots(fresh, same)
    return tuple(replaced)


def _is_unchanging(loop: Loop, slot: int) -> bool:
    same = (loop.inits[slot], *views(loop, slot))
    return passes_through(loop, slot) and yielded(loop, slot) in same


CONTROL = RuleSet(
    (
        constant_branch,
        loop_without_trip,
        loop_with_one_trip,
        unchanging_carried,
        counted_while,
    )
)
"""In the order in which they are tried."""
