"""Types of tile IR: scalars, pointers, tiles, buffers. They are interned: equality is identity.

Signedness is part of an integer type, so `div`, `compare`, `shr` ... have one form.
Text: `i32`, `u8`, `bf16`, `ptr<f32>`, `ptr<f32, const>`, `tile<128x64xf32>`, `tile<128xptr<f16>>`,
and with a layout `tile<128x64xf32, blocked(...)>`. A buffer is memory, not a value: `buffer<3 *
128x64xf16, offset=...>` has three slots for a tile each.
"""

from __future__ import annotations

from math import ldexp, prod
from typing import Literal, Self

Kind = Literal["bool", "int", "uint", "float"]
Specials = Literal["ieee", "fn", "fnuz", "none"]
"""Codes of a float format that are not numbers.

ieee: infinities and NaNs have the highest exponent; fn: the NaN is all ones, no infinity; fnuz: the
NaN is where -0 would be, no infinity; none: all codes are numbers (Triton's fp8e4b15).
"""


class DType:
    """A scalar element type.

    bits: width of the value; bool is 1 bit and is stored as one byte.
    mantissa: explicit fraction bits of a float; bias: exponent bias of a float.
    """

    __slots__ = ("bias", "bits", "kind", "mantissa", "name", "specials")
    _interned: dict[str, DType] = {}

    def __init__(
        self,
        name: str,
        kind: Kind,
        bits: int,
        mantissa: int = 0,
        bias: int = 0,
        specials: Specials = "ieee",
    ) -> None:
        self.name, self.kind, self.bits = name, kind, bits
        self.mantissa, self.bias, self.specials = mantissa, bias, specials

    @property
    def bytes(self) -> int:
        """The size of an element in memory."""
        return (self.bits + 7) // 8

    @property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Signed or unsigned, 8 bits or more; bool is not an integer."""
        return self.kind in ("int", "uint")

    @property
    def is_signed(self) -> bool:
        return self.kind == "int"

    @property
    def is_fp8(self) -> bool:
        return self.kind == "float" and self.bits == 8

    @property
    def infinity_bits(self) -> int:
        """The bits of +infinity in a float format with IEEE 754's infinities."""
        return (2 * self.bias + 1) << self.mantissa

    @property
    def largest_bits(self) -> int:
        """The bits of the largest result of a cast to a float format."""
        if self.specials == "ieee":
            return self.infinity_bits - 1
        # Triton's casts to fp8e4b15 do not use its last code, as those to an fn format must not
        return (1 << (self.bits - 1)) - (1 if self.specials == "fnuz" else 2)

    @property
    def largest(self) -> float:
        """The largest result of a cast to a float format."""
        exponent, fraction = divmod(self.largest_bits, 1 << self.mantissa)
        return ldexp((1 << self.mantissa) + fraction, exponent - self.bias - self.mantissa)

    @property
    def nan_bits(self) -> int:
        """The bits of a NaN that is cast to a float format."""
        if self.specials == "ieee":
            return self.infinity_bits | 1 << (self.mantissa - 1)
        all_ones = (1 << (self.bits - 1)) - 1
        return {"fn": all_ones, "fnuz": all_ones + 1, "none": self.largest_bits}[self.specials]

    @property
    def has_negative_zero(self) -> bool:
        """Whether a float format has -0."""
        return self.specials != "fnuz"

    @property
    def min_int(self) -> int:
        """The smallest value of an integer or bool type."""
        return -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @property
    def max_int(self) -> int:
        """The largest value of an integer or bool type."""
        return (1 << (self.bits - 1)) - 1 if self.kind == "int" else (1 << self.bits) - 1

    def wrap(self, value: int) -> int:
        """The value of an integer or bool type that is equal to `value` modulo 2**bits."""
        return (value - self.min_int) % (1 << self.bits) + self.min_int

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        # by name, since equality is identity: a copy in another process must be its interned type
        return dtype_named, (self.name,)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


def dtype_named(name: str) -> DType:
    """The scalar type called `name`; KeyError if there is none."""
    return DType._interned[name]  # pyright: ignore[reportPrivateUsage]


def all_dtypes() -> tuple[DType, ...]:
    """Every scalar type, in the order of their definition."""
    return tuple(DType._interned.values())  # pyright: ignore[reportPrivateUsage]


def _stored(
    name: str, kind: Kind, bits: int, mantissa: int = 0, bias: int = 0, specials: Specials = "ieee"
) -> DType:
    """Define the IR type of a name; float formats are of IEEE 754, OCP OFP8, AMD and Triton."""
    dtype = DType(name, kind, bits, mantissa, bias, specials)
    DType._interned[name] = dtype  # pyright: ignore[reportPrivateUsage]
    return dtype


i1 = _stored("i1", "bool", 1)
i8 = _stored("i8", "int", 8)
i16 = _stored("i16", "int", 16)
i32 = _stored("i32", "int", 32)
i64 = _stored("i64", "int", 64)
u8 = _stored("u8", "uint", 8)
u16 = _stored("u16", "uint", 16)
u32 = _stored("u32", "uint", 32)
u64 = _stored("u64", "uint", 64)
f8e4m3 = _stored("f8e4m3", "float", 8, 3, 7, "fn")
f8e5m2 = _stored("f8e5m2", "float", 8, 2, 15)
f8e4b8 = _stored("f8e4b8", "float", 8, 3, 8, "fnuz")
f8e5b16 = _stored("f8e5b16", "float", 8, 2, 16, "fnuz")
f8e4b15 = _stored("f8e4b15", "float", 8, 3, 15, "none")
f16 = _stored("f16", "float", 16, 10, 15)
bf16 = _stored("bf16", "float", 16, 7, 127)
f32 = _stored("f32", "float", 32, 23, 127)
f64 = _stored("f64", "float", 64, 52, 1023)

