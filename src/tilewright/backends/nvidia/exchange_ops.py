"""Ops by which threads exchange what they hold through buffers, with their NumPy rules.

    nvidia.write %x, %s                    registers -> shared memory (buffer_ops.py)
    %y = nvidia.read %s                    shared memory -> registers
    %z = nvidia.read_at %s, %index         shared memory -> registers, where an index says
    nvidia.count %s, %x                    adds 1 where numbers say
    %c = nvidia.dot_fma_shared %s, %t, %acc

Barriers between them are ops, too (insert_shared_barriers.py).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from tilewright.backends.nvidia.buffer_ops import AllocOp, ReadOp, WriteOp, buffer_type
from tilewright.backends.nvidia.ops import FmaDotOp
from tilewright.ir import (
    REFERENCE_RULES,
    Effect,
    Op,
    Value,
    attr,
    boolean,
    buffer,
    integer,
    operand,
    optional_operand,
    reference,
    tile,
)
from tilewright.ir.types import TileType, Type


class ReadAtOp(Op, opcode="nvidia.read_at", effects=(Effect.SHARED,)):
    """result[i, j] = buffer[index[i, j] modulo the extent, j] for axis 0, and so on"""

    buffer: Value = operand(buffer)
    index: Value = operand(integer)
    axis: int = attr()

    def infer(self) -> Type:
        index = cast("TileType", self.index.type)
        return TileType(index.shape, buffer_type(self.buffer).element, index.layout)


class CountOp(Op, opcode="nvidia.count", effects=(Effect.SHARED,)):
    """buffer[x[i]] += 1 where mask[i], by atomic additions; what is no index counts nowhere"""

    buffer: Value = operand(buffer)
    x: Value = operand(integer)
    mask: Value | None = optional_operand(boolean, default=None)

    def infer(self) -> None:
        return None


class SharedFmaDotOp(Op, opcode="nvidia.dot_fma_shared", effects=(Effect.SHARED,)):
    """result = acc + a^T @ b by multiplications and additions: the summed dim of both is the first
    of a matrix"""

    a: Value = operand(buffer)
    b: Value = operand(buffer)
    acc: Value = operand(tile)

    def infer(self) -> Type:
        return self.acc.type


def is_scratch(alloc: Op) -> bool:
    """Whether a buffer is that of an exchange: written by threads, and read again, side by side."""
    if not isinstance(alloc, AllocOp):
        return False
    return all(isinstance(u, _EXCHANGES) and u.parent is alloc.parent for u in alloc.result.uses)


_EXCHANGES = (WriteOp, ReadOp, ReadAtOp, CountOp, SharedFmaDotOp)


# ---- NumPy rules --------------------------------------------------------------------------------


@reference(ReadAtOp)
def read_at(op: ReadAtOp, memory: Any, index: Any) -> Any:
    """Indices out of the extent are as on the device, which reads something."""
    tile = memory.item().read()
    return np.take_along_axis(tile, index.astype(np.int64) % tile.shape[op.axis], op.axis)


@reference(CountOp)
def count(op: CountOp, memory: Any, x: Any, mask: Any = None) -> tuple[()]:
    """All at once."""
    bins = memory.item().read()
    counted = (x >= 0) & (x < bins.size) & (True if mask is None else mask)
    found = np.bincount(x[counted].astype(np.int64), minlength=bins.size)
    memory.item().write(bins + found.astype(bins.dtype))
    return ()


@reference(SharedFmaDotOp)
def shared_fma_dot(op: SharedFmaDotOp, a: Any, b: Any, acc: Any) -> Any:
    """As of tiles."""
    left, right = (memory.item().read() for memory in (a, b))
    return REFERENCE_RULES[FmaDotOp](op, left.swapaxes(-1, -2), right, acc)
