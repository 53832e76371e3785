"""Lower accesses by tensor descriptors to masked loads and stores.

Before:
    %t = mem.descriptor_load %p, %m, %n, %stride, %row, %column {block_shape = [16, 32]}
        : tile<16x32xf16>
After, with every %i, %j a tile<16x32xi64>, broadcast from one dimension:
    %i = row + range(0, 16), %j = column + range(0, 32)
    %inside = (0 <= %i) & (%i < %m) & (0 <= %j) & (%j < %n)
    %t = mem.load offset(splat(%p), %i * stride + %j), %inside, splat(0) : tile<16x32xf16>

Indices have 64 bits, so that a block past the largest offset does not wrap to the smallest. A
backend with the Tensor Memory Accelerator (TMA) selects its accesses before this pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tilewright.ir import Builder, Function, Op, Pass, Rewriter, Value
from tilewright.ir.types import i64, shape_of, with_shape
from tilewright.ops import (
    AtomicOp,
    DescriptorAccess,
    DescriptorGatherOp,
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorScatterOp,
    DescriptorStoreOp,
    LoadOp,
    OffsetOp,
    ReshapeOp,
    StoreOp,
)


class LowerDescriptors(Pass, name="lower-descriptors"):
    """Lower every access by a descriptor that no earlier pass has selected for TMA."""

    def run(self, function: Function) -> bool:
        return lower_descriptors(function, lambda op: not op.attrs.get("bulk"))


def lower_descriptors(function: Function, lowers: Callable[[Op], bool]) -> bool:
    """Lower the accesses by descriptors that `lowers` selects; whether there are any."""
    found = [op for op in function.walk() if isinstance(op, DescriptorAccess) and lowers(op)]
    for op in found:
        result = _EXPANSIONS[type(op)](op, Builder.at(op))
        Rewriter.replace(op, () if result is None else result)
    return bool(found)


class _Block(NamedTuple):
    """A block as an access through pointers."""

    pointers: Value
    inside: Value


def _load(op: DescriptorLoadOp, build: Builder) -> Value:
    block = _padded_load(op, build, _block(op, build))
    return build.value(ReshapeOp(block, op.block[op.dropped :])) if op.dropped else block


def _gather(op: DescriptorGatherOp, build: Builder) -> Value:
    return _padded_load(op, build, _block(op, build, op.rows))


def _padded_load(op: DescriptorLoadOp | DescriptorGatherOp, build: Builder, block: _Block) -> Value:
    padding = float("nan") if op.padding == "nan" else 0.0 if op.element.is_float else 0
    padding = bool(padding) if op.element.is_bool else padding
    other = build.constant(padding, with_shape(op.type, shape_of(block.inside.type)))
    return build.value(LoadOp(block.pointers, block.inside, other))


def _store(op: DescriptorStoreOp, build: Builder) -> None:
    block = _block(op, build)
    build.emit(StoreOp(block.pointers, op.stored, block.inside))


def _scatter(op: DescriptorScatterOp, build: Builder) -> None:
    block = _block(op, build, op.rows)
    build.emit(StoreOp(block.pointers, op.stored, block.inside))


def _reduce(op: DescriptorReduceOp, build: Builder) -> None:
    block = _block(op, build)
    # Relaxed, as TMA reductions are.
    build.emit(AtomicOp(block.pointers, op.operand, block.inside, op.kind, "relaxed"))


_EXPANSIONS: dict[type[Op], Callable[..., Value | None]] = {
    DescriptorLoadOp: _load,
    DescriptorStoreOp: _store,
    DescriptorReduceOp: _reduce,
    DescriptorGatherOp: _gather,
    DescriptorScatterOp: _scatter,
}


def _block(op: DescriptorAccess, build: Builder, rows: Value | None = None) -> _Block:
    """The block of an access. rows: indices along the first dimension of a gather or scatter."""
    columns = op.block if rows is None else op.block[1:]
    indices = [
        _index(build, offset, extent) for offset, extent in zip(op.offsets, columns, strict=True)
    ]
    if rows is not None:
        indices.insert(0, build.cast(rows, i64))
    shape = tuple(shape_of(index.type)[0] for index in indices)
    distance: Value | None = None
    inside: Value | None = None
    for dim, index in enumerate(indices):
        # Multiplied on the rank-1 tile, before broadcasting: fewer multiplications.
        step = index
        if dim + 1 < op.rank:
            step = build.mul(index, build.splat(op.strides[dim], (shape[dim],)))
        part = build.along(step, dim, shape)
        distance = part if distance is None else build.add(distance, part)
        bounds = build.along(_inside(build, index, op.shape[dim]), dim, shape)
        inside = bounds if inside is None else build.bit_and(inside, bounds)
    assert distance is not None and inside is not None
    start = build.splat(op.pointer, shape)
    return _Block(build.value(OffsetOp(start, distance)), inside)


def _index(build: Builder, offset: Value, extent: int) -> Value:
    """Positions of the block along one dimension, as i64."""
    counted = build.cast(build.arange(0, extent), i64)
    return build.add(build.splat(build.cast(offset, i64), (extent,)), counted)


def _inside(build: Builder, index: Value, extent: Value) -> Value:
    """Whether positions are within the array along one dimension."""
    below = build.lt(index, build.splat(build.cast(extent, i64), shape_of(index.type)))
    return build.bit_and(build.ge(index, 0), below)
