"""Failures that do not concern the content of the file to read."""

from __future__ import annotations

import errno

# ESTALE: a network file system's handle of a file that another machine has replaced
_PASSING = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.ESTALE)

_UNREADABLE = (errno.EACCES, errno.EPERM, errno.EIO)


def is_transient(problem: Exception) -> bool:
    """Whether the process or the system temporarily lacks something, such as file descriptors."""
    return isinstance(problem, OSError) and problem.errno in _PASSING


def is_unreadable(problem: Exception) -> bool:
    """Whether permissions or the device prevent reading, whatever the content."""
    return isinstance(problem, OSError) and problem.errno in _UNREADABLE
