"""NumPy rules of accesses by tensor descriptors, which access all elements inside of the array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from tilewright.interp.concrete_value import ConcreteValue
from tilewright.interp.numpy_dtypes import Array, as_array, numpy_dtype
from tilewright.interp.program_state import Machine, atomic_update, load, machine_rule, store
from tilewright.ir.types import TileType, i1
from tilewright.ops import (
    DescriptorGatherOp,
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorScatterOp,
    DescriptorStoreOp,
)

Inputs = Sequence[ConcreteValue]


class _Block(NamedTuple):
    """A block as an access through pointers."""

    pointers: ConcreteValue
    inside: ConcreteValue


@machine_rule(DescriptorLoadOp)
def descriptor_load(machine: Machine, op: DescriptorLoadOp, inputs: Inputs) -> tuple[Array]:
    (tile,) = _load(machine, op, _block(inputs[0], inputs[1:], op.block_shape))
    return (tile.reshape(op.block_shape[op.dropped :]),)


@machine_rule(DescriptorStoreOp)
def descriptor_store(machine: Machine, op: DescriptorStoreOp, inputs: Inputs) -> tuple[()]:
    block = _block(inputs[0], inputs[2:], op.block_shape)
    return store(machine, cast("Any", op), [block.pointers, inputs[1], block.inside])


@machine_rule(DescriptorReduceOp)
def descriptor_reduce(machine: Machine, op: DescriptorReduceOp, inputs: Inputs) -> tuple[()]:
    block = _block(inputs[0], inputs[2:], op.block_shape)
    atomic_update(machine, op.kind, "gpu", [block.pointers, inputs[1], block.inside])
    return ()


@machine_rule(DescriptorGatherOp)
def descriptor_gather(machine: Machine, op: DescriptorGatherOp, inputs: Inputs) -> tuple[Array]:
    return _load(machine, op, _block(inputs[0], inputs[2:], op.block_shape, inputs[1]))


@machine_rule(DescriptorScatterOp)
def descriptor_scatter(machine: Machine, op: DescriptorScatterOp, inputs: Inputs) -> tuple[()]:
    block = _block(inputs[0], inputs[3:], op.block_shape, inputs[2])
    return store(machine, cast("Any", op), [block.pointers, inputs[1], block.inside])


def _load(
    machine: Machine, op: DescriptorLoadOp | DescriptorGatherOp, block: _Block
) -> tuple[Array]:
    pad = np.array(np.nan if op.padding == "nan" else 0).astype(numpy_dtype(op.type))
    return load(
        machine, cast("Any", op), [block.pointers, block.inside, ConcreteValue(op.element, pad)]
    )


def _block(
    base: ConcreteValue,
    numbers: Inputs,
    block_shape: tuple[int, ...],
    rows: ConcreteValue | None = None,
) -> _Block:
    """The pointers and the mask of a block.

    numbers: shape, strides, offsets, as in `ops.descriptor_access`; rows: of the first dimension,
    for gathers and scatters
    """
    rank = len(block_shape)
    values = [int(value.data) for value in numbers]
    whole, strides = values[:rank], [*values[rank : 2 * rank - 1], 1]
    offsets = values[2 * rank - 1 :]
    axes = [
        offset + np.arange(extent)
        for offset, extent in zip(offsets, block_shape[-len(offsets) :], strict=True)
    ]
    if rows is not None:
        axes.insert(0, rows.data.astype(np.int64))
    indices = np.meshgrid(*axes, indexing="ij")
    inside, distance = np.array(True), np.array(0)
    for index, extent, stride in zip(indices, whole, strides, strict=True):
        inside = inside & (index >= 0) & (index < extent)
        distance = distance + index * stride
    element = cast("Any", base.type).element
    addresses = base.data + (distance * element.bytes).astype(np.uint64)
    shape = indices[0].shape
    pointers = ConcreteValue(
        TileType(shape, cast("Any", base.type)), as_array(addresses), base.root
    )
    return _Block(pointers, ConcreteValue(TileType(shape, i1), as_array(inside)))
