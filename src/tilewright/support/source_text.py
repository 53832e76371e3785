"""The text of Python functions as of their decoration, even if their files change later.

A program runs the source that it has imported; a file may be edited or deleted before a kernel is
compiled. So the lines of a file are stored when its first function is decorated: one list for all
functions, which `linecache` holds anyway. Nothing is parsed then.
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


class SourceText:
    """The lines of a file at one time.

    changed: when the file was last written or renamed, in seconds since the epoch; 0 for text that
    is not in a file, as in a notebook
    """

    __slots__ = ("changed", "lines")

    def __init__(self, lines: Sequence[str], changed: float) -> None:
        self.lines = lines
        self.changed = changed

    @property
    def predates_process(self) -> bool:
        """Whether the text is older than this process, which then has read this text."""
        return self.changed < _STARTED


class SourceFile(str):
    """The name of a file, with the lines of one of its functions, to show them in errors.

    first: number of the first line, as in the function's code
    """

    lines: Sequence[str]
    first: int

    @classmethod
    def of(cls, name: str, lines: Sequence[str], first: int = 1) -> SourceFile:
        """Build a name with its lines."""
        self = cls(name)
        self.lines, self.first = lines, first
        return self

    def line(self, number: int) -> str:
        """The text of a line, or "" if the file has no such line."""
        index = number - self.first
        return self.lines[index] if 0 <= index < len(self.lines) else ""

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


_texts: WeakKeyDictionary[FunctionType, SourceText] = WeakKeyDictionary()
_latest: dict[str, SourceText] = {}


def text_of(fn: object) -> SourceText:
    """The file of a function as of the first call; without lines if there is no file."""
    if not isinstance(fn, FunctionType):
        return SourceText((), 0.0)
    text = _texts.get(fn)
    if text is None:
        text = _texts[fn] = _current(fn.__code__.co_filename, fn.__globals__)
    return text


def _current(file: str, module: dict[str, Any]) -> SourceText:
    # drops lines of a file that has changed since then, so that `getlines` reads it again
    linecache.checkcache(file)
    lines = linecache.getlines(file, module)
    current = _latest.get(file)
    # linecache returns the same list until it reads the file again: one SourceText per reading
    if current is None or current.lines is not lines:
        current = _latest[file] = SourceText(lines, _changed(file))
    return current


def _changed(file: str) -> float:
    try:
        status = os.stat(file)
    except synchronous(OSError, ValueError):
        return 0.0
    # a file that is renamed into place keeps its mtime, but not its ctime
    return max(status.st_mtime, status.st_ctime)


def _process_start() -> float:
    """When this process started, where Linux reports it; otherwise the time of this import."""
    try:
        # the name, in parentheses, may contain blanks; field 22, the start in clock ticks, is the
        # 20th after it
        after_name = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        since_boot = float(after_name[19]) / os.sysconf("SC_CLK_TCK")
        clock = cast("int", getattr(time, "CLOCK_BOOTTIME"))  # noqa: B009 -- Linux has it
        return time.time() - time.clock_gettime(clock) + since_boot
    except synchronous(OSError, ValueError, IndexError, AttributeError):
        return time.time()


_STARTED = _process_start()
