"""Changing what a `cf.for` carries: the one place that takes loops apart.

`rebuild` gives a loop other initial values, block arguments and yields. The body block moves to the
new loop; the old loop is left with an empty one, to be replaced by its user.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir import Block, Builder, Op, Rewriter, Value
from tilewright.ops import ForOp, YieldOp


def is_defined_in(value: Value, block: Block) -> bool:
    """Whether a value is defined in a block or in a region inside it."""
    owner = value.owner
    home = owner if isinstance(owner, Block) else owner.parent
    while home is not None:
        if home is block:
            return True
        home = home.owner.parent if isinstance(home.owner, Op) else None
    return False


def yielded(loop: ForOp) -> list[Value]:
    """The values that the body passes on."""
    return loop.body.terminator.operands


def rebuild(
    loop: ForOp, inits: Sequence[Value], yields: Sequence[Value], builder: Builder
) -> ForOp:
    """A loop with the same body but other carried values, put where `builder` stands.

    The body's arguments after the index must fit `inits` already, and the old loop's results are
    still to be replaced: erase it after that.
    """
    body = loop.body
    end = body.terminator
    Builder(body, None, end.loc).emit(YieldOp(tuple(yields)))
    Rewriter.erase(end)
    loop.regions = (Block(),)
    fresh = ForOp(loop.lower, loop.upper, loop.step, tuple(inits), body, **loop.attrs)
    fresh.loc = loop.loc
    return builder.emit(fresh)


def drop_carried(loop: ForOp, drop: set[int], builder: Builder) -> list[Value | None]:
    """A new loop without some carried values, whose block arguments have no uses any more.

    Returns the new result in place of each old one, None for the dropped ones.
    """
    keep = [i for i in range(len(loop.inits)) if i not in drop]
    inits, yields = loop.inits, yielded(loop)
    kept_yields = [yields[i] for i in keep]
    names = [result.name for result in loop.results]
    body = loop.body
    fresh_inits = [inits[i] for i in keep]
    end = body.terminator
    for index in range(len(end.operands)):  # a dropped argument may still be yielded
        if index in drop:
            end.set_operand(index, inits[index])
    for index in sorted(drop, reverse=True):
        body.remove_arg(index + 1)
    fresh = rebuild(loop, fresh_inits, kept_yields, builder)
    replaced: list[Value | None] = [None] * len(inits)
    for position, index in enumerate(keep):
        fresh.results[position].name = names[index]
        replaced[index] = fresh.results[position]
    return replaced
