"""Warnings of front ends about kernels.

They are stored with a kernel in the disk cache, and shown again when it is read, without the front
end.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tilewright.support.errors import TilewrightWarning

KernelWarning = tuple[str, str, int]
"""The text of a warning, the file and the line that it is about."""

_shown: dict[Any, Any] = {}
"""The registry of warnings: the user's module is not the caller here."""

_collected: ContextVar[list[KernelWarning] | None] = ContextVar("collected_warnings", default=None)


def show_warnings(found: Iterable[KernelWarning]) -> None:
    """Show warnings: once for a line, unless Python's filters differ."""
    collected = _collected.get()
    for text, file, line in found:
        if collected is not None:
            collected.append((text, file, line))
        warnings.warn_explicit(text, TilewrightWarning, file, line, registry=_shown)


@contextmanager
def collected_warnings() -> Generator[list[KernelWarning]]:
    """A list of the warnings that are shown in this block."""
    found: list[KernelWarning] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)
