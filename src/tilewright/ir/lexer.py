"""Tokens of tile IR text, and their positions.

Tokens are plain strings, whose first character determines the kind. Positions are computed on
demand, by scanning again: only for errors and for `parse_module(locate=True)`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import cast

from tilewright.support import SourceLoc

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_TOKEN = re.compile(
    r"//[^\n]*"  # comment
    r"|%[\w.$]+"  # value
    rf"|@(?:[A-Za-z_][\w.$]*|{_STRING})"  # name of a function
    rf"|{_STRING}"
    r"|(?:tile|buffer)<(?:->|ptr<[^<>\n]*>|[^<>\n])*>"
    r"|ptr<[^<>\n]*>"
    r"|nan<0x[0-9a-f]+>"
    r"|[A-Za-z_][\w.]*"  # opcode, attribute, keyword
    r"|-?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|inf\b)"
    r"|\S",
    re.ASCII,
)
END = ""
"""The token after the last one."""


def tokens_of(text: str) -> list[str]:
    """The tokens of a text without its comments, then END."""
    tokens = cast("list[str]", _TOKEN.findall(text))
    # comments are matched as tokens, not removed before, since a string may contain "//"
    if "//" in text:
        tokens = [token for token in tokens if not token.startswith("//")]
    tokens.append(END)
    return tokens


class Positions:
    """Positions of the tokens of one text."""

    __slots__ = ("_file", "_lines", "_spans", "_starts")

    def __init__(self, text: str, file: str) -> None:
        self._file = file
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        spans = [m.span() for m in _TOKEN.finditer(text) if not m[0].startswith("//")]
        end = len(text.rstrip())
        self._spans = [*spans, (end, end)]

    @property
    def sources(self) -> dict[str, list[str]]:
        """The lines of the text, for the renderer of diagnostics."""
        return {self._file: self._lines}

    def loc(self, index: int) -> SourceLoc:
        """The position of token number `index`."""
        start, end = self._spans[index]
        line = bisect_right(self._starts, start) - 1
        first = self._starts[line]
        text = self._lines[line]
        col = len(text[: start - first].encode())
        end_col = col + len(text[start - first : end - first].encode())
        return SourceLoc(self._file, line + 1, col, end_col)
