"""Reading the cache sizes that Linux lists, and how much is read to empty them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tilewright.runtime.bench import cpu_caches
from tilewright.runtime.bench.cpu_caches import (
    LARGEST_BUFFER_BYTES,
    MIB,
    UNKNOWN_SHARE_BYTES,
    Cache,
    CacheFlusher,
    bytes_per_core,
    read_caches,
)


def add_cache(folder: Path, name: str, **files: str) -> None:
    entry = folder / name
    entry.mkdir()
    for key, text in files.items():
        (entry / key).write_text(text + "\n")


def test_reads_data_and_unified_caches(tmp_path: Path) -> None:
    add_cache(
        tmp_path, "index3", type="Unified", level="3", size="32M", shared_cpu_list="0-3,8,10-11"
    )
    add_cache(tmp_path, "index0", type="Data", level="1", size="48K", shared_cpu_list="0")
    add_cache(tmp_path, "index1", type="Instruction", level="1", size="32K", shared_cpu_list="0")
    add_cache(tmp_path, "index2", type="Unified", level="2", shared_cpu_list="0")  # no size
    assert read_caches(tmp_path) == (Cache(1, 48 * 1024, 1), Cache(3, 32 * MIB, 7))


def test_a_system_that_lists_nothing_gives_no_caches(tmp_path: Path) -> None:
    assert read_caches(tmp_path / "missing") == ()


@pytest.mark.parametrize(
    ("caches", "cores", "expected"),
    [
        ((Cache(2, MIB, 1), Cache(3, 32 * MIB, 2)), 2, 2 * (MIB + 16 * MIB)),
        ((Cache(3, 32 * MIB, 8),), 2, 2 * 16 * MIB),  # six of the eight are not ours
        ((Cache(3, 32 * MIB, 2),), 64, LARGEST_BUFFER_BYTES // 64),
        ((), 4, UNKNOWN_SHARE_BYTES),
    ],
)
def test_each_core_reads_twice_its_share(
    caches: tuple[Cache, ...], cores: int, expected: int
) -> None:
    assert bytes_per_core(caches, cores) == expected


def test_flushing_touches_memory_and_closing_ends_the_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cpu_caches, "read_caches", lambda: (Cache(2, 4096, 1),))
    read: list[int] = []
    monkeypatch.setattr(cpu_caches, "_read", lambda part: read.append(int(part.sum())))  # type: ignore[misc]
    before = threading.active_count()
    flusher = CacheFlusher()
    flusher()
    cores = len(cpu_caches.usable_cpus())
    assert read == [2 * 4096 // 8] * cores  # ones: every page is a page of its own
    flusher.close()
    assert threading.active_count() == before
