"""Unroll loops by their hint, `tl.range(..., loop_unroll_factor=4)`. Before:

    %r = cf.for %low, %high, %step, %x {unroll = 4} (%i, %a) { ... }

After: a loop over the iterations that come in groups of 4, and one over the rest, which later
passes remove if there is none.

    %groups = ((%high - %low) as unsigned) / (4 * %step) * (4 * %step)
    %m = cf.for %low, %low + %groups, 4 * %step, %x (%i, %a) { ... at %i; ... at %i + %step; ... }
    %r = cf.for %low + %groups, %high, %step, %m (%i, %a) { ... }

A loop stays as it is where a step of a group would not fit the type of the index, and where its
step is not positive, so that it never runs.
"""

from __future__ import annotations

from typing import cast

from tilewright.ir import Block, Builder, Function, Pass, Rewriter, Value
from tilewright.ir.types import DType
from tilewright.ops import ConstantOp, ForOp, YieldOp
from tilewright.support.data_class import dataclass
from tilewright.transforms.count_trips import index_span


@dataclass(frozen=True)
class Unroll(Pass, name="unroll"):
    """Unroll loops by their hint.

    limit: largest number of copies of a body
    """

    limit: int = 64

    def run(self, function: Function) -> bool:
        loops = [op for op in function.walk() if isinstance(op, ForOp)]
        # Inner loops first: their copies are unrolled already when an outer body is repeated.
        changed = [_unroll(loop, self.limit) for loop in reversed(loops)]
        return any(changed)


def _unroll(loop: ForOp, limit: int) -> bool:
    factor = min(loop.unroll or 1, limit)
    index, step = cast("DType", loop.lower.type), loop.step.op
    if factor < 2 or not index.is_integer or not isinstance(step, ConstantOp):
        return False
    stride = int(step.value) * factor
    # The step of a group must be a number of the index's type.
    if not 0 < stride <= index.max_int:
        return False
    builder = Builder.at(loop)
    middle = _end_of_groups(builder, loop, stride)
    body = _repeated(loop, factor)
    attrs = dict(loop.attrs)
    attrs["unroll"] = None  # neither loop is to be unrolled again
    wide = builder.constant(stride, index)
    grouped = ForOp(loop.lower, middle, wide, loop.inits, body, **attrs)
    builder.emit(grouped)
    # a clone, since the original body is erased with the loop
    rest = ForOp(middle, loop.upper, loop.step, grouped.results, loop.body.clone({}), **attrs)
    builder.emit(rest)
    for old, new in zip(loop.results, rest.results, strict=True):
        new.name = old.name
    Rewriter.replace(loop, rest.results)
    return True


def _end_of_groups(builder: Builder, loop: ForOp, stride: int) -> Value:
    """The index at which no full group is left."""
    span = index_span(builder, loop)
    size = builder.constant(stride, span.type)
    groups = builder.mul(builder.div(span, size), size)
    return builder.add(loop.lower, builder.cast(groups, loop.lower.type))


def _repeated(loop: ForOp, factor: int) -> Block:
    """The body several times, each with the index of its iteration."""
    body = Block((loop.lower.type, *[arg.type for arg in loop.carried]))
    for new, old in zip(body.args, loop.body.args, strict=True):
        new.name = old.name
    builder = Builder(body, None, loop.loc)
    index, carried = body.args[0], list(body.args[1:])
    for repetition in range(factor):
        if repetition:
            index = builder.add(index, loop.step)
        carried = Rewriter.inline_block(loop.body, (index, *carried), builder)
    builder.emit(YieldOp(tuple(carried)))
    return body
