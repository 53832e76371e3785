"""The text of Python functions as it was when they were decorated, whatever becomes of their files.

A program runs what it has imported; a file may be edited, or deleted, before a kernel is compiled.
So the lines of a file are kept from when its first function is decorated: one list for all of them,
which `linecache` holds anyway. Nothing is parsed then.
"""

from __future__ import annotations

import linecache
import os
import time
from collections.abc import Sequence
from pathlib import Path
from types import FunctionType
from typing import Any, cast
from weakref import WeakKeyDictionary

from tilewright.support.asynchronous_exceptions import synchronous

__all__ = ["SourceFile", "SourceText", "text_of"]


class SourceText:
    """The lines of a file at one time.

    changed: when the file was last written or renamed, in seconds since the epoch; 0 for text that
    is in no file, as that of a notebook.
    """

    __slots__ = ("changed", "lines")

    def __init__(self, lines: Sequence[str], changed: float) -> None:
        self.lines = lines
        self.changed = changed

    @property
    def predates_process(self) -> bool:
        """Whether it is older than this process, which then has read just this text."""
        return self.changed < _STARTED


class SourceFile(str):
    """A file's name that carries the lines of one of its functions, to show them in errors.

    first: number, as in the function's code, of the first line.
    """

    lines: Sequence[str]
    first: int

    @classmethod
    def of(cls, name: str, lines: Sequence[str], first: int = 1) -> SourceFile:
        """A name with its lines."""
        self = cls(name)
        self.lines, self.first = lines, first
        return self

    def line(self, number: int) -> str:
        """The text of a line; "" if there is none."""
        index = number - self.first
        return self.lines[index] if 0 <= index < len(self.lines) else ""

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


_texts: WeakKeyDictionary[FunctionType, SourceText] = WeakKeyDictionary()
_latest: dict[str, SourceText] = {}


def text_of(fn: object) -> SourceText:
    """The file of a function as it was when this was first asked; without lines if it is none."""
    if not isinstance(fn, FunctionType):
        return SourceText((), 0.0)
    text = _texts.get(fn)
    if text is None:
        text = _texts[fn] = _current(fn.__code__.co_filename, fn.__globals__)
    return text


def _current(file: str, module: dict[str, Any]) -> SourceText:
    # drops lines of a file that has changed since, so that `getlines` reads it anew
    linecache.checkcache(file)
    lines = linecache.getlines(file, module)
    current = _latest.get(file)
    # linecache returns the same list until it reads the file again: one SourceText for each reading
    if current is None or current.lines is not lines:
        current = _latest[file] = SourceText(lines, _changed(file))
    return current


def _changed(file: str) -> float:
    try:
        status = os.stat(file)
    except synchronous(OSError, ValueError):
        return 0.0
    # a file that is renamed into place keeps its mtime; its ctime tells
    return max(status.st_mtime, status.st_ctime)


def _process_start() -> float:
    """When this process began, where Linux tells; else now, at the import of this module."""
    try:
        # the name, in parentheses, may hold blanks; field 22, the start in clock ticks, is the 20th
        # after it
        after_name = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        since_boot = float(after_name[19]) / os.sysconf("SC_CLK_TCK")
        clock = cast("int", getattr(time, "CLOCK_BOOTTIME"))  # noqa: B009 -- Linux has it
        return time.time() - time.clock_gettime(clock) + since_boot
    except synchronous(OSError, ValueError, IndexError, AttributeError):
        return time.time()


_STARTED = _process_start()
