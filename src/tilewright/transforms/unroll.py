"""Unrolls the loops that ask for it, `tl.range(..., loop_unroll_factor=4)`, and short ones. Before:

    %r = cf.for %low, %high, %step, %x {unroll = 4} (%i, %a) { ... }

After: a loop over the iterations that come in groups of 4, and one over the rest, which later
passes remove if there is none.

    %groups = ((%high - %low) as unsigned) / (4 * %step) * (4 * %step)
    %m = cf.for %low, %low + %groups, 4 * %step, %x (%i, %a) { ... at %i; ... at %i + %step; ... }
    %r = cf.for %low + %groups, %high, %step, %m (%i, %a) { ... }

A loop of few iterations whose bounds are constants becomes as many copies of its body, if asked for
by `short`: first iterations that differ, and numbers that follow from how many there were, fold.

    cf.for 0, 4096, 2048, %x (%i, %a) { ... }       ->       ... at 0; ... at 2048

A loop stays as it is where a step of a group would not fit the type of the index, and where its
step is not positive, so that it never runs.
"""

from __future__ import annotations

from math import prod
from typing import cast

from tilewright.ir import Block, Builder, Effect, Function, Op, Pass, Rewriter, Value
from tilewright.ir.types import DType, shape_of
from tilewright.ops import AddOp, CastOp, ConstantOp, DivOp, DotOp, ForOp, MulOp, YieldOp
from tilewright.support.data_class import dataclass
from tilewright.transforms.count_trips import index_span
from tilewright.transforms.rules import constant_of

_MOST_ITERATIONS = 8
"""Of a loop that becomes straight code without being asked to."""


@dataclass(frozen=True)
class Unroll(Pass, name="unroll"):
    """Unroll loops by their hint, and short ones without hints.

    limit: copies of a body that are made at most; short: elements that the ops of all copies of a
    loop compute at most, if it becomes straight code
    """

    limit: int = 64
    short: int = 0

    def run(self, function: Function) -> bool:
        loops = [op for op in function.walk() if isinstance(op, ForOp)]
        # Inner loops first: their copies are unrolled already when an outer body is repeated.
        changed = [
            _unroll(loop, self.limit) or _flatten(loop, self.short) for loop in reversed(loops)
        ]
        return any(changed)


def _flatten(loop: ForOp, most: int) -> bool:
    """Replace a loop by copies of its body, one for each iteration."""
    indices = _known_indices(loop)
    has_hint = loop.unroll is not None or loop.stages is not None or not loop.licm
    if has_hint or indices is None or any(map(_is_for_loops, loop.walk())):
        return False
    computed = (result for op in loop.body.walk() for result in op.results)
    work = sum(prod(shape_of(result.type)) for result in computed)
    if len(indices) > _MOST_ITERATIONS or len(indices) * work > most:
        return False
    builder = Builder.at(loop)
    carried: list[Value] = list(loop.inits)
    for number in indices:
        index = builder.value(ConstantOp(number, loop.lower.type))
        carried = Rewriter.inline_block(loop.body, (index, *carried), builder)
    Rewriter.replace(loop, carried)
    return True


def _is_for_loops(op: Op) -> bool:
    """Whether an op is better off in a loop: products overlap with the copies of later iterations,
    and of what writes to memory it is the index that tells that iterations are apart."""
    return isinstance(op, DotOp) or not op.effects.isdisjoint((Effect.WRITE, Effect.BARRIER))


def _known_indices(loop: ForOp) -> range | None:
    """The index of each iteration, where constants say so."""
    lower, upper, step = (constant_of(value) for value in (loop.lower, loop.upper, loop.step))
    if lower is None or upper is None or step is None or step <= 0:
        return None
    return range(int(lower), int(upper), int(step))


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
    wide = builder.value(ConstantOp(stride, index))
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
    size = builder.value(ConstantOp(stride, span.type))
    groups = builder.value(MulOp(builder.value(DivOp(span, size)), size))
    return builder.value(AddOp(loop.lower, builder.value(CastOp(groups, loop.lower.type))))


def _repeated(loop: ForOp, factor: int) -> Block:
    """The body several times, each with the index of its iteration."""
    body = Block((loop.lower.type, *[arg.type for arg in loop.carried]))
    for new, old in zip(body.args, loop.body.args, strict=True):
        new.name = old.name
    builder = Builder(body, None, loop.loc)
    index, carried = body.args[0], list(body.args[1:])
    for repetition in range(factor):
        if repetition:
            index = builder.value(AddOp(index, loop.step))
        carried = Rewriter.inline_block(loop.body, (index, *carried), builder)
    builder.emit(YieldOp(tuple(carried)))
    return body
