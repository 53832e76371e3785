"""Places in the user's source, messages about them, and their rendering.

A rendered diagnostic, here for a mistake in a function that a kernel calls::

    error[TW110]: cannot add tiles of shapes (128,) and (64,)
      --> kernels.py:12:13 in scale
       |
    12 |     return x + bias
       |            ^^^^^^^^
      called from kernels.py:30:9 in scale_kernel
       |
    30 |     y = scale(x, bias)
       |         ^^^^^^^^^^^^^^
      hint: tile shapes broadcast from the right, and sizes must be equal or 1
"""

import enum
import linecache
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tilewright.support.data_class import dataclass

from .source_text import SourceFile

SourceLines = Mapping[str, Sequence[str]]
"""The lines of sources that are not files (Triton-C strings, tests), by file name."""

_TAB_WIDTH = 4
_LONGEST_LINE = 200
"""Maximum size of a shown source line, in bytes."""


class SourceLoc(NamedTuple):
    """A range on one line of the user's source, with the calls that lead to it.

    A named tuple, since a compilation makes one for each operation: it is immutable, hashable and
    takes a third of the time of a frozen dataclass.
    """

    file: str
    """Path, or a name in angle brackets for text that is not a file; a SourceFile has its lines."""
    line: int
    """The line, from 1."""
    col: int = -1
    """The first byte in the UTF-8 line, as in Python's `ast`; -1 without a caret."""
    end_col: int = -1
    """One past the last byte; -1 if the range continues on the next line."""
    function: str = ""
    """The kernel or helper function that contains the line."""
    caller: "SourceLoc | None" = None
    """The call that inlined `function`, unless that is the kernel itself."""

    def frames(self) -> Iterator["SourceLoc"]:
        """This range and the calls that lead to it, from the innermost to the kernel."""
        frame: SourceLoc | None = self
        while frame is not None:
            yield frame
            frame = frame.caller

    @property
    def outermost(self) -> "SourceLoc":
        """The last of `frames`, in the kernel itself."""
        return list(self.frames())[-1]

    def inlined_at(self, call: "SourceLoc | None") -> "SourceLoc":
        """This range with `call` as its outermost call."""
        if call is None:
            return self
        outer = call if self.caller is None else self.caller.inlined_at(call)
        return self._replace(caller=outer)

    def __str__(self) -> str:
        """`file:line:column` with the column from 1, as editors and terminals link it."""
        where = f"{self.file}:{self.line}"
        return where if self.col < 0 else f"{where}:{self.col + 1}"


class Severity(enum.Enum):
    """Severity of a diagnostic; the value is the printed word."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A message to the user."""

    severity: Severity
    message: str
    loc: SourceLoc | None = None
    notes: tuple[str, ...] = ()
    hint: str | None = None
    code: str = ""


def render(diagnostic: Diagnostic, sources: SourceLines | None = None) -> str:
    """Render `diagnostic` with its source frames; the text ends without a line break.

    Lines come from `sources`, a SourceFile's own lines, or `linecache`, in this order. A file
    without lines is only named.
    """
    code = f"[{diagnostic.code}]" if diagnostic.code else ""
    header = f"{diagnostic.severity.value}{code}: {diagnostic.message}"
    return "\n".join([header, *render_details(diagnostic, sources)])


def render_details(diagnostic: Diagnostic, sources: SourceLines | None = None) -> list[str]:
    """The lines of `render` below its header: source frames, notes, hint."""
    lines: list[str] = []
    if diagnostic.loc is not None:
        lines += render_frames(diagnostic.loc, sources)
    lines += [_indented("note", note) for note in diagnostic.notes]
    if diagnostic.hint:
        lines.append(_indented("hint", diagnostic.hint))
    return lines


def render_frames(loc: SourceLoc, sources: SourceLines | None = None) -> list[str]:
    """Lines that show `loc` and, below it, each call that leads to it."""
    frames = list(loc.frames())
    gutter = max(len(str(frame.line)) for frame in frames)
    lines: list[str] = []
    for depth, frame in enumerate(frames):
        lead = "-->" if depth == 0 else "called from"
        inside = f" in {frame.function}" if frame.function else ""
        lines.append(f"  {lead} {frame}{inside}")
        lines += _excerpt(frame, gutter, sources)
    return lines


def source_line(loc: SourceLoc, sources: SourceLines | None = None) -> str | None:
    """The line of `loc` without its line break; None if the source is not available."""
    if sources is not None and loc.file in sources:
        lines = sources[loc.file]
        text = lines[loc.line - 1] if 0 < loc.line <= len(lines) else ""
    elif isinstance(loc.file, SourceFile):
        text = loc.file.line(loc.line)
    else:
        text = linecache.getline(loc.file, loc.line)
    return text.rstrip("\r\n") or None


def _indented(label: str, text: str) -> str:
    """`text` after `label`, with further lines aligned to the first."""
    return f"  {label}: " + text.replace("\n", "\n" + " " * (len(label) + 4))


def _excerpt(loc: SourceLoc, gutter: int, sources: SourceLines | None) -> list[str]:
    text = source_line(loc, sources)
    if text is None:
        return []
    text, col, end_col = _window(text, loc.col, loc.end_col)
    empty = " " * gutter + " |"
    lines = [empty, f"{loc.line:>{gutter}} | {_expanded(text).rstrip()}"]
    if col >= 0:
        lines.append(f"{empty} {_underline(text, col, end_col)}")
    return lines


def _window(text: str, col: int, end_col: int) -> tuple[str, int, int]:
    """The part of a long line around its mark, and the columns of the mark in that part.

    Columns count bytes, as in `SourceLoc`.
    """
    raw = text.encode("utf-8")
    if len(raw) <= _LONGEST_LINE:
        return text, col, end_col
    start = max(0, col - _LONGEST_LINE // 2)
    # continuation bytes of UTF-8 are 10xxxxxx
    while raw[start : start + 1] and raw[start] & 0xC0 == 0x80:
        start += 1
    stop = start + _LONGEST_LINE
    left = "... " if start else ""
    shown = left + raw[start:stop].decode("utf-8", errors="ignore")
    shift = len(left) - start
    shown_end = min(end_col, stop) if end_col >= 0 else min(stop, len(raw))
    shown += " ..." if stop < len(raw) else ""
    return shown, (col + shift if col >= 0 else -1), shown_end + shift


def _underline(text: str, col: int, end_col: int) -> str:
    """Blanks, and carets below the bytes `col` to `end_col` of `text`, in terminal cells."""
    raw = text.encode("utf-8")
    # an open range ends at the end of the line, before trailing blanks
    stop = end_col if end_col >= 0 else len(raw.rstrip())
    start_cell = _width(_expanded(_prefix(raw, col)))
    stop_cell = _width(_expanded(_prefix(raw, stop)))
    return " " * start_cell + "^" * max(1, stop_cell - start_cell)


def _prefix(raw: bytes, length: int) -> str:
    return raw[:length].decode("utf-8", errors="ignore")


def _expanded(text: str) -> str:
    """`text` with each tab replaced by blanks to the next tab stop, in terminal cells."""
    shown = ""
    for char in text:
        shown += " " * (_TAB_WIDTH - _width(shown) % _TAB_WIDTH) if char == "\t" else char
    return shown


def _width(text: str) -> int:
    """Width of `text`, which has no tabs, in terminal cells."""
    return sum(_cells(char) for char in text)


def _cells(char: str) -> int:
    """Width of a character in terminal cells: 0 for combining marks, 2 for wide ones."""
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
