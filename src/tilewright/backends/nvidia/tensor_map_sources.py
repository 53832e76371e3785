"""Tensor maps of descriptor accesses, and the arguments that determine each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.analysis import affine
from tilewright.backends.nvidia.tensor_maps import (
    MAX_BOX,
    LaunchNumber,
    TensorMapSource,
    has_kind,
)
from tilewright.ir import Value
from tilewright.ir.types import BufferType, DType, TileType
from tilewright.layout import SWIZZLE_BYTES, shared_swizzled
from tilewright.ops import DescriptorAccess, DescriptorLoadOp


def launch_number(value: Value, parameters: Sequence[Value]) -> LaunchNumber | None:
    """The launch constant that a scalar equals; None for other scalars.

    Wrong for negative numbers, since division truncates; extents are not negative.
    """
    number = affine.of(value).quotient()
    if number.base is None:
        return LaunchNumber(None, number.constant, number.divisor)
    if number.base not in parameters:
        return None
    return LaunchNumber(number.base.index, number.constant, number.divisor)


def swizzle_of(buffer: BufferType) -> int | None:
    """Bytes of a row of swizzled boxes that fill a buffer panel by panel; None without."""
    bits = 8 * buffer.element.bytes
    for width in SWIZZLE_BYTES[::-1]:
        if buffer.shape[-1] * bits >= 8 * width:
            if shared_swizzled(buffer.shape, bits, width) == buffer.layout:
                return width
    return None


def panelled_buffers(type_: TileType) -> Iterator[BufferType]:
    """The buffers of one slot that boxes fill with a tile of rank 2, the widest swizzle first."""
    element = type_.element
    assert isinstance(element, DType) and isinstance(type_.shape[-1], int)
    for width in SWIZZLE_BYTES[::-1]:
        if type_.shape[-1] * element.bytes >= width:
            layout = shared_swizzled(type_.shape, 8 * element.bytes, width)
            yield BufferType(type_.shape, element, layout)


def load_map(
    op: DescriptorLoadOp, buffer: BufferType, parameters: Sequence[Value]
) -> TensorMapSource | None:
    """The map of a load into a buffer; None without one."""
    swizzle = swizzle_of(buffer)
    if swizzle is None or op.padding != "zero":
        return None
    box = (*op.block[:-1], swizzle // op.element.bytes)
    return tensor_map_source(op, box, swizzle, parameters)


def tensor_map_source(
    op: DescriptorAccess,
    box: tuple[int, ...],
    swizzle: int,
    parameters: Sequence[Value],
    stored: bool = False,
) -> TensorMapSource | None:
    """The map by which boxes of an array are copied; None without one."""
    base = launch_number(op.pointer, parameters)
    dims = [launch_number(v, parameters) for v in op.shape]
    strides = [launch_number(v, parameters) for v in op.strides]
    if base is None or base.parameter is None or None in (*dims, *strides):
        return None
    if max(box) > MAX_BOX or not has_kind(op.element):
        return None
    return TensorMapSource(
        base.parameter,
        tuple(number for number in dims if number is not None),
        tuple(number for number in strides if number is not None),
        box,
        op.element.name,
        op.element.bytes,
        swizzle,
        stored,
    )
