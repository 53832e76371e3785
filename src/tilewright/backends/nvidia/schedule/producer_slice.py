"""What of a function a producer runs that only asks for copies: whether there can be one.

The producer goes through the loops and branches of the function on its own, iterations and programs
ahead of those who multiply. So it must find out from scalars alone what to copy, and nothing that
the others do may decide what the copies read.
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
    """Whether a producer can make loads of loops that nothing but scalars decides."""
    if any(isinstance(op, AssertOp) for op in function.walk()):
        # Threads end there that the producer would wait for.
        return False
    needed = backward_slice(loads) - set[Op](loads)
    return all(_is_scalar(op) for op in needed) and all(_is_free(load, function) for load in loads)


def is_nested(function: Function, loads: Sequence[DescriptorLoadOp]) -> bool:
    """Whether a loop of loads is in another loop, or in a branch: then there is a producer, as
    barriers are made once."""
    return any(len(enclosing(load, function.body)) > 1 for load in loads)


def _is_scalar(op: Op) -> bool:
    if isinstance(op, ForOp | IfOp):
        return True
    return is_pure(op) and not any(isinstance(value.type, TileType) for value in op.results)


def _is_free(load: DescriptorLoadOp, function: Function) -> bool:
    """Whether no store and no fence comes before a load, in its loops but to other arrays."""
    outermost = enclosing(load, function.body)[0]
    starts, op = roots(load.pointer), outermost.prev
    while op is not None:
        # Others' stores are no matter of the copy engine without a fence of its own.
        if any(is_fence(inner) or isinstance(inner, STORES) for inner in op.walk()):
            return False
        op = op.prev
    return not any(
        is_fence(op) or (isinstance(op, STORES) and roots(op.pointer) & starts)
        for op in outermost.walk()
    )


def enclosing(op: Op, block: Block) -> list[Op]:
    """The ops of a block, and of blocks inside of it, that an op is in; the outermost first."""
    found: list[Op] = []
    while op.parent is not block:
        assert op.parent is not None and isinstance(op.parent.owner, Op)
        op = op.parent.owner
        found.insert(0, op)
    return found
