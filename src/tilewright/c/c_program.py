"""Source texts and files, parsed once for each set of definitions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from tilewright.frontend.c import ParsedSource, Source, parse
from tilewright.support import ForkLock, errors
from tilewright.support.asynchronous_exceptions import synchronous

STRING = "<triton-c>"
"""Name of a source that is not a file."""

_KEPT = 64
"""Parsed sources in memory, for each program."""


class CProgram:
    """A Triton-C source. name: its file, or STRING; text: its content.

    Errors: SourceNotAvailable for a file that cannot be read.
    """

    def __init__(self, source: str | Path) -> None:
        path = _path(source)
        self.folder: Path | None = None
        self.name, self.text = STRING, str(source)
        if path is not None:
            self.name, self.folder = str(path), path.resolve().parent
            try:
                self.text = path.read_text(encoding="utf-8")
            except synchronous(OSError, UnicodeDecodeError) as problem:
                reason = getattr(problem, "strerror", None) or str(problem)
                raise errors.SourceNotAvailable(self.name, reason, is_file=True) from None
        self._parsed: dict[tuple[tuple[str, str], ...], ParsedSource] = {}
        # A lock that a forked child may use: a parent's thread might hold an ordinary one.
        self._lock = ForkLock()

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_parsed": {}}

    def parsed(self, defines: Mapping[str, str]) -> ParsedSource:
        """The syntax tree under some definitions. Errors: CompilationErrors."""
        # Sorted, since the order of definitions does not matter.
        key = tuple(sorted(defines.items()))
        with self._lock:
            tree = self._parsed.get(key)
            if tree is None:
                if len(self._parsed) >= _KEPT:
                    # the oldest one: dictionaries keep the order of insertion
                    self._parsed.pop(next(iter(self._parsed)))
                source = Source(self.text, self.name, self.folder)
                tree = self._parsed[key] = parse(source, defines)
            return tree

    def digest(self, defines: Mapping[str, str]) -> str:
        """A hash of the text and of all headers that it includes."""
        # Headers belong to the key as well: a changed header changes the kernel.
        texts = [self.text, *self.parsed(defines).source.texts]
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def _path(source: str | Path) -> Path | None:
    """`source` as a path, if it is one: a single line that ends as names of C files do."""
    if isinstance(source, Path):
        return source
    # A single line of C has a semicolon or brace at its end, so that it is no path.
    is_path = "\n" not in source and source.endswith((".c", ".h", ".tc"))
    return Path(source) if is_path else None
