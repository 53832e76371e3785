"""Small objects on disk, each in a file of its own: `<cache>/<kind>/<name>.json`."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tilewright.support.disk_cache.checksummed_json import sealed, unsealed
from tilewright.support.disk_cache.eviction import wrote
from tilewright.support.disk_cache.folder_trust import cache_folder
from tilewright.support.disk_cache.transient_failures import is_transient
from tilewright.support.disk_cache.whole_files import OpenFolder, remove, write_file
from tilewright.support.errors import TilewrightWarning

__all__ = ["Documents"]

_MAX_CHARACTERS = 150
"""Of a name that becomes a file's as it is; file systems take 255 bytes."""


class Documents:
    """The documents of one kind: dictionaries of values that JSON can hold.

    What cannot be read counts as absent, with a warning, and is removed; where nothing can be
    written, nothing is.
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
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as problem:
            # a lack of descriptors or memory is no fault of the file, which must stay
            if not is_transient(problem):
                self.discard(name, problem)
            return None
        with suppress(OSError):
            # eviction goes by the time of change: reading counts as use
            os.utime(file)
        return members

    def discard(self, name: str, problem: object) -> None:
        """Remove a document that is of no use, with a warning."""
        folder = cache_folder(self.kind)
        if folder is None:
            return
        file = folder / file_name(name)
        warnings.warn(
            f"{file} is damaged ({problem}); it is made again", TilewrightWarning, stacklevel=3
        )
        remove(file)

    def write(self, name: str, members: Mapping[str, Any]) -> None:
        """Keep a document, in place of an older one of that name."""
        folder = cache_folder(self.kind)
        if folder is None:
            return
        with suppress(OSError):
            _write(folder / file_name(name), sealed(members))
            wrote(folder.parent)


def _write(file: Path, content: bytes) -> None:
    # os.replace puts a file in place of a file or a link, but fails on a folder
    if file.is_dir() and not file.is_symlink():
        remove(file)
    write_file(file, content)


def file_name(name: str) -> str:
    """A file name for any text, another for each."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    # two names may become the same plain one: the digest keeps them apart
    if plain != name or len(plain) > _MAX_CHARACTERS:
        plain = f"{plain[:_MAX_CHARACTERS]}-{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    return f"{plain}.json"
