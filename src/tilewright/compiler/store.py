"""The disk cache: one folder for each compiled kernel, shared by all processes of a user.

    <cache>/kernels/<key>/kernel.json      metadata, and the size and checksum of each artifact
                          kernel.ttir ...  the artifacts

A folder is written under another name and then renamed, so it is there whole or not at all; of two
processes that write the same one, the second throws its own away. An entry is removed the same way
round. One that does not check out (a full disk, a crash of the machine) counts as absent, with a
warning, and is written anew. Entries that were not used for the longest time go when the cache
exceeds its size. Where the folder cannot be written, kernels are compiled each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import uuid
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from tilewright.support import TilewrightWarning, settings

INDEX = "kernel.json"
_TEXT = "text"
_MEGABYTE = 1 << 20
_SCAN_EVERY = 256
"""Entries that a process writes between two looks at the size of the cache."""
_SCAN_SECONDS = 3600.0
"""Time after which the next write looks at the size; all processes together, by a file's time."""
_KEEP = 0.8
"""Part of the limit that is kept when the cache is cut."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is kept of a kernel."""

    metadata: dict[str, Any]
    artifacts: Mapping[str, str | bytes]


class Store:
    """The cache below one folder."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder / "kernels"
        self.max_bytes = max_bytes
        self._written = 0
        self._broken = False

    def read(self, key: str) -> Entry | None:
        """The entry, or None. Warns, and gives None, where there is a damaged one."""
        place = self.folder / key
        try:
            entry = _read(place)
        except FileNotFoundError:
            if not place.exists():
                return None
            self._discard(place, "a file is missing")
            return None
        except (OSError, ValueError, KeyError, TypeError) as problem:
            self._discard(place, str(problem))
            return None
        with suppress(OSError):
            os.utime(place)
        return entry

    def write(self, key: str, entry: Entry) -> None:
        """Add an entry; warns once, and goes on without, where the folder cannot be written."""
        if self._broken:
            return
        try:
            self._write(self.folder / key, entry)
        except OSError as problem:
            self._broken = True
            warnings.warn(
                f"cannot write the cache of compiled kernels: {problem}; "
                "set TILEWRIGHT_CACHE_DIR to a folder that can be written",
                TilewrightWarning,
                stacklevel=2,
            )
            return
        self._written += 1
        if self._written % _SCAN_EVERY == 0 or self._scan_is_due():
            self.evict()

    def _scan_is_due(self) -> bool:
        """Whether nobody has looked at the size for long; says so once."""
        stamp = self.folder / ".scanned"
        with suppress(OSError):
            if time.time() - stamp.stat().st_mtime < _SCAN_SECONDS:
                return False
        with suppress(OSError):
            stamp.touch()
        return True

    def evict(self) -> None:
        """Delete the entries used longest ago until the cache is well below its limit."""
        if not self.max_bytes:
            return
        entries = [(age, size, place) for place, age, size in _sizes(self.folder)]
        total = sum(size for _, size, _ in entries)
        if total <= self.max_bytes:
            return
        for _, size, place in sorted(entries):
            self._remove(place)
            total -= size
            if total <= self.max_bytes * _KEEP:
                return

    def _write(self, place: Path, entry: Entry) -> None:
        temporary = self._temporary()
        temporary.mkdir(parents=True)
        try:
            _write(temporary, entry)
            temporary.rename(place)
        except OSError:
            shutil.rmtree(temporary, ignore_errors=True)
            if not (place / INDEX).exists():
                raise

    def _discard(self, place: Path, problem: str) -> None:
        warnings.warn(
            f"the cached kernel in {place} is damaged ({problem}); it is compiled again",
            TilewrightWarning,
            stacklevel=3,
        )
        self._remove(place)

    def _remove(self, place: Path) -> None:
        """Take an entry away at once, then delete its files."""
        temporary = self._temporary()
        with suppress(OSError):
            place.rename(temporary)
        shutil.rmtree(temporary, ignore_errors=True)

    def _temporary(self) -> Path:
        return self.folder / f".{os.getpid()}-{uuid.uuid4().hex[:12]}"


def _read(place: Path) -> Entry:
    index = json.loads((place / INDEX).read_text(encoding="utf-8"))
    artifacts: dict[str, str | bytes] = {}
    for name, (file, kind, size, checksum) in index["artifacts"].items():
        content = (place / file).read_bytes()
        if len(content) != size or hashlib.sha256(content).hexdigest() != checksum:
            raise ValueError(f"{file} has changed")
        artifacts[name] = content.decode() if kind == _TEXT else content
    return Entry(cast("dict[str, Any]", index["metadata"]), artifacts)


def _write(folder: Path, entry: Entry) -> None:
    artifacts: dict[str, tuple[str, str, int, str]] = {}
    for name, artifact in entry.artifacts.items():
        content = artifact.encode() if isinstance(artifact, str) else artifact
        file = f"kernel.{name}"
        (folder / file).write_bytes(content)
        kind = _TEXT if isinstance(artifact, str) else "binary"
        artifacts[name] = (file, kind, len(content), hashlib.sha256(content).hexdigest())
    index = {"metadata": entry.metadata, "artifacts": artifacts}
    (folder / INDEX).write_text(json.dumps(index), encoding="utf-8")


def _sizes(folder: Path) -> list[tuple[Path, float, int]]:
    """Each entry with the time of its last use and its bytes."""
    found: list[tuple[Path, float, int]] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                continue
            with suppress(OSError), os.scandir(entry.path) as files:
                size = sum(file.stat().st_size for file in files)
                found.append((Path(entry.path), entry.stat().st_mtime, size))
    return found


_stores: dict[tuple[Path, int], Store] = {}


def shared_store() -> Store:
    """The store in the folder, and of the size, that the settings name now."""
    key = settings().cache.dir, settings().cache.max_megabytes * _MEGABYTE
    found = _stores.get(key)
    if found is None:
        found = _stores[key] = Store(*key)
    return found


@cache
def package_version() -> str:
    """Changes when a source file of this package does: names, sizes and times of all of them."""
    digest = hashlib.sha256()
    for line in sorted(_files(str(Path(__file__).parent.parent))):
        digest.update(line.encode())
    return digest.hexdigest()


def _files(folder: str) -> list[str]:
    """A line for each source file below a folder."""
    with os.scandir(folder) as entries:
        found = list(entries)
    lines = [_file_line(entry) for entry in found if entry.name.endswith(".py")]
    for entry in found:
        if entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
            lines += _files(entry.path)
    return lines


def _file_line(entry: os.DirEntry[str]) -> str:
    status = entry.stat()
    return f"{entry.path} {status.st_size} {status.st_mtime_ns}\n"
