"""Ownership: the files in the folder of the cache that this package has written.

The user chooses that folder, and may have other files in it, also below `kernels` or `native`. Only
a file that identifies itself may be deleted:

    kernels/<key>/          only kernel.* inside; <key> is a hash, or kernel.json names <key>
    autotune/<name>.json    starts with a checksum and the name of the document
    grammar/, native/       as autotune
    crashes/<hash>/         only kernel.* inside, each with the head of a reproducer
    .<process>-<random>     a temporary name with content of such a kind
    <dump_dir>/<k>-<hash>/  inside the cache: only <k>.* and kernel.json inside
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tilewright.support.asynchronous_exceptions import suppress
from tilewright.support.data_class import dataclass
from tilewright.support.disk_cache.json_names import file_name
from tilewright.support.disk_cache.whole_files import is_temporary
from tilewright.support.operating_system import NO_LINK, NO_WAIT, READ
from tilewright.support.settings_table import settings

INDEX = "kernel.json"
"""The file of a kernel's entry that contains its key."""

CRASH_HEAD = "pipeline: "
"""The start of a reproducer, after the comment character."""

_KEY = re.compile(r"[0-9a-f]{64}")
_CRASH = re.compile(r"[0-9a-f]{12}")
_DUMP = re.compile(r"(.+)-[0-9a-f]{12}")
_KERNEL_FILE = re.compile(r"kernel\.\w+")
_HEAD_BYTES = 4096
"""Bytes that hold a checksum and the longest name of a document."""
_SEALED = b'{"sha256": "'
_NAMED = re.compile(rb'\{"sha256": "[0-9a-f]{64}", "(?:key|document)": ("(?:[^"\\]|\\.)*")')
_REPRODUCER = re.compile(rb"\S+ " + CRASH_HEAD.encode())

Files = Mapping[str, int]
"""Sizes in bytes, by name."""


@dataclass(frozen=True, slots=True)
class OwnItem:
    """A file or folder that is deleted as a whole. used: seconds since 1970; size: bytes"""

    kind: str
    place: Path
    used: float
    size: int


def own_items(root: Path) -> Iterator[OwnItem]:
    """Entries of this package below `root`, including temporary files of any process."""
    for kind, is_own in _OWN.items():
        yield from _in_folder(kind, root / kind, is_own)
    dumps = settings().compilation.dump_dir
    # a folder of dumps outside of the cache has no limit
    if dumps is not None and root in dumps.parents and dumps.parent.name not in KINDS:
        yield from _in_folder("dumps", dumps, _is_dump)


def _in_folder(kind: str, folder: Path, is_own: Callable[[Path, Files], bool]) -> Iterator[OwnItem]:
    # the package never writes through a link, so the target of one is the user's
    if folder.is_symlink():
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            item = _own_item(kind, entry, is_own)
            if item is not None:
                yield item


def _own_item(
    kind: str, entry: os.DirEntry[str], is_own: Callable[[Path, Files], bool]
) -> OwnItem | None:
    with suppress(OSError):  # another process may delete it at any moment
        files, place = _plain_files(entry), Path(entry.path)
        if files is not None and is_own(place, files):
            used = entry.stat(follow_symlinks=False).st_mtime
            return OwnItem(kind, place, used, sum(files.values()))
    return None


def _plain_files(entry: os.DirEntry[str]) -> Files | None:
    """The files of a folder, or a file itself under the name ""; None if anything is neither."""
    if entry.is_file(follow_symlinks=False):
        return {"": entry.stat(follow_symlinks=False).st_size}
    if not entry.is_dir(follow_symlinks=False):
        return None
    with os.scandir(entry.path) as inside:
        files = list(inside)
    if not all(file.is_file(follow_symlinks=False) for file in files):
        return None
    return {file.name: file.stat(follow_symlinks=False).st_size for file in files}


def _head(file: Path) -> bytes:
    handle = os.open(file, READ | NO_LINK | NO_WAIT)
    try:
        return os.read(handle, _HEAD_BYTES)
    finally:
        os.close(handle)


def _own_name(file: Path) -> str | None:
    """The name or key that a sealed file contains."""
    found = _NAMED.match(_head(file))
    with suppress(ValueError):
        return None if found is None else str(json.loads(found[1]))
    return None


def _holds_kernel_files(files: Files) -> bool:
    # a plain file, whose name is ""
    return all(_KERNEL_FILE.fullmatch(name) for name in files)


def _is_entry(place: Path, files: Files) -> bool:
    if not _holds_kernel_files(files):
        return False
    if is_temporary(place.name) or _KEY.fullmatch(place.name):
        return True
    return INDEX in files and _own_name(place / INDEX) == place.name


def _is_document(place: Path, files: Files) -> bool:
    if list(files) != [""]:
        return False
    if is_temporary(place.name):  # which may be cut anywhere
        head = _head(place)
        return head.startswith(_SEALED) or _SEALED.startswith(head)
    name = _own_name(place)
    return name is not None and file_name(name) == place.name


def _is_crash(place: Path, files: Files) -> bool:
    if not _holds_kernel_files(files):
        return False
    if is_temporary(place.name):
        return True
    named = _CRASH.fullmatch(place.name) is not None
    return named and all(_REPRODUCER.match(_head(place / name)) for name in files)


def _is_dump(place: Path, files: Files) -> bool:
    named = _DUMP.fullmatch(place.name)
    if named is None or not files:
        return False
    return all(name == INDEX or name.startswith(f"{named[1]}.") for name in files)


_OWN: Mapping[str, Callable[[Path, Files], bool]] = {
    "kernels": _is_entry,
    "autotune": _is_document,
    "grammar": _is_document,
    "native": _is_document,
    "crashes": _is_crash,
}

KINDS = tuple(_OWN)
"""Folders of the cache that this package writes to."""
