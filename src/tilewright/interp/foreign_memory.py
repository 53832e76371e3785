"""Memory of this process that is not an argument, to which a table of addresses may point.

A kernel may load an address as an integer and cast it to a pointer (grouped matmuls do). Such an
access is executed if the system reports that the memory is mapped, so that a wild pointer is an
error and does not end the process. Only Linux reports it; elsewhere such accesses are errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_MAPS = Path("/proc/self/maps")


def mapped_range(address: int) -> tuple[int, int, bool] | None:
    """Start, end and writability of the mapped, readable range around an address, if any."""
    # read again each time: memory may be mapped between two accesses
    for start, stop, access in _mapped():
        if start <= address < stop:
            return (start, stop, "w" in access) if "r" in access else None
    return None


def mapped_ranges() -> list[tuple[int, int]]:
    """Start and end of all memory that may be read, in order; adjacent ranges as one."""
    ranges: list[tuple[int, int]] = []
    for start, stop, access in _mapped():
        if "r" not in access:
            continue
        if ranges and ranges[-1][1] == start:
            start, _ = ranges.pop()
        # Addresses are compared as signed numbers; the system's own page is above them.
        if stop < 1 << 63:
            ranges.append((start, stop))
    return ranges


def _mapped() -> Iterator[tuple[int, int, str]]:
    """Start, end and access rights of each range."""
    # Linux only: other systems have no such file.
    if not _MAPS.exists():
        return
    for line in _MAPS.read_text().splitlines():
        bounds, access = line.split()[:2]
        start, stop = (int(part, 16) for part in bounds.split("-"))
        yield start, stop, access
