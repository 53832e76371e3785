"""Atomic files and folders: written under another name, then renamed.

A reader goes through an open folder and follows no links, so that a name cannot lead out of it, and
the file that is read is the one that was checked.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tilewright.support.asynchronous_exceptions import suppress, synchronous
from tilewright.support.disk_cache.fail_points import fail_point
from tilewright.support.disk_cache.folder_trust import OWNER_ONLY, distrust
from tilewright.support.operating_system import BY_FOLDER, FOLDER, NO_LINK, NO_WAIT, READ

_FILE_MODE = 0o600
# READ & ~O_RDONLY: the flags of READ without its access mode; O_EXCL rejects a name in use
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | (READ & ~os.O_RDONLY) | NO_LINK

_LARGEST = 1 << 30
"""Maximum size of a file that is read, in bytes; kernels are far smaller."""


_TEMPORARY = re.compile(r"\.\d+-[0-9a-f]{12}")


def temporary_beside(place: Path) -> Path:
    """A new name in the same folder, for which `is_temporary` holds."""
    return place.with_name(f".{os.getpid()}-{os.urandom(6).hex()}")


def is_temporary(name: str) -> bool:
    """Whether the name is that of a file or folder being written or removed."""
    return _TEMPORARY.fullmatch(name) is not None


class OpenFolder:
    """A folder for reading, used in `with`.

    Errors: OSError, for it may be gone, or be a link; ValueError if others may write to it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None
        if BY_FOLDER:
            self._handle = os.open(path, READ | FOLDER | NO_LINK)
            # of the open folder: the path may lead to another one by now
            reason = distrust(os.fstat(self._handle))
            if reason is not None:
                os.close(self._handle)
                raise ValueError(reason)

    def __enter__(self) -> OpenFolder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def is_current(self) -> bool:
        """Whether the folder is still the target of its path."""
        if self._handle is None:
            return True
        try:
            return os.path.samestat(os.fstat(self._handle), os.lstat(self.path))
        except synchronous(OSError):
            return False

    def read(self, name: str, most: int = _LARGEST) -> bytes:
        """The content of a file.

        Errors: ValueError for one that is not a plain file, not this user's, or larger than `most`
        bytes; OSError if it cannot be read.
        """
        where = name if self._handle is not None else self.path / name
        handle = os.open(where, READ | NO_LINK | NO_WAIT, dir_fd=self._handle)
        with open(handle, "rb", buffering=0) as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise ValueError(f"{name} is not a plain file")
            reason = distrust(status)
            if reason is not None:
                raise ValueError(f"{name}: {reason}")
            if status.st_size > most:
                raise ValueError(f"{name} has grown")
            return file.readall()

    def touch(self) -> None:
        """Record that the folder was used now."""
        with suppress(OSError):
            os.utime(self.path if self._handle is None else self._handle)


def write_file(place: Path, content: bytes) -> None:
    """Replace a file; on an OSError, nothing is left behind."""
    temporary = temporary_beside(place)
    try:
        _write_all({temporary: content}, wait=True)
        fail_point("file: synchronized")
        os.replace(temporary, place)
    except BaseException:
        remove(temporary)
        raise
    fail_point("file: renamed")
    synchronized_folder(place.parent)
    fail_point("file: done")


def replace_folder(place: Path, files: Mapping[str, bytes]) -> None:
    """Create a folder with these files, unless another process has created it.

    It does not wait for the disk: after a crash of the machine, checksums reveal incomplete files.
    Errors: OSError; nothing is left behind.
    """
    temporary = temporary_beside(place)
    try:
        temporary.mkdir(mode=OWNER_ONLY)
        fail_point("folder: made")
        _write_all({temporary / name: content for name, content in files.items()}, wait=False)
        fail_point("folder: files written")
        _move(temporary, place)
    except BaseException:
        remove(temporary)
        raise
    fail_point("folder: renamed")


def _move(temporary: Path, place: Path) -> None:
    try:
        temporary.rename(place)
    except synchronous(OSError):
        if place.is_symlink() or not place.is_dir():  # if something other than a folder is there
            remove(place)
            temporary.rename(place)
        else:
            remove(temporary)


def _write_all(files: Mapping[Path, bytes], wait: bool) -> None:
    """Write new files. wait: until they are on the disk; the first file waits for all"""
    handles: list[int] = []
    try:
        for path, content in files.items():
            handles.append(os.open(path, _NEW, _FILE_MODE))
            fail_point("file: made")
            # in two halves, so that a test can stop the process between them
            half = len(content) // 2
            _write(handles[-1], content[:half])
            fail_point("file: half written")
            _write(handles[-1], content[half:])
            fail_point("file: written")
        for handle in handles if wait else ():
            os.fsync(handle)
    finally:
        for handle in handles:
            os.close(handle)


def _write(handle: int, content: bytes) -> None:
    rest = memoryview(content)
    # os.write may write fewer bytes than it is given
    while rest:
        rest = rest[os.write(handle, rest) :]


def synchronized_folder(folder: Path) -> None:
    """Synchronize the names in a folder with the disk, on systems that can."""
    if not FOLDER:
        return
    handle = os.open(folder, READ | FOLDER)
    try:
        with suppress(OSError):  # some network file systems reject it for folders
            os.fsync(handle)
    finally:
        os.close(handle)


def remove(place: Path) -> None:
    """Delete a file, a link, or a folder, at once for readers.

    Without effect if it is gone, or if deleting it is not allowed.
    """
    with suppress(OSError):
        if place.is_symlink() or not place.is_dir():
            place.unlink()
            return
        temporary = place
        if not is_temporary(place.name):
            temporary = temporary_beside(place)
            place.rename(temporary)
            fail_point("remove: renamed")
        # rmtree cannot empty a folder that its owner may not write to
        temporary.chmod(OWNER_ONLY)
        shutil.rmtree(temporary, ignore_errors=True)
