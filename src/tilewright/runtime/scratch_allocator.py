"""Triton's `set_allocator`, which is accepted: the source of scratch memory for kernels.

No kernel needs scratch memory: descriptors that a kernel creates are plain masked accesses.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from tilewright.support import errors

Allocator = Callable[[int, int, int | None], object]
"""(bytes, alignment in bytes, stream) -> an object with `data_ptr()`."""


class NullAllocator:
    """The default allocator."""

    def __call__(self, size: int, alignment: int, stream: int | None) -> object:
        """Raise InvalidOption."""
        raise errors.InvalidOption("allocator", "set by set_allocator", None)


_NONE = NullAllocator()
ALLOCATOR: ContextVar[Allocator] = ContextVar("tilewright_allocator", default=_NONE)


def set_allocator(allocator: Allocator | None) -> None:
    """Set the function that allocates scratch memory for kernels, in this thread and its children.

    allocator(size, alignment, stream) returns an object with `data_ptr()`; None unsets it.
    Errors: InvalidOption.
    """
    if allocator is not None and not callable(allocator):
        expected = "a function of size, alignment and stream"
        raise errors.InvalidOption("allocator", expected, allocator)
    ALLOCATOR.set(_NONE if allocator is None else allocator)
