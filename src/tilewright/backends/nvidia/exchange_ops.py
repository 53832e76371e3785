"""Ops by which threads exchange elements through buffers, with their NumPy rules.

    nvidia.write %x, %s                    registers -> shared memory (buffer_ops.py)
    %y = nvidia.read %s                    shared memory -> registers
    %z = nvidia.read_at %s, %index         shared memory -> registers, at an index
    nvidia.count %s, %x                    adds 1 at each number
    %c = nvidia.dot_fma_shared %s, %t, %acc
    nvidia.write_last %x, %s {axis = 1}    the last elements of each warp's scan
    %z = nvidia.scan_join %x, %sums        with the totals of previous warps
    %p = nvidia.read_partner %s {axis = 0, bit = 7}
    %y = nvidia.order_pairs %x, %p         a step of a sort between warps

Barriers between them are ops as well (insert_shared_barriers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from tilewright.backends.nvidia.buffer_ops import (
    AllocOp,
    ReadOp,
    WriteOp,
    buffer_type,
    require_shape,
)
from tilewright.backends.nvidia.operand_checks import (
    axis_problem,
    bits_problem,
    dot_problem,
    first_problem,
    held_problem,
    other_tile,
)
from tilewright.backends.nvidia.ops import FmaDotOp
from tilewright.ir import (
    REFERENCE_RULES,
    Block,
    Effect,
    Op,
    Trait,
    Value,
    attr,
    boolean,
    buffer,
    integer,
    operand,
    optional_operand,
    reference,
    region,
    region_rule,
    tile,
    variadic,
)
from tilewright.ir.types import DType, TileType, Type, element_of, shape_of
from tilewright.ops import wrong_args, wrong_end


class ReadAtOp(Op, opcode="nvidia.read_at", effects=(Effect.SHARED,)):
    """result[i, j] = buffer[index[i, j] modulo the extent, j] for axis 0, and so on"""

    buffer: Value = operand(buffer)
    index: Value = operand(integer)
    axis: int = attr()

    def infer(self) -> Type:
        index = cast("TileType", self.index.type)
        return TileType(index.shape, buffer_type(self.buffer).element, index.layout)

    def verify(self) -> str | None:
        whole, index = shape_of(self.buffer.type), shape_of(self.index.type)
        if axis_problem(self.axis, self.buffer.type) or len(whole) != len(index):
            return f"axis {self.axis} is none of both {self.buffer.type} and {self.index.type}"
        others = [i for i in range(len(whole)) if i != self.axis]
        same = all(whole[i] == index[i] for i in others)
        return None if same else f"{self.index.type} does not fit {self.buffer.type}"


class CountOp(Op, opcode="nvidia.count", effects=(Effect.SHARED,)):
    """buffer[x[i]] += 1 where mask[i], by atomic additions; numbers out of range are not counted"""

    buffer: Value = operand(buffer)
    x: Value = operand(integer)
    mask: Value | None = optional_operand(boolean, default=None)

    def verify(self) -> str | None:
        bins = buffer_type(self.buffer)
        if len(bins.shape) != 1 or not isinstance(bins.element, DType) or bins.element.is_float:
            return f"counts are integers in one dimension, not {bins}"
        same = self.mask is None or shape_of(self.mask.type) == shape_of(self.x.type)
        return None if same else "`mask` must have the shape of `x`"


class SharedFmaDotOp(Op, opcode="nvidia.dot_fma_shared", effects=(Effect.SHARED,)):
    """result = acc + a^T @ b by FMAs: K is the first dim of each matrix"""

    a: Value = operand(buffer)
    b: Value = operand(buffer)
    acc: Value = operand(tile)

    def infer(self) -> Type:
        return self.acc.type

    def verify(self) -> str | None:
        return dot_problem(self.a.type, self.b.type, self.acc.type)


def is_scratch(alloc: Op) -> bool:
    """Whether a buffer is that of an exchange: written by threads, and then read."""
    if not isinstance(alloc, AllocOp):
        return False
    exchanges = (WriteOp, WriteLastOp, ReadOp, ReadAtOp, ReadPartnerOp, CountOp, SharedFmaDotOp)
    return all(isinstance(u, exchanges) and u.parent is alloc.parent for u in alloc.result.uses)


# ---- scans --------------------------------------------------------------------------------------


class WriteLastOp(Op, opcode="nvidia.write_last", effects=(Effect.SHARED,)):
    """buffer = x[..., -1] for the last axis, and so on; or x[..., 0], if `first`"""

    x: Value = operand(tile)
    buffer: Value = operand(buffer)
    axis: int = attr()
    first: bool = attr(default=False)

    def verify(self) -> str | None:
        shape = shape_of(self.x.type)
        ends = (*shape[: self.axis], *shape[self.axis + 1 :])
        held = buffer_type(self.buffer)
        problem = axis_problem(self.axis, self.x.type)
        if problem is not None or not ends:
            return problem or f"{self.x.type} has one end, which is no tile"
        return held_problem(held, TileType(ends, element_of(self.x.type)))


class ScanJoinOp(Op, opcode="nvidia.scan_join", traits=(Trait.PURE,)):
    """result[g, i] = combine(sums[g - 1], scanned[g, i]) for axis 0; scanned[0, i] for the first g

    inputs: the scanned tiles, then the sums, which each thread has for all g; reverse: sums[g + 1],
    and the last g is the first.
    """

    inputs: tuple[Value, ...] = variadic(tile)
    combine: Block = region()
    axis: int = attr()
    reverse: bool = attr(default=False)

    @property
    def scanned(self) -> tuple[Value, ...]:
        """The first half."""
        return tuple(self.inputs[: len(self.inputs) // 2])

    @property
    def totals(self) -> tuple[Value, ...]:
        """The second half."""
        return tuple(self.inputs[len(self.inputs) // 2 :])

    def infer(self) -> tuple[Type, ...]:
        return tuple(x.type for x in self.scanned)

    def verify(self) -> str | None:
        shapes = {shape_of(x.type) for x in self.scanned}
        if len(self.inputs) % 2 or len(shapes) != 1:
            return "takes scanned tiles of one shape, and as many sums"
        (shape,) = shapes
        if not 0 <= self.axis < len(shape) - 1:
            return f"axis {self.axis} has none after it in {self.scanned[0].type}"
        wanted = (*shape[: self.axis + 1], *shape[self.axis + 2 :])
        if any(shape_of(x.type) != wanted for x in self.totals):
            return f"sums of {self.scanned[0].type} have the shape {list(wanted)}"
        elements = [element_of(x.type) for x in self.scanned]
        args = (*elements, *elements)
        return first_problem(
            wrong_args("`combine`", self.combine, args),
            wrong_end("`combine`", self.combine, "cf.yield", tuple(elements)),
        )


# ---- sorts --------------------------------------------------------------------------------------


class ReadPartnerOp(Op, opcode="nvidia.read_partner", effects=(Effect.SHARED,)):
    """result[i] = buffer[i xor 2^bit], along an axis; the partner is in another warp"""

    buffer: Value = operand(buffer)
    result_type: Type = attr()
    axis: int = attr()
    bit: int = attr()

    def verify(self) -> str | None:
        if not isinstance(self.result_type, TileType):
            return f"the result is a tile, not {self.result_type}"
        return first_problem(
            held_problem(self.buffer.type, self.result_type),
            bits_problem(self, self.result_type, self.axis, self.bit + 1),
        )


class OrderPairsOp(Op, opcode="nvidia.order_pairs", traits=(Trait.PURE,)):
    """result[i] = min(x[i], partner[i]) where bit `bit` of i is 0, else max(x[i], partner[i])

    Along an axis; reversed where bit `falls` of i is set, or everywhere if `descending`.
    """

    x: Value = operand(integer)
    partner: Value = operand(integer)
    axis: int = attr()
    bit: int = attr()
    falls: int | None = attr(default=None)
    descending: bool = attr(default=False)

    def infer(self) -> Type:
        return self.x.type

    def verify(self) -> str | None:
        return first_problem(
            other_tile(self.partner.type, self.x.type),
            bits_problem(self, self.x.type, self.axis, self.bit + 1),
            _falls_problem(self.falls),
        )


class MergeRunsOp(Op, opcode="nvidia.merge_runs", traits=(Trait.PURE,)):
    """result = x, each run of 2^bits elements along an axis in order; it rises and then falls, or
    falls and then rises, and is in one warp

    Descending where bit `falls` of the position is set, or everywhere if `descending`.
    """

    x: Value = operand(integer)
    axis: int = attr()
    bits: int = attr()
    falls: int | None = attr(default=None)
    descending: bool = attr(default=False)

    def infer(self) -> Type:
        return self.x.type

    def verify(self) -> str | None:
        return first_problem(
            bits_problem(self, self.x.type, self.axis, self.bits), _falls_problem(self.falls)
        )


class KeepBetterOp(Op, opcode="nvidia.keep_better", traits=(Trait.PURE,)):
    """result[i, j] = min(x[i, 0, j], x[i, 1, j]), the axis as three, of which j has 2^bit elements

    max, if `descending`; partner: x[i, 1 - k, j], if it is in another warp.
    """

    x: Value = operand(integer)
    result_type: Type = attr()
    axis: int = attr()
    bit: int = attr()
    descending: bool = attr(default=False)
    partner: Value | None = optional_operand(integer, default=None)

    def verify(self) -> str | None:
        problem = bits_problem(self, self.x.type, self.axis, self.bit + 1)
        if problem is not None or not isinstance(self.result_type, TileType):
            return problem or f"the result is a tile, not {self.result_type}"
        shape = list(shape_of(self.x.type))
        shape[self.axis] //= 2
        kept = self.result_type
        if kept.shape != tuple(shape) or kept.element != element_of(self.x.type):
            return f"{kept} is not half of {self.x.type}"
        return None if self.partner is None else other_tile(self.partner.type, self.x.type)


def _falls_problem(falls: int | None) -> str | None:
    return None if falls is None or 0 <= falls < 32 else f"{falls} is no bit of a position"


# ---- NumPy rules --------------------------------------------------------------------------------


@reference(ReadAtOp)
def read_at(op: ReadAtOp, memory: Any, index: Any) -> Any:
    """Indices out of range read some element, as on the device."""
    tile = memory.item().read()
    return np.take_along_axis(tile, index.astype(np.int64) % tile.shape[op.axis], op.axis)


@reference(CountOp)
def count(op: CountOp, memory: Any, x: Any, mask: Any = None) -> tuple[()]:
    """All counts together."""
    bins = memory.item().read()
    counted = (x >= 0) & (x < bins.size) & (True if mask is None else mask)
    found = np.bincount(x[counted].astype(np.int64), minlength=bins.size)
    memory.item().write(bins + found.astype(bins.dtype))
    return ()


@reference(SharedFmaDotOp)
def shared_fma_dot(op: SharedFmaDotOp, a: Any, b: Any, acc: Any) -> Any:
    """The dot of the tiles."""
    rows, columns = acc.shape[-2:]
    left, right = a.item().read()[..., :rows], b.item().read()[..., :columns]
    require_shape(left, (*acc.shape[:-2], left.shape[-2], rows))
    require_shape(right, (*acc.shape[:-2], left.shape[-2], columns))
    return REFERENCE_RULES[FmaDotOp](op, left.swapaxes(-1, -2), right, acc)


@reference(WriteLastOp)
def write_last(op: WriteLastOp, x: Any, memory: Any) -> tuple[()]:
    """A slice."""
    memory.item().write(x.take(0 if op.first else -1, op.axis))
    return ()


@region_rule(ScanJoinOp)
def scan_join(op: ScanJoinOp, run: Callable[..., Any], *arrays: Any) -> list[Any]:
    """Element by element: the region is of scalars."""
    count = len(arrays) // 2
    results, sums = [x.copy() for x in arrays[:count]], arrays[count:]
    groups = results[0].shape[op.axis]
    for place in np.ndindex(results[0].shape):
        before = place[op.axis] + (1 if op.reverse else -1)
        if 0 <= before < groups:
            there = (*place[: op.axis], before, *place[op.axis + 2 :])
            left = [np.asarray(x[there]) for x in sums]
            found = run(op.combine, *left, *[np.asarray(x[place]) for x in results])
            for x, value in zip(results, found, strict=True):
                x[place] = value.data
    return results


@reference(ReadPartnerOp)
def read_partner(op: ReadPartnerOp, memory: Any) -> Any:
    """The tile in another order."""
    tile = _rows_of(memory, shape_of(op.result_type))
    partners = [i ^ 1 << op.bit for i in range(tile.shape[op.axis])]
    return tile[(*(slice(None),) * op.axis, partners)]


def _rows_of(memory: Any, shape: Sequence[int]) -> Any:
    """The part of a buffer with longer rows that is a tile."""
    tile = memory.item().read()[..., : shape[-1]]
    require_shape(tile, shape)
    return tile


@reference(OrderPairsOp)
def order_pairs(op: OrderPairsOp, x: Any, partner: Any) -> Any:
    """By a mask along the axis."""
    takes_higher, result = _bit(x, op.axis, op.bit) ^ _falls(op, x), x.copy()
    swapped = takes_higher != (x > partner)
    result[swapped] = partner[swapped]
    return result


@reference(MergeRunsOp)
def merge_runs(op: MergeRunsOp, x: Any) -> Any:
    """By sorting."""
    length, after = 1 << op.bits, x.shape[op.axis + 1 :]
    runs = np.sort(x.reshape(*x.shape[: op.axis], -1, length, *after), op.axis + 1)
    falling, rising = (r.reshape(x.shape) for r in (np.flip(runs, op.axis + 1), runs))
    return np.where(_falls(op, x), falling, rising)


@reference(KeepBetterOp)
def keep_better(op: KeepBetterOp, x: Any, partner: Any = None) -> Any:
    """The better of both halves of each run."""
    before, after = x.shape[: op.axis], x.shape[op.axis + 1 :]
    pairs = x.reshape(*before, -1, 2, 1 << op.bit, *after)
    better = pairs.max(op.axis + 1) if op.descending else pairs.min(op.axis + 1)
    return better.reshape(*before, -1, *after)


def _bit(x: Any, axis: int, bit: int) -> Any:
    """Whether a bit of positions along an axis is set, to be broadcast with x."""
    positions = [number >> bit & 1 == 1 for number in range(x.shape[axis])]
    return np.array(positions).reshape(-1, *(1,) * (x.ndim - 1 - axis))


def _falls(op: OrderPairsOp | MergeRunsOp, x: Any) -> Any:
    return np.bool_(op.descending) if op.falls is None else _bit(x, op.axis, op.falls)
