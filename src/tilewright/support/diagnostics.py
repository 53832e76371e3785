"""Where something is in the user's source, what is to be said about it, and how that looks.

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
"""File name -> its lines, for sources that are not files (`Triton-C` strings, tests)."""

_TAB_WIDTH = 4
_LONGEST_LINE = 200
"""Bytes of a source line that are shown."""


class SourceLoc(NamedTuple):
    """A range on one line of the user's source, and the call through which it was reached.

    A named tuple because a compilation makes one for each operation: immutable, hashable and built
    in about 0.3 µs, a third of what a frozen dataclass takes.
    """

    file: str
    """Path, or a name in angle brackets for text that is no file; a SourceFile has its lines."""
    line: int
    """1-based."""
    col: int = -1
    """0-based offset in UTF-8 bytes, as Python's `ast` counts; -1 where unknown (no caret)."""
    end_col: int = -1
    """One past the last byte; -1 where the range goes on past this line."""
    function: str = ""
    """The kernel or helper that the line is in."""
    caller: "SourceLoc | None" = None
    """The call that inlined `function`, when it was not the kernel itself."""

    def frames(self) -> Iterator["SourceLoc"]:
        """This range, the call that led to it, the call that led there, up to the kernel."""
        frame: SourceLoc | None = self
        while frame is not None:
            yield frame
            frame = frame.caller

    def inlined_at(self, call: "SourceLoc | None") -> "SourceLoc":
        """This range with `call` appended at the outer end of its call chain."""
        if call is None:
            return self
        outer = call if self.caller is None else self.caller.inlined_at(call)
        return self._replace(caller=outer)

    def __str__(self) -> str:
        """`file:line:column` with a 1-based column, as editors and terminals link it."""
        where = f"{self.file}:{self.line}"
        return where if self.col < 0 else f"{where}:{self.col + 1}"


class Severity(enum.Enum):
    """How bad it is; the value is the word that is printed."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing to tell the user."""

    severity: Severity
    message: str
    loc: SourceLoc | None = None
    notes: tuple[str, ...] = ()
    hint: str | None = None
    code: str = ""


def render(diagnostic: Diagnostic, sources: SourceLines | None = None) -> str:
    """`diagnostic` as text with its source frames; ends without a line break.

    Lines come from `sources` where it has the file, else from a SourceFile's own ones, else from
    `linecache`; a file that none of them knows is named without its line.
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
    """Lines that show `loc` and, below it, each call that led there."""
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
    """The text of `loc`'s line without its line break; None where the source is not at hand."""
    if sources is not None and loc.file in sources:
        lines = sources[loc.file]
        text = lines[loc.line - 1] if 0 < loc.line <= len(lines) else ""
    elif isinstance(loc.file, SourceFile):
        text = loc.file.line(loc.line)
    else:
        text = linecache.getline(loc.file, loc.line)
    return text.rstrip("\r\n") or None


def _indented(label: str, text: str) -> str:
    """`text` under `label`, its further lines aligned with the first."""
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
    """Of a line that is too long to be shown the part around its mark, and where the mark is there.

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
    """Blanks and carets that mark the bytes `col` to `end_col` of `text` as a terminal shows it."""
    raw = text.encode("utf-8")
    # an open range is marked up to the end of the line, without blanks that end it
    stop = end_col if end_col >= 0 else len(raw.rstrip())
    start_cell = _width(_expanded(_prefix(raw, col)))
    stop_cell = _width(_expanded(_prefix(raw, stop)))
    return " " * start_cell + "^" * max(1, stop_cell - start_cell)


def _prefix(raw: bytes, length: int) -> str:
    return raw[:length].decode("utf-8", errors="ignore")


def _expanded(text: str) -> str:
    """`text` with each tab replaced by blanks up to the next tab stop, in terminal cells."""
    shown = ""
    for char in text:
        shown += " " * (_TAB_WIDTH - _width(shown) % _TAB_WIDTH) if char == "\t" else char
    return shown


def _width(text: str) -> int:
    """Terminal cells that `text`, free of tabs, takes."""
    return sum(_cells(char) for char in text)


def _cells(char: str) -> int:
    """Terminal cells of one character: 0 for combining marks, 2 for wide ones, else 1."""
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
