"""Eviction of the least recently used files of all kinds, which bounds the cache.

The time of last use is the modification time of a file or folder, which its readers set. Times in
the future were set before the clock was set back. Their age is unknown, so they count as the
oldest, in their order.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import ClassVar

from tilewright.support.asynchronous_exceptions import suppress
from tilewright.support.disk_cache.fail_points import fail_point
from tilewright.support.disk_cache.own_files import KINDS, OwnItem, own_items
from tilewright.support.disk_cache.whole_files import is_temporary, remove
from tilewright.support.settings_table import settings

STAMP = ".scanned"
"""A file whose modification time is that of the latest scan of the cache's size."""

MEGABYTE = 1 << 20
_SCAN_EVERY = 256
"""Writes of a process between two scans of the cache's size."""
_SCAN_SECONDS = 3600.0
"""Time after which the next write scans the size; the age of a file states it for all processes."""
_KEEP = 0.8
"""Fraction of the limit that remains after eviction."""
_LEFT_SECONDS = 3600.0
"""Age at which a temporary file counts as left over from a process that died."""
_SKEW_SECONDS = 60.0
"""Maximum difference between the clocks of machines that share a folder."""


class Eviction:
    """The cache in one folder, of at most `max_bytes`; 0 means no limit."""

    def __init__(self, root: Path, max_bytes: int) -> None:
        self.root = root
        self.max_bytes = max_bytes

    def is_due(self) -> bool:
        """Whether the latest scan is too old. The stamp is renewed, so only one caller scans."""
        stamp = self.root / STAMP
        with suppress(OSError):
            # far in the future, the clock was set back: a scan renews the stamp
            if -_SKEW_SECONDS <= time.time() - stamp.stat().st_mtime < _SCAN_SECONDS:
                return False
        with suppress(OSError):
            # before the scan, so that other processes which write during it do not scan as well
            stamp.touch(mode=0o600)
        return True

    def run(self) -> None:
        """Delete left-over temporary files and, above the limit, the oldest entries."""
        now = time.time()
        kept: list[OwnItem] = []
        for item in own_items(self.root):
            if not is_temporary(item.place.name):
                kept.append(item)
            # abs: a temporary file dated in the future, by a clock set back since, would stay until
            # the clock has caught up
            elif abs(now - item.used) > _LEFT_SECONDS:
                remove(item.place)
        total = sum(item.size for item in kept)
        if not self.max_bytes or total <= self.max_bytes:
            return
        # False sorts first: times further in the future than clocks differ come first
        for item in sorted(kept, key=lambda item: (item.used <= now + _SKEW_SECONDS, item.used)):
            remove(item.place)
            fail_point("eviction: removed")
            total -= item.size
            # well below the limit, or every later write would delete again
            if total <= self.max_bytes * _KEEP:
                return


class _Writes:
    """Writes of this process, to any folder."""

    count: ClassVar[int] = 0


def wrote(root: Path, max_bytes: int | None = None) -> None:
    """Count a write to the cache; at intervals, scan its size and evict.

    max_bytes: the default is the setting
    """
    if max_bytes is None:
        max_bytes = settings().cache.max_megabytes * MEGABYTE
    _Writes.count += 1
    eviction = Eviction(root, max_bytes)
    if _Writes.count % _SCAN_EVERY == 0 or eviction.is_due():
        eviction.run()


def clear(root: Path) -> tuple[int, int]:
    """Delete everything that this package has written; returns the numbers of kernels and bytes."""
    items = [item for item in own_items(root) if item.kind in KINDS]
    for item in items:
        remove(item.place)
    for kind in {item.kind for item in items}:
        with suppress(OSError):  # the folder contains files of the user
            (root / kind).rmdir()
    stamp = root / STAMP
    with suppress(OSError):
        if stamp.stat(follow_symlinks=False).st_size == 0:
            stamp.unlink()
    whole = [item for item in items if not is_temporary(item.place.name)]
    return sum(item.kind == "kernels" for item in whole), sum(item.size for item in items)
