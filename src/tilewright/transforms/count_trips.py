"""Trip counts and index spans of loops, as values emitted before them."""

from __future__ import annotations

from typing import cast

from tilewright.ir import Builder, Value
from tilewright.ir.types import DType, dtype_named
from tilewright.ops import ConstantOp, ForOp


def index_span(builder: Builder, loop: ForOp) -> Value:
    """max(upper - lower, 0), in the unsigned type of the index's width."""
    index = cast("DType", loop.lower.type)
    highest = builder.max(loop.lower, loop.upper)
    # May wrap in the signed type; as an unsigned number it is exact.
    difference = builder.sub(highest, loop.lower)
    return builder.cast(difference, dtype_named(f"u{index.bits}"))


def trip_count(builder: Builder, loop: ForOp) -> Value:
    """ceil(max(upper - lower, 0) / step), in the unsigned type of the index's width.

    Exact for all bounds of the type: the largest span, 2^bits - 1, is a number of the result.
    """
    span = index_span(builder, loop)
    if isinstance(loop.step.op, ConstantOp) and loop.step.op.value == 1:
        return span
    unsigned = span.type
    step = builder.cast(loop.step, unsigned)
    # Not (span + step - 1) / step, which wraps for the largest spans.
    whole = builder.div(span, step)
    covered = builder.mul(whole, step)
    is_rest = builder.lt(covered, span)
    return builder.add(whole, builder.cast(is_rest, unsigned))
