"""Sources of a register operand: loads and dots, and the conversions in between.

    %w = nvidia.read %slot                 u8, which line 44 copies to the slot
    %b = arith.cast %w                     "registers, read by ld.shared.b32 from the load of
    %c = nvidia.wgmma %a, %b, %acc          line 44, converted from u8"

Tiles are followed back from the operand, through element-wise ops, layout conversions and the
iterations of loops. Rows, columns and numbers that are recomputed in each layout, such as scales of
columns, are no sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from tilewright.backends.nvidia.buffer_ops import (
    AsyncCopyOp,
    PartOp,
    ReadOp,
    ShareOp,
    WgmmaOp,
    WgmmaWaitOp,
    WriteOp,
    alloc_of,
    buffer_type,
    users_of,
)
from tilewright.backends.nvidia.bulk_ops import BulkCopyOp
from tilewright.backends.nvidia.exchange_ops import is_scratch
from tilewright.backends.nvidia.layouts.operand_chains import follows, has_layout
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.lower.layout_conversion import shared_instruction
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.backends.nvidia.shared_memory.shared_accesses import conversion, read_access
from tilewright.ir import Block, Op, Value
from tilewright.ir.types import DType, dtype_of, element_of, i1
from tilewright.layout import SharedAccess, WarpShuffle
from tilewright.ops import DotOp, ForOp, IfOp, LoadOp
from tilewright.support.data_class import dataclass
from tilewright.support.reachable import nearest_first

PASSED_ON = (PartOp, ConvertOp, WgmmaWaitOp)
"""Ops whose first operand has the elements of the result."""


@dataclass
class OperandSource:
    """The sources of a tile. texts: descriptions, each once; types: at the sources; accesses: reads
    from shared memory; is_carried: an iteration computes the tile for the next one; is_converted:
    threads exchange it through shared memory."""

    texts: dict[str, None] = field(default_factory=dict[str, None])
    types: dict[DType, None] = field(default_factory=dict[DType, None])
    accesses: list[SharedAccess] = field(default_factory=list[SharedAccess])
    is_carried: bool = False
    is_converted: bool = False
    is_shuffled: bool = False

    def text(self, element: DType) -> str:
        """The description for an operand of a type."""
        others = [str(type_) for type_ in self.types if type_ is not element]
        parts = ["registers", *self.texts]
        if others:
            parts.append(f"converted from {' and '.join(others)}")
        if self.is_converted:
            parts.append("brought to other threads through shared memory")
        if self.is_shuffled:
            parts.append("brought to other lanes by shfl.sync.idx")
        if self.is_carried:
            parts.append("carried from the iteration before")
        return ", ".join(parts)


def operand_source(operand: Value) -> OperandSource:
    """The sources of a tile in registers."""
    source = OperandSource()
    for _ in nearest_first([operand], lambda value: _inputs_of(value, source)):
        pass  # `_inputs_of` adds to the source
    return source


def reads_of(op: ReadOp) -> tuple[str, SharedAccess]:
    """The instruction that reads a buffer, and its access."""
    access = read_access(buffer_type(op.buffer), layout_of(op.result), op.axis)
    return shared_instruction(access, element_of(op.type), store=False), access


def _inputs_of(value: Value, source: OperandSource) -> list[Value]:
    """The tiles from which a value is computed; other origins are added to the source."""
    op = value.op
    if not has_layout(value):
        return []
    if yielded := yielded_values(value):
        source.is_carried |= op is None
        return yielded
    if op is None:
        return []
    if isinstance(op, PASSED_ON):
        # Others rename registers; conversions through memory are writes and reads.
        source.is_shuffled |= isinstance(op, ConvertOp) and isinstance(
            conversion(op, matrix_stores=False), WarpShuffle
        )
        return [op.operands[0]]
    if isinstance(op, ReadOp) and is_scratch(alloc_of(op.buffer)):
        source.is_converted = True
        return [u.x for u in users_of(alloc_of(op.buffer).results[0]) if isinstance(u, WriteOp)]
    if follows(op):
        return [x for x in op.operands if has_layout(x) and element_of(x.type) is not i1]
    source.types[dtype_of(value.type)] = None
    if isinstance(op, ReadOp):
        instruction, access = reads_of(op)
        source.accesses.append(access)
        source.texts |= dict.fromkeys(
            f"read by {instruction} from the {what}" for what in _named(_written(op.buffer))
        )
    else:
        source.texts |= dict.fromkeys(f"the {what}" for what in _named([op]))
    return []


def yielded_values(value: Value) -> list[Value]:
    """The values that the iteration before, or the last one, or a branch yields for a value."""
    owner = value.owner
    if isinstance(owner, ForOp | IfOp):
        return [region.terminator.operands[value.index] for region in owner.regions]
    # Argument 0 is the index.
    if isinstance(owner, Block) and isinstance(owner.owner, ForOp) and value.index:
        return [owner.terminator.operands[value.index - 1]]
    return []


def _written(buffer: Value) -> Iterator[Op]:
    """The ops that fill a buffer: copied loads, or ops on tiles."""
    alloc = alloc_of(buffer)
    if isinstance(alloc, ShareOp):
        yield from _loaded(alloc.x)
        return
    for user in users_of(alloc.results[0]):
        if isinstance(user, AsyncCopyOp | BulkCopyOp | WriteOp):
            yield from _loaded(user.x)


def _loaded(tile: Value) -> Iterator[Op]:
    if tile.op is not None:
        yield tile.op


def _named(ops: Iterable[Op]) -> Iterator[str]:
    """Names of ops for readers of the source."""
    for op in ops:
        kind = "dot" if isinstance(op, WgmmaOp | DotOp) else "tile"
        if isinstance(op, LoadOp) or op.opcode == "mem.descriptor_load":
            kind = "load"
        yield kind if op.loc is None else f"{kind} of line {op.loc.line}"
