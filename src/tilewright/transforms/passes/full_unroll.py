"""Replace short loops of constant bounds by copies of their body.

    cf.for 0, 4096, 2048, %x (%i, %a) { ... }       ->       ... at 0; ... at 2048

Constants fold in the copies: the first iteration's case, and values that depend on the index alone.
Loops with hints for unrolling or pipelining remain loops.
"""

from __future__ import annotations

from math import prod

from tilewright.ir import Builder, Effect, Function, Op, Pass, Rewriter, Value
from tilewright.ir.types import shape_of
from tilewright.ops import DotOp, ForOp
from tilewright.support.data_class import dataclass
from tilewright.transforms.rules import constant_of

_MAX_ITERATIONS = 8


@dataclass(frozen=True)
class FullUnroll(Pass, name="full-unroll"):
    """Fully unroll short loops.

    limit: largest number of elements that the ops of all copies of one loop compute
    """

    limit: int = 0

    def run(self, function: Function) -> bool:
        loops = [op for op in function.walk() if isinstance(op, ForOp)]
        # Inner loops first: an outer loop's copies then hold straight code.
        changed = [_unroll(loop, self.limit) for loop in reversed(loops)]
        return any(changed)


def _unroll(loop: ForOp, limit: int) -> bool:
    indices = _constant_indices(loop)
    has_hint = loop.unroll is not None or loop.stages is not None or not loop.licm
    if has_hint or indices is None or any(map(_prefers_loop, loop.walk())):
        return False
    computed = (result for op in loop.body.walk() for result in op.results)
    work = sum(prod(shape_of(result.type)) for result in computed)
    if len(indices) > _MAX_ITERATIONS or len(indices) * work > limit:
        return False
    builder = Builder.at(loop)
    carried: list[Value] = list(loop.inits)
    for number in indices:
        index = builder.constant(number, loop.lower.type)
        carried = Rewriter.inline_block(loop.body, (index, *carried), builder)
    Rewriter.replace(loop, carried)
    return True


def _prefers_loop(op: Op) -> bool:
    """Whether an op gains from a loop around it.

    Dots overlap with copies of later iterations. For writes, the loop index proves that iterations
    access different memory.
    """
    return isinstance(op, DotOp) or not op.effects.isdisjoint((Effect.WRITE, Effect.BARRIER))


def _constant_indices(loop: ForOp) -> range | None:
    """The index of each iteration, if bounds and step are constants."""
    lower, upper, step = (constant_of(value) for value in (loop.lower, loop.upper, loop.step))
    if lower is None or upper is None or step is None or step <= 0:
        return None
    return range(int(lower), int(upper), int(step))
