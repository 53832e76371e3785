"""Which folders the cache may use: those that only this user, or root, may write to."""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import Path
from typing import ClassVar

from tilewright.support.errors import TilewrightWarning
from tilewright.support.operating_system import user_number
from tilewright.support.settings_table import settings

__all__ = ["OWNER_ONLY", "cache_folder", "distrust"]

OWNER_ONLY = 0o700
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def distrust(status: os.stat_result) -> str | None:
    """Why something must not be read as code; None if only this user, or root, can have made it."""
    user = user_number()
    if user is None:  # folders of a user's profile are the user's there
        return None
    if status.st_uid not in (user, 0):
        return f"it belongs to another user ({status.st_uid})"
    if status.st_mode & _OTHERS_WRITE:
        return f"other users may write to it (mode {stat.S_IMODE(status.st_mode):o})"
    return None


class _Verdicts:
    """Results of the check by folder: each is checked, and warned of, once in a process."""

    good: ClassVar[dict[Path, bool]] = {}


def cache_folder(kind: str, root: Path | None = None) -> Path | None:
    """<root>/<kind>, made if need be; None where the cache cannot be used, with one warning.

    root: default is what the settings say. The folder may be gone again when it is used.
    """
    root = settings().cache.dir if root is None else root
    folder = root / kind
    return folder if _is_good(root, linked=True) and _is_good(folder, linked=False) else None


def _is_good(folder: Path, linked: bool) -> bool:
    """linked: whether the folder may be a symbolic link, as the user's own choice may."""
    verdict = _Verdicts.good.get(folder)
    # removed since it was judged made again, and judged anew
    if verdict and not folder.exists():
        verdict = None
    if verdict is None:
        problem = _problem(folder, linked)
        verdict = _Verdicts.good[folder] = problem is None
        if problem is not None:
            _warn(folder, problem)
    return verdict


def _problem(folder: Path, linked: bool) -> str | None:
    try:
        _make(folder)
        status = os.stat(folder, follow_symlinks=linked)
    except OSError as problem:
        return f"{problem}; set TILEWRIGHT_CACHE_DIR to a folder that can be written"
    if not stat.S_ISDIR(status.st_mode):
        return "it is no folder; set TILEWRIGHT_CACHE_DIR to another"
    reason = distrust(status)
    if reason is None:
        return None
    return f"{reason}; set TILEWRIGHT_CACHE_DIR to a folder of your own, or chmod go-w that one"


def _make(folder: Path) -> None:
    """Make a folder and those above it, for the user alone."""
    if not folder.exists():
        # the root of a file system is its own parent
        if folder.parent != folder:
            _make(folder.parent)
        folder.mkdir(mode=OWNER_ONLY, exist_ok=True)


def _warn(folder: Path, problem: str) -> None:
    warnings.warn(
        f"nothing is kept on disk, since {folder} cannot be used: {problem}",
        TilewrightWarning,
        stacklevel=2,
    )
