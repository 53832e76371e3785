"""Differences between operating systems; no other module checks which one it runs on.

A missing feature has a fallback where it is used. Without POSIX threads, Python's threads run the
programs of a grid. Without affinity, all CPUs count. Without owners of files, a folder of the
user's profile is trusted. Without links by descriptor, files are opened by their whole path.
Without `fork`, nothing follows a fork. `tests/unit/support/test_operating_system.py` runs a kernel
without all of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

IS_LINUX = sys.platform == "linux"
IS_MACOS = sys.platform == "darwin"
IS_WINDOWS = os.name == "nt"
IS_LINUX_X86_64 = IS_LINUX and os.uname().machine == "x86_64" and sys.maxsize > 1 << 32

HAS_NATIVE_THREADS = not IS_WINDOWS
"""Whether POSIX threads and signals exist, which the native thread pool calls."""

READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Flags of `os.open` for files that are read, as far as the system has them."""
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT = getattr(os, "O_NONBLOCK", 0)
"""Without it, opening a pipe would wait for its writer."""
FOLDER = getattr(os, "O_DIRECTORY", 0)

BY_FOLDER = os.open in os.supports_dir_fd
"""Whether a file can be opened by its name in an open folder; not on Windows."""


def affinity() -> tuple[int, ...] | None:
    """Numbers of the CPUs that this process may run on, in order.

    None if they are not restricted, or not reported: on macOS and Windows.
    """
    if not hasattr(os, "sched_getaffinity"):
        return None
    return tuple(sorted(os.sched_getaffinity(0)))


def user_number() -> int | None:
    """The effective user of this process; None on Windows, whose files have access lists."""
    return os.geteuid() if hasattr(os, "geteuid") else None


def at_fork(
    before: Callable[[], object] | None = None,
    after_in_parent: Callable[[], object] | None = None,
    after_in_child: Callable[[], object] | None = None,
) -> None:
    """Call these around every fork of this process; without effect on systems without forks."""
    if not hasattr(os, "register_at_fork"):
        return
    if before is not None:
        os.register_at_fork(before=before)
    if after_in_parent is not None:
        os.register_at_fork(after_in_parent=after_in_parent)
    if after_in_child is not None:
        os.register_at_fork(after_in_child=after_in_child)
