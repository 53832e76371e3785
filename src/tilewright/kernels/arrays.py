"""What the functions of this package need of arrays: NumPy's, torch's, or CuPy's."""

from __future__ import annotations

from typing import Any

Array = Any
"""A NumPy array, a torch tensor or a CuPy array."""


def strides(array: Array) -> tuple[int, ...]:
    """Strides in elements."""
    if hasattr(array, "stride"):
        return tuple(array.stride())
    return tuple(step // array.itemsize for step in array.strides)


def empty(like: Array, shape: tuple[int, ...]) -> Array:
    """An uninitialized array of the library, element type and device of `like`."""
    if hasattr(like, "new_empty"):
        return like.new_empty(shape)
    library = __import__(type(like).__module__.partition(".")[0])
    return library.empty(shape, dtype=like.dtype)


def is_on_cpu(array: Array) -> bool:
    """Whether the array lives in the memory of the CPU."""
    device = getattr(array, "device", None)
    return getattr(device, "type", "cpu") == "cpu" and not hasattr(
        array, "__cuda_array_interface__"
    )
