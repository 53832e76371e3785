"""The disk cache: one folder for each compiled kernel, shared by all processes of a user.

    <cache>/kernels/<key>/kernel.json      key, metadata, size and checksum of each artifact
                          kernel.ttir ...  the artifacts

`support.disk_cache` writes folders atomically. The index has its own checksum and contains the key,
so that no file of an entry can change, and no entry replace another. An invalid entry (a full disk,
a crash of the machine, an editor) counts as absent, with a warning, and is written again. If the
folder cannot be written, or others can write to it, kernels are compiled each time.
"""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.backends import packages_apart
from tilewright.support import CacheSettings, TilewrightWarning
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass
from tilewright.support.disk_cache import (
    INDEX,
    MEGABYTE,
    Documents,
    OpenFolder,
    cache_folder,
    in_cache_folder,
    is_transient,
    is_unreadable,
    remove,
    replace_folder,
    sealed,
    unsealed,
    wrote,
)

_KIND = "kernels"
_TEXT = "text"
_MAX_INDEX_BYTES = 64 * MEGABYTE
_NAME = re.compile(r"\w+", re.ASCII)
"""Valid names of artifacts."""
_SOURCES = (".py", ".lark", ".ll")
"""Suffixes of the package's files that affect compilation."""
APART = ("aot", "eager", "interp", "kernels", "testing", "tools", "triton_alias")
"""Packages, apart from other backends, that do not affect compilation: not part of a key."""
_CONTENTS = Documents("native")
_TRIES = 3
"""Attempts to read an entry that another process replaces."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored kernel."""

    metadata: dict[str, Any]
    artifacts: Mapping[str, str | bytes]


class Store:
    """The kernels of the cache in one folder, with a bounded size."""

    def __init__(self, root: Path, max_bytes: int) -> None:
        self.root = root
        self.folder = root / _KIND
        self.max_bytes = max_bytes
        self._has_warned = False

    def read(self, key: str) -> Entry | None:
        """The entry, or None; warns of a damaged one and returns None."""
        if cache_folder(_KIND, self.root) is None:
            return None
        # an entry that is replaced at each attempt counts as absent: compiling is always correct
        for _ in range(_TRIES):
            try:
                return _opened(self.folder / key)
            except FileNotFoundError:
                return None
            except _ReplacedError:
                continue
            except synchronous(
                Exception
            ) as problem:  # any exception means that the entry is useless
                self._failed(key, problem)
                return None
        return None

    def _failed(self, key: str, problem: Exception) -> None:
        # a lack of descriptors, memory or permission is not the fault of the entry, which must stay
        if is_unreadable(problem):
            warnings.warn(
                f"the cached kernel in {self.folder / key} cannot be read ({problem}); "
                "it is compiled again",
                TilewrightWarning,
                stacklevel=4,
            )
        elif not is_transient(problem):
            self.discard(key, problem)

    def write(self, key: str, entry: Entry) -> bool:
        """Add an entry and report whether it exists. Warns once if the folder cannot be written."""
        files = _files(key, entry)
        try:
            written = in_cache_folder(
                _KIND, lambda folder: replace_folder(folder / key, files), self.root
            )
        except synchronous(OSError) as problem:
            self._warn_of_writing(problem)
            return False
        if written is not None:
            wrote(self.root, self.max_bytes)
        return written is not None

    def _warn_of_writing(self, problem: OSError) -> None:
        # a shortage, as of file descriptors, passes: the next one deserves another warning
        if self._has_warned:
            return
        self._has_warned = not is_transient(problem)
        warnings.warn(
            f"cannot write the cache of compiled kernels: {problem}; "
            "set TILEWRIGHT_CACHE_DIR to a folder that can be written",
            TilewrightWarning,
            stacklevel=3,
        )

    def files(self, key: str, name: str) -> dict[str, str]:
        """Paths of the files of an entry: "add.ttir" for `kernel.ttir` of the kernel `add`."""
        found = (self.folder / key).glob("kernel.*")
        return {f"{name}{file.suffix}": str(file) for file in sorted(found)}

    def discard(self, key: str, problem: object) -> None:
        """Remove a useless entry, with a warning."""
        warnings.warn(
            f"the cached kernel in {self.folder / key} is damaged ({problem}); "
            "it is compiled again",
            TilewrightWarning,
            stacklevel=3,
        )
        remove(self.folder / key)


