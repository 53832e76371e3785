"""Empties the CPU's caches, so that a timed call finds its data in memory and not in a cache.

Triton writes a 256 MB buffer before each timed call to empty the GPU's L2. On a CPU two things
differ:

* Each core has caches of its own (L2) beside those it shares (L3), so one thread cannot empty them
  all. Here every usable core gets a worker, pinned where the system allows it, with a part of one
  buffer that is twice as large as its own caches plus its share of the shared ones.
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
# Where the system does not tell: larger than the private and shared caches of most desktop parts.
UNKNOWN_SHARE_BYTES = 16 * MIB
# All parts together; parts of machines with very large caches are cut, which empties them only
# partly.
LARGEST_BUFFER_BYTES = 1024 * MIB
_SUFFIXES = {"K": KIB, "M": MIB, "G": 1024 * MIB}


@dataclass(frozen=True, slots=True)
class Cache:
    """One data or unified cache as cpu0 sees it: its size in bytes and how many cores share it."""

    level: int
    size: int
    shared_by: int


def read_caches(folder: Path = CACHE_FOLDER) -> tuple[Cache, ...]:
    """The caches that Linux lists for cpu0, smallest level first; empty where it lists none."""
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
    """How much one core must read to replace its own caches and its share of the shared ones.

    Twice their sum, because replacement is not exactly least-recently-used. Cores that this process
    may not use do not help, so a shared cache is divided among those that it may use at most.
    """
    share = sum(cache.size // max(1, min(cache.shared_by, cores)) for cache in caches)
    return min(2 * share or UNKNOWN_SHARE_BYTES, LARGEST_BUFFER_BYTES // cores)


@functools.cache
def buffer_bytes() -> int:
    """How much all cores together must read."""
    cores = len(usable_cpus())
    return cores * bytes_per_core(read_caches(), cores)


class CacheFlusher:
    """Call it to empty the caches of all usable cores; `close` frees its buffer and threads."""

    def __init__(self) -> None:
        cores = usable_cpus()
        integers = bytes_per_core(read_caches(), len(cores)) // 8
        with fork_waits():  # it takes 40 ms, for which programs that launch kernels need not wait
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
        """End the threads and give the buffer back."""
        for pool in self._pools:
            pool.shutdown()
        self._parts = self._parts[:0]
        self._pools = []


class _Summable(Protocol):
    """An array, as far as it is used here."""

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
