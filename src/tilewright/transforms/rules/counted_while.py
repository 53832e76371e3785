"""`while` loops with an index that a constant moves to a bound, as counted loops.

    cf.while %k (%k1) {                           cf.for 0, %k, 64 (%i) {
      cf.condition %k1 > 0, %k1                     %k2 = sub %k, %i
    } (%k2) {                               ->      ...
      ...                                           cf.yield
      cf.yield sub %k2, 64                        }
    }

Passes pipeline and unroll counted loops only, and analyses bound their indices. A `cf.for` exits
where its index would pass the end of its type. There a `while` wraps: it then never exits if the
step is a power of two, since all numbers that it reaches are below the bound. Other steps need a
bound that is known to be far enough from the end.
"""

from __future__ import annotations

from typing import NamedTuple

from tilewright.analysis import integer_range
from tilewright.ir import Block, Builder, Rewriter, RuleContext, Value, rule
from tilewright.ir.types import DType, dtype_named
from tilewright.ops import AddOp, CompareOp, ConstantOp, ForOp, SubOp, WhileOp, YieldOp
from tilewright.transforms.count_trips import trip_count
from tilewright.transforms.rules.exact_arithmetic import constant_of

_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


class _Counter(NamedTuple):
    """The index of a loop. slot: among the carried values; step: negative downwards; bound: the
    number that it stays below, or above; included: whether the bound is reached"""

    slot: int
    step: int
    bound: Value
    included: bool


@rule(WhileOp)
def counted_while(op: WhileOp, ctx: RuleContext) -> tuple[Value, ...] | None:
    """while x < n: ...; x += c -> for x in range(x, n, c); also downwards, and for <="""
    counter = _counter_of(op)
    if counter is None or not _ends_within_type(counter):
        return None
    first = op.inits[counter.slot]
    bound = _outside(ctx, counter)
    lower, upper, step = _bounds(ctx, first, bound, counter.step)
    others = [slot for slot in range(len(op.inits)) if slot != counter.slot]
    inits = [op.inits[slot] for slot in others]
    body = Block((lower.type, *(init.type for init in inits)))
    inside = Builder(body, loc=op.loc)
    args = list(body.args[1:])
    args.insert(counter.slot, _index(inside, first, body.args[0], counter.step))
    yielded = Rewriter.inline_block(op.body, args, inside)
    inside.emit(YieldOp(tuple(yielded[slot] for slot in others)))
    loop = ctx.emit(ForOp(lower, upper, step, tuple(inits), body))
    results = list(loop.results)
    results.insert(counter.slot, _last(ctx, op, loop, counter))
    return tuple(results)


def _counter_of(op: WhileOp) -> _Counter | None:
    """The index that alone decides how often the body runs."""
    go, *passed = op.before.terminator.operands
    compare = go.op
    only = [inner for inner in op.before if not isinstance(inner, ConstantOp)]
    if not isinstance(compare, CompareOp) or only != [compare, op.before.terminator]:
        return None
    if passed != op.before.args:
        return None
    predicate = compare.predicate
    for index, bound, named in (
        (compare.lhs, compare.rhs, predicate),
        (compare.rhs, compare.lhs, _MIRRORED.get(predicate)),
    ):
        is_invariant = bound.block is not op.before or isinstance(bound.op, ConstantOp)
        if index.owner is op.before and is_invariant and named in _MIRRORED:
            step = _step(op, index.index)
            if step and (step > 0) == (named in ("lt", "le")):
                return _Counter(index.index, step, bound, named in ("le", "ge"))
    return None


def _step(op: WhileOp, slot: int) -> int | None:
    """The constant that the body adds to a carried value."""
    old, new = op.body.args[slot], op.body.terminator.operands[slot].op
    if not isinstance(old.type, DType) or not old.type.is_integer or not old.type.is_signed:
        return None
    if isinstance(new, SubOp) and new.lhs is old:
        step = constant_of(new.rhs)
        return None if step is None else -int(step)
    if isinstance(new, AddOp) and old in new.operands:
        step = constant_of(new.rhs if new.lhs is old else new.lhs)
        return None if step is None else int(step)
    return None


def _ends_within_type(counter: _Counter) -> bool:
    """Whether the index does not wrap, or the loop would never exit if it did."""
    bounds = integer_range(counter.bound)
    type_ = counter.bound.type
    assert bounds is not None and isinstance(type_, DType)
    if counter.step > 0:
        last, room = bounds.high, type_.max_int - bounds.high
    else:
        last, room = bounds.low, bounds.low - type_.min_int
    if counter.included and last in (type_.min_int, type_.max_int):
        return False
    size = abs(counter.step)
    return size & (size - 1) == 0 or size - 1 + counter.included <= room


def _outside(ctx: RuleContext, counter: _Counter) -> Value:
    """The bound before the loop, one further where the index reaches it."""
    bound = counter.bound
    if isinstance(bound.op, ConstantOp):
        bound = ctx.constant(bound.op.value, bound.type)
    if not counter.included:
        return bound
    return ctx.add(bound, 1) if counter.step > 0 else ctx.sub(bound, 1)


def _bounds(ctx: RuleContext, first: Value, bound: Value, step: int) -> tuple[Value, Value, Value]:
    """The bounds and the step of the `cf.for`; downwards, it counts the distance from `first`."""
    if step > 0:
        return first, bound, ctx.constant(step, first.type)
    assert isinstance(first.type, DType)
    unsigned = dtype_named(f"u{first.type.bits}")
    # May wrap in the signed type; as an unsigned number it is exact.
    distance = ctx.cast(ctx.sub(ctx.max(first, bound), bound), unsigned)
    return ctx.constant(0, unsigned), distance, ctx.constant(-step, unsigned)


def _index(inside: Builder, first: Value, index: Value, step: int) -> Value:
    return index if step > 0 else inside.sub(first, inside.cast(index, first.type))


def _last(ctx: RuleContext, op: WhileOp, loop: ForOp, counter: _Counter) -> Value:
    """The index after the loop."""
    first = op.inits[counter.slot]
    trips = ctx.cast(trip_count(ctx.builder, loop), first.type)
    return ctx.add(first, ctx.mul(trips, counter.step))
