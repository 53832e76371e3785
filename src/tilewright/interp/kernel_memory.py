"""The memory of a kernel: its array arguments, by their real addresses, with bounds.

Addresses are those of the arrays in this process, so that pointers cast to integers and back remain
valid. Every access is checked: against the array of the pointer's argument if that is known (its
*root*), otherwise against all arrays. An array's bounds are those of the array itself, not of a
buffer that it is a view of. Nothing is read or written through an unchecked address.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import field
from typing import NamedTuple, Protocol, cast

import numpy as np

from tilewright.interp.foreign_memory import mapped_range
from tilewright.interp.numpy_dtypes import NUMPY_DTYPES, Array, NumpyDType, as_array, bits_of
from tilewright.ir.types import DType
from tilewright.support import errors
from tilewright.support.data_class import dataclass

Lanes = slice | list[int]
"""Indices of elements of an access."""


@dataclass(eq=False, slots=True)
class Span:
    """An accessible range of addresses: one array, or several that overlap.

    itemsize: bytes of an element of the array, for messages
    """

    name: str
    start: int
    stop: int
    writable: bool
    itemsize: int = 1
    owners: tuple[object, ...] = ()
    # views by dtype: building one per access would cost more than the access
    _views: dict[NumpyDType, Array] = field(default_factory=dict[NumpyDType, Array])

    def view(self, dtype: NumpyDType) -> Array:
        """The range as elements of `dtype`, as many as fit from its start on."""
        view = self._views.get(dtype)
        if view is None:
            count = (self.stop - self.start) // dtype.itemsize
            view = bytes_at(self.start, count * dtype.itemsize).view(dtype)
            self._views[dtype] = view
        return view

    def place(self, address: int) -> str:
        """An element of the array, for messages."""
        count = (self.stop - self.start) // self.itemsize
        element = (address - self.start) // self.itemsize
        return f"element {element} of argument '{self.name}', which has {count} elements"

    def covers(self, first: int, last: int) -> bool:
        """Whether all bytes from `first` up to but not including `last` are inside."""
        return self.start <= first and last <= self.stop


class Access(NamedTuple):
    """An access to memory. dtype: of the elements; root: the accessed argument, if it is known;
    polls: whether the load is volatile
    """

    verb: str
    """"load", "store", "atomic add" ..."""
    dtype: DType
    root: Span | None
    polls: bool = False


class Races(Protocol):
    """Observer of accesses that detects races: a `RaceWatch`."""

    def enter(self, program: tuple[int, int, int]) -> None:
        """A program starts or continues."""
        ...

    def synchronize(self, addresses: Array) -> None:
        """An atomic accesses addresses."""
        ...

    def update(self, span: Span, addresses: Array, size: int) -> None:
        """An atomic changes elements of `size` bytes."""
        ...

    def read(self, span: Span, addresses: Array, size: int, polls: bool) -> None:
        """A load reads elements of `size` bytes. polls: whether it is volatile"""
        ...

    def write(self, span: Span, addresses: Array, size: int) -> None:
        """A store changes elements of `size` bytes."""
        ...

    def compare_lanes(self, span: Span, addresses: Array, values: Array) -> None:
        """A store has these lanes."""
        ...


class Memory:
    """Array arguments by name, with loads and stores of single elements by address.

    Arguments that share memory may be accessed through each other if a pointer has no root.
    """

    def __init__(self, kernel: str = "the kernel") -> None:
        self.kernel = kernel
        self.spans: list[Span] = []
        self._starts: list[int] = []
        self._foreign: list[Span] = []
        self.races: Races | None = None

    def add(self, name: str, array: Array) -> Span:
        """Make an array accessible; returns its range, which is the root of pointers to it."""
        start, stop = _bounds(array)
        span = Span(name, start, stop, array.flags.writeable, array.dtype.itemsize, (array,))
        # merged, so that an access across two overlapping arguments is inside one range
        self.spans = _merged([*self.spans, span])
        self._starts = [span.start for span in self.spans]
        return span

    def read(self, access: Access, addresses: Array) -> Array:
        """The elements at addresses (1-D, uint64). Errors: OutOfBounds."""
        dtype = NUMPY_DTYPES[access.dtype]
        elements = np.empty(addresses.shape, _storage(dtype))
        for span, lanes in self._located(access, addresses):
            self._watch(access, span, addresses[lanes])
            elements[lanes] = _gather(span, addresses[lanes], _storage(dtype))
        return as_array(elements != 0) if access.dtype.is_bool else elements

    def write(self, access: Access, addresses: Array, values: Array) -> None:
        """Store values at addresses; of several at one address, the last one.

        Errors: OutOfBounds, ReadOnlyArray.
        """
        stored = values.astype(_storage(values.dtype), copy=False)
        for span, lanes in self._located(access, addresses):
            if not span.writable:
                raise errors.ReadOnlyArray(span.name, self.kernel)
            self._watch(access, span, addresses[lanes], stored[lanes])
            _scatter(span, addresses[lanes], stored[lanes])

    def _watch(
        self, access: Access, span: Span, addresses: Array, values: Array | None = None
    ) -> None:
        """Report an access to the observer of races. values: the stored ones"""
        if self.races is None:
            return
        # for overlapping arrays the whole range is watched, whatever argument is accessed
        whole = self._find(span.start) or span
        size, is_atomic = access.dtype.bytes, access.verb.startswith("atomic")
        if is_atomic:
            self.races.synchronize(addresses)
        elif values is None:
            self.races.read(whole, addresses, size, access.polls)
        if values is None:
            return
        # Storing the present value affects nobody. By bits: a NaN differs from itself for `!=`.
        there = _gather(span, addresses, values.dtype)
        changed = as_array(bits_of(there) != bits_of(values))
        if is_atomic:
            self.races.update(whole, addresses[changed], size)
        else:
            self.races.write(whole, addresses[changed], size)
            self.races.compare_lanes(whole, addresses, values)

    def _located(self, access: Access, addresses: Array) -> Iterable[tuple[Span, Lanes]]:
        """The range for each of the addresses."""
        if not addresses.size:
            return []
        first, last = int(addresses.min()), int(addresses.max()) + access.dtype.bytes
        # with a known root only that argument may be accessed, even if another one is adjacent
        if access.root is not None:
            if not access.root.covers(first, last):
                raise self._outside(access, addresses)
            return [(access.root, slice(None))]
        # one range for all lanes is the usual case and needs no loop
        span = self._find(first)
        if span is not None and span.covers(first, last):
            return [(span, slice(None))]
        return self._located_one_by_one(access, addresses)

    def _located_one_by_one(self, access: Access, addresses: Array) -> Iterable[tuple[Span, Lanes]]:
        lanes: dict[int, tuple[Span, list[int]]] = {}
        for lane, address in enumerate(cast("list[int]", addresses.tolist())):
            span = self._find(address)
            if span is None or not span.covers(address, address + access.dtype.bytes):
                raise self._outside(access, addresses[lane : lane + 1])
            lanes.setdefault(span.start, (span, []))[1].append(lane)
        return lanes.values()

    def _find(self, address: int) -> Span | None:
        """The range that contains an address: an argument's, or mapped memory."""
        # the last range that starts at or before the address
        index = bisect_right(self._starts, address) - 1
        if index >= 0 and address < self.spans[index].stop:
            return self.spans[index]
        for span in self._foreign:
            if span.covers(address, address + 1):
                return span
        mapped = mapped_range(address)
        if mapped is None:
            return None
        # a kernel may follow a pointer that it has loaded; the system reports mapped memory
        span = Span("memory that is not an argument", *mapped)
        self._foreign.append(span)
        return span

    def _outside(self, access: Access, addresses: Array) -> errors.OutOfBounds:
        size, root = access.dtype.bytes, access.root
        if root is None:
            address = int(addresses[0])
            return WrongAddress(outside(access.verb, access.dtype, None, address), address)
        # signed: a pointer moved to before its argument may have wrapped below 0
        signed = addresses.astype(np.int64)
        wrong = (signed < root.start) | (signed + size > root.stop)
        address = int(signed[wrong][0])
        detail = outside(access.verb, access.dtype, root, address)
        return WrongAddress(detail, int(addresses[wrong][0]))


