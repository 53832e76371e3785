"""Split dots along K, to interleave reads of operands from shared memory with MMAs.

    %a = nvidia.read %s                       %a0 = nvidia.read %s {axis = 1, start = 0}
    %b = nvidia.read %t                       %b0 = nvidia.read %t {axis = 0, start = 0}
    %d = tile.dot %a, %b, %c           ->     %a1 = nvidia.read %s {axis = 1, start = 16}
                                              %b1 = nvidia.read %t {axis = 0, start = 16}
                                              %c0 = tile.dot %a0, %b0, %c
                                              %d = tile.dot %a1, %b1, %c0

A step is one instruction along K, or more where one read has the operands of several. Each step is
read during the MMAs of the previous one, which hides the latency, and no operand is held as a
whole. Dots of one operand share its reads.
"""

from __future__ import annotations

from typing import cast

from tilewright.backends.nvidia.buffer_ops import PartOp, ReadOp, TransposeViewOp, buffer_type
from tilewright.backends.nvidia.layouts.layout_propagation import part_along
from tilewright.backends.nvidia.layouts.mma_layouts import fragment_for
from tilewright.backends.nvidia.shared_memory.shared_accesses import read_access
from tilewright.ir import Block, Builder, Function, Op, Pass, Rewriter, Value
from tilewright.ir.types import TileType
from tilewright.layout import REGISTER, LinearLayout
from tilewright.ops import DotOp, TransposeOp
from tilewright.support.data_class import dataclass


@dataclass(frozen=True)
class SplitDotK(Pass, name="nvidia-split-dot-k"):
    """Read operands in shared memory right before the MMAs that need them."""

    def run(self, function: Function) -> bool:
        for op in [op for op in function.walk() if isinstance(op, TransposeOp)]:
            _read_transposed(op)
        reads = [op for op in function.walk() if isinstance(op, ReadOp) and _feeds_dots(op)]
        split = _Split(reads)
        dots = [op for op in function.walk() if isinstance(op, DotOp)]
        for dot in dots:
            if any(value.op in split.reads for value in (dot.a, dot.b)):
                split.dot(dot)
        for read in reads:
            Rewriter.erase(read)
        return bool(reads)


def _read_transposed(op: TransposeOp) -> None:
    """Transpose a read by a view with permuted dims."""
    read = op.x.op
    if not isinstance(read, ReadOp) or list(read.result.uses) != [op] or read.axis is not None:
        return
    if not isinstance(read.buffer.op, TransposeViewOp):
        builder = Builder.at(read)
        view = builder.value(TransposeViewOp(read.buffer, order=op.order))
        Rewriter.replace(op, builder.value(ReadOp(view, result_type=op.type)))
        Rewriter.erase(read)


def _feeds_dots(read: ReadOp) -> bool:
    """Whether only dots of its block use a tile that is read as a whole."""
    users = list(read.result.uses)
    same = all(isinstance(user, DotOp) and user.parent is read.parent for user in users)
    return same and bool(users) and read.axis is None


class _Split:
    """The split of the dots of a block. parts: of operands, by number of elements along K and the
    first of them."""

    def __init__(self, reads: list[ReadOp]) -> None:
        self.reads: set[Op] = set(reads)
        self.parts: dict[tuple[Block | None, Value, int, int], Value] = {}

    def dot(self, dot: DotOp) -> None:
        """Replace one dot."""
        axis = len(_layout(dot.a).shape) - 1
        sides = ((dot.a, axis), (dot.b, axis - 1))
        depth, step = _layout(dot.a).shape[axis], fragment_for(dot).k
        while step < depth and not all(self._has_parts(*side, step) for side in sides):
            step *= 2
        builder, total = Builder.at(dot), dot.acc
        for start in range(0, depth, step):
            # The operands of the next step as well.
            for first in range(start, min(start + 2 * step, depth), step):
                for side in sides:
                    self._part(builder, dot.parent, *side, step, first)
            operands = (self.parts[dot.parent, value, step, start] for value, _ in sides)
            new = dot.clone({})
            for index, value in enumerate((*operands, total)):
                new.set_operand(index, value)
            total = builder.emit(new).results[0]
        Rewriter.replace(dot, total)

    def _has_parts(self, value: Value, axis: int, step: int) -> bool:
        """Whether parts of so many elements have registers, and reads, of their own."""
        part = part_along(_layout(value), axis, step)
        if part is None or value.op not in self.reads:
            return part is not None
        size = part[0].in_size(REGISTER)
        access = read_access(buffer_type(cast("ReadOp", value.op).buffer), part[0], axis)
        return all(len({register // size for register in group}) == 1 for group in access.groups)

    def _part(
        self, builder: Builder, block: Block | None, value: Value, axis: int, step: int, start: int
    ) -> None:
        """The part of an operand for the dots of a block, emitted once."""
        if (block, value, step, start) not in self.parts:
            made = self._new_part(value, axis, step, start)
            part = value if made is None else builder.value(made)
            self.parts[block, value, step, start] = part

    def _new_part(self, value: Value, axis: int, step: int, start: int) -> Op | None:
        """The op that makes a part of an operand; None if the operand is its only part."""
        is_whole, read = _layout(value).shape[axis] == step, value.op
        if is_whole:
            return read.clone({}) if read is not None and read in self.reads else None
        found = part_along(_layout(value), axis, step)
        assert found is not None, value
        type_ = TileType(found[0].shape, cast("TileType", value.type).element, found[0])
        if isinstance(read, ReadOp) and read in self.reads:
            return ReadOp(read.buffer, result_type=type_, axis=axis, start=start)
        return PartOp(value, axis=axis, start=start, result_type=type_)


def _layout(value: Value) -> LinearLayout:
    return cast("LinearLayout", cast("TileType", value.type).layout)
