"""Triton's `set_allocator`."""

import contextvars

import pytest

import tilewright
from tilewright.runtime.scratch_allocator import ALLOCATOR, NullAllocator
from tilewright.support import errors


def test_an_allocator_is_accepted_and_unset():
    def check():
        def allocate(size: int, alignment: int, stream: int | None) -> None:
            raise AssertionError("nothing is needed")

        tilewright.set_allocator(allocate)
        assert ALLOCATOR.get() is allocate
        tilewright.set_allocator(None)
        assert isinstance(ALLOCATOR.get(), NullAllocator)

    contextvars.copy_context().run(check)


def test_what_is_no_function_is_refused():
    with pytest.raises(errors.InvalidOption, match="a function of size, alignment and stream"):
        tilewright.set_allocator(3)  # pyright: ignore[reportArgumentType]
