"""Ranges of memory that arrays span, from address, shape and strides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilewright.runtime.arguments.mock_tensor import TensorWrapper
from tilewright.support.data_class import dataclass

Span = tuple[int, int]
"""Address and number of bytes."""


@dataclass(frozen=True, slots=True)
class StridedMemory:
    """The memory of an array: address of the first element; strides and element size in bytes."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int

    @property
    def span(self) -> Span:
        """The range from the first to the last byte."""
        if 0 in self.shape:
            return self.address, 0
        steps = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        low = sum(step for step in steps if step < 0)
        high = sum(step for step in steps if step > 0)
        return self.address + low, high - low + self.size


def memory_of(array: Any) -> StridedMemory | None:
    """The memory of an array of NumPy, torch or CuPy, on any device, without an access; None if the
    array does not report it."""
    array = array.base if isinstance(array, TensorWrapper) else array
    if all(hasattr(array, name) for name in ("data_ptr", "stride", "element_size")):
        size = array.element_size()
        strides = tuple(stride * size for stride in array.stride())
        return StridedMemory(array.data_ptr(), tuple(array.shape), strides, size)
    interface: Mapping[str, Any] | None = getattr(array, "__array_interface__", None)
    interface = interface or getattr(array, "__cuda_array_interface__", None)
    if interface is None or interface.get("data") is None:
        return None
    size, shape = int(interface["typestr"][2:]), tuple(interface["shape"])
    strides = interface.get("strides") or _contiguous(shape, size)
    return StridedMemory(int(interface["data"][0] or 0), shape, tuple(strides), size)


def _contiguous(shape: Sequence[int], size: int) -> tuple[int, ...]:
    strides: list[int] = []
    for extent in reversed(shape):
        strides.insert(0, size)
        size *= extent
    return tuple(strides)


def spans_of(arrays: Iterable[Any]) -> list[Span] | None:
    """The union of the memory of arrays, in order of address; None if an array does not report
    its memory."""
    spans: list[Span] = []
    for array in arrays:
        memory = memory_of(array)
        if memory is None:
            return None
        spans.append(memory.span)
    return _merged(sorted(spans))


def _merged(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for address, size in spans:
        if not size:
            continue
        # `<=`: adjacent spans also become one
        if merged and address <= sum(merged[-1]):
            first, before = merged[-1]
            merged[-1] = (first, max(before, address + size - first))
        else:
            merged.append((address, size))
    return merged
