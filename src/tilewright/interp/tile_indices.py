"""Tracks tile indices through a run, and reports negative ones under `%`.

Compiled kernels load the tile `(index * BLOCK + tl.arange(0, BLOCK)) % n` as if `index` were not
negative (docs/adr/0022-tile-indices-start-at-zero.md). Here the rules by which the compiler assumes
that (`ops/index_sign.py`) are applied to the values of a run, which checks the assumption.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tilewright.interp.concrete_value import ConcreteValue, Work
from tilewright.interp.numpy_dtypes import Array
from tilewright.ir import Op
from tilewright.ops import (
    LARGEST_FACTOR,
    AddOp,
    ConstantOp,
    DivOp,
    LoadOp,
    MinOp,
    MulOp,
    ProgramIdOp,
    RemOp,
    Sign,
    SubOp,
    sign_of,
)
from tilewright.support import errors


class Quotient(NamedTuple):
    """The operands of a scalar x // n."""

    dividend: Array
    divisor: Array


class Multiple(NamedTuple):
    """The elements of x in a scalar x // n * n."""

    dividend: Array


def follow_sign(op: Op, result: ConcreteValue, inputs: Sequence[ConcreteValue]) -> None:
    """Set the sign of a result from those of the operands."""
    result.sign = sign_of(op, result.type, [value.sign for value in inputs])
    if isinstance(op, DivOp) and result.sign is Sign.ASSUMED and np.ptp(inputs[1].data):
        # Quotients by different numbers are consecutive by chance: the compiler concludes nothing.
        result.sign = Sign.UNKNOWN
    elif result.sign is Sign.ASSUMED and _wraps(result.data, inputs):
        # A number that wraps is no tile index: the compiler concludes nothing from one that may.
        result.sign = Sign.UNKNOWN
    result.work = _work_of(op, result, inputs)
    # tiles of such quotients are not tile indices
    if isinstance(op, (DivOp, MulOp, SubOp)) and not result.data.shape:
        _follow_remainder(op, result, *inputs)


def _work_of(op: Op, result: ConcreteValue, inputs: Sequence[ConcreteValue]) -> Work:
    """The part of a result in a program's work, as `analysis/index_relations.py` has it."""
    if isinstance(op, ProgramIdOp):
        return Work.DERIVED | Work.FIRST
    if isinstance(op, ConstantOp):
        return Work.LITERAL
    if isinstance(op, LoadOp) or not inputs:
        return Work.NONE
    found = Work.NONE
    for value in inputs:
        found |= value.work & (Work.DERIVED | Work.BROKEN)
    if not found or result.data.shape:
        return found
    if isinstance(op, AddOp | MulOp | MinOp) and _is_first(inputs):
        # A product or sum that is the first of a program's steps must fit its type.
        return found | Work.FIRST | (Work.BROKEN if result.data < 0 else Work.NONE)
    if isinstance(op, DivOp | RemOp) and inputs[0].data >= 0 > inputs[1].data:
        return found | Work.BROKEN
    return found


def _is_first(operands: Sequence[ConcreteValue]) -> bool:
    """Whether the operands are first steps, arguments that are not negative and small constants."""
    return any(Work.FIRST in x.work for x in operands) and all(
        x.data <= LARGEST_FACTOR if Work.LITERAL in x.work else x.sign is Sign.NON_NEGATIVE
        for x in operands
    )


def _wraps(result: Array, inputs: Sequence[ConcreteValue]) -> bool:
    """Whether a result of non-negative operands is non-negative."""
    return bool(result.min() < 0) and all(value.data.min() >= 0 for value in inputs)


def _follow_remainder(op: Op, result: ConcreteValue, x: ConcreteValue, y: ConcreteValue) -> None:
    """x - x // n * n has the sign of x. Arrays are stored: values would hold their operands."""
    if isinstance(op, DivOp):
        result.part = Quotient(x.data, y.data)
    elif isinstance(op, MulOp):
        for part, factor in ((x.part, y), (y.part, x)):
            if isinstance(part, Quotient) and part.divisor == factor.data:
                result.part = Multiple(part.dividend)
    elif isinstance(y.part, Multiple) and y.part.dividend is x.data:
        result.sign = x.sign


def check_dividend(dividend: ConcreteValue) -> None:
    """Raise NegativeTileIndex if the dividend is a tile index whose sign was only assumed."""
    x, assumed = dividend.data, dividend.sign is Sign.ASSUMED or Work.BROKEN in dividend.work
    if not assumed or not x.shape or x.min() >= 0:
        return
    # Nothing is concluded from the sign of a tile without runs of consecutive elements.
    with np.errstate(over="ignore"):
        runs = any(np.any(np.diff(x, axis=axis) == 1) for axis in range(x.ndim))
    if runs:
        raise errors.NegativeTileIndex(int(x.min()))