def outside(verb: str, element: object, root: Span | None, address: int) -> str:
    """The error of an access outside of the array of the pointer's argument."""
    if root is None:
        return f"{verb} of {element} at address {address:#x}, which is in no array argument"
    return f"{verb} at {root.place(address)}"


class WrongAddress(errors.OutOfBounds):
    """An OutOfBounds with the first wrong address, so that its lane can be named."""

    def __init__(self, detail: str, address: int) -> None:
        super().__init__(detail)
        self.address = address


def left_out(dtype: DType, shape: tuple[int, ...]) -> Array:
    """The result of a load under a false mask without `other`: 0, as in compiled code.

    Kernels rely on it, though no language promises it; `check="uninit"` reports such uses.
    """
    return np.zeros(shape, NUMPY_DTYPES[dtype])


def _storage(dtype: NumpyDType) -> NumpyDType:
    """An i1 is a byte in memory, in which any value but 0 is true."""
    return np.dtype(np.uint8) if dtype == np.bool_ else dtype


def address_of(array: Array) -> int:
    """Address of the first element."""
    return int(array.__array_interface__["data"][0])


def _bounds(array: Array) -> tuple[int, int]:
    """The address range of all elements."""
    start = stop = address_of(array)
    if not array.size:
        return start, stop
    for extent, stride in zip(array.shape, array.strides, strict=True):
        # A negative stride puts the last element of an axis below the first.
        start += min(0, (extent - 1) * stride)
        stop += max(0, (extent - 1) * stride)
    return start, stop + array.itemsize


