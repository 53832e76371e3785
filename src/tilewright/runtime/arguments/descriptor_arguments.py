"""Tensor descriptors as kernel arguments: an address, the extents, and all strides but the last.

A kernel is compiled for the dtype, the shape of blocks, the padding, and whether rows are multiples
of 16 bytes, which lets masked accesses be 16 bytes wide. Each launch checks here that the address
and the strides are multiples of 16 bytes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, cast

from tilewright.compiler import name_of_type
from tilewright.ir.types import DType, PointerType, i32, i64
from tilewright.language import Description, TensorDescriptor, check_address, check_launch
from tilewright.runtime.arguments.key_rules import (
    ALIGNMENT,
    HANDLERS,
    Handled,
    Handler,
    Spec,
    TupleKey,
    spec,
)
from tilewright.support import errors


class Blocks(NamedTuple):
    """Compile-time parts of a descriptor: the shape of blocks, and the padding outside the
    array."""

    shape: tuple[int, ...]
    padding: str


class DescriptorKey(TupleKey):
    """A descriptor in a key: (Blocks, key of the address, of each extent, of each stride)."""

    __slots__ = ()

    @property
    def blocks(self) -> Blocks:
        """The compile-time parts."""
        blocks = self[0]
        assert isinstance(blocks, Blocks)
        return blocks

    def values_of(self, item: Any) -> Any:
        """The parts of a descriptor; values that are parts already stay as they are."""
        return item.parts() if isinstance(item, TensorDescriptor) else item

    @property
    def element(self) -> DType:
        """Type of the array's elements."""
        type_ = cast("Spec", self.items[0]).type
        assert isinstance(type_, PointerType)
        return type_.element

    @property
    def even_rows(self) -> bool:
        """Whether the last extent is a multiple of 16 bytes."""
        return cast("Spec", self.items[len(self.blocks.shape)]).divisor > 1

    def __repr__(self) -> str:
        padding = "" if self.blocks.padding == "zero" else f",{self.blocks.padding}"
        even = f"/{_per_line(self.element)}" if self.even_rows else ""
        return f"tensordesc<{name_of_type(self.element)}{list(self.blocks.shape)}{padding}>{even}"


def _per_line(element: DType) -> int:
    """Elements in 16 bytes."""
    return max(ALIGNMENT // element.bytes, 1)


@lru_cache(maxsize=1024)
def _described(
    element: DType, description: Description
) -> tuple[Blocks, tuple[Spec, ...], tuple[int, ...]]:
    """Keys and values of extents and strides. Errors: InvalidDescriptor."""
    check_launch(element.bytes, element.is_float, description)
    shape, strides, block_shape, padding = description
    before = len(shape) - 1
    per_line = _per_line(element)
    last = spec(i32, 1 if shape[-1] % per_line else per_line, sign=1)
    keys = (*[spec(i32, sign=1)] * before, last, *[spec(i64, sign=1)] * before)
    return Blocks(block_shape, padding), keys, (*shape, *strides[:-1])


def _of_descriptor(descriptor: TensorDescriptor) -> Handled:
    key, address = HANDLERS.key_and_value(descriptor.base)
    if not isinstance(key, Spec) or not isinstance(key.type, PointerType):
        kind = f"tensor descriptor of a {type(descriptor.base).__name__}"
        raise errors.UnsupportedArgument("", kind, "describe an array")
    # again: the fields may have been assigned, as autotuning does for the shape of blocks
    if key.divisor < ALIGNMENT:
        check_address(int(address))
    blocks, keys, values = _described(key.type.element, descriptor.description())
    return DescriptorKey((blocks, key, *keys)), [address, *values]


def _resolve(kind: type[Any]) -> Handler | None:
    return _of_descriptor if issubclass(kind, TensorDescriptor) else None


# first, since other resolvers would accept a descriptor as an array
HANDLERS.resolvers.insert(0, _resolve)
