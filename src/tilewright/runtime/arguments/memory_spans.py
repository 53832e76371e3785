"""Which bytes of memory an array reaches, from its address, shape and strides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tilewright.runtime.arguments.mock_tensor import TensorWrapper

__all__ = ["Span", "spans_of"]

Span = tuple[int, int]
"""Address and number of bytes."""


def spans_of(arrays: Iterable[Any]) -> list[Span] | None:
    """The memory of NumPy arrays and torch tensors, overlapping parts once, in order of address;
    None if there is an array that does not tell."""
    spans: list[Span] = []
    for array in arrays:
        span = _span(array.base if isinstance(array, TensorWrapper) else array)
        if span is None:
            return None
        spans.append(span)
    return _merged(sorted(spans))


def _span(array: Any) -> Span | None:
    interface = getattr(array, "__array_interface__", None)
    if interface is not None and interface.get("data") is not None:
        width = int(interface["typestr"][2:])
        strides = interface.get("strides")
        return _reach(interface["data"][0], interface["shape"], strides, width)
    if hasattr(array, "data_ptr") and hasattr(array, "stride") and hasattr(array, "element_size"):
        width = array.element_size()
        strides = [stride * width for stride in array.stride()]
        return _reach(array.data_ptr(), array.shape, strides, width)
    return None


def _reach(address: int, shape: Sequence[int], strides: Sequence[int] | None, width: int) -> Span:
    """strides: in bytes; None where the elements follow each other."""
    if 0 in shape:
        return address, 0
    if strides is None:
        size = width
        for extent in shape:
            size *= extent
        return address, size
    steps = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    low = sum(step for step in steps if step < 0)
    high = sum(step for step in steps if step > 0)
    return address + low, high - low + width


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
