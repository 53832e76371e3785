"""Carry counters through nested loops: the slot of a ring and its parity.

    cf.for %p = ... {                        cf.for %p = ... (%s = 0) {
      cf.for %k = ... { ... }        ->        %t = cf.for %k = ... (%u = %s) { cf.yield %u + 1 }
    }                                          cf.yield %t
                                             }

So they continue across iterations of an outer loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tilewright.ir import Block, Builder, Op, Value
from tilewright.ops import ForOp, IfOp
from tilewright.support.data_class import dataclass
from tilewright.transforms import add_choice, add_slot, yield_more


@dataclass(frozen=True, slots=True)
class LoopValues:
    """Carried values: on entry to a loop, in its body, as it yields them, and after it."""

    entering: Sequence[Value]
    inside: Sequence[Value]
    left: Sequence[Value]
    after: Sequence[Value]


def carry_through(
    loops: Collection[Op],
    block: Block,
    values: Sequence[Value],
    following: Callable[[Builder, Sequence[Value]], Sequence[Value]],
    found: dict[Op, LoopValues],
    counts_exit: bool = False,
) -> Sequence[Value]:
    """Carry values through some loops of a block, in order, and through all ops around them.

    Returns the values at the end of the block.

    following: the values after an iteration, emitted at its end; found: receives the values of each
    loop; counts_exit: whether the exit of each of these loops counts as an iteration
    """
    for op in list(block):
        if not any(inner in loops for inner in op.walk()):
            continue
        if isinstance(op, ForOp):
            entering, inside = values, [add_slot(op, value, "")[0] for value in values]
            if op in loops:
                left = following(Builder.at(op.body.terminator), inside)
            else:
                left = carry_through(loops, op.body, inside, following, found, counts_exit)
            for value in left:
                yield_more(op, value)
            values = op.results[-len(left) :]
            found[op] = LoopValues(entering, inside, left, values)
            if counts_exit and op in loops:
                values = following(Builder.after(op), values)
        else:
            assert isinstance(op, IfOp), op
            ends = [
                carry_through(loops, b, values, following, found, counts_exit) for b in op.regions
            ]
            values = [add_choice(op, pair) for pair in zip(*ends, strict=True)]
    return values
