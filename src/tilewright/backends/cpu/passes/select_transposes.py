"""Chooses which transpositions move data through registers.

A transposition is free where the tile is computed in the order of its result. Where the tile
comes from memory whose rows are contiguous, that order would gather element by element; then it
is worth reading along the rows and transposing square blocks in registers.

    %x = mem.load %p : tile<64x32xf32>                          (%p contiguous along the rows)
    %y = tile.transpose %x {order = [1, 0]} : tile<32x64xf32>
becomes
    %y = cpu.transpose %x : tile<32x64xf32>
"""

from __future__ import annotations

from tilewright.analysis import Alignment, analyze_alignment
from tilewright.backends.cpu.ops import BlockTransposeOp
from tilewright.ir import Builder, Function, Op, Pass, Rewriter, Trait, Value
from tilewright.ir.types import PointerType, element_of
from tilewright.ops import LoadOp, SplatOp, TransposeOp


class SelectTransposes(Pass, name="cpu-select-transposes"):
    """Choose the transpositions that go through registers."""

    def run(self, function: Function) -> bool:
        swaps = [op for op in function.walk() if isinstance(op, TransposeOp) and _swaps_last(op)]
        if not swaps:
            return False
        facts = analyze_alignment(function)
        for op in swaps:
            # Addresses must stay affine; through registers they would become vectors of pointers.
            if isinstance(element_of(op.type), PointerType):
                continue
            if _row_contiguous(op.x, facts):
                Rewriter.replace(op, Builder.at(op).value(BlockTransposeOp(op.x)))
        return True


def _swaps_last(op: TransposeOp) -> bool:
    rank = len(op.order)
    return rank >= 2 and op.order == (*range(rank - 2), rank - 1, rank - 2)


def _row_contiguous(value: Value, facts: dict[Value, Alignment]) -> bool:
    """Whether computing the tile along its last dimension reads memory in order."""
    reached, stack = {value}, [value]
    while stack:
        op = stack.pop().op
        # Block arguments are tiles in row-major buffers.
        if op is None or _reads_rows(op, facts):
            return True
        if Trait.ELEMENTWISE in op.traits:
            tiles = [v for v in op.operands if v.op is not None and not isinstance(v.op, SplatOp)]
            stack += [v for v in tiles if v not in reached]
            reached.update(tiles)
    return False


def _reads_rows(op: Op, facts: dict[Value, Alignment]) -> bool:
    if isinstance(op, LoadOp):
        return facts[op.pointer].contiguity[-1] > 1
    # Tiles that control flow gives have row-major buffers too.
    return bool(op.regions) or Trait.PURE in op.traits and _has_buffer(op)


def _has_buffer(op: Op) -> bool:
    # These leave their result in a row-major buffer.
    return op.opcode in ("tile.dot", "tile.scan", "tile.reduce", "cpu.transpose")
