"""`TensorDescriptor`: the host's argument for a parameter that a kernel uses as a descriptor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, cast

from tilewright.language.core import TRITON_MAX_TENSOR_NUMEL
from tilewright.support import errors
from tilewright.support.data_class import dataclass

ALIGNMENT = 16
"""Bytes that address and strides are multiples of, for TMA (CUDA driver API,
`cuTensorMapEncodeTiled`: globalAddress and globalStrides)."""
_MAX_RANK = 5
_MAX_EXTENT = (1 << 31) - 1
"""Shapes and offsets are int32 in kernels."""
_MAX_STRIDE_BYTES = 1 << 40
"""The limit of `cuTensorMapEncodeTiled`."""
_PADDINGS = ("zero", "nan")
_TF32 = ",tf32"
_FLOAT32_BYTES = 4


class _RoundedPadding(str):
    """The padding of an array that is rounded: native code distinguishes descriptors by object."""

    __slots__ = ()


_ROUNDED = {padding: _RoundedPadding(padding) for padding in _PADDINGS}
_PLAIN = {padding: padding for padding in _PADDINGS}


@dataclass(eq=False)
class TensorDescriptor:
    """An array that a kernel reads and writes in blocks, as `tl.make_tensor_descriptor` describes
    it; a kernel gets it as a `tl.tensor_descriptor`.

    base: the array, of any library that kernels take arrays of; shape and strides: of all of it, in
    elements; block_shape: extents of a block, which kernels are compiled for; padding: the value
    read outside of the array, "zero" or "nan"; round_f32_to_tf32: float32 that is loaded is rounded
    to the nearest number with 10 bits of fraction, ties to even, while infinities and NaNs stay.
    The fields may be assigned between launches. Errors: InvalidDescriptor.
    """

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self) -> None:
        description = self.description()
        _check_description(*description)
        check_address(address_of(self.base))
        size = _item_size(self.base)
        if size is not None:
            _check_elements(size, _is_float(self.base), self.strides, description[3])

    def __setattr__(self, name: str, value: Any) -> None:
        own = vars(self)
        own[name] = value
        if name in ("padding", "round_f32_to_tf32"):
            padding = own.get("padding", "zero")
            objects = _ROUNDED if own.get("round_f32_to_tf32") else _PLAIN
            own["padding"] = objects.get(padding, padding)

    @staticmethod
    def from_tensor(
        tensor: Any,
        block_shape: Sequence[int],
        padding: str = "zero",
        round_f32_to_tf32: bool = False,
    ) -> TensorDescriptor:
        """The descriptor of a whole array, with its own shape and strides."""
        shape, strides = tensor.shape, _strides(tensor)
        return TensorDescriptor(tensor, shape, strides, block_shape, padding, round_f32_to_tf32)

    def description(self) -> Description:
        """All but the array."""
        reads = f"{self.padding}{_TF32 if self.round_f32_to_tf32 else ''}"
        return tuple(self.shape), tuple(self.strides), tuple(self.block_shape), reads

    def parts(self) -> list[Any]:
        """The run-time values of a launch: array, shape, strides but the last, which is 1."""
        return [self.base, *self.shape, *self.strides[:-1]]


Description = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], str]
"""Shape, strides, block shape, and how blocks are read: "zero", "nan", "zero,tf32", "nan,tf32"."""


def padding_and_rounding(reads: str) -> tuple[str, bool]:
    """The padding of an array, and whether float32 is rounded to TF32."""
    return reads.removesuffix(_TF32), reads.endswith(_TF32)


def _check_description(
    shape: Sequence[int], strides: Sequence[int], block_shape: Sequence[int], reads: str
) -> None:
    """Check the fields that do not depend on the array. Errors: InvalidDescriptor."""
    rank = len(shape)
    if not 1 <= rank <= _MAX_RANK:
        raise errors.InvalidDescriptor("shape", f"1 to {_MAX_RANK} extents", rank)
    for name, items in (("strides", strides), ("block_shape", block_shape)):
        if len(items) != rank:
            expected = f"{rank} numbers, one for each dimension"
            raise errors.InvalidDescriptor(name, expected, len(items))
    if not all(0 <= extent <= _MAX_EXTENT for extent in shape):
        raise errors.InvalidDescriptor("shape", f"0 to {_MAX_EXTENT} in each dimension", shape)
    if strides[-1] != 1:
        expected = "1 in the last dimension, along which elements are adjacent"
        raise errors.InvalidDescriptor("strides", expected, strides)
    if not all(extent > 0 for extent in block_shape):
        raise errors.InvalidDescriptor("block_shape", "positive extents", block_shape)
    if prod(block_shape) > TRITON_MAX_TENSOR_NUMEL:
        expected = f"at most {TRITON_MAX_TENSOR_NUMEL} elements"
        raise errors.InvalidDescriptor("block_shape", expected, block_shape)
    padding, _ = padding_and_rounding(reads)
    if padding not in _PADDINGS:
        raise errors.InvalidDescriptor("padding", "one of " + ", ".join(_PADDINGS), padding)


def _check_elements(size: int, is_float: bool, strides: Sequence[int], reads: str) -> None:
    """Check the fields for elements of `size` bytes. Errors: InvalidDescriptor."""
    for stride in strides[:-1]:
        if stride * size % ALIGNMENT or not 0 <= stride * size < _MAX_STRIDE_BYTES:
            expected = (
                f"multiples of {ALIGNMENT // size or 1} elements ({ALIGNMENT} bytes) from 0 to "
                f"2**40 bytes in all dimensions but the last"
            )
            raise errors.InvalidDescriptor("strides", expected, tuple(strides))
    padding, rounds = padding_and_rounding(reads)
    if padding == "nan" and not is_float:
        raise errors.InvalidDescriptor("padding", "zero for integers", padding)
    if rounds and not (is_float and size == _FLOAT32_BYTES):
        expected = "False for elements that are no float32"
        raise errors.InvalidDescriptor("round_f32_to_tf32", expected, True)


def check_launch(element_bytes: int, is_float: bool, description: Description) -> None:
    """Check all fields but the array at a launch; the block shape may be set as late as that.
    Errors: InvalidDescriptor."""
    shape, strides, block_shape, reads = description
    _check_description(shape, strides, block_shape, reads)
    _check_elements(element_bytes, is_float, strides, reads)
    row = block_shape[-1] * element_bytes
    if row < ALIGNMENT:
        expected = f"at least {ALIGNMENT} bytes in the last dimension"
        actual = f"{block_shape[-1]} elements of {element_bytes} bytes"
        raise errors.InvalidDescriptor("block_shape", expected, actual)


def check_address(address: int | None) -> None:
    """Check the alignment of an address. Errors: InvalidDescriptor."""
    if address is not None and address % ALIGNMENT:
        expected = f"an array whose address is a multiple of {ALIGNMENT} bytes"
        raise errors.InvalidDescriptor("base", expected, hex(address))


def address_of(array: Any) -> int | None:
    """The address of the first element, for arrays that expose it; others are checked at launch."""
    if hasattr(array, "data_ptr"):
        return int(array.data_ptr())
    for name in ("__array_interface__", "__cuda_array_interface__"):
        interface: Mapping[str, Any] | None = getattr(array, name, None)
        if interface is not None:
            return int(interface["data"][0] or 0)
    return None


def _item_size(array: Any) -> int | None:
    """Bytes of an element; None if the dtype does not state it."""
    size = getattr(getattr(array, "dtype", None), "itemsize", None)
    return size if isinstance(size, int) else None


def _is_float(array: Any) -> bool:
    """Whether elements may be NaN, by the name of their dtype: "torch.float16", "float8_e5m2"."""
    name = str(array.dtype).rpartition(".")[2]
    return name.startswith(("float", "bfloat", "fp", "bf"))


def _strides(array: Any) -> tuple[int, ...]:
    """Strides in elements."""
    if callable(getattr(array, "stride", None)):
        return tuple(array.stride())
    size, strides = _item_size(array), getattr(array, "strides", None)
    if size is None or strides is None:
        expected = "an array that exposes its strides"
        raise errors.InvalidDescriptor("base", expected, type(array).__name__)
    if any(stride % size for stride in strides):
        expected = "an array whose strides are whole elements"
        raise errors.InvalidDescriptor("base", expected, cast("object", strides))
    return tuple(stride // size for stride in strides)
