"""Offsets in shared memory for the ops that exchange data between threads.

Conversions and reductions use their memory only while they run, with a barrier before the first
write, so they all share one region, as large as the largest of them. Small reductions take turns
at two places of it, so that one need not wait until all threads have read the one before. The rings
of a pipelined loop live as long as the loop: what is used inside it comes after them, what is used
before and after shares their place.
"""

from __future__ import annotations

from typing import cast

from tilewright.backends.nvidia.lower.convert import conversion
from tilewright.backends.nvidia.lower.fma_dot import fma_dot_bytes
from tilewright.backends.nvidia.lower.gather import gather_bytes
from tilewright.backends.nvidia.lower.reduce import reduce_bytes
from tilewright.backends.nvidia.lower.scan import scan_bytes
from tilewright.backends.nvidia.lower.state import register_count
from tilewright.backends.nvidia.ops import ConvertOp, FmaDotOp, RingOp
from tilewright.ir import Function, Op, Value
from tilewright.ir.types import TileType, element_of
from tilewright.layout import SharedMemory
from tilewright.ops import AtomicCasOp, AtomicOp, ForOp, GatherOp, ReduceOp, ScanOp

TURN_BYTES = 512
"""Of one place of small reductions: two results of each of 32 warps in 8 bytes."""


def allocate_shared(
    function: Function, warps: int, matrix_stores: bool
) -> tuple[dict[Op, int], int]:
    """Offset of each op that needs shared memory, and the bytes of the whole."""
    offsets: dict[Op, int] = {}
    reserved = _rings(function, offsets)
    largest = max(reserved.values(), default=0)
    turn = 0
    for raw in function.walk():
        op = cast("Op", raw)
        size = _bytes(op, warps, matrix_stores)
        if size:
            offsets[op] = _reserved_around(op, reserved)
            if isinstance(op, ReduceOp) and size <= TURN_BYTES:
                offsets[op] += turn
                turn = TURN_BYTES - turn
            largest = max(largest, offsets[op] + size)
    return offsets, largest


def _rings(function: Function, offsets: dict[Op, int]) -> dict[Op, int]:
    """Place the rings of each pipelined loop; returns the bytes that each such loop keeps."""
    reserved: dict[Op, int] = {}
    for raw in function.walk():
        op = cast("Op", raw)
        if isinstance(op, RingOp):
            loop = _loop_of(op.result)
            offsets[op] = reserved.get(loop, 0)
            assert isinstance(op.type, TileType)
            reserved[loop] = offsets[op] + op.type.numel * op.type.element.bytes
    return reserved


def _loop_of(ring: Value) -> Op:
    """The loop that carries a ring, behind the copies before it."""
    (user,) = ring.uses
    while not isinstance(user, ForOp):
        (user,) = user.results[0].uses
    return user


def _reserved_around(op: Op, reserved: dict[Op, int]) -> int:
    """Bytes below which the loops around an op keep their rings."""
    total = 0
    owner = op.parent.owner if op.parent is not None else None
    while isinstance(owner, Op):
        total = max(total, reserved.get(owner, 0))
        owner = owner.parent.owner if owner.parent is not None else None
    return total


def _bytes(op: Op, warps: int, matrix_stores: bool) -> int:
    if isinstance(op, ConvertOp):
        chosen = conversion(op, matrix_stores)
        return chosen.bytes if isinstance(chosen, SharedMemory) else 0
    if isinstance(op, ReduceOp):
        return reduce_bytes(op, warps)
    if isinstance(op, ScanOp):
        return scan_bytes(op, warps)
    if isinstance(op, FmaDotOp):
        return fma_dot_bytes(op)
    if isinstance(op, GatherOp):
        return gather_bytes(op)
    if isinstance(op, AtomicOp | AtomicCasOp) and op.result.uses:
        return 32 * warps * register_count(op.pointer) * element_of(op.type).bytes
    return 0