class _ReplacedError(Exception):
    """An entry has disappeared during reading; there may be another."""


def _opened(place: Path) -> Entry:
    with OpenFolder(place) as folder:
        try:
            entry = _read(folder, place.name)
        except synchronous(Exception) as problem:
            # Another process replaced the folder during reading: the files may be those of two
            # entries.
            if not folder.is_current():
                raise _ReplacedError from None
            if isinstance(problem, FileNotFoundError):
                raise ValueError("a file is missing") from None
            raise
        folder.touch()
    return entry


def _read(folder: OpenFolder, key: str) -> Entry:
    # bounded: the size of the index, unlike those of the artifacts, is not recorded
    index = unsealed(folder.read(INDEX, _MAX_INDEX_BYTES))
    if index["key"] != key or index["metadata"].get("hash", key) != key:
        raise ValueError("it is another kernel's")
    artifacts: dict[str, str | bytes] = {}
    for name, (kind, size, checksum) in index["artifacts"].items():
        content = folder.read(_file(name), size)
        if hashlib.sha256(content).hexdigest() != checksum:
            raise ValueError(f"{_file(name)} has changed")
        artifacts[name] = content.decode() if kind == _TEXT else content
    return Entry(index["metadata"], artifacts)


def _file(artifact: str) -> str:
    """Path of an artifact; ValueError for an invalid name."""
    if _NAME.fullmatch(artifact) is None:
        raise ValueError(f"no artifact is called {artifact!r}")
    return f"kernel.{artifact}"


def _files(key: str, entry: Entry) -> dict[str, bytes]:
    """The files of an entry by name; the index, which completes it, is the last."""
    files: dict[str, bytes] = {}
    artifacts: dict[str, tuple[str, int, str]] = {}
    for name, artifact in entry.artifacts.items():
        content = artifact.encode() if isinstance(artifact, str) else artifact
        files[_file(name)] = content
        kind = _TEXT if isinstance(artifact, str) else "binary"
        artifacts[name] = (kind, len(content), hashlib.sha256(content).hexdigest())
    index = {"key": key, "metadata": entry.metadata, "artifacts": artifacts}
    return {**files, INDEX: sealed(index)}


_stores: dict[tuple[Path, int], Store] = {}


def shared_store(cache: CacheSettings) -> Store:
    """The store with the folder and size of the present settings."""
    key = cache.dir, cache.max_megabytes * MEGABYTE
    store = _stores.get(key)
    if store is None:
        store = _stores[key] = Store(*key)
    return store


@cache
def package_version(backend: str = "") -> str:
    """A hash of names, sizes and times of all source files of this package.

    backend: restrict it to the files that affect this backend's code; "": all files
    """
    digest = hashlib.sha256()
    for line in sorted(map(_file_line, _source_files(*_root_and_apart(backend)))):
        digest.update(line.encode())
    return digest.hexdigest()


@cache
def package_content(backend: str = "") -> str:
    """`package_version` by the contents of the files: equal on all machines, but slower, so it is
    kept on disk."""
    name = f"content-{package_version(backend)[:32]}"
    known = _CONTENTS.read(name)
    if known is None:
        known = {"sha256_of_content": _content_hash(backend)}
        _CONTENTS.write(name, known)
    return str(known["sha256_of_content"])


def _content_hash(backend: str) -> str:
    root, apart = _root_and_apart(backend)
    digest = hashlib.sha256()
    for path in sorted(entry.path for entry in _source_files(root, apart)):
        name, content = os.path.relpath(path, root), Path(path).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _root_and_apart(backend: str) -> tuple[str, Sequence[str]]:
    """The folder of this package, and those in it that do not affect a backend's code."""
    root = str(Path(__file__).parent.parent)
    packages = [f"tilewright.{name}" for name in APART] + packages_apart(backend)
    apart = [os.path.join(root, *package.split(".")[1:]) for package in packages]
    return root, apart if backend else ()


def _source_files(folder: str, apart: Sequence[str]) -> Iterator[os.DirEntry[str]]:
    """The source files below a folder, without those in the folders `apart`."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_SOURCES):
                yield entry
            elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                yield from _source_files(entry.path, apart) if entry.path not in apart else ()


def _file_line(entry: os.DirEntry[str]) -> str:
    status = entry.stat()
    return f"{entry.path} {status.st_size} {status.st_mtime_ns}\n"
