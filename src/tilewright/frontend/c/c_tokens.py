"""Tokens of Triton-C for pcpp and for the parser, with their locations in the source.

pcpp gives every token of an expansion the line of the macro's use. The line numbers passed to it
are integers with columns (`LineAndColumns`), so that columns survive expansion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A range on one line, and the macros from whose expansion it comes, outermost first.

    col and end count UTF-8 bytes from 0; end -1 is the end of the line.
    """

    file: str
    line: int
    col: int
    end: int
    macros: tuple[str, ...] = ()

    def to(self, other: Span) -> Span:
        """The span from the beginning of this one to the end of `other`."""
        if other is self:
            return self
        if other.file != self.file or other.line < self.line:
            return self
        # A location has one line: a longer range ends with its first line.
        end = max(self.end, other.end) if other.line == self.line else -1
        # Only macros around both ends apply to the whole range.
        shared = tuple(a for a, b in zip(self.macros, other.macros, strict=False) if a == b)
        return replace(self, end=end, macros=shared)


class LineAndColumns(int):
    """A line number with the columns of one token in that line."""

    col: int
    end: int

    @classmethod
    def of(cls, line: int, col: int, end: int) -> LineAndColumns:
        """The range of line `line` from column `col` to `end`."""
        place = cls(line)
        place.col = col
        place.end = end
        return place


class PreprocessorToken:
    """A token of pcpp. expanded_from: macros, innermost first; set where they expand."""

    __slots__ = ("expanded_from", "lexpos", "lineno", "source", "type", "value")

    expanded_from: list[str]

    def __init__(self, kind: str, value: str, lineno: int, lexpos: int, source: str = "") -> None:
        self.type = kind
        self.value = value
        self.lineno = lineno
        self.lexpos = lexpos
        self.source = source

    def __copy__(self) -> PreprocessorToken:
        new = PreprocessorToken(self.type, self.value, self.lineno, self.lexpos, self.source)
        if hasattr(self, "expanded_from"):
            # pcpp sets the attribute later and tests for it with hasattr.
            new.expanded_from = list(self.expanded_from)
        return new


_OPERATORS = {
    "#": "POUND", "##": "DPOUND", "+": "PLUS", "-": "MINUS", "*": "STAR", "/": "FSLASH",
    "%": "PERCENT", "|": "BAR", "&": "AMPERSAND", "~": "TILDE", "^": "HAT", "<": "LESS",
    ">": "GREATER", "=": "EQUAL", "!": "EXCLAMATION", "?": "QUESTION", "(": "LPAREN",
    ")": "RPAREN", "[": "LBRACKET", "]": "RBRACKET", "{": "LCURLY", "}": "RCURLY", ".": "DOT",
    ",": "COMMA", ";": "SEMICOLON", ":": "COLON", "\\": "BSLASH", "'": "SQUOTE", '"': "DQUOTE",
    "->": "DEREFERENCE", "-=": "MINUSEQUAL", "--": "MINUSMINUS", "<<": "LSHIFT",
    "<=": "LESSEQUAL", ">>": "RSHIFT", ">=": "GREATEREQUAL", "||": "LOGICALOR", "|=": "OREQUAL",
    "&&": "LOGICALAND", "&=": "ANDEQUAL", "==": "EQUALITY", "!=": "INEQUALITY", "^=": "XOREQUAL",
    "*=": "MULTIPLYEQUAL", "/=": "DIVIDEEQUAL", "+=": "PLUSEQUAL", "++": "PLUSPLUS",
    "%=": "PERCENTEQUAL", "<<=": "LSHIFTEQUAL", ">>=": "RSHIFTEQUAL", "...": "ELLIPSIS",
    "@": "AT", "@=": "ATEQUAL",
}  # fmt: skip
"""pcpp's names of operators, without the prefix CPP_."""

# FLOAT excludes a second point after the first: `0...4` is 0, an ellipsis and 4.
_PATTERN = re.compile(
    r"""
    (?P<WS> [ \t]+ | \n)
  | (?P<LINECONT> \\[ \t]*\n)
  | (?P<COMMENT1> /\*(?s:.*?)\*/)
  | (?P<COMMENT2> //[^\n]*)
  | (?P<ID> [A-Za-z_]\w*)
  | (?P<FLOAT> (?: \d+\.(?!\.)\d* (?:[eE][+-]?\d+)? | \.\d+ (?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ )
        [fFlL]? )
  | (?P<INTEGER> (?: 0[xX][0-9a-fA-F]+ | 0[bB][01]+ | \d+ ) (?: [uU][lL]{0,2} | [lL]{1,2}[uU]? )? )
  | (?P<STRING> "(?:[^\\\n"]|\\.)*")
  | (?P<CHAR> L?'(?:[^\\\n']|\\.)*')
  | (?P<OPERATOR> """
    + "|".join(re.escape(text) for text in sorted(_OPERATORS, key=len, reverse=True))
    + r""" )
  | (?P<OTHER> . )
    """,
    re.VERBOSE,
)


class PreprocessorLexer:
    """A lexer with the protocol of PLY, which pcpp expects."""

    def __init__(self) -> None:
        self.lineno = 1
        self._tokens: Iterator[PreprocessorToken] = iter(())

    def clone(self) -> PreprocessorLexer:
        """Another lexer without text."""
        return PreprocessorLexer()

    def input(self, text: str) -> None:
        """Begin with a text."""
        self._tokens = _tokens(text, self.lineno)

    def token(self) -> PreprocessorToken | None:
        """The next token, None at the end."""
        return next(self._tokens, None)


def _tokens(text: str, line: int) -> Iterator[PreprocessorToken]:
    start = 0
    ascii_only = text.isascii()
    for match in _PATTERN.finditer(text):
        kind, value = match.lastgroup or "OTHER", match.group()
        position = match.start()
        name = value if kind == "OTHER" else f"CPP_{_OPERATORS.get(value, kind)}"
        if kind == "LINECONT":
            value = value[1:-1]
        col, end = position - start, match.end() - start
        if not ascii_only:
            col, end = (len(text[start : start + n].encode()) for n in (col, end))
        yield PreprocessorToken(name, value, LineAndColumns.of(line, col, end), position)
        breaks = match.group().count("\n")
        if breaks:
            line += breaks
            start = position + match.group().rindex("\n") + 1


def beyond(text: str, most: int) -> tuple[int, int]:
    """The number of tokens of a text, and the offset at which it exceeds `most`; -1 if it does
    not."""
    count = 0
    for match in _PATTERN.finditer(text):
        count += match.lastgroup != "WS"
        if count > most:
            return count, match.start()
    return count, -1


class Token:
    """A token of the parser. type: a terminal of the grammar; lark requires the other
    attributes."""

    __slots__ = ("span", "type", "value")

    start_pos = end_pos = 0

    def __init__(self, kind: str, value: str, span: Span) -> None:
        self.type = kind
        self.value = value
        self.span = span

    @property
    def line(self) -> int:
        """1-based."""
        return self.span.line

    @property
    def column(self) -> int:
        """1-based."""
        return self.span.col + 1

    end_line = line
    end_column = column

    def __str__(self) -> str:
        return self.value


def span_of(token: PreprocessorToken, file: str) -> Span:
    """The span of a token, or of the use of the macro from which it comes."""
    place: Any = token.lineno
    macros = tuple(dict.fromkeys(reversed(getattr(token, "expanded_from", ()))))
    col, end = getattr(place, "col", -1), getattr(place, "end", -1)
    return Span(token.source or file, int(place), col, end, macros)
