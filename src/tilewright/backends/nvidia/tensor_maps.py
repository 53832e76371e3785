"""Tensor maps: what the copy engine is told of an array, and from which arguments it follows.

A map is made on the host for each launch whose arguments need one that is not there yet, and passed
to the kernel as a parameter of its own, behind all others. Limits: CUDA driver API,
cuTensorMapEncodeTiled.
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
    """A number that is known at a launch: (that of a parameter + a constant) / a divisor; without
    parameter, of constants alone."""

    parameter: int | None
    constant: int = 0
    divisor: int = 1

    @property
    def is_constant(self) -> bool:
        """Whether it is the same at each launch, and a whole number."""
        return self.parameter is None and self.divisor == 1

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


def has_kind(element: DType) -> bool:
    """Whether maps know elements of a type."""
    return element.name in ELEMENT_KINDS
