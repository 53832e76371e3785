"""Backward slice of a function that the TMA producer warp must execute.

The producer runs the loops and branches of the function by itself, iterations and programs ahead of
the MMA warps. So scalars alone must determine its loads, and no store of the others may affect
them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.analysis import is_fence, roots
from tilewright.backends.nvidia.schedule.schedule_loop import STORES
from tilewright.ir import Block, Function, Op, is_pure
from tilewright.ir.types import TileType
from tilewright.ops import AssertOp, DescriptorLoadOp, ForOp, IfOp
from tilewright.transforms import backward_slice


def has_producer(function: Function, loads: Sequence[DescriptorLoadOp]) -> bool:
    """Whether scalars alone determine the loads, and no store precedes them."""
    if any(isinstance(op, AssertOp) for op in function.walk()):
        # A failed assertion ends threads that the producer would wait for.
        return False
    needed = backward_slice(loads) - set[Op](loads)
    return all(_is_scalar(op) for op in needed) and all(_is_free(load, function) for load in loads)


def is_nested(function: Function, loads: Sequence[DescriptorLoadOp]) -> bool:
    """Whether a loop of loads is nested in another loop or a branch.

    It then needs a producer, since barriers are allocated once.
    """
    return any(len(enclosing(load, function.body)) > 1 for load in loads)


def _is_scalar(op: Op) -> bool:
    if isinstance(op, ForOp | IfOp):
        return True
    return is_pure(op) and not any(isinstance(value.type, TileType) for value in op.results)


def _is_free(load: DescriptorLoadOp, function: Function) -> bool:
    """Whether no store or fence precedes a load; stores in its loops may be to other arrays."""
    outermost = enclosing(load, function.body)[0]
    starts, op = roots(load.pointer), outermost.prev
    while op is not None:
        # TMA does not see stores of threads without a proxy fence.
        if any(is_fence(inner) or isinstance(inner, STORES) for inner in op.walk()):
            return False
        op = op.prev
    return not any(
        is_fence(op) or (isinstance(op, STORES) and roots(op.pointer) & starts)
        for op in outermost.walk()
    )


def enclosing(op: Op, block: Block) -> list[Op]:
    """The ops in a block, and in blocks nested in it, that contain an op; the outermost first."""
    found: list[Op] = []
    while op.parent is not block:
        assert op.parent is not None and isinstance(op.parent.owner, Op)
        op = op.parent.owner
        found.insert(0, op)
    return found
