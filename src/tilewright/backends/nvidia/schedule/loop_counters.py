"""Carries numbers through loops in loops: which slot of a ring an iteration has, and its parity.

    cf.for %p = ... {                        cf.for %p = ... (%s = 0) {
      cf.for %k = ... { ... }        ->        %t = cf.for %k = ... (%u = %s) { cf.yield %u + 1 }
    }                                          cf.yield %t
                                             }

So they go on where the next iteration of an outer loop begins.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tilewright.ir import Block, Builder, Op, Value
from tilewright.ops import ForOp, IfOp
from tilewright.support.data_class import dataclass
from tilewright.transforms import add_choice, add_slot, yield_more


@dataclass(frozen=True, slots=True)
class LoopValues:
    """Carried values where a loop begins, as its body has and yields them, and behind it."""

    entering: Sequence[Value]
    inside: Sequence[Value]
    left: Sequence[Value]
    behind: Sequence[Value]


def carry_through(
    loops: Collection[Op],
    block: Block,
    values: Sequence[Value],
    following: Callable[[Builder, Sequence[Value]], Sequence[Value]],
    found: dict[Op, LoopValues],
    behind: bool = False,
) -> Sequence[Value]:
    """Carry values through some loops of a block one after the other, and all that is around them;
    returns them at the end of the block.

    following: what an iteration of these makes of them, at its end; found: as the loops have them;
    behind: whether what follows each of these loops counts as an iteration more
    """
    for op in list(block):
        if not any(inner in loops for inner in op.walk()):
            continue
        if isinstance(op, ForOp):
            entering, inside = values, [add_slot(op, value, "")[0] for value in values]
            if op in loops:
                left = following(Builder.at(op.body.terminator), inside)
            else:
                left = carry_through(loops, op.body, inside, following, found, behind)
            for value in left:
                yield_more(op, value)
            values = op.results[-len(left) :]
            found[op] = LoopValues(entering, inside, left, values)
            if behind and op in loops:
                values = following(Builder.after(op), values)
        else:
            assert isinstance(op, IfOp), op
            ends = [carry_through(loops, b, values, following, found, behind) for b in op.regions]
            values = [add_choice(op, pair) for pair in zip(*ends, strict=True)]
    return values
