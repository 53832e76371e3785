"""Selects the transposes that move data through registers.

A transpose is free where the tile is computed in the order of its result. Where the tile is loaded
from memory with contiguous rows, that order would gather single elements; reading along the rows
and transposing square blocks in registers is faster.

    %x = mem.load %p : tile<64x32xf32>                          (%p contiguous along the rows)
    %y = tile.transpose %x {order = [1, 0]} : tile<32x64xf32>
becomes
    %y = cpu.transpose %x : tile<32x64xf32>

The same holds for a load whose contiguous dimension is not that of the store of its elements:

    %x = mem.load %p : tile<64x32xf32>                          (%p contiguous along the columns)
    mem.store %q, (exp %x)                                      (%q contiguous along the rows)
becomes
    %t = mem.load (tile.transpose %p) : tile<32x64xf32>
    %x = cpu.transpose %t : tile<64x32xf32>
    mem.store %q, (exp %x)

and, where %p is contiguous along the rows and %q along the columns,

    %x = tile.transpose (cpu.transpose (mem.load %p)) : tile<64x32xf32>
"""

from __future__ import annotations

from tilewright.analysis import Alignment, analyze_alignment
from tilewright.backends.cpu.ops import BlockTransposeOp
from tilewright.ir import Builder, Function, Op, Pass, Rewriter, Trait, Value
from tilewright.ir.types import PointerType, element_of, shape_of
from tilewright.ops import LoadOp, SplatOp, StoreOp, TransposeOp

_LONG_RUN = 8
"""Contiguous elements from which an access uses vectors."""


class SelectTransposes(Pass, name="cpu-select-transposes"):
    """Select the transposes that move data through registers."""

    def run(self, function: Function) -> bool:
        swaps = [op for op in function.walk() if isinstance(op, TransposeOp) and _swaps_last(op)]
        loads = [op for op in function.walk() if isinstance(op, LoadOp) and _may_transpose(op)]
        if not swaps and not loads:
            return False
        facts = analyze_alignment(function)
        for op in swaps:
            # Addresses must stay affine; through registers they would become vectors of pointers.
            if isinstance(element_of(op.type), PointerType):
                continue
            if _row_contiguous(op.x, facts):
                Rewriter.replace(op, Builder.at(op).value(BlockTransposeOp(op.x)))
        for load in loads:
            along = _long_dim(load.pointer, facts)
            if along and _dims_of_stores(load.result, facts) == {-3 - along}:
                Rewriter.replace(load, _transposed_load(load, along))
        return True


def _may_transpose(load: LoadOp) -> bool:
    shape = shape_of(load.type)
    return len(shape) >= 2 and min(shape[-2:]) >= _LONG_RUN and not load.volatile


def _long_dim(pointer: Value, facts: dict[Value, Alignment]) -> int:
    """The one of the last two dims, -2 or -1, along which addresses are consecutive; 0: neither or
    both."""
    runs = facts[pointer].contiguity
    long = [d for d in (-2, -1) if len(runs) >= 2 and runs[d] >= _LONG_RUN]
    return long[0] if len(long) == 1 else 0


def _dims_of_stores(value: Value, facts: dict[Value, Alignment]) -> set[int]:
    """The dims along which addresses are consecutive in the stores of elementwise results of a
    value; 0 marks other uses."""
    dims, reached, stack = set[int](), {value}, [value]
    while stack:
        for user in stack.pop().uses:
            if isinstance(user, StoreOp):
                dims.add(_long_dim(user.pointer, facts))
            elif Trait.ELEMENTWISE in user.traits:
                stack += [v for v in user.results if v not in reached]
                reached.update(user.results)
            else:
                dims.add(0)
    return dims


def _transposed_load(load: LoadOp, along: int) -> Value:
    """The value of a load, read along a dim by vectors and transposed in registers."""
    build, rank = Builder.at(load), len(shape_of(load.type))
    order = (*range(rank - 2), rank - 1, rank - 2)

    def transposed(value: Value | None) -> Value | None:
        return None if value is None else build.value(TransposeOp(value, order))

    if along == -1:
        copy = LoadOp(load.pointer, load.mask, load.other, load.cache, load.eviction)
        return build.value(TransposeOp(build.value(BlockTransposeOp(build.value(copy))), order))
    pointer = build.value(TransposeOp(load.pointer, order))
    read = LoadOp(pointer, transposed(load.mask), transposed(load.other), load.cache, load.eviction)
    return build.value(BlockTransposeOp(build.value(read)))


def _swaps_last(op: TransposeOp) -> bool:
    rank = len(op.order)
    return rank >= 2 and op.order == (*range(rank - 2), rank - 1, rank - 2)


def _row_contiguous(value: Value, facts: dict[Value, Alignment]) -> bool:
    """Whether computing a tile along its last dimension reads consecutive memory."""
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
    # Results of control flow are in row-major buffers.
    return bool(op.regions) or Trait.PURE in op.traits and _has_buffer(op)


def _has_buffer(op: Op) -> bool:
    # The results of these ops are in row-major buffers.
    return op.opcode in ("tile.dot", "tile.scan", "tile.reduce", "cpu.transpose")
