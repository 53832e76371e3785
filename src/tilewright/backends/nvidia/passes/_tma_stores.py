"""Stores by tensor descriptors that pass through shared memory anyway: those of dots.

Other tiles have a layout in which threads store wide lines themselves. Accumulator fragments go
through shared memory in any case, so TMA stores them.
"""

from __future__ import annotations

from tilewright.backends.nvidia.buffer_ops import WgmmaOp
from tilewright.ir import Block, Op, Value
from tilewright.ir.types import TileType
from tilewright.ops import (
    DotOp,
    ForOp,
    IfOp,
    LoadOp,
    ReduceOp,
    ScanOp,
    WhileOp,
)

NOT_MADE_BY_DOT = "threads store whole lines of a tile that no dot computes"


def is_made_by_dot(tile: Value) -> bool:
    """Whether a tile is computed from a dot, element by element."""
    seen, stack = set[Value](), [tile]
    while stack:
        value = stack.pop()
        if value in seen or not isinstance(value.type, TileType):
            continue
        seen.add(value)
        if isinstance(value.op, DotOp | WgmmaOp):
            return True
        stack += _sources(value)
    return False


def _sources(value: Value) -> list[Value]:
    """The tiles of equal size from which a tile may be computed."""
    op = value.op
    if op is None:
        return _of_argument(value)
    if isinstance(op, LoadOp | ReduceOp | ScanOp):
        return []
    if isinstance(op, IfOp | WhileOp | ForOp):
        return [*_yielded(op, value.index), *_inits(op, value.index)]
    return list(op.operands)


def _of_argument(value: Value) -> list[Value]:
    """The initial value of a carried value, and the value that the loop yields."""
    loop = value.owner.owner if isinstance(value.owner, Block) else None
    if not isinstance(loop, ForOp) or not value.index:
        return []
    return [*_yielded(loop, value.index - 1), *_inits(loop, value.index - 1)]


def _yielded(op: Op, index: int) -> list[Value]:
    if isinstance(op, WhileOp):
        return [op.before.terminator.operands[1 + index]]
    return [region.terminator.operands[index] for region in op.regions]


def _inits(op: Op, index: int) -> list[Value]:
    return [op.inits[index]] if isinstance(op, ForOp | WhileOp) else []
