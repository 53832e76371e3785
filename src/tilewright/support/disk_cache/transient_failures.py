"""Failures that say nothing about the file that was to be read."""

from __future__ import annotations

import errno

__all__ = ["is_transient"]

# ESTALE: a network file system's handle of a file that another machine has replaced
_PASSING = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.ESTALE)


def is_transient(problem: Exception) -> bool:
    """Whether the process or the system lacks something, such as file descriptors, for a while."""
    return isinstance(problem, OSError) and problem.errno in _PASSING
