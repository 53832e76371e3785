"""Objects as files of a folder that machines share, such as one of NFS.

Network file systems fail in ways that local ones do not: a handle is stale (ESTALE), a name is busy
(EBUSY), a rename or link fails although it was done, and a new name is visible late. Each call is
repeated a few times; a file that is not visible counts as absent, which is always correct.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tilewright.support.asynchronous_exceptions import suppress, synchronous
from tilewright.support.disk_cache.fail_points import fail_point
from tilewright.support.operating_system import NO_WAIT, READ
from tilewright.support.remote_cache.signed_objects import LARGEST

T = TypeVar("T")

_TRIES = 8
_FIRST_WAIT = 0.002
"""Seconds before the second attempt; each further wait is twice as long."""
_MODE = 0o664
_FOLDER_MODE = 0o775
_LACKS_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
_FINAL = (errno.EACCES, errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.ENAMETOOLONG)
"""Failures that another attempt does not change."""


class FolderStorage:
    """Objects below `root`, which is created."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def get(self, name: str) -> bytes | None:
        """The content, or None."""
        return _repeated(lambda: _content(self._root / name))

    def put(self, name: str, content: bytes) -> None:
        """Write an object, which replaces an older one of that name."""
        place = self._root / name
        _repeated(lambda: _replace(place, content))

    def create(self, name: str, content: bytes) -> bool:
        """Write an object unless there is one of that name; whether it was written."""
        place = self._root / name
        # the name of one attempt identifies the file, if the reply to a link was lost
        temporary = _temporary(place)
        _repeated(lambda: _write(temporary, content))
        try:
            return _repeated(lambda: _linked(temporary, place, content))
        finally:
            _removed(temporary)

    def members(self, group: str) -> dict[str, bytes]:
        """The objects that `put_member` has written to a group."""
        folder = self._root / group
        names = _repeated(lambda: _names(folder))
        found = {name: self.get(f"{group}/{name}") for name in names}
        return {name: content for name, content in found.items() if content is not None}

    def put_member(self, group: str, member: str, content: bytes) -> None:
        """Write an object of a group."""
        self.put(f"{group}/{member}", content)


def _repeated(call: Callable[[], T]) -> T:
    wait = _FIRST_WAIT
    for _ in range(_TRIES - 1):
        try:
            return call()
        except synchronous(OSError) as problem:
            if problem.errno in _FINAL:
                raise
        time.sleep(wait)
        wait *= 2
    return call()


def _content(place: Path) -> bytes | None:
    fail_point("remote: open")
    try:
        handle = os.open(place, READ | NO_WAIT)
    except FileNotFoundError:
        return None
    with open(handle, "rb", buffering=0) as file:
        if os.fstat(handle).st_size > LARGEST:
            raise ValueError(f"{place} is too large")
        fail_point("remote: read")
        return file.readall()


def _names(folder: Path) -> list[str]:
    fail_point("remote: list")
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except FileNotFoundError:
        return []


def _temporary(place: Path) -> Path:
    return place.with_name(f".{os.urandom(12).hex()}")


def _write(place: Path, content: bytes) -> None:
    place.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | (READ & ~os.O_RDONLY), _MODE)
    with open(handle, "wb", buffering=0) as file:
        fail_point("remote: write")
        rest = memoryview(content)
        while rest:
            rest = rest[file.write(rest) :]
        # NFS reports a full disk here, or when the file is closed
        os.fsync(handle)


def _replace(place: Path, content: bytes) -> None:
    temporary = _temporary(place)
    try:
        _write(temporary, content)
        fail_point("remote: rename")
        os.replace(temporary, place)
        fail_point("remote: renamed")
    finally:
        _removed(temporary)


def _linked(temporary: Path, place: Path, content: bytes) -> bool:
    try:
        fail_point("remote: link")
        os.link(temporary, place)
        fail_point("remote: linked")
    except FileExistsError:
        return _is_same(temporary, place)
    except synchronous(OSError) as problem:
        if problem.errno in _LACKS_LINKS:
            return _created(place, content)
        if _is_same(temporary, place):
            return True
        raise
    return True


def _is_same(temporary: Path, place: Path) -> bool:
    """Whether an earlier attempt made the link, although it was reported as failed."""
    try:
        return os.path.samefile(temporary, place)
    except FileNotFoundError:
        return False


def _created(place: Path, content: bytes) -> bool:
    """`create` on file systems without links; a reader may see an incomplete file."""
    try:
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    except FileExistsError:
        return False
    with open(handle, "wb", buffering=0) as file:
        file.write(content)
    return True


def _removed(place: Path) -> None:
    with suppress(OSError):
        place.unlink()
