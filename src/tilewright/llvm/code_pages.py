"""Executable memory for small pieces of code, in whole pages that are never writable and executable
at once.

Pages come from reserved ranges, where adjacent pages with equal rights are one mapping. Released
pages are reused. Nothing is unmapped, and a forked child has its own copies.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections import deque
from typing import cast

_RESERVED = 1 << 20
"""Bytes of a range; larger pieces get a separate one."""
_NONE, _READ, _WRITE, _EXECUTE = 0, 1, 2, 4
_DONT_NEED = 4  # MADV_DONTNEED of Linux
_FAILED = ctypes.c_void_p(-1).value


class ExecutablePages:
    """The executable pages of a process. All methods but `release` must be called under a lock."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._map, self._protect, self._advise = libc.mmap, libc.mprotect, libc.madvise
        long, address = ctypes.c_long, ctypes.c_void_p
        self._map.restype = address
        self._map.argtypes = [address, ctypes.c_size_t, *[ctypes.c_int] * 3, long]
        self._protect.argtypes = self._advise.argtypes = [address, ctypes.c_size_t, ctypes.c_int]
        self._free: list[tuple[int, int]] = []
        """Ranges (first, end), in order, none next to another."""
        self._released: deque[tuple[int, int]] = deque()

    def reserve(self, size: int) -> tuple[int, int] | None:
        """Reserve whole pages of at least `size` bytes; None if the system refuses."""
        self._take_back()
        size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        for i, (first, end) in enumerate(self._free):
            if end - first >= size:
                self._free[i : i + 1] = [(first + size, end)] if end - first > size else []
                return first, first + size
        # Pages without rights take address space alone.
        whole = max(size, _RESERVED)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        first = cast("int", self._map(None, whole, _NONE, flags, -1, 0))
        if first == _FAILED:
            return None
        self._add(first + size, first + whole)
        return first, first + size

    def fill(self, address_range: tuple[int, int], data: bytes) -> bool:
        """Write data into a range and make it executable; whole pages after it, which are zeros,
        stay writable. Returns whether the system allows that."""
        first, end = address_range
        if self._protect(first, end - first, _READ | _WRITE):
            return False
        ctypes.memmove(first, data, len(data))
        pages = -(-len(data) // mmap.PAGESIZE) * mmap.PAGESIZE
        return not self._protect(first, pages, _READ | _EXECUTE)

    def release(self, address_range: tuple[int, int]) -> None:
        """Release a range for reuse. May be called at any time, also from finalizers."""
        # Append is atomic; a finalizer may run in a thread that holds the lock already.
        self._released.append(address_range)

    def _take_back(self) -> None:
        while self._released:
            first, end = self._released.popleft()
            # No rights, so that stray calls fault; the system may reclaim the memory.
            self._protect(first, end - first, _NONE)
            self._advise(first, end - first, _DONT_NEED)
            self._add(first, end)

    def _add(self, first: int, end: int) -> None:
        """Add a free range, merged with adjacent ones."""
        if first == end:
            return
        ranges = sorted([*self._free, (first, end)])
        self._free = ranges[:1]
        for start, stop in ranges[1:]:
            if start == self._free[-1][1]:
                self._free[-1] = self._free[-1][0], stop
            else:
                self._free.append((start, stop))


@functools.cache
def executable_pages() -> ExecutablePages:
    """The executable pages of this process."""
    return ExecutablePages()
