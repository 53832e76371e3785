"""Tensor maps: TMA descriptor encodings of arrays, and the arguments that determine them.

The host encodes a map for each launch whose arguments need a new one, and passes it to the kernel
as an additional parameter, after all others. Limits: CUDA driver API, cuTensorMapEncodeTiled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.ir.types import DType, all_dtypes
from tilewright.support.data_class import dataclass

MAP_ALIGNMENT = 16
"""Bytes: of an array and of its strides."""

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
    """A number that is known at a launch: (parameter + constant) / divisor; without a parameter, a
    constant."""

    parameter: int | None
    constant: int = 0
    divisor: int = 1

    @property
    def is_constant(self) -> bool:
        """Whether it is equal at all launches, and an integer."""
        return self.parameter is None and self.divisor == 1

    def of(self, values: Sequence[int] | Mapping[int, int]) -> int:
        """The number, for values of parameters."""
        number = 0 if self.parameter is None else values[self.parameter]
        return (number + self.constant) // self.divisor


@dataclass(frozen=True, slots=True)
class TensorMapSource:
    """A tensor map. base: a parameter; dims, strides: of the array, the outermost first, in
    elements, without the last stride, which is 1; box: of one copy; swizzle: bytes of a row of it,
    0 for none; stored: whether it is written to"""

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
        """The parameters that determine the map, in order, each once."""
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
        """The inverse of `plain`, also after a round trip through JSON."""
        base, dims, strides, box, element, swizzle, stored = plain
        numbers = [tuple(LaunchNumber(*n) for n in ns) for ns in (dims, strides)]
        return cls(base, numbers[0], numbers[1], tuple(box), *element, swizzle, stored)


_Numbers = Sequence[tuple[int | None, int, int]]
PlainSource = tuple[int, _Numbers, _Numbers, Sequence[int], tuple[str, int], int, bool]
"""The fields of a TensorMapSource."""


def has_kind(element: DType) -> bool:
    """Whether tensor maps support elements of a type."""
    return element.name in ELEMENT_KINDS
