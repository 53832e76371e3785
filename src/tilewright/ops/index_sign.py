"""Sign analysis of integers: from the ops that compute them, or by an assumption on tile indices.

    %pid                              non-negative      program ids, sizes, ranges from 0 on
    %g = div %pid, %per_group         assumed           as long as the divisor is above 0
    %m = add (mul %g, 8), (rem ...)   assumed           by sums, products, ... of assumed numbers
    %d = sub %tiles, %m               unknown           a difference may be negative

Sums and products of such numbers are assumed not to wrap, so that this analysis serves addresses
only; `analysis/integer_ranges.py` has the ranges of integers. docs/adr/0022-tile-indices-start-at-
zero.md states the assumption and its users. The compiler derives signs for all runs, the
interpreter for the values of one run, by the same rules.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import cast

from tilewright.ir import Op
from tilewright.ir.types import DType, PointerType, Type, element_of
from tilewright.ops.arith import (
    AddOp,
    AndOp,
    CastOp,
    ConstantOp,
    DivOp,
    MaxOp,
    MinOp,
    MulOp,
    OrOp,
    RemOp,
    SelectOp,
    ShlOp,
    ShrOp,
    XorOp,
)
from tilewright.ops.control import NumProgramsOp, ProgramIdOp
from tilewright.ops.shape import (
    BroadcastOp,
    CatOp,
    ExpandDimsOp,
    HintOp,
    ItemOp,
    JoinOp,
    RangeOp,
    ReshapeOp,
    SplatOp,
    SplitOp,
    TransposeOp,
)

LARGEST_FACTOR = 1024
"""Constants up to the size of a block are part of tile indices; larger ones may be of a hash."""


class Sign(enum.IntEnum):
    """The sign of all elements, as far as it is known; the stronger claim is greater.

    ASSUMED: not negative, provided that no division involved has a negative divisor.
    """

    UNKNOWN = 0
    ASSUMED = 1
    NON_NEGATIVE = 2


Signs = Sequence[Sign]
Rule = Callable[[Op, Signs], Sign]


def sign_of(op: Op, type_: Type, signs: Signs) -> Sign:
    """The sign of a result of a type, from the signs of the operands."""
    element = element_of(type_)
    if isinstance(element, PointerType) or not (element.is_float or element.is_signed):
        return Sign.NON_NEGATIVE
    if element.is_float:
        return Sign.UNKNOWN
    rule = _RULES.get(type(op))
    return rule(op, signs) if rule is not None else Sign.UNKNOWN


def _first(op: Op, signs: Signs) -> Sign:
    return signs[0]


def _least(op: Op, signs: Signs) -> Sign:
    return min(signs)


def _greatest(op: Op, signs: Signs) -> Sign:
    return max(signs)


def _always(op: Op, signs: Signs) -> Sign:
    return Sign.NON_NEGATIVE


def _constant(op: Op, signs: Signs) -> Sign:
    return _known(cast("int", op.attrs["value"]) >= 0)


def _range(op: Op, signs: Signs) -> Sign:
    return _known(cast("int", op.attrs["start"]) >= 0)


def _quotient(op: Op, signs: Signs) -> Sign:
    """The assumption: a divisor of a tile index is a number of tiles, which is positive."""
    return min(signs[0], max(signs[1], Sign.ASSUMED))


def _cast(op: Op, signs: Signs) -> Sign:
    """Extension preserves the sign; truncation may make a number negative."""
    source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
    if not isinstance(source, DType) or source.is_float:
        return Sign.UNKNOWN
    kept = target.bits > source.bits or source is target
    return signs[0] if kept else Sign.UNKNOWN


def _selected(op: Op, signs: Signs) -> Sign:
    return min(signs[1:])


def _known(holds: bool) -> Sign:
    return Sign.NON_NEGATIVE if holds else Sign.UNKNOWN


_RULES: dict[type[Op], Rule] = {
    ConstantOp: _constant,
    RangeOp: _range,
    CastOp: _cast,
    DivOp: _quotient,
    SelectOp: _selected,
    **dict.fromkeys((ProgramIdOp, NumProgramsOp), _always),
    # the highest bit of a bit pattern is its sign
    **dict.fromkeys((AddOp, MulOp, MinOp, OrOp, XorOp, JoinOp, CatOp), _least),
    **dict.fromkeys((MaxOp, AndOp), _greatest),
    # a remainder has the sign of the dividend
    **dict.fromkeys((RemOp, ShlOp, ShrOp), _first),
    **dict.fromkeys((SplatOp, ItemOp, HintOp, ExpandDimsOp, BroadcastOp), _first),
    **dict.fromkeys((TransposeOp, ReshapeOp, SplitOp), _first),
}
