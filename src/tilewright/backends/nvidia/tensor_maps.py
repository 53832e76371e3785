"""Tensor maps: what the copy engine is told of an array, and from which arguments it follows.

A map is made on the host for each launch whose arguments need one that is not there yet, and passed
to the kernel as a parameter of its own, behind all others. Limits: CUDA driver API,
cuTensorMapEncodeTiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tilewright.ir import Value
from tilewright.ir.types import BufferType, DType, TileType, all_dtypes
from tilewright.layout import SWIZZLE_BYTES, shared_swizzled
from tilewright.ops import AddOp, CastOp, ConstantOp, DescriptorAccess, DescriptorLoadOp, DivOp

MAX_BOX = 256
"""Elements of a box along a dimension."""

SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
"""CU_TENSOR_MAP_SWIZZLE_NONE, _32B, ... by the bytes of a row."""

ELEMENT_KINDS = {
    **{dtype.name: 0 for dtype in all_dtypes() if dtype.bits == 8},
    "u16": 1, "i16": 1, "u32": 2, "i32": 3, "u64": 4, "i64": 5,
    "f16": 6, "f32": 7, "f64": 8, "bf16": 9,
}  # fmt: skip
"""CUtensorMapDataType by element type; those of 8 bits are bytes."""


@dataclass(frozen=True, slots=True)
class LaunchNumber:
    """A number that is known at a launch: (that of a parameter + a constant) / a divisor; without
    parameter, of constants alone."""

    parameter: int | None
    constant: int = 0
    divisor: int = 1

    def of(self, values: Sequence[int] | Mapping[int, int]) -> int:
        """It, for the values of parameters."""
        number = 0 if self.parameter is None else values[self.parameter]
        return (number + self.constant) // self.divisor


@dataclass(frozen=True, slots=True)
class TensorMapSource:
    """A map: base: a parameter; dims, strides: of the array, the outermost first, in elements, but
    for the last stride, which is 1; box: of one copy; swizzle: bytes of a row of it, 0 for none;
    stored: it is written to."""

    base: int
    dims: tuple[LaunchNumber, ...]
    strides: tuple[LaunchNumber, ...]
    box: tuple[int, ...]
    element: str
    element_bytes: int
    swizzle: int
    stored: bool = False

    @property
    def parameters(self) -> tuple[int, ...]:
        """Those that decide the map, in order, each once."""
        numbers = (LaunchNumber(self.base), *self.dims, *self.strides)
        return tuple(sorted({n.parameter for n in numbers if n.parameter is not None}))

    def plain(self) -> PlainSource:
        """As a tuple of numbers and texts, for the metadata."""
        dims, strides = (
            tuple((n.parameter, n.constant, n.divisor) for n in numbers)
            for numbers in (self.dims, self.strides)
        )
        element = (self.element, self.element_bytes)
        return (self.base, dims, strides, self.box, element, self.swizzle, self.stored)

    @classmethod
    def from_plain(cls, plain: PlainSource) -> TensorMapSource:
        """The inverse of `plain`, also of what went through JSON."""
        base, dims, strides, box, element, swizzle, stored = plain
        numbers = [tuple(LaunchNumber(*n) for n in ns) for ns in (dims, strides)]
        return cls(base, numbers[0], numbers[1], tuple(box), *element, swizzle, stored)


_Numbers = Sequence[tuple[int | None, int, int]]
PlainSource = tuple[int, _Numbers, _Numbers, Sequence[int], tuple[str, int], int, bool]
"""The fields of a TensorMapSource."""


def launch_number(value: Value, parameters: Sequence[Value]) -> LaunchNumber | None:
    """The number that a scalar is; None if the launch does not tell it.

    One that is negative may be another one, for division truncates: no extent is.
    """
    op = value.op
    if isinstance(op, CastOp):
        return launch_number(op.x, parameters)
    if isinstance(op, ConstantOp):
        return LaunchNumber(None, int(op.value))
    if isinstance(op, AddOp | DivOp) and isinstance(op.rhs.op, ConstantOp):
        left, right = launch_number(op.lhs, parameters), int(op.rhs.op.value)
        if left is None or left.divisor != 1:
            return None
        if isinstance(op, AddOp):
            return replace(left, constant=left.constant + right)
        return replace(left, divisor=right) if right > 0 else None
    return LaunchNumber(value.index) if value in parameters else None


def swizzle_of(buffer: BufferType) -> int | None:
    """Bytes of a row, if boxes that are swizzled so fill a buffer panel by panel; else None."""
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
    """The map of a load into a buffer; None if there is none."""
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
    """The map by which boxes of an array are copied; None if there is none."""
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


def has_kind(element: DType) -> bool:
    """Whether maps know elements of a type."""
    return element.name in ELEMENT_KINDS
