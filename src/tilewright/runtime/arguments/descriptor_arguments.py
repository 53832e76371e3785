"""Tensor descriptors as kernel arguments: an address, the extents, and all strides but the last.

A kernel is compiled for the dtype, the shape of blocks and the padding, and for whether the last
extent is a multiple of 16: then no 16 bytes of a row are cut, so that masked accesses can be wide.
That the address and the strides are multiples of 16 bytes is checked here, at each launch.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from tilewright.ir.types import DType, PointerType, i32, i64
from tilewright.language import Description, TensorDescriptor, check_address, check_launch
from tilewright.runtime.arguments.specialization import (
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
    """What a kernel is compiled for: the shape of blocks, and what is read outside of the array."""

    shape: tuple[int, ...]
    padding: str


class DescriptorKey(TupleKey):
    """A descriptor in a key: (Blocks, key of the address, of each extent, of each stride)."""

    __slots__ = ()

    @property
    def blocks(self) -> Blocks:
        """What a kernel is compiled for."""
        blocks = self[0]
        assert isinstance(blocks, Blocks)
        return blocks

    def values_of(self, item: Any) -> Any:
        """The parts of a descriptor, or what is passed for them, which are parts already."""
        return item.parts() if isinstance(item, TensorDescriptor) else item

    def facts(self) -> list[dict[str, int]]:
        """The facts of each run-time value, as the front end describes them."""
        array, *others = self.items
        assert isinstance(array, Spec) and isinstance(array.type, PointerType)
        rank, size = len(self.blocks.shape), array.type.element.bytes
        extents = [
            {**key.facts(), "non_negative": 1} for key in others[:rank] if isinstance(key, Spec)
        ]
        stride = {"multiple_of": max(ALIGNMENT // size, 1), "non_negative": 1}
        address = {"aligned": ALIGNMENT, "descriptor": rank}
        return [address, *extents, *[stride] * (rank - 1)]

    def __repr__(self) -> str:
        array, *extents = self.items
        last = extents[len(self.blocks.shape) - 1]
        even = "D" if isinstance(last, Spec) and last.fact else ""
        padding = "" if self.blocks.padding == "zero" else f",{self.blocks.padding}"
        return f"tensordesc<{array!r}{list(self.blocks.shape)}{padding}>{even}"


@lru_cache(maxsize=1024)
def _described(
    element: DType, description: Description
) -> tuple[Blocks, tuple[Spec, ...], tuple[int, ...]]:
    """Keys and values of extents and strides. Errors: InvalidDescriptor."""
    check_launch(element.bytes, element.is_float, description)
    shape, strides, block_shape, padding = description
    extents = [spec(i32)] * (len(shape) - 1) + [spec(i32, not shape[-1] % ALIGNMENT)]
    keys = (*extents, *[spec(i64)] * (len(shape) - 1))
    return Blocks(block_shape, padding), keys, (*shape, *strides[:-1])


def _of_descriptor(descriptor: TensorDescriptor) -> Handled:
    key, address = HANDLERS.key_and_value(descriptor.base)
    if not isinstance(key, Spec) or not isinstance(key.type, PointerType):
        kind = f"tensor descriptor of a {type(descriptor.base).__name__}"
        raise errors.UnsupportedArgument("", kind, "describe an array")
    # again: the fields may have been assigned, as autotuning does for the shape of blocks
    if not key.fact:
        check_address(int(address))
    blocks, keys, values = _described(key.type.element, descriptor.description())
    return DescriptorKey((blocks, key, *keys)), [address, *values]


def _resolve(kind: type[Any]) -> Handler | None:
    return _of_descriptor if issubclass(kind, TensorDescriptor) else None


# first: nothing else that is asked for may take a descriptor for an array
HANDLERS.resolvers.insert(0, _resolve)
