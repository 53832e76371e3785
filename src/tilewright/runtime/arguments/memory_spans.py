"""Which bytes of memory an array reaches, from its address, shape and strides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilewright.runtime.arguments.mock_tensor import TensorWrapper
from tilewright.support.data_class import dataclass

__all__ = ["Span", "StridedMemory", "memory_of", "spans_of"]

Span = tuple[int, int]
"""Address and number of bytes."""


@dataclass(frozen=True, slots=True)
class StridedMemory:
    """Where the elements of an array are: address of the first; strides and size in bytes."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int

    @property
    def span(self) -> Span:
        """From the first to the last byte."""
        if 0 in self.shape:
            return self.address, 0
        steps = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        low = sum(step for step in steps if step < 0)
        high = sum(step for step in steps if step > 0)
        return self.address + low, high - low + self.size


def memory_of(array: Any) -> StridedMemory | None:
    """The memory of an array of NumPy, torch or CuPy, on any device, which is not touched; None
    if the array does not tell."""
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
    """The memory of arrays, overlapping parts once, in order of address; None if there is an array
    that does not tell."""
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
        # `<=`: spans that touch become one, too
        if merged and address <= sum(merged[-1]):
            first, before = merged[-1]
            merged[-1] = (first, max(before, address + size - first))
        else:
            merged.append((address, size))
    return merged
