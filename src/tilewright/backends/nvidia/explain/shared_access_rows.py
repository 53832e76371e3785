"""Accesses to shared memory, with the address of each lane, for the bank tables of the inspector.

One instruction of the first warp represents an access: in a linear layout all have its degree.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.backends.explanation import SharedAccessRow
from tilewright.backends.nvidia.buffer_ops import (
    AsyncCopyOp,
    ReadOp,
    ShareOp,
    WriteOp,
    alloc_of,
    buffer_type,
)
from tilewright.backends.nvidia.exchange_ops import is_scratch
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.lower.buffers import copy_instruction
from tilewright.backends.nvidia.lower.layout_conversion import shared_instruction
from tilewright.backends.nvidia.shared_memory.shared_accesses import (
    copy_access,
    read_access,
    write_access,
)
from tilewright.ir import Function, Op
from tilewright.layout import LANE, SharedAccess

_LANES = 32


def shared_access_rows(function: Function, matrix_stores: bool) -> tuple[SharedAccessRow, ...]:
    """The distinct accesses of a function, in the order of its code."""
    rows = (row for op in function.walk() for row in _rows(op, matrix_stores))
    return tuple(dict.fromkeys(rows))


def _rows(op: Op, matrix_stores: bool) -> Iterator[SharedAccessRow]:
    if isinstance(op, AsyncCopyOp):
        access, element = copy_access(op), buffer_type(op.buffer).element
        size = len(access.groups[0]) * element.bytes
        line = _line(op.x.op or op)
        yield access_row(line, "copy to shared", copy_instruction(size), access, element.bytes)
    elif isinstance(op, ReadOp):
        type_ = buffer_type(op.buffer)
        access = read_access(type_, layout_of(op.result), op.axis)
        how = shared_instruction(access, type_.element, store=False)
        yield access_row(_line(op), "read from shared", how, access, type_.element.bytes)
    elif isinstance(op, ShareOp) or (isinstance(op, WriteOp) and _has_layout(op)):
        type_ = buffer_type(op.result if isinstance(op, ShareOp) else op.buffer)
        access = write_access(op.x, type_, matrix_stores)
        how = shared_instruction(access, type_.element, store=True)
        yield access_row(_line(op), "write to shared", how, access, type_.element.bytes)


def _has_layout(op: WriteOp) -> bool:
    """Whether a tile is read back; the scratch memory of gathers, histograms and FMA dots has an
    order of its own."""
    return not is_scratch(alloc_of(op.buffer)) or any(isinstance(u, ReadOp) for u in op.buffer.uses)


def _line(op: Op) -> int | None:
    return None if op.loc is None else op.loc.outermost.line


def access_row(
    line: int | None, what: str, how: str, access: SharedAccess, element_bytes: int
) -> SharedAccessRow:
    """The row of an access."""
    addresses = [access.address.apply(**{LANE: lane})[0] for lane in range(_LANES)]
    return SharedAccessRow(
        line, what, how, access.bits // 8, access.degree,
        tuple(address * element_bytes for address in addresses),
    )  # fmt: skip