ARRAY_NAMES: dict[DType, str] = {
    i1: "bool", i8: "int8", i16: "int16", i32: "int32", i64: "int64",
    u8: "uint8", u16: "uint16", u32: "uint32", u64: "uint64",
    f8e4m3: "float8_e4m3fn", f8e5m2: "float8_e5m2", f8e4b8: "float8_e4m3fnuz",
    f8e5b16: "float8_e5m2fnuz", f8e4b15: "float8e4b15",
    f16: "float16", bf16: "bfloat16", f32: "float32", f64: "float64",
}  # fmt: skip
"""The common names in NumPy, ml_dtypes, CuPy and torch; f8e4b15 exists in Triton only."""


class PointerType:
    """An address of elements of a scalar type; no store uses a `const` pointer."""

    __slots__ = ("const", "element")
    _interned: dict[tuple[DType, bool], PointerType] = {}
    element: DType
    const: bool

    def __new__(cls, element: DType, const: bool = False) -> PointerType:
        type_ = cls._interned.get((element, const))
        if type_ is None:
            type_ = object.__new__(cls)
            type_.element, type_.const = element, const
            cls._interned[(element, const)] = type_
        return type_

    @property
    def bytes(self) -> int:
        return 8

    @property
    def bits(self) -> int:
        return 64

    def __repr__(self) -> str:
        return f"ptr<{self.element}, const>" if self.const else f"ptr<{self.element}>"

    def __reduce__(self) -> tuple[object, tuple[DType, bool]]:
        return PointerType, (self.element, self.const)


class TileType:
    """A block of elements: static shape (rank >= 1), scalar or pointer element, optional layout."""

    __slots__ = ("element", "layout", "shape")
    _interned: dict[tuple[object, ...], TileType] = {}
    shape: tuple[int, ...]
    element: DType | PointerType
    layout: object | None

    def __new__(
        cls,
        shape: tuple[int, ...],
        element: DType | PointerType,
        layout: object | None = None,
    ) -> TileType:
        key = (shape, element, layout)
        type_ = cls._interned.get(key)
        if type_ is None:
            assert shape, "a tile has at least one dimension"
            type_ = object.__new__(cls)
            type_.shape, type_.element, type_.layout = shape, element, layout
            cls._interned[key] = type_
        return type_

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        return prod(self.shape)

    def __repr__(self) -> str:
        extents = "x".join(map(str, self.shape))
        suffix = "" if self.layout is None else f", {self.layout}"
        return f"tile<{extents}x{self.element}{suffix}>"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return TileType, (self.shape, self.element, self.layout)


class BufferType:
    """On-chip memory with slots for one tile each; ops read it and write it in place.

    layout: the map from the offset in a slot, in elements, to the tile's coordinates; None:
    consecutive rows of any length, whose first elements are the tile's.
    """

    __slots__ = ("element", "layout", "shape", "slots")
    _interned: dict[tuple[object, ...], BufferType] = {}
    shape: tuple[int, ...]
    element: DType | PointerType
    layout: object
    slots: int

    def __new__(
        cls, shape: tuple[int, ...], element: DType | PointerType, layout: object, slots: int = 1
    ) -> BufferType:
        key = (shape, element, layout, slots)
        type_ = cls._interned.get(key)
        if type_ is None:
            assert shape and slots > 0, "a buffer has a dimension, and a slot"
            type_ = object.__new__(cls)
            type_.shape, type_.element, type_.layout, type_.slots = shape, element, layout, slots
            cls._interned[key] = type_
        return type_

    @property
    def slot_bytes(self) -> int:
        """The size of one slot."""
        return prod(self.shape) * self.element.bytes

    @property
    def bytes(self) -> int:
        """The size of all slots."""
        return self.slots * self.slot_bytes

    def __repr__(self) -> str:
        extents = "x".join(map(str, self.shape))
        slots = f"{self.slots} * " if self.slots > 1 else ""
        layout = "" if self.layout is None else f", {self.layout}"
        return f"buffer<{slots}{extents}x{self.element}{layout}>"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return BufferType, (self.shape, self.element, self.layout, self.slots)


Scalar = DType | PointerType
Type = DType | PointerType | TileType | BufferType

# built once: `A | B` inside a function is evaluated at each call
_WITH_ELEMENTS = (TileType, BufferType)


def element_of(type_: Type) -> DType | PointerType:
    """The element type of a tile or a buffer, or the scalar type itself."""
    return type_.element if isinstance(type_, _WITH_ELEMENTS) else type_


def dtype_of(type_: Type) -> DType:
    """The element type of a type whose elements are numbers."""
    element = element_of(type_)
    assert isinstance(element, DType), f"expected a number type, found {type_}"
    return element


def nan_as_integer(source: DType, target: DType) -> int:
    """The integer for a NaN of a float type; see the table of `arith.cast`."""
    if source is not f64 and target.bits < 64:
        return 0
    return target.min_int if target.is_signed else 1 << (target.bits - 1)


def shape_of(type_: Type) -> tuple[int, ...]:
    """The shape of a tile or of a slot of a buffer; () for a scalar."""
    return type_.shape if isinstance(type_, _WITH_ELEMENTS) else ()


def with_element(type_: Type, element: DType | PointerType) -> Type:
    """The same shape, and for a tile the same layout, with another element type."""
    if isinstance(type_, TileType):
        return TileType(type_.shape, element, type_.layout)
    return element


def with_shape(type_: Type, shape: tuple[int, ...]) -> Type:
    """The same element with another shape and no layout; () gives the scalar."""
    element = element_of(type_)
    return TileType(shape, element) if shape else element
