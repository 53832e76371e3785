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

from collections.abc import Callable, Sequence
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
from tilewright.backends.nvidia.exchange_ops import CountOp, ReadAtOp, SharedFmaDotOp
from tilewright.backends.nvidia.layouts.access_vectors import MAX_VECTOR_BYTES
from tilewright.backends.nvidia.lower.bulk_stores import panels_of
from tilewright.backends.nvidia.lower.gpu_lowering import layout_of
from tilewright.backends.nvidia.lower.layout_conversion import conversion, halved_axes
from tilewright.backends.nvidia.lower.warp_scans import scan_bytes
from tilewright.backends.nvidia.lower.warp_sort import sort_bytes
from tilewright.backends.nvidia.ops import ConvertOp, FmaDotOp
from tilewright.ir import Op
from tilewright.ir.types import (
    BufferType,
    DType,
    PointerType,
    TileType,
    element_of,
    shape_of,
)
from tilewright.layout import LANE, WARP, SharedMemory, shared_row_major
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
}
"""The bytes of each kind of exchange."""


def exchange_bytes(op: Op, machine: Machine) -> int:
    """Bytes of shared memory of an exchange; 0 for an op that is none."""
    size = _EXCHANGES.get(type(op))
    if size is None:
        return sum(type_.bytes for type_ in exchange_buffers(op))
    return size(op, machine)


# ---- buffers of exchanges -----------------------------------------------------------------------


def exchange_buffers(op: Op) -> tuple[BufferType, ...]:
    """The buffers through which threads exchange what an op computes (expand_exchanges.py)."""
    found = _BUFFERS.get(type(op))
    return () if found is None else found(op)


def _in_rows(shape: Sequence[int], element: DType | PointerType) -> tuple[BufferType, ...]:
    return (BufferType(tuple(shape), element, shared_row_major(shape)),)


def _of_fma_dot(op: FmaDotOp) -> tuple[BufferType, ...]:
    *batch, m, k = shape_of(op.a.type)
    element = element_of(op.type)
    # Padded by one vector: lanes along k use other banks, and runs stay aligned to their length.
    padding = max(1, MAX_VECTOR_BYTES // element.bytes)
    widths = (m, shape_of(op.type)[-1])
    return tuple(BufferType((*batch, k, width + padding), element, None) for width in widths)


def _of_atomic(op: AtomicOp | AtomicCasOp) -> tuple[BufferType, ...]:
    """For what owners of elements tell the threads that hold copies."""
    is_tile = isinstance(op.type, TileType)
    masks = layout_of(op.pointer).free_masks() if is_tile else {LANE: 31}
    if not op.result.uses or not (masks.get(LANE, 0) or masks.get(WARP, 0)):
        return ()
    return _in_rows(shape_of(op.type) if is_tile else (1,), element_of(op.type))


_BUFFERS: dict[type[Op], Callable[[Any], tuple[BufferType, ...]]] = {
    GatherOp: lambda op: _in_rows(shape_of(op.x.type), element_of(op.x.type)),
    HistogramOp: lambda op: _in_rows((op.bins,), element_of(op.type)),
    FmaDotOp: _of_fma_dot,
    AtomicOp: _of_atomic,
    AtomicCasOp: _of_atomic,
}


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
    if isinstance(op, AsyncCopyOp | WriteOp | CountOp):
        return [(alloc_of(op.buffer), True)]
    if isinstance(op, ShareOp | MbarriersOp):
        return [(op, True)]
    if isinstance(op, BulkCopyOp):
        return [(alloc_of(op.target), True), (alloc_of(op.barrier), False)]
    if isinstance(op, MbarrierWaitOp):
        return [(alloc_of(op.barrier), False)]
    if isinstance(op, SharedFmaDotOp):
        return [(alloc_of(op.a), False), (alloc_of(op.b), False)]
    if isinstance(op, ReadOp | ReadAtOp):
        return [(alloc_of(op.buffer), False)]
    if isinstance(op, WgmmaOp):
        return [(alloc_of(v), False) for v in (op.a, op.b) if isinstance(v.type, BufferType)]
    return []
