"""Emptying of the CPU's caches, so that a timed call loads its data from memory.

Triton writes a 256 MB buffer before each timed call to empty the GPU's L2. On a CPU two things
differ:

* Each core has private caches (L2) besides the shared ones (L3), so one thread cannot empty them
  all. Every usable core has a worker, pinned if the system allows it, and a part of one buffer,
  twice as large as its private caches plus its share of the shared ones.
* The buffer is read, not written: written lines would have to go back to memory while the timed
  call runs, and the call would pay for it. Its pages are written once at the start, since a fresh
  zero page is one physical page mapped many times and would stay in the L1.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, SupportsInt

from tilewright.support import fork_waits, usable_cpus
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass

KIB = 1024
MIB = 1024 * KIB
CACHE_FOLDER = Path("/sys/devices/system/cpu/cpu0/cache")
# If the system reports no caches: larger than those of most desktop CPUs.
UNKNOWN_SHARE_BYTES = 16 * MIB
# Of the whole buffer; on machines with larger caches, these are emptied only partly.
LARGEST_BUFFER_BYTES = 1024 * MIB
_SUFFIXES = {"K": KIB, "M": MIB, "G": 1024 * MIB}


@dataclass(frozen=True, slots=True)
class Cache:
    """A data or unified cache of cpu0: its size in bytes and the number of cores that share it."""

    level: int
    size: int
    shared_by: int


def read_caches(folder: Path = CACHE_FOLDER) -> tuple[Cache, ...]:
    """The caches that Linux lists for cpu0, smallest level first; empty if it lists none."""
    return tuple(sorted(_caches_in(folder), key=lambda cache: cache.level))


def _caches_in(folder: Path) -> Iterator[Cache]:
    for entry in folder.glob("index*"):
        try:
            if (entry / "type").read_text().strip() == "Instruction":
                continue
            yield Cache(
                level=int((entry / "level").read_text()),
                size=_parse_size((entry / "size").read_text()),
                shared_by=_count_cores((entry / "shared_cpu_list").read_text()),
            )
        except synchronous(
            OSError, ValueError
        ):  # some virtual machines list a cache without its size
            continue


def _parse_size(text: str) -> int:
    """`"32768K"` -> 33554432."""
    text = text.strip()
    if text[-1:] in _SUFFIXES:
        return int(text[:-1]) * _SUFFIXES[text[-1]]
    return int(text)


def _count_cores(text: str) -> int:
    """`"0-3,8"` -> 5."""
    count = 0
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        count += int(last or first) - int(first) + 1
    return count


def bytes_per_core(caches: tuple[Cache, ...], cores: int) -> int:
    """Bytes that one core must read to replace its private caches and its share of the shared ones.

    Twice their sum, because replacement is not exactly least-recently-used. Cores that this process
    may not use do not help, so a shared cache is divided among those that it may use at most.
    """
    share = sum(cache.size // max(1, min(cache.shared_by, cores)) for cache in caches)
    return min(2 * share or UNKNOWN_SHARE_BYTES, LARGEST_BUFFER_BYTES // cores)


@functools.cache
def buffer_bytes() -> int:
    """Bytes that all cores together must read."""
    cores = len(usable_cpus())
    return cores * bytes_per_core(read_caches(), cores)


class CacheFlusher:
    """Call it to empty the caches of all usable cores; `close` frees its buffer and threads."""

    def __init__(self) -> None:
        cores = usable_cpus()
        integers = bytes_per_core(read_caches(), len(cores)) // 8
        with fork_waits():  # imported late, since it is slow to import
            import numpy as np

        self._parts = np.ones((len(cores), integers), dtype=np.int64)
        self._pools = [ThreadPoolExecutor(1, "cache-flush", _pin, (core,)) for core in cores]

    def __call__(self) -> None:
        reads = [
            pool.submit(_read, part) for pool, part in zip(self._pools, self._parts, strict=True)
        ]
        for read in reads:
            read.result()

    def close(self) -> None:
        """Stop the threads and release the buffer."""
        for pool in self._pools:
            pool.shutdown()
        self._parts = self._parts[:0]
        self._pools = []


class _Summable(Protocol):
    """The part of an array's interface that is used here."""

    def sum(self) -> SupportsInt: ...


def _read(part: _Summable) -> int:
    return int(part.sum())


def _pin(core: int) -> None:
    if not hasattr(os, "sched_setaffinity"):
        return
    try:
        os.sched_setaffinity(0, {core})  # 0 is the calling thread
    except synchronous(
        OSError
    ):  # a sandbox may refuse; an unpinned thread still empties the shared cache
        return
