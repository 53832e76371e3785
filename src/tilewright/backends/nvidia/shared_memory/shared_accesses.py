"""Accesses of ops to shared memory: conversions, copies, reads, writes, panels of TMA stores."""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from tilewright.backends.nvidia.buffer_ops import AsyncCopyOp, buffer_type
from tilewright.backends.nvidia.bulk_ops import StorePanelOp, WritePanelOp
from tilewright.backends.nvidia.layouts.layout_propagation import part_along, with_parts
from tilewright.backends.nvidia.layouts.store_panels import StorePanels, store_panels
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.ir import Value
from tilewright.ir.types import BufferType, element_of
from tilewright.layout import (
    ConversionPlan,
    LinearLayout,
    SharedAccess,
    SharedMemory,
    plan,
    plan_shared_access,
)
from tilewright.ops import DescriptorReduceOp, DescriptorStoreOp

MOST_BYTES = 64 * 1024
"""The most bytes of a round of an exchange between warps: more would cost programs, or slots of a
loop's buffers, and exceeds the smallest GPUs. Each round takes two barriers."""

_MOST_BYTES_OF_WARPS = 32 * 1024
"""The most bytes of a round within warps, which takes no barrier: it also fits next to buffers."""


def conversion(op: ConvertOp, matrix_stores: bool) -> ConversionPlan:
    """The plan of one conversion."""
    bits = 8 * element_of(op.type).bytes
    return plan(layout_of(op.x), layout_of(op.result), bits, matrix_stores=matrix_stores)


def halved_axes(source: LinearLayout, target: LinearLayout, chosen: SharedMemory) -> list[int]:
    """The axes along which a tile is halved, in order, so that its parts pass through shared memory
    in rounds of limited size, as far as both layouts have halves in registers of their own."""
    most = _MOST_BYTES_OF_WARPS if chosen.is_inside_warps else MOST_BYTES
    axes: list[int] = []
    while chosen.bytes >> len(axes) > most:
        halves = [h for axis in range(len(target.shape)) if (h := _halves(source, target, axis))]
        if not halves:
            break
        # The half of the highest registers, so that vectors stay whole.
        _, axis, source, target = max(halves, key=lambda half: half[0])
        axes.append(axis)
    return axes


def _halves(
    source: LinearLayout, target: LinearLayout, axis: int
) -> tuple[int, int, LinearLayout, LinearLayout] | None:
    """The target's register bit of the half, the axis, and both layouts of the half."""
    extent = target.shape[axis] // 2
    there, here = part_along(source, axis, extent), part_along(target, axis, extent)
    return None if there is None or here is None else (here[1][0], axis, there[0], here[0])


def _bits(type_: BufferType) -> int:
    return 8 * type_.element.bytes


@lru_cache(maxsize=256)
def _copy_access(
    shared: LinearLayout, source: LinearLayout, bits: int, vector: int
) -> SharedAccess:
    return plan_shared_access(shared, source, bits, copy=True, max_elements=vector)


def copy_access(op: AsyncCopyOp) -> SharedAccess:
    """The access by which a copy writes shared memory."""
    type_ = buffer_type(op.buffer)
    shared = cast("LinearLayout", type_.layout)
    return _copy_access(shared, layout_of(op.x), _bits(type_), op.vector)


@lru_cache(maxsize=256)
def _write_access(
    shared: LinearLayout, source: LinearLayout, bits: int, matrix: bool
) -> SharedAccess:
    return plan_shared_access(shared, source, bits, matrix=matrix, store=True)


@lru_cache(maxsize=256)
def _read_access(shared: LinearLayout, target: LinearLayout, bits: int) -> SharedAccess:
    # All architectures have ldmatrix.
    return plan_shared_access(shared, target, bits, matrix=True)


def write_access(x: Value, type_: BufferType, matrix_stores: bool) -> SharedAccess:
    """The access by which a tile in registers is written to a buffer."""
    shared = cast("LinearLayout", type_.layout)
    return _write_access(shared, layout_of(x), _bits(type_), matrix_stores)


def read_access(type_: BufferType, target: LinearLayout, axis: int | None) -> SharedAccess:
    """The access by which a slot is read into registers; for a part along an axis that of the
    whole, where the highest bits of register numbers are the part."""
    whole = target if axis is None else with_parts(target, axis, type_.shape[axis])
    return _read_access(cast("LinearLayout", type_.layout), whole, _bits(type_))


BulkStore = DescriptorStoreOp | DescriptorReduceOp | StorePanelOp
"""Stores of the last panel of a tile, or of an earlier one."""

Panel = BulkStore | WritePanelOp


def stored_tile(op: Panel) -> Value:
    """The tile that is stored, or combined with memory."""
    return op.operand if isinstance(op, DescriptorReduceOp) else op.stored


def panels_of(op: Panel, matrix_stores: bool) -> StorePanels:
    """The panels in which a store passes through shared memory."""
    tile = stored_tile(op)
    return store_panels(layout_of(tile), op.block_shape, element_of(tile.type).bytes, matrix_stores)


def slot_of(op: Panel, panels: StorePanels) -> int:
    """The offset of an op's panel in the bytes of all stores."""
    return pass_number(op, panels) % panels.slots * panels.slot_bytes


def pass_number(op: Panel, panels: StorePanels) -> int:
    return op.number if isinstance(op, WritePanelOp | StorePanelOp) else len(panels.passes) - 1
