"""What operating systems have in different ways, or not at all: no other module asks which it is.

What is missing has a fallback where it is used: without POSIX threads Python's run the programs of
a grid, without affinity all CPUs count, without owners a folder of the user's profile is trusted,
without links by descriptor files are opened by their whole path, and nothing follows a fork.
`tests/unit/support/test_operating_system.py` runs a kernel without all of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

__all__ = [
    "BY_FOLDER",
    "FOLDER",
    "HAS_NATIVE_THREADS",
    "IS_LINUX",
    "IS_LINUX_X86_64",
    "IS_MACOS",
    "IS_WINDOWS",
    "NO_LINK",
    "NO_WAIT",
    "READ",
    "affinity",
    "at_fork",
    "user_number",
]

IS_LINUX = sys.platform == "linux"
IS_MACOS = sys.platform == "darwin"
IS_WINDOWS = os.name == "nt"
IS_LINUX_X86_64 = IS_LINUX and os.uname().machine == "x86_64" and sys.maxsize > 1 << 32

HAS_NATIVE_THREADS = not IS_WINDOWS
"""Whether there are POSIX threads and signals, which the thread pool in machine code calls."""

READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Flags of `os.open` for files that are read; with them may go:"""
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT = getattr(os, "O_NONBLOCK", 0)
"""Or opening a pipe would wait for its writer."""
FOLDER = getattr(os, "O_DIRECTORY", 0)

BY_FOLDER = os.open in os.supports_dir_fd
"""Whether a file can be opened by its name in an open folder; not on Windows."""


def affinity() -> tuple[int, ...] | None:
    """Numbers of the CPUs that this process may run on, in order; None where nobody restricts it,
    or nobody tells: macOS and Windows."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    return tuple(sorted(os.sched_getaffinity(0)))


def user_number() -> int | None:
    """The user that this process acts for; None on Windows, whose files have access lists."""
    return os.geteuid() if hasattr(os, "geteuid") else None


def at_fork(
    before: Callable[[], object] | None = None,
    after_in_parent: Callable[[], object] | None = None,
    after_in_child: Callable[[], object] | None = None,
) -> None:
    """Call these around every fork of this process; nothing where there are none."""
    if not hasattr(os, "register_at_fork"):
        return
    if before is not None:
        os.register_at_fork(before=before)
    if after_in_parent is not None:
        os.register_at_fork(after_in_parent=after_in_parent)
    if after_in_child is not None:
        os.register_at_fork(after_in_child=after_in_child)
