"""Small objects on disk, each in its own file: `<cache>/<kind>/<name>.json`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tilewright.support.asynchronous_exceptions import suppress, synchronous
from tilewright.support.disk_cache.checksummed_json import sealed, unsealed
from tilewright.support.disk_cache.eviction import wrote
from tilewright.support.disk_cache.folder_trust import cache_folder, in_cache_folder
from tilewright.support.disk_cache.json_names import file_name
from tilewright.support.disk_cache.transient_failures import is_transient, is_unreadable
from tilewright.support.disk_cache.whole_files import OpenFolder, remove, write_file
from tilewright.support.errors import TilewrightWarning

_NAME = "document"
"""The first member of a document, which `own_files` checks."""


class Documents:
    """The documents of one kind: dictionaries of JSON values.

    A damaged document counts as absent, with a warning, and is removed. Without a writable folder
    nothing is written. Each file contains the name of its document, so that a copy of one cannot
    replace another.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def read(self, name: str) -> dict[str, Any] | None:
        """The document, or None."""
        folder = cache_folder(self.kind)
        if folder is None:
            return None
        file = folder / file_name(name)
        try:
            with OpenFolder(folder) as opened:
                members = unsealed(opened.read(file.name))
            found = members.pop(_NAME, None)
            if found is None:  # versions before 0.1.0 did not write the name
                return None
            if found != name:
                raise ValueError("it is another document")
        except FileNotFoundError:
            return None
        except synchronous(OSError, ValueError) as problem:
            self._failed(file, problem)
            return None
        with suppress(OSError):
            # eviction uses the modification time: reading counts as use
            os.utime(file)
        return members

    def named(self, prefix: str) -> list[str]:
        """The names of the documents that start with `prefix`, of letters, digits, - and _."""
        folder = cache_folder(self.kind)
        return (
            [] if folder is None else sorted(file.stem for file in folder.glob(f"{prefix}*.json"))
        )

    def all(self) -> Iterator[dict[str, Any]]:
        """The valid documents with their names as the member "document"; none counts as used."""
        folder = cache_folder(self.kind)
        if folder is None:
            return
        for file in sorted(folder.glob("*.json")):
            # another process may remove the file at any moment
            with suppress(OSError, ValueError), OpenFolder(folder) as opened:
                yield unsealed(opened.read(file.name))

    def discard(self, name: str, problem: object) -> None:
        """Remove a useless document, with a warning."""
        folder = cache_folder(self.kind)
        if folder is not None:
            _discard(folder / file_name(name), problem)

    @staticmethod
    def _failed(file: Path, problem: Exception) -> None:
        # a lack of descriptors, memory or permission is not the fault of the file, which must stay
        if is_unreadable(problem):
            _warn(f"{file} cannot be read ({problem}); its content is computed again")
        elif not is_transient(problem):
            _discard(file, problem)

    def write(self, name: str, members: Mapping[str, Any]) -> None:
        """Write a document, which replaces an older one of that name."""
        content = sealed({_NAME: name, **members})
        with suppress(OSError):
            folder = in_cache_folder(
                self.kind, lambda folder: _write(folder / file_name(name), content)
            )
            if folder is not None:
                wrote(folder.parent)


def _discard(file: Path, problem: object) -> None:
    _warn(f"{file} is damaged ({problem}); it is rebuilt")
    remove(file)


def _warn(text: str) -> None:
    warnings.warn(text, TilewrightWarning, stacklevel=4)


def _write(file: Path, content: bytes) -> None:
    # os.replace replaces a file or a link, but fails on a folder
    if file.is_dir() and not file.is_symlink():
        remove(file)
    write_file(file, content)
