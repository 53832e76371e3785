"""What the ops of a kernel do with shared memory: how many bytes, and who reads when.

Three kinds of op use it:

* An *exchange* between threads: all write, a barrier, all read. It needs its bytes only while it
  runs, but a thread may still read when others go on. That of a conversion is two ops on a buffer
  (expand_conversions.py), a barrier between; those of scans and their like are one op.
* A *buffer* lives longer. Asynchronous copies may write it from `nvidia.async_copy` until the
  `nvidia.wait` that their group is waited for, warpgroup products read it until they have ended.
* A *store by the copy engine* has a barrier of its own, too, but the engine reads its bytes until
  `nvidia.bulk_store_wait`. All stores share theirs, and nothing else has them from the first on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.backends.nvidia.arch import Arch
from tilewright.backends.nvidia.buffer_ops import (
    AsyncCopyOp,
    ReadOp,
    ShareOp,
    WgmmaOp,
    WriteOp,
    alloc_of,
)
from tilewright.backends.nvidia.bulk_ops import BulkCopyOp, MbarriersOp, MbarrierWaitOp
from tilewright.backends.nvidia.lower.bulk_stores import panels_of
from tilewright.backends.nvidia.lower.fma_dot import fma_dot_bytes
from tilewright.backends.nvidia.lower.gather import gather_bytes
from tilewright.backends.nvidia.lower.global_atomics import publish_bytes
from tilewright.backends.nvidia.lower.gpu_lowering import layout_of
from tilewright.backends.nvidia.lower.layout_conversion import conversion, halved_axes
from tilewright.backends.nvidia.lower.shared_histogram import histogram_bytes
from tilewright.backends.nvidia.lower.warp_scans import scan_bytes
from tilewright.backends.nvidia.lower.warp_sort import sort_bytes
from tilewright.backends.nvidia.ops import ConvertOp, FmaDotOp
from tilewright.ir import Op
from tilewright.ir.types import BufferType
from tilewright.layout import SharedMemory
from tilewright.ops import (
    AtomicCasOp,
    AtomicOp,
    DescriptorReduceOp,
    DescriptorStoreOp,
    GatherOp,
    HistogramOp,
    ScanOp,
    SortOp,
)


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


def _conversion_bytes(op: Op, machine: Machine) -> int:
    assert isinstance(op, ConvertOp)
    # Until it is expanded.
    chosen = conversion(op, machine.matrix_stores)
    if not isinstance(chosen, SharedMemory):
        return 0
    return chosen.bytes >> len(halved_axes(layout_of(op.x), layout_of(op.result), chosen))


_EXCHANGES: dict[type[Op], Callable[[Any, Machine], int]] = {
    ConvertOp: _conversion_bytes,
    ScanOp: lambda op, machine: scan_bytes(op, machine.warps),
    SortOp: lambda op, machine: sort_bytes(op, machine.warps),
    HistogramOp: lambda op, _: histogram_bytes(op),
    FmaDotOp: lambda op, _: fma_dot_bytes(op),
    GatherOp: lambda op, _: gather_bytes(op),
    AtomicOp: lambda op, machine: publish_bytes(op, machine.warps),
    AtomicCasOp: lambda op, machine: publish_bytes(op, machine.warps),
}
"""The bytes of each kind of exchange."""


def exchange_bytes(op: Op, machine: Machine) -> int:
    """Bytes of shared memory of an exchange; 0 for an op that is none."""
    size = _EXCHANGES.get(type(op))
    return 0 if size is None else size(op, machine)


def is_converted_inside_warps(op: Op, machine: Machine) -> bool:
    """Whether an op is a conversion, not yet expanded, in which lanes of each warp exchange."""
    if not isinstance(op, ConvertOp):
        return False
    chosen = conversion(op, machine.matrix_stores)
    return isinstance(chosen, SharedMemory) and chosen.is_inside_warps


def bulk_store_bytes(op: Op, machine: Machine) -> int:
    """Bytes through which a store by the copy engine goes; 0 for an op that is none."""
    if not isinstance(op, DescriptorStoreOp | DescriptorReduceOp):
        return 0
    return panels_of(op, machine.matrix_stores).bytes


def buffers_used(op: Op) -> list[tuple[Op, bool]]:
    """The buffers that an op reads or writes while it runs, and whether it writes."""
    if isinstance(op, AsyncCopyOp | WriteOp):
        return [(alloc_of(op.buffer), True)]
    if isinstance(op, ShareOp | MbarriersOp):
        return [(op, True)]
    if isinstance(op, BulkCopyOp):
        return [(alloc_of(op.target), True), (alloc_of(op.barrier), False)]
    if isinstance(op, MbarrierWaitOp):
        return [(alloc_of(op.barrier), False)]
    if isinstance(op, ReadOp):
        return [(alloc_of(op.buffer), False)]
    if isinstance(op, WgmmaOp):
        return [(alloc_of(v), False) for v in (op.a, op.b) if isinstance(v.type, BufferType)]
    return []
