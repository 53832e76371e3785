"""Queries on arrays of NumPy, torch and CuPy for the functions of this package."""

from __future__ import annotations

from typing import Any

Array = Any
"""A NumPy array, a torch tensor or a CuPy array."""


def strides(array: Array) -> tuple[int, ...]:
    """Strides in elements."""
    if hasattr(array, "stride"):
        return tuple(array.stride())
    return tuple(step // array.itemsize for step in array.strides)


def empty(like: Array, shape: tuple[int, ...], dtype: str | None = None) -> Array:
    """An uninitialized array of the library and device of `like`, with its element type by
    default."""
    library = __import__(type(like).__module__.partition(".")[0])
    chosen = like.dtype if dtype is None else getattr(library, dtype)
    if hasattr(like, "new_empty"):
        return like.new_empty(shape, dtype=chosen)
    return library.empty(shape, dtype=chosen)


def as_type(array: Array, dtype: str) -> Array:
    """A copy with elements of a type named as "uint8"."""
    library = __import__(type(array).__module__.partition(".")[0])
    chosen = getattr(library, dtype)
    return array.to(chosen) if hasattr(array, "new_empty") else array.astype(chosen)


def integers(like: Array, numbers: tuple[int, ...]) -> Array:
    """An array of int64 of the library and device of `like`."""
    library = __import__(type(like).__module__.partition(".")[0])
    if hasattr(like, "new_tensor"):
        return like.new_tensor(numbers, dtype=library.int64)
    return library.array(numbers, dtype=library.int64)


def dtype_name(array: Array) -> str:
    """The element type, such as "float16"."""
    return str(array.dtype).rpartition(".")[2]


def address(array: Array) -> int:
    """The address of the first element."""
    if hasattr(array, "data_ptr"):
        return array.data_ptr()
    if hasattr(array, "__cuda_array_interface__"):
        return array.__cuda_array_interface__["data"][0]
    return array.__array_interface__["data"][0]


def is_on_cpu(array: Array) -> bool:
    """Whether the array is in CPU memory."""
    known = getattr(array, "is_cpu", None)  # torch's: a fifth of the time of `device.type`
    if known is not None:
        return known
    kind = getattr(getattr(array, "device", None), "type", None)
    if kind is None:
        return not hasattr(array, "__cuda_array_interface__")
    # tensors of torch, whose failing attribute lookups are slow
    return kind == "cpu"
