"""Affine arithmetic on lanes, so that addresses stay contiguous.

Each rule takes evaluated operands and returns the evaluated result, or None where the lanes have to
become a vector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilewright.backends.cpu.lower.lane_values import Address, LaneMath, Lanes, holds
from tilewright.ir import Op
from tilewright.ir.types import DType, PointerType, dtype_of, element_of
from tilewright.llvm import llvm_type
from tilewright.ops import (
    AddOp,
    AndOp,
    BroadcastOp,
    CastOp,
    CompareOp,
    ExpandDimsOp,
    MulOp,
    OffsetOp,
    ReshapeOp,
    SelectOp,
    SubOp,
    TransposeOp,
)

Evaluated = Lanes | Address
Affine = Callable[[LaneMath, Op, list[Evaluated]], Evaluated | None]


def _affine_sum(math: LaneMath, op: Op, operands: list[Evaluated]) -> Evaluated | None:
    x, y = operands
    if isinstance(x, Address) or isinstance(y, Address) or dtype_of(op.results[0].type).is_float:
        return None
    if x.is_vector or y.is_vector:
        return None
    return math.add(x, y, "add" if isinstance(op, AddOp) else "sub")


def _affine_matmul(math: LaneMath, op: Op, operands: list[Evaluated]) -> Evaluated | None:
    x, y = operands
    if isinstance(x, Address) or isinstance(y, Address) or dtype_of(op.results[0].type).is_float:
        return None
    return None if x.is_vector or y.is_vector else math.multiply(x, y)


def _affine_cast(math: LaneMath, op: Op, operands: list[Evaluated]) -> Evaluated | None:
    source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
    x = operands[0]
    if isinstance(source, PointerType) and isinstance(target, PointerType):
        # An offset counts elements: under another element size it would mean other bytes.
        moves = isinstance(x, Address) and x.offset is not None
        return None if moves and source.element.bytes != target.element.bytes else x
    if isinstance(source, PointerType) or isinstance(target, PointerType):
        return None
    if isinstance(x, Address) or not x.is_affine or not _widens(source, target):
        return None
    # Widening the base alone is wrong where the narrow number wraps between two lanes.
    if target.bits > source.bits and not math.counts_up(x) and not _only_addresses(op):
        return None
    return math.widen(x, source.is_signed, llvm_type(target))


_INDEX_ARITHMETIC = (
    AddOp,
    SubOp,
    MulOp,
    CastOp,
    BroadcastOp,
    ExpandDimsOp,
    TransposeOp,
    ReshapeOp,
)


def _only_addresses(op: Op) -> bool:
    """Whether a number serves to form addresses and their masks only: then it is assumed not to
    wrap. One that is compared and nothing else is data."""
    reached: set[Op] = set()
    stack, addresses = [op], False
    while stack:
        for user in stack.pop().result.uses:
            addresses = addresses or isinstance(user, OffsetOp)
            if isinstance(user, OffsetOp | CompareOp) or user in reached:
                continue
            if not isinstance(user, _INDEX_ARITHMETIC):
                return False
            reached.add(user)
            stack.append(user)
    return addresses


def _widens(source: DType, target: DType) -> bool:
    return source.is_integer and target.is_integer and target.bits >= source.bits


def _select_same(math: LaneMath, op: Op, operands: list[Evaluated]) -> Evaluated | None:
    condition, x, y = operands
    if (
        isinstance(condition, Lanes)
        and condition.is_uniform
        and condition.base.constant is not None
    ):
        return x if condition.base.constant else y
    return x if x == y else None


def _both_hold(math: LaneMath, op: Op, operands: list[Evaluated]) -> Evaluated | None:
    """A condition and one that is known to hold; it stays where that is known."""
    if not dtype_of(op.results[0].type).is_bool:
        return None
    for known, other in (operands, operands[::-1]):
        if isinstance(known, Lanes) and isinstance(other, Lanes) and holds(known):
            level = max(known.base.level, other.base.level)
            return replace(other, base=replace(other.base, level=level))
    return None


AFFINE: dict[type[Op], Affine] = {
    AndOp: _both_hold,
    AddOp: _affine_sum,
    SubOp: _affine_sum,
    MulOp: _affine_matmul,
    CastOp: _affine_cast,
    SelectOp: _select_same,
}
