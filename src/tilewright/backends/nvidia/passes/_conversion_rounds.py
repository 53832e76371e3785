"""Layout conversions through shared memory as writes and reads of buffers.

    %y = nvidia.convert %x : tile<64x64xf32, B>        %s = nvidia.alloc : buffer<64x64xf32, ...>
                                                ->     nvidia.write %x, %s
                                                       %y = nvidia.read %s : tile<64x64xf32, B>

insert_shared_barriers.py inserts the barriers. A tile that is too large for shared memory is
converted by halves, repeatedly as far as layouts allow, which are joined again:

    %p = nvidia.part %x {axis = 0, start = 0}          %u = nvidia.read %s
    nvidia.write %p, %s                                %t = nvidia.read %s
    ...                                                %y = tile.cat %t, %u

Adjacent small conversions, as of a reduction of several tiles, are all written before one is read,
so that they share a barrier. Conversions that rename registers, or shuffle them, stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from tilewright.backends.nvidia.buffer_ops import AllocOp, PartOp, ReadOp, WriteOp
from tilewright.backends.nvidia.layouts.layout_propagation import part_along, with_half
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.backends.nvidia.shared_memory.shared_accesses import conversion, halved_axes
from tilewright.ir import Builder, Function, Rewriter, Value
from tilewright.ir.types import BufferType, TileType, shape_of
from tilewright.layout import SharedMemory
from tilewright.ops import CatOp

RESIDENT_WARPS = 40
"""Warps of a multiprocessor that conversions with one barrier leave room for. An estimate."""


def lower_conversions(function: Function, matrix_stores: bool, together: int) -> bool:
    """Write and read buffers in place of conversions through shared memory; whether there are any.

    matrix_stores: whether there is stmatrix; together: most bytes of conversions with one barrier
    """
    changed = False
    for op in [op for op in function.walk() if isinstance(op, ConvertOp)]:
        chosen = _through_memory(op, matrix_stores)
        if op.parent is not None and chosen is not None:
            adjacent = list(_adjacent(op, matrix_stores, together))
            if len(adjacent) > 1:
                _exchange_together(adjacent, matrix_stores)
            else:
                axes = halved_axes(layout_of(op.x), layout_of(op.result), chosen)
                result = _Rounds(Builder.at(op), matrix_stores).convert(op, axes)
                Rewriter.replace(op, result)
            changed = True
    return changed


def _through_memory(op: ConvertOp, matrix_stores: bool) -> SharedMemory | None:
    """The plan of a conversion through shared memory."""
    chosen = conversion(op, matrix_stores)
    return chosen if isinstance(chosen, SharedMemory) else None


def _adjacent(first: ConvertOp, matrix_stores: bool, most: int) -> Iterator[ConvertOp]:
    """Adjacent conversions from one on, independent of each other, of `most` bytes in all."""
    op, left, made = first, most, set[Value]()
    while isinstance(op, ConvertOp) and op.x not in made:
        chosen = _through_memory(op, matrix_stores)
        left -= most + 1 if chosen is None else chosen.bytes
        if left < 0:
            return
        yield op
        made.add(op.result)
        op = op.next


def _exchange_together(ops: Sequence[ConvertOp], matrix_stores: bool) -> None:
    """Write all before any is read, so that they share a barrier."""
    written = [_Rounds(Builder.at(ops[0]), matrix_stores).write(op) for op in ops]
    for op, buffer in zip(ops, written, strict=True):
        read = ReadOp(buffer, result_type=op.type)
        Rewriter.replace(op, Builder.at(op).value(read))


class _Rounds:
    """The rounds of one conversion. buffers: of the rounds, in order."""

    def __init__(self, builder: Builder, matrix_stores: bool) -> None:
        self.builder, self.matrix_stores = builder, matrix_stores
        self.buffers: dict[BufferType, Value] = {}

    def convert(self, op: ConvertOp, axes: list[int]) -> Value:
        """The result, joined from halves along axes."""
        target = cast("TileType", op.type)
        if not axes:
            return self._round(op)
        axis, parts = axes[0], list[Value]()
        for half in range(2):
            type_ = _half(op.x, axis)
            start = half * type_.shape[axis]
            part = PartOp(op.x, axis=axis, start=start, result_type=type_)
            convert = ConvertOp(self.builder.value(part), _half(op.result, axis))
            parts.append(self.convert(convert, axes[1:]))
        joined = CatOp(*parts, axis=axis)
        layout = with_half(layout_of(parts[0]), axis)
        joined.results[0].type = TileType(target.shape, target.element, layout)
        return self._renamed(self.builder.value(joined), target)

    def _round(self, op: ConvertOp) -> Value:
        if not isinstance(conversion(op, self.matrix_stores), SharedMemory):
            return self.builder.value(op)
        return self.builder.value(ReadOp(self.write(op), result_type=op.type))

    def write(self, op: ConvertOp) -> Value:
        """Write the operand of a conversion; returns the buffer."""
        chosen, type_ = conversion(op, self.matrix_stores), cast("TileType", op.type)
        assert isinstance(chosen, SharedMemory), op
        shared = BufferType(type_.shape, type_.element, chosen.shared)
        buffer = self.buffers.get(shared)
        if buffer is None:
            alloc = AllocOp(shared, in_warps=chosen.is_inside_warps)
            buffer = self.buffers[shared] = self.builder.value(alloc)
        self.builder.emit(WriteOp(op.x, buffer))
        return buffer

    def _renamed(self, value: Value, type_: TileType) -> Value:
        """The same registers, in the order of another layout."""
        return value if value.type is type_ else self.builder.value(ConvertOp(value, type_))


def _half(value: Value, axis: int) -> TileType:
    """The type of half of a tile."""
    found = part_along(layout_of(value), axis, shape_of(value.type)[axis] // 2)
    assert found is not None, value
    return TileType(found[0].shape, cast("TileType", value.type).element, found[0])
