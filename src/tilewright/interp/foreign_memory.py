"""Memory of this process that no argument covers: what a table of addresses may point to.

A kernel may load an address as an integer and cast it to a pointer (grouped products do). Such an
access is made if the system says that the memory is mapped, so that a wild pointer is an error and
not the end of the process. Known on Linux only; elsewhere such accesses are errors.
"""

from __future__ import annotations

from pathlib import Path

_MAPS = Path("/proc/self/maps")


def mapped_range(address: int) -> tuple[int, int, bool] | None:
    """Start, end and writability of the mapped, readable range around an address, if any."""
    # Linux only: other systems have no such file.
    if not _MAPS.exists():
        return None
    # Read anew each time: memory may be mapped between two accesses.
    for line in _MAPS.read_text().splitlines():
        bounds, access = line.split()[:2]
        start, stop = (int(part, 16) for part in bounds.split("-"))
        if start <= address < stop:
            return (start, stop, "w" in access) if "r" in access else None
    return None
