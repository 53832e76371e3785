"""Tensor descriptors: arrays in global memory that are read and written in blocks."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from tilewright.ir.types import PointerType
from tilewright.language.compile_time import constexpr
from tilewright.language.composite_types import tuple_type
from tilewright.language.core import Operand, Shape
from tilewright.language.dtypes import block_type, dtype, int32, int64, type_of
from tilewright.language.stub_dispatch import builtin
from tilewright.language.tensors import aggregate_value, tensor, tuple
from tilewright.support import errors

ElementType = dtype
BlockType = block_type


class tensor_descriptor_type:
    """Type of a descriptor: that of its blocks, and of the items of its shape and strides."""

    def __init__(
        self,
        block_type: BlockType,
        shape_type: tuple_type | None = None,
        strides_type: tuple_type | None = None,
    ) -> None:
        rank = len(block_type.shape)
        self.block_type = block_type
        self.shape_type = shape_type or tuple_type([int32] * rank)
        self.strides_type = strides_type or tuple_type([int64] * rank)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tensor_descriptor_type) and self.block_type == other.block_type

    def __hash__(self) -> int:
        return hash(self.block_type)

    def __str__(self) -> str:
        return f"tensor_descriptor<{self.block_type}>"

    __repr__ = __str__


class tensor_descriptor_base(aggregate_value):
    """A strided array that is read and written in blocks of one shape; see `tensor_descriptor`."""

    description = "a tensor descriptor"

    __slots__ = ("base", "block_extents", "padding", "rounds", "shape", "strides")

    def __init__(
        self,
        base: tensor,
        shape: Sequence[tensor],
        strides: Sequence[tensor],
        block_extents: builtins.tuple[int, ...],
        padding: str,
        rounds: bool = False,
    ) -> None:
        """rounds: whether float32 that is loaded is rounded to TF32."""
        self.base = base
        self.shape = tuple(shape)
        self.strides = tuple(strides)
        self.block_extents = block_extents
        self.padding = padding
        self.rounds = rounds

    @property
    def dtype(self) -> ElementType:
        """Type of one element."""
        type_ = self.base.handle.type
        assert isinstance(type_, PointerType)
        return type_of(type_.element)

    @property
    def block_type(self) -> BlockType:
        """Type of a block, as `load` returns it."""
        return BlockType(self.dtype, self.block_extents)

    @property
    def block_shape(self) -> tuple:
        """Shape of a block, as constexprs."""
        return tuple(constexpr(extent) for extent in self.block_extents)

    @property
    def type(self) -> tensor_descriptor_type:
        """The type of the descriptor, in which `block_type` is that of its blocks."""
        return tensor_descriptor_type(self.block_type)

    def parts(self) -> list[tensor]:
        """The run-time values: base, shape, strides but the last, which is 1."""
        return [self.base, *self.shape, *self.strides[:-1]]

    def rebuild(self, parts: Sequence[tensor]) -> tensor_descriptor_base:
        """The same kind of descriptor of another array."""
        rank = len(self.block_extents)
        strides = [*parts[1 + rank :], self.strides[-1]]
        shape = parts[1 : 1 + rank]
        return type(self)(parts[0], shape, strides, self.block_extents, self.padding, self.rounds)

    def same_kind(self, other: aggregate_value) -> bool:
        """Whether blocks of both have one shape, one padding and one rounding."""
        return (
            isinstance(other, tensor_descriptor_base)
            and self.block_extents == other.block_extents
            and (self.padding, self.rounds) == (other.padding, other.rounds)
        )

    def __getattr__(self, name: str) -> Any:
        names = [name for name in dir(type(self)) if not name.startswith("_")]
        inner = ("block_extents", "description", "parts", "rebuild", "rounds", "same_kind")
        raise errors.UnknownAttribute(
            self.description, name, [name for name in names if name not in inner]
        )

    def __repr__(self) -> str:
        return str(self.type)

    @builtin
    def load(self, offsets: Sequence[Operand]) -> tensor:
        """The block that begins at `offsets` (int32, one for each dimension).

        Elements outside of the array, at negative indices too, are padding.
        Errors: InvalidValue (another number of offsets, offsets that are no integer scalars).
        """
        ...

    @builtin
    def store(self, offsets: Sequence[Operand], value: tensor) -> None:
        """Write a block, cast to the array's dtype, at `offsets`; elements outside are dropped.

        Errors: InvalidValue (as for `load`), ShapeMismatch (another shape than a block's).
        """
        ...

    @builtin
    def gather(self, x_offsets: tensor, y_offset: Operand) -> tensor:
        """The rows `x_offsets` of a matrix, from the column `y_offset` on, for blocks of one row.

        x_offsets: int32[R]; the result is [R, columns of a block]. As for `load`, elements outside
        are padding. Errors: InvalidValue.
        """
        ...

    @builtin
    def scatter(self, value: tensor, x_offsets: tensor, y_offset: Operand) -> None:
        """Write the rows of `value` to the rows `x_offsets` of a matrix; the inverse of `gather`.

        If a row occurs twice, one of the values is written. Errors: InvalidValue,
        ShapeMismatch.
        """
        ...

    @builtin
    def atomic_add(self, offsets: Sequence[Operand], value: tensor) -> None:
        """Add a block to the array at `offsets`: each element atomically, in no order, without a
        result. Elements outside are dropped. Types: as `tl.atomic_add`."""
        ...

    @builtin
    def atomic_min(self, offsets: Sequence[Operand], value: tensor) -> None:
        """As `atomic_add`: the smaller of both. Types: as `tl.atomic_min`."""
        ...

    @builtin
    def atomic_max(self, offsets: Sequence[Operand], value: tensor) -> None:
        """As `atomic_add`: the larger of both. Types: as `tl.atomic_max`."""
        ...

    @builtin
    def atomic_and(self, offsets: Sequence[Operand], value: tensor) -> None:
        """As `atomic_add`: bitwise and, of integers."""
        ...

    @builtin
    def atomic_or(self, offsets: Sequence[Operand], value: tensor) -> None:
        """As `atomic_add`: bitwise or, of integers."""
        ...

    @builtin
    def atomic_xor(self, offsets: Sequence[Operand], value: tensor) -> None:
        """As `atomic_add`: bitwise exclusive or, of integers."""
        ...


class tensor_descriptor(tensor_descriptor_base):
    """Result of `make_tensor_descriptor`, and a host's `TensorDescriptor` inside a kernel.

    base: pointer; shape: int32 scalars; strides: int64 scalars, in elements; block_shape:
    constexprs; dtype: of the elements.
    """

    __slots__ = ()


@builtin
def make_tensor_descriptor(
    base: tensor,
    shape: Sequence[Operand],
    strides: Sequence[Operand],
    block_shape: Shape,
    padding_option: str | constexpr = "zero",
) -> tensor_descriptor:
    """A descriptor of the array `base[shape]` with `strides` (elements), of 1 to 5 dimensions.

    shape and strides become int32 and int64. The last stride is the compile-time constant 1. On
    GPUs with a Tensor Memory Accelerator (TMA), base and the other strides should be multiples of
    16 bytes. block_shape: powers of two, at least 16 bytes in the last dimension. padding_option:
    the value of loads outside of the array: "zero", or "nan" for floats.
    Errors: InvalidValue, NotConstexpr, NonPowerOfTwo, BlockTooLarge.
    """
    ...


@builtin
def load_tensor_descriptor(desc: tensor_descriptor_base, offsets: Sequence[Operand]) -> tensor:
    """As `desc.load(offsets)`."""
    ...


@builtin
def store_tensor_descriptor(
    desc: tensor_descriptor_base, offsets: Sequence[Operand], value: tensor
) -> None:
    """As `desc.store(offsets, value)`."""
    ...
