"""What the ops of a kernel do with shared memory: how many bytes, and who reads when.

Two kinds of op use it:

* An *exchange* between threads: all write, a barrier, all read. It needs its bytes only while it
  runs, but a thread may still read when others go on.
* A *ring* of slots that is filled by asynchronous copies, see software_pipeline.py. A copy may
  write from `nvidia.async_copy` until the `nvidia.wait` that its group is waited for.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.backends.nvidia.arch import Arch
from tilewright.backends.nvidia.lower.fma_dot import fma_dot_bytes
from tilewright.backends.nvidia.lower.gather import gather_bytes
from tilewright.backends.nvidia.lower.global_atomics import publish_bytes
from tilewright.backends.nvidia.lower.layout_conversion import conversion
from tilewright.backends.nvidia.lower.warp_reductions import reduce_bytes
from tilewright.backends.nvidia.lower.warp_scans import scan_bytes
from tilewright.backends.nvidia.ops import (
    AsyncCopyOp,
    ConvertOp,
    FmaDotOp,
    LoadSlotOp,
    RingOp,
    reads_late,
)
from tilewright.ir import Op, Value
from tilewright.ir.types import TileType
from tilewright.layout import SharedMemory
from tilewright.ops import AtomicCasOp, AtomicOp, ForOp, GatherOp, ReduceOp, ScanOp


@dataclass(frozen=True, slots=True)
class Machine:
    """What the bytes of exchanges depend on. warps: of a program; matrix_stores: whether the
    architecture has stmatrix."""

    warps: int
    matrix_stores: bool

    @classmethod
    def of(cls, arch: Arch, warps: int) -> Machine:
        """Of a program of `warps` warps on an architecture."""
        return cls(warps, arch.stmatrix)


def exchange_bytes(op: Op, machine: Machine) -> int:
    """Bytes of shared memory of an exchange; 0 for an op that is none."""
    if isinstance(op, ConvertOp):
        chosen = conversion(op, machine.matrix_stores)
        return chosen.bytes if isinstance(chosen, SharedMemory) else 0
    if isinstance(op, ReduceOp):
        return reduce_bytes(op, machine.warps)
    if isinstance(op, ScanOp):
        return scan_bytes(op, machine.warps)
    if isinstance(op, FmaDotOp):
        return fma_dot_bytes(op)
    if isinstance(op, GatherOp):
        return gather_bytes(op)
    if isinstance(op, AtomicOp | AtomicCasOp):
        return publish_bytes(op, machine.warps)
    return 0


def tile_bytes(type_: object) -> int:
    """Bytes of a tile, or of all slots of a ring."""
    assert isinstance(type_, TileType)
    return type_.numel * type_.element.bytes


def ring_of(value: Value) -> RingOp:
    """The ring that a value is, behind the copies into it and the loops that carry it."""
    op = value.op
    if isinstance(op, RingOp):
        return op
    if isinstance(op, AsyncCopyOp):
        return ring_of(op.ring)
    if isinstance(op, ForOp):
        return ring_of(op.inits[value.index])
    loop = getattr(value.owner, "owner", None)
    assert isinstance(loop, ForOp), f"{value} is no ring"
    # Argument 0 of a body is the index: carried values follow.
    return ring_of(loop.inits[value.index - 1])


def rings_read(op: Op) -> list[RingOp]:
    """The rings whose slots are read while an op runs."""
    if isinstance(op, LoadSlotOp):
        return [] if reads_late(op) else [ring_of(op.ring)]
    late = (v.op for v in op.operands if isinstance(v.op, LoadSlotOp))
    return [ring_of(get.ring) for get in late if reads_late(get)]
