"""Offsets in shared memory for the ops that exchange data between threads.

Conversions and reductions use their memory only while they run, with a barrier before the first
write, so they all share one region, as large as the largest of them.
"""

from __future__ import annotations

from typing import cast

from tilewright.backends.nvidia.lower.convert import conversion
from tilewright.backends.nvidia.lower.reduce import reduce_bytes
from tilewright.backends.nvidia.lower.state import register_count
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.ir import Function, Op
from tilewright.ir.types import element_of
from tilewright.layout import SharedMemory
from tilewright.ops import AtomicCasOp, AtomicOp, ReduceOp


def allocate_shared(
    function: Function, warps: int, matrix_stores: bool
) -> tuple[dict[Op, int], int]:
    """Offset of each op that needs shared memory, and the bytes of the whole."""
    offsets: dict[Op, int] = {}
    largest = 0
    for raw in function.walk():
        op = cast("Op", raw)
        size = _bytes(op, warps, matrix_stores)
        if size:
            offsets[op] = 0
            largest = max(largest, size)
    return offsets, largest


def _bytes(op: Op, warps: int, matrix_stores: bool) -> int:
    if isinstance(op, ConvertOp):
        chosen = conversion(op, matrix_stores)
        return chosen.bytes if isinstance(chosen, SharedMemory) else 0
    if isinstance(op, ReduceOp):
        return reduce_bytes(op, warps)
    if isinstance(op, AtomicOp | AtomicCasOp) and op.result.uses:
        return 32 * warps * register_count(op.pointer) * element_of(op.type).bytes
    return 0
