"""Objects with an address, by `data_ptr()`, and a `dtype`, but without a size."""

from __future__ import annotations

from typing import Any

from tilewright.interp import NUMPY_DTYPES, Array, bytes_at, mapped_range
from tilewright.ir.types import ARRAY_NAMES
from tilewright.support import errors

_ELEMENTS = {name: NUMPY_DTYPES[dtype] for dtype, name in ARRAY_NAMES.items()}


def is_bare_pointer(value: object) -> bool:
    """Whether an object has no other information about its memory."""
    return hasattr(value, "data_ptr") and hasattr(value, "dtype")


def array_at(name: str, value: Any) -> Array:
    """The memory from the object's address on, up to the end of the process's mapping.

    Errors: UnsupportedArgument, DeviceMismatch.
    """
    address, dtype = int(value.data_ptr()), str(value.dtype).rpartition(".")[2]
    element = _ELEMENTS.get(dtype)
    if element is None:
        raise errors.UnsupportedArgument(name, f"{dtype} array", "convert it to another dtype")
    found = mapped_range(address)
    if found is None:
        raise errors.DeviceMismatch(name, "memory that this process cannot read", "the CPU")
    _, stop, writable = found
    count = (stop - address) // element.itemsize
    array = bytes_at(address, count * element.itemsize).view(element)
    array.flags.writeable = writable
    return array