def bytes_at(start: int, count: int) -> Array:
    """Memory of this process as an array of bytes."""
    # an empty range may have an address that is not mapped
    if not count:
        return np.empty(0, np.uint8)
    return np.frombuffer(memoryview((ctypes.c_ubyte * count).from_address(start)), np.uint8)


def _merged(spans: list[Span]) -> list[Span]:
    """Ranges in order, with overlapping ones merged."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda s: s.start):
        # Adjacent ranges are not merged, so that running over the end of one is detected.
        if merged and span.start < merged[-1].stop:
            before = merged.pop()
            name = before.name if before.name == span.name else f"{before.name}' and '{span.name}"
            stop = max(before.stop, span.stop)
            writable = before.writable or span.writable
            owners = before.owners + span.owners
            span = Span(name, before.start, stop, writable, span.itemsize, owners)
        merged.append(span)
    return merged


def _gather(span: Span, addresses: Array, dtype: NumpyDType) -> Array:
    offsets, aligned = _offsets(span, addresses, dtype.itemsize)
    if aligned:
        return as_array(span.view(dtype)[offsets])
    # unaligned: whole elements cannot be viewed, so their bytes are gathered
    raw = span.view(np.dtype(np.uint8))[offsets]
    return np.ascontiguousarray(raw).view(dtype)[:, 0]


def _scatter(span: Span, addresses: Array, values: Array) -> None:
    offsets, aligned = _offsets(span, addresses, values.dtype.itemsize)
    if aligned:
        span.view(values.dtype)[offsets] = values
    else:
        raw = np.ascontiguousarray(values)[:, None].view(np.uint8)
        span.view(np.dtype(np.uint8))[offsets] = raw


def _offsets(span: Span, addresses: Array, size: int) -> tuple[Array, bool]:
    """Element offsets into the range and True; byte offsets (lanes x size), False if unaligned."""
    # uint64 differences wrap; as int64 they are the signed distance.
    offsets = (addresses - np.uint64(span.start)).astype(np.int64)
    # mixed alignments use the byte path for all lanes, which is slower but equivalent
    if size == 1 or not (offsets % size).any():
        return as_array(offsets // size), True
    return as_array(offsets[:, None] + np.arange(size)), False
