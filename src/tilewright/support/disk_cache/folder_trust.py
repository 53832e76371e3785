"""Folders that the cache may use: those that only this user, or root, may write to."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.disk_cache.transient_failures import is_transient
from tilewright.support.errors import TilewrightWarning
from tilewright.support.operating_system import user_number
from tilewright.support.settings_table import settings

OWNER_ONLY = 0o700
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_TRIES = 5
"""Attempts to use a folder that others may remove."""
_MAX_LINKS = 40
"""Maximum number of links in a path, as in Linux."""


def distrust(status: os.stat_result) -> str | None:
    """The reason not to load code from a file; None if only this user, or root, can have written
    it.
    """
    user = user_number()
    if user is None:  # folders in a user's profile belong to the user there
        return None
    if status.st_uid not in (user, 0):
        return f"it belongs to another user ({status.st_uid})"
    if status.st_mode & _OTHERS_WRITE:
        return f"other users may write to it (mode {stat.S_IMODE(status.st_mode):o})"
    return None


class _Judged:
    """Results of the check in this process."""

    good: ClassVar[dict[Path, tuple[int, ...]]] = {}
    """Accepted folders, with their identity at the time of the check."""
    warned: ClassVar[set[Path]] = set()


def cache_folder(kind: str, root: Path | None = None) -> Path | None:
    """`<root>/<kind>`, created if needed; None if the cache cannot be used, with one warning.

    root: the default is the setting. The folder may be gone again when it is used.
    """
    root = settings().cache.dir if root is None else root
    folder = root / kind
    return folder if _is_good(root, linked=True) and _is_good(folder, linked=False) else None


def in_cache_folder(
    kind: str, write: Callable[[Path], object], root: Path | None = None
) -> Path | None:
    """Call `write` with `cache_folder(kind, root)`, again if the folder was removed.

    Returns the folder, or None if nothing was written. Errors: OSErrors of `write`, except for
    FileNotFoundError.
    """
    for _ in range(_TRIES):
        folder = cache_folder(kind, root)
        if folder is None:
            return None
        try:
            write(folder)
        except FileNotFoundError:  # another process clears or moves the cache
            continue
        return folder
    return None


def _is_good(folder: Path, linked: bool) -> bool:
    """linked: whether the folder may be a symbolic link, as the user's own choice may"""
    problem = None
    for _ in range(_TRIES):
        try:
            problem = _problem(folder, linked)
            break
        except FileNotFoundError as gone:  # it was removed after its creation
            problem = f"{gone}"
        except synchronous(OSError) as failure:
            if is_transient(failure):
                return False
            problem = f"{failure}; set TILEWRIGHT_CACHE_DIR to a folder that can be written"
            break
    if problem is not None and folder not in _Judged.warned:
        _Judged.warned.add(folder)
        _warn(folder, problem)
    return problem is None


def _problem(folder: Path, linked: bool) -> str | None:
    try:
        status = os.stat(folder, follow_symlinks=linked)
    except FileNotFoundError:
        _make(folder)
        status = os.stat(folder, follow_symlinks=linked)
    identity = status.st_dev, status.st_ino, status.st_uid, status.st_mode
    if _Judged.good.get(folder) == identity:
        return None
    problem = _distrust_folder(folder, status)
    if problem is None:
        _Judged.good[folder] = identity
    return problem


def _distrust_folder(folder: Path, status: os.stat_result) -> str | None:
    if not stat.S_ISDIR(status.st_mode):
        return "it is not a folder; set TILEWRIGHT_CACHE_DIR to another"
    link = _link_of_another(folder.absolute())
    if link is not None:
        return f"{link} is a link of another user; set TILEWRIGHT_CACHE_DIR to a folder of your own"
    reason = distrust(status)
    if reason is None:
        return None
    return f"{reason}; set TILEWRIGHT_CACHE_DIR to a folder of your own, or chmod go-w that one"


def _link_of_another(path: Path, depth: int = _MAX_LINKS) -> Path | None:
    """The symbolic link in an absolute path that neither this user nor root made, or None."""
    user = user_number()
    if user is None or depth == 0:
        return None
    for part in (*reversed(path.parents), path):
        status = os.lstat(part)
        if stat.S_ISLNK(status.st_mode):
            if status.st_uid not in (user, 0):
                return part
            found = _link_of_another(part.parent / os.readlink(part), depth - 1)
            if found is not None:
                return found
    return None


def _make(folder: Path) -> None:
    """Create a folder and its ancestors, for the user alone."""
    if not folder.exists():
        # the root of a file system is its own parent
        if folder.parent != folder:
            _make(folder.parent)
        folder.mkdir(mode=OWNER_ONLY, exist_ok=True)


def _warn(folder: Path, problem: str) -> None:
    warnings.warn(
        f"nothing is cached on disk, since {folder} cannot be used: {problem}",
        TilewrightWarning,
        stacklevel=2,
    )
