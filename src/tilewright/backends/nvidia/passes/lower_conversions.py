"""Conversions through shared memory as ops on buffers: what is written, and what is read.

    %y = nvidia.convert %x : tile<64x64xf32, B>        %s = nvidia.alloc : buffer<64x64xf32, ...>
                                                ->     nvidia.write %x, %s
                                                       %y = nvidia.read %s : tile<64x64xf32, B>

insert_shared_barriers.py puts barriers between. A tile that is too large for the memory goes
through it by halves, as often as layouts allow, which are joined again:

    %p = nvidia.part %x {axis = 0, start = 0}          %u = nvidia.read %s
    nvidia.write %p, %s                                %t = nvidia.read %s
    ...                                                %y = tile.cat %t, %u

Small ones side by side, as of a reduction of several tiles, are all written before one is read: one
barrier serves them all. Conversions that rename registers, or shuffle them between lanes, stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.buffer_ops import AllocOp, PartOp, ReadOp, WriteOp
from tilewright.backends.nvidia.layouts.layout_propagation import part_along, with_half
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.backends.nvidia.shared_memory.shared_accesses import conversion, halved_axes
from tilewright.ir import Builder, Function, Op, Pass, Rewriter, Value
from tilewright.ir.types import BufferType, TileType, shape_of
from tilewright.layout import SharedMemory
from tilewright.ops import CatOp
from tilewright.support.data_class import dataclass

_TOGETHER_BYTES = 4096
"""Of conversions that share a barrier: more would cost programs of a multiprocessor."""


@dataclass(frozen=True)
class LowerConversions(Pass, name="nvidia-lower-conversions"):
    """Write and read buffers in place of conversions through shared memory.

    capability: of the architecture.
    """

    capability: int = 90

    def run(self, function: Function) -> bool:
        changed = False
        for op in [op for op in function.walk() if isinstance(op, ConvertOp)]:
            chosen = self._through_memory(op)
            if op.parent is not None and chosen is not None:
                together = list(self._side_by_side(op))
                if len(together) > 1:
                    self._exchange_together(together)
                else:
                    axes = halved_axes(layout_of(op.x), layout_of(op.result), chosen)
                    result = _Rounds(Builder.at(op), self.capability).convert(op, axes)
                    Rewriter.replace(op, result)
                changed = True
        return changed

    def _through_memory(self, op: Op | None) -> SharedMemory | None:
        """The plan of a conversion through shared memory."""
        if not isinstance(op, ConvertOp):
            return None
        chosen = conversion(op, row_for(self.capability).stmatrix)
        return chosen if isinstance(chosen, SharedMemory) else None

    def _side_by_side(self, first: ConvertOp) -> Iterator[ConvertOp]:
        """Small conversions from one on that stand together, none of the result of another."""
        op, left, made = first, _TOGETHER_BYTES, set[Value]()
        while isinstance(op, ConvertOp) and op.x not in made:
            chosen = self._through_memory(op)
            left -= _TOGETHER_BYTES + 1 if chosen is None else chosen.bytes
            if left < 0:
                return
            yield op
            made.add(op.result)
            op = op.next

    def _exchange_together(self, ops: Sequence[ConvertOp]) -> None:
        """All are written before any is read, so that one barrier will do."""
        written = [_Rounds(Builder.at(ops[0]), self.capability).write(op) for op in ops]
        for op, buffer in zip(ops, written, strict=True):
            read = ReadOp(buffer, result_type=op.type)
            Rewriter.replace(op, Builder.at(op).value(read))


class _Rounds:
    """The rounds of one conversion. buffers: through which they go, one after the other."""

    def __init__(self, builder: Builder, capability: int) -> None:
        self.builder, self.matrix_stores = builder, row_for(capability).stmatrix
        self.buffers: dict[BufferType, Value] = {}

    def convert(self, op: ConvertOp, axes: list[int]) -> Value:
        """The result, of halves along axes."""
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
        """The buffer through which a conversion goes, written."""
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
        """The same registers in the order of a layout."""
        return value if value.type is type_ else self.builder.value(ConvertOp(value, type_))


def _half(value: Value, axis: int) -> TileType:
    """The type of half of a tile."""
    found = part_along(layout_of(value), axis, shape_of(value.type)[axis] // 2)
    assert found is not None, value
    return TileType(found[0].shape, cast("TileType", value.type).element, found[0])
