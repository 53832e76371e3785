"""Uses of shared memory by ops: bytes, reads and writes.

Three kinds of op use it:

* An *exchange* between threads: all write, a barrier, all read. It needs its bytes only while it
  runs, but a thread may still read when others continue. Until lower_exchanges.py lowers it
  to ops on buffers, it is one op, whose bytes this module computes.
* A *buffer* lives longer. Asynchronous copies may write it from `nvidia.async_copy` until the
  `nvidia.wait` for their group, and wgmma reads it until its wait.
* *TMA stores*: TMA reads the writes of threads until `nvidia.bulk_store_wait`. All share their
  bytes, which nothing else has from the first one on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.backends.nvidia.arch import Arch
from tilewright.backends.nvidia.buffer_ops import (
    AsyncCopyOp,
    ReadOp,
    ShareOp,
    WaitOp,
    WgmmaOp,
    WriteOp,
    alloc_of,
    buffer_type,
    is_read_by_wgmma,
)
from tilewright.backends.nvidia.bulk_ops import (
    BulkCopyOp,
    MbarriersOp,
    MbarrierWaitOp,
    ProxyFenceOp,
    StorePanelOp,
    WritePanelOp,
)
from tilewright.backends.nvidia.exchange_ops import (
    CountOp,
    ReadAtOp,
    ReadPartnerOp,
    SharedFmaDotOp,
    WriteLastOp,
)
from tilewright.backends.nvidia.layouts.access_vectors import MAX_VECTOR_BYTES
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.ops import ConvertOp, FmaDotOp
from tilewright.backends.nvidia.shared_memory.shared_accesses import (
    conversion,
    halved_axes,
    panels_of,
    slot_of,
)
from tilewright.ir import Op
from tilewright.ir.types import (
    BufferType,
    DType,
    PointerType,
    TileType,
    element_of,
    shape_of,
)
from tilewright.layout import (
    LANE,
    OFFSET,
    REGISTER,
    WARP,
    LinearLayout,
    SharedMemory,
    log2,
    shared_row_major,
    tile_dims,
)
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


def _conversion_bytes(op: ConvertOp, arch: Arch) -> int:
    chosen = conversion(op, arch.stmatrix)
    if not isinstance(chosen, SharedMemory):
        return 0
    return chosen.bytes >> len(halved_axes(layout_of(op.x), layout_of(op.result), chosen))


def exchange_bytes(op: Op, arch: Arch) -> int:
    """Bytes of shared memory of an op that will exchange through buffers; 0 for others."""
    if isinstance(op, ConvertOp):
        return _conversion_bytes(op, arch)
    return sum(type_.bytes for type_ in exchange_buffers(op))


# ---- buffers of exchanges -----------------------------------------------------------------------


def exchange_buffers(op: Op) -> tuple[BufferType, ...]:
    """The buffers of the exchange within an op (lower_exchanges.py)."""
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
    """The buffer by which owners of elements pass results to threads that hold copies."""
    is_tile = isinstance(op.type, TileType)
    masks = layout_of(op.pointer).free_masks() if is_tile else {LANE: 31}
    if not op.result.uses or not (masks.get(LANE, 0) or masks.get(WARP, 0)):
        return ()
    return _in_rows(shape_of(op.type) if is_tile else (1,), element_of(op.type))


def groups_of_scan(layout: LinearLayout, axis: int) -> int:
    """The number of runs along the axis of a scan that have a warp each; 1 without."""
    along = [basis[axis] for basis in layout.bases(WARP) if basis[axis]]
    return layout.shape[axis] // min(along) if along else 1


def _of_scan(op: ScanOp) -> tuple[BufferType, ...]:
    """The buffers of the last elements of runs."""
    layout = layout_of(op.inputs[0])
    groups = groups_of_scan(layout, op.axis)
    shape = (*layout.shape[: op.axis], groups, *layout.shape[op.axis + 1 :])
    each = (_in_rows(shape, element_of(x.type))[0] for x in op.inputs)
    return tuple(each) if groups > 1 else ()


_TWO_BUFFERS = 1 << 14
"""Bytes of an exchange of a sort up to which two buffers alternate, with one barrier each."""


def _of_sort(op: SortOp) -> tuple[BufferType, ...]:
    """The buffers of all elements, in which those of a thread are adjacent."""
    layout, element = layout_of(op.x), element_of(op.x.type)
    if not any(basis[op.axis] for basis in layout.bases(WARP)):
        return ()
    type_ = by_threads(layout, element)
    return (type_,) * (2 if type_.bytes <= _TWO_BUFFERS else 1)


def by_threads(layout: LinearLayout, element: DType | PointerType) -> BufferType:
    """A buffer with vectors of each thread's registers, without bank conflicts."""
    vector = log2(max(1, MAX_VECTOR_BYTES // element.bytes))
    registers = layout.bases(REGISTER)
    threads = [b for name in (LANE, WARP) for b in layout.bases(name) if any(b)]
    offsets = {OFFSET: [*registers[:vector], *threads, *registers[vector:]]}
    return BufferType(
        layout.shape, element, LinearLayout.from_bases(offsets, tile_dims(layout.shape))
    )


_BUFFERS: dict[type[Op], Callable[[Any], tuple[BufferType, ...]]] = {
    ScanOp: _of_scan,
    SortOp: _of_sort,
    GatherOp: lambda op: _in_rows(shape_of(op.x.type), element_of(op.x.type)),
    HistogramOp: lambda op: _in_rows((op.bins,), element_of(op.type)),
    FmaDotOp: _of_fma_dot,
    AtomicOp: _of_atomic,
    AtomicCasOp: _of_atomic,
}


def is_converted_inside_warps(op: Op, arch: Arch) -> bool:
    """Whether an op is a conversion, not yet expanded, in which lanes of each warp exchange."""
    if not isinstance(op, ConvertOp):
        return False
    chosen = conversion(op, arch.stmatrix)
    return isinstance(chosen, SharedMemory) and chosen.is_inside_warps


def bulk_store_bytes(op: Op, arch: Arch) -> int:
    """Bytes through which a TMA store passes; 0 for other ops."""
    return panels_of(op, arch.stmatrix).bytes if isinstance(op, _STORES) else 0


def panel_used(op: Op, arch: Arch) -> tuple[int, int, bool] | None:
    """The start and the end of the bytes of TMA stores that an op uses, and whether it writes; None
    for other ops."""
    if not isinstance(op, _STORES):
        return None
    panels = panels_of(op, arch.stmatrix)
    first = slot_of(op, panels)
    return first, first + panels.slot_bytes, isinstance(op, WritePanelOp)


_STORES = (DescriptorStoreOp, DescriptorReduceOp, WritePanelOp, StorePanelOp)


def buffers_used(op: Op) -> list[tuple[Op, bool]]:
    """The buffers that an op reads or writes while it runs, and whether it writes."""
    if isinstance(op, AsyncCopyOp | WriteOp | WriteLastOp | CountOp):
        return [(alloc_of(op.buffer), True)]
    if isinstance(op, ShareOp | MbarriersOp):
        return [(op, True)]
    if isinstance(op, BulkCopyOp):
        return [(alloc_of(op.target), True), (alloc_of(op.barrier), False)]
    if isinstance(op, MbarrierWaitOp):
        return [(alloc_of(op.barrier), False)]
    if isinstance(op, SharedFmaDotOp):
        return [(alloc_of(op.a), False), (alloc_of(op.b), False)]
    if isinstance(op, ReadOp | ReadAtOp | ReadPartnerOp):
        return [(alloc_of(op.buffer), False)]
    if isinstance(op, WgmmaOp):
        return [(alloc_of(v), False) for v in (op.a, op.b) if isinstance(v.type, BufferType)]
    return []


def fences_shared(op: Op) -> bool:
    """Whether each thread fences all its writes to shared memory, up to and in an op, for the
    asynchronous proxy."""
    if isinstance(op, WriteOp):
        in_rows = buffer_type(op.buffer).layout is None
        return not in_rows and not op.owners and is_read_by_wgmma(alloc_of(op.buffer).results[0])
    if isinstance(op, ShareOp):
        return is_read_by_wgmma(op.result)
    if isinstance(op, WaitOp):
        return op.proxy
    return isinstance(op, WritePanelOp) or (isinstance(op, ProxyFenceOp) and op.shared)
