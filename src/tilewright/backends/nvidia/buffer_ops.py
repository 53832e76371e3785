"""Ops on buffers in shared memory, with their NumPy rules: copies, reads, asynchronous dots.

    %m = nvidia.alloc : buffer<3 * 64x64xf16, ...>          memory for three tiles
    %s = nvidia.view %m, %i : buffer<64x64xf16, ...>        one of them
    nvidia.async_copy %x, %s                                %x is loaded: global -> shared memory
    nvidia.write %x, %s                                     registers -> shared memory
    nvidia.commit                                           ends a group of copies
    nvidia.wait {pending = 1}                               all but the latest group have arrived
    %a = nvidia.read %s : tile<64x64xf16, ...>              shared memory -> registers
    %h = nvidia.part %a {axis = 1, start = 0}               some of them
    %c = nvidia.wgmma %s, %t, %acc                          asynchronous: reads shared memory
    %d = nvidia.wgmma_wait %c                               it is complete

A buffer is memory, so ops that use one keep their order: all have `Effect.SHARED`. Threads see
writes of others after a barrier (insert_shared_barriers.py), wgmma after a fence as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from tilewright.backends.nvidia.operand_checks import (
    buffer_problem,
    first_problem,
    held_problem,
    other_tile,
    part_problem,
)
from tilewright.ir import (
    REFERENCE_RULES,
    Effect,
    Op,
    Trait,
    Value,
    attr,
    boolean,
    buffer,
    operand,
    optional_operand,
    reference,
    scalar_integer,
    tile,
    tile_or_buffer,
)
from tilewright.ir.types import BufferType, TileType, Type, shape_of
from tilewright.layout import LinearLayout
from tilewright.ops import DotOp
from tilewright.support import errors
from tilewright.support.data_class import dataclass


class AllocOp(Op, opcode="nvidia.alloc", effects=(Effect.SHARED,)):
    """result = a new buffer, its contents undefined

    in_warps: each warp reads only its own writes.
    """

    result_type: Type = attr()
    in_warps: bool = attr(default=False)

    def verify(self) -> str | None:
        return buffer_problem(self.result_type)


class ViewOp(Op, opcode="nvidia.view", traits=(Trait.PURE,)):
    """result = one slot of a buffer"""

    buffer: Value = operand(buffer)
    slot: Value = operand(scalar_integer)

    def infer(self) -> Type:
        type_ = buffer_type(self.buffer)
        return BufferType(type_.shape, type_.element, type_.layout)


class TransposeViewOp(Op, opcode="nvidia.transpose_view", traits=(Trait.PURE,)):
    """result = the same memory: dim k of the result is dim order[k] of the buffer"""

    buffer: Value = operand(buffer)
    order: tuple[int, ...] = attr()

    def infer(self) -> Type:
        return transposed_buffer(buffer_type(self.buffer), self.order)

    def verify(self) -> str | None:
        type_ = buffer_type(self.buffer)
        if sorted(self.order) != list(range(len(type_.shape))):
            return f"{list(self.order)} is no order of the dims of {type_}"
        return None if isinstance(type_.layout, LinearLayout) else f"{type_} has no layout"


class ShareOp(Op, opcode="nvidia.share", effects=(Effect.SHARED,)):
    """result = a new buffer that holds x"""

    x: Value = operand(tile)
    result_type: Type = attr()

    def verify(self) -> str | None:
        made = self.result_type
        if isinstance(made, BufferType) and made.slots != 1:
            return f"makes a buffer of one slot, not {made}"
        return first_problem(buffer_problem(made), other_tile(made, self.x.type))


class AsyncCopyOp(Op, opcode="nvidia.async_copy", effects=(Effect.SHARED,)):
    """buffer = x, which is loaded: a copy of the current group

    vector: elements that are consecutive and aligned in global memory.
    """

    x: Value = operand(tile)
    buffer: Value = operand(buffer)
    vector: int = attr()

    def verify(self) -> str | None:
        return held_problem(self.buffer.type, self.x.type)


class WriteOp(Op, opcode="nvidia.write", effects=(Effect.SHARED,)):
    """buffer = x

    owners: of the threads that have an element one writes it; the elements of others are undefined.
    """

    x: Value = operand(tile)
    buffer: Value = operand(buffer)
    owners: bool = attr(default=False)

    def verify(self) -> str | None:
        return held_problem(self.buffer.type, self.x.type)


class CommitOp(Op, opcode="nvidia.commit", effects=(Effect.SHARED,)):
    """Closes a group of asynchronous copies."""


class WaitOp(Op, opcode="nvidia.wait", effects=(Effect.SHARED,)):
    """All but the `pending` latest groups of a thread's copies have arrived.

    Other threads see them after a barrier. proxy: so does wgmma.
    """

    pending: int = attr(default=0)
    proxy: bool = attr(default=False)


class ReadOp(Op, opcode="nvidia.read", effects=(Effect.SHARED,)):
    """result = the tile that a slot holds, in the layout of the result type

    Or a part of it: along an axis, as many elements as the result has, from `start` on, a multiple
    of that number. axis: none for the whole tile.
    """

    buffer: Value = operand(buffer)
    result_type: Type = attr()
    axis: int | None = attr(default=None)
    start: int = attr(default=0)

    def verify(self) -> str | None:
        if self.axis is not None:
            return part_problem(self.buffer.type, self.result_type, self.axis, self.start)
        if not isinstance(self.result_type, TileType):
            return f"the result is a tile, not {self.result_type}"
        return held_problem(self.buffer.type, self.result_type)


class PartOp(Op, opcode="nvidia.part", traits=(Trait.PURE,)):
    """result = the elements of x along an axis from `start` on, a multiple of their number, in the
    same threads"""

    x: Value = operand(tile)
    axis: int = attr()
    start: int = attr()
    result_type: Type = attr()

    def verify(self) -> str | None:
        return part_problem(self.x.type, self.result_type, self.axis, self.start)


class WgmmaOp(Op, opcode="nvidia.wgmma", effects=(Effect.SHARED,)):
    """result = (acc if keep else 0) + a @ b by wgmma, which reads shared memory; acc, if it does
    not run

    The dot is one group of instructions. It completes before the op does, except the `pending`
    latest groups, which stay in flight: nothing may write their operands, and only a further dot
    may use their results, until a `nvidia.wgmma_wait`. None: the op waits for none.

    columns: N of one instruction; rows: warpgroups along M. One operand may be in registers, as A
    of the instruction; swapped: it is B, and the instruction computes b^T @ a^T, with M along the
    columns of the result; interleaved: adjacent rows of that operand (columns of B) are in one
    thread, as far as it has several; lanes_last: bits of lanes that number such rows after those
    of warps, the others before them; k_start: the first element along K, where the operand in a
    buffer has more.
    """

    a: Value = operand(tile_or_buffer)
    b: Value = operand(tile_or_buffer)
    acc: Value = operand(tile)
    columns: int = attr()
    rows: int = attr()
    swapped: bool = attr(default=False)
    interleaved: bool = attr(default=False)
    lanes_last: int = attr(default=0)
    k_start: int = attr(default=0)
    pending: int | None = attr(default=0)
    keep: Value | None = optional_operand(boolean, default=None)
    runs: Value | None = optional_operand(boolean, default=None)

    def infer(self) -> Type:
        return self.acc.type

    def verify(self) -> str | None:
        right = self.a if self.swapped else self.b
        if not isinstance(right.type, BufferType):
            return f"instructions read {right} as their B: it must be a buffer"
        return self._shape_problem()

    def _shape_problem(self) -> str | None:
        a, b, acc = (shape_of(x.type) for x in (self.a, self.b, self.acc))
        if not len(a) == len(b) == len(acc) == 2:
            return "operands and accumulator are matrices"
        # the operand in a buffer may be longer along K
        extent = min(a[1], b[0])
        there = 0 <= self.k_start <= max(a[1], b[0]) - extent
        if there and (a[0], b[1]) == acc:
            return None
        return f"shapes do not fit: {self.a.type} @ {self.b.type} + {self.acc.type}"


class WgmmaWaitOp(Op, opcode="nvidia.wgmma_wait", effects=(Effect.SHARED,)):
    """result = x; all but the `pending` latest groups of dots are complete"""

    x: Value = operand(tile)
    pending: int = attr(default=0)

    def infer(self) -> Type:
        return self.x.type


def buffer_type(value: Value) -> BufferType:
    """The type of a buffer."""
    assert isinstance(value.type, BufferType), value
    return value.type


def transposed_buffer(type_: BufferType, order: Sequence[int]) -> BufferType:
    """The type of a buffer whose dim k is dim order[k] of another one, in the same memory."""
    layout = cast("LinearLayout", type_.layout).transpose(order)
    shape = tuple(type_.shape[dim] for dim in order)
    return BufferType(shape, type_.element, layout, type_.slots)


def alloc_of(value: Value) -> Op:
    """The op that allocated a buffer, through its views."""
    op = value.op
    while isinstance(op, ViewOp | TransposeViewOp):
        op = op.buffer.op
    assert op is not None, f"{value} is no buffer"
    return op


def users_of(buffer: Value) -> Iterator[Op]:
    """The ops that use a buffer or a view of it."""
    for user in buffer.uses:
        if isinstance(user, ViewOp | TransposeViewOp):
            yield from users_of(user.result)
        else:
            yield user


def is_read_by_wgmma(buffer: Value) -> bool:
    """Whether wgmma reads a buffer: writes of threads to it need a proxy fence."""
    return any(isinstance(user, WgmmaOp) for user in users_of(buffer))


# ---- NumPy rules --------------------------------------------------------------------------------


@dataclass(frozen=True)
class BufferMemory:
    """A buffer in NumPy rules: the tiles in all slots, the selected slot, and the order of its
    dims. The interpreter passes it in an array."""

    tiles: list[Any]
    slot: int = 0
    order: tuple[int, ...] | None = None

    def read(self) -> Any:
        tile = self.tiles[self._checked_slot()]
        if tile is None:
            raise errors.InterpreterError("a buffer is read before it was written")
        return tile if self.order is None else tile.transpose(self.order)

    def write(self, tile: Any) -> None:
        if self.order is not None:
            raise errors.InterpreterError("a transposed buffer is written")
        self.tiles[self._checked_slot()] = tile

    def _checked_slot(self) -> int:
        if not 0 <= self.slot < len(self.tiles):
            found = f"slot {self.slot} of a buffer of {len(self.tiles)} is used"
            raise errors.InterpreterError(found)
        return self.slot


def require_shape(tile: Any, shape: Sequence[int]) -> None:
    """Raise InterpreterError for a tile of another shape, which a text may have written."""
    if tile.shape != tuple(shape):
        raise errors.InterpreterError(f"a buffer that holds {tile.shape} is read as {shape}")


@reference(AllocOp)
def alloc(op: AllocOp) -> Any:
    """Empty, so that a premature read is found."""
    return BufferMemory([None] * buffer_type(op.result).slots)


@reference(ViewOp)
def view(op: ViewOp, memory: Any, slot: Any) -> Any:
    """The same memory."""
    return replace(memory.item(), slot=int(slot))


@reference(TransposeViewOp)
def transpose_view(op: TransposeViewOp, memory: Any) -> Any:
    """The same memory."""
    if memory.item().order is not None:
        raise errors.InterpreterError("a transposed buffer is transposed")
    return replace(memory.item(), order=op.order)


@reference(ShareOp)
def share(op: ShareOp, x: Any) -> Any:
    """A buffer of one slot."""
    return BufferMemory([x])


@reference(WriteOp, AsyncCopyOp)
def write(op: WriteOp | AsyncCopyOp, x: Any, memory: Any) -> tuple[()]:
    """Copied immediately."""
    memory.item().write(x)
    return ()


@reference(ReadOp)
def read(op: ReadOp, memory: Any) -> Any:
    """The tile: NumPy has no layouts."""
    tile, shape = memory.item().read(), shape_of(op.result_type)
    if op.axis is not None:
        tile = _part(tile, op.axis, op.start, op.result)
    tile = tile[..., : shape[-1]]
    require_shape(tile, shape)
    return tile


@reference(PartOp)
def part(op: PartOp, x: Any) -> Any:
    """A slice."""
    return _part(x, op.axis, op.start, op.result)


def _part(x: Any, axis: int, start: int, result: Value) -> Any:
    return x.take(range(start, start + shape_of(result.type)[axis]), axis)


@reference(WgmmaOp)
def wgmma(op: WgmmaOp, a: Any, b: Any, acc: Any, keep: Any = None, runs: Any = None) -> Any:
    """The dot of the tiles."""
    if runs is not None and not runs.item():
        return acc
    if keep is not None and not keep.item():
        acc = acc * 0
    sides = zip((op.a, op.b), (a, b), strict=True)
    left, right = (x.item().read() if isinstance(v.type, BufferType) else x for v, x in sides)
    extent = min(left.shape[1], right.shape[0])
    there = slice(op.k_start, op.k_start + extent)
    left = left[:, there] if left.shape[1] > extent else left
    right = right[there] if right.shape[0] > extent else right
    return REFERENCE_RULES[DotOp](op, left, right, acc)


@reference(WgmmaWaitOp)
def wgmma_wait(op: WgmmaWaitOp, x: Any) -> Any:
    """Dots complete immediately here."""
    return x


@reference(CommitOp, WaitOp)
def wait(op: CommitOp | WaitOp) -> tuple[()]:
    """Copies complete immediately here."""
    return ()
