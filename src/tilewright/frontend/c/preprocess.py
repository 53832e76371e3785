"""The preprocessor: pcpp, with places that survive expansion and errors of our own kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TextIO

from pcpp.preprocessor import Preprocessor

from tilewright.frontend.c.tokens import (
    PreprocessorLexer,
    PreprocessorToken,
    Span,
    Token,
    span_of,
)
from tilewright.support import SourceLoc, errors

TYPES = frozenset(
    {
        "void", "bool", "char", "short", "int", "long", "signed", "unsigned", "half", "bfloat16",
        "float", "double", "float8e4nv", "float8e5", "fp8e4nv", "fp8e5", "fp8e4m3", "fp8e5m2",
    }
)  # fmt: skip
QUALIFIERS = frozenset(
    {
        "const", "restrict", "__restrict__", "__restrict", "__noalias", "__readonly",
        "__writeonly", "__global__", "__device__", "static", "inline", "volatile",
    }
)  # fmt: skip
ATTRIBUTES = frozenset({"__aligned", "__multipleof"})

_KINDS = {
    **dict.fromkeys(TYPES, "TYPE"),
    **dict.fromkeys(QUALIFIERS, "QUALIFIER"),
    **dict.fromkeys(ATTRIBUTES, "ATTRIBUTE"),
}
_LITERALS = {
    "CPP_INTEGER": "INTEGER",
    "CPP_FLOAT": "FLOAT",
    "CPP_STRING": "STRING",
    "CPP_CHAR": "CHAR",
}
_BLANK = frozenset({"CPP_WS", "CPP_LINECONT", "CPP_COMMENT1", "CPP_COMMENT2"})
_BUILT_IN = ("__DATE__", "__TIME__")
"""Macros of pcpp that would make a kernel differ from one second to the next."""


@dataclass(slots=True)
class Source:
    """A text to compile. name: of the file, or in angle brackets; folder: where includes are.

    lines: of every file that was read, for messages; texts: of the headers, for cache keys.
    """

    text: str
    name: str
    folder: Path | None = None
    lines: dict[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    texts: list[str] = field(default_factory=list[str])


class _Preprocessor(Preprocessor):
    """pcpp with hooks that raise."""

    def __init__(self, source: Source) -> None:
        super().__init__(lexer=PreprocessorLexer())
        self.read = source
        self.rewrite_paths = []
        self.path = []
        if source.folder is not None:
            self.temp_path = [str(source.folder)]

    def on_error(self, file: str, line: int, msg: str) -> NoReturn:
        """Every complaint of pcpp is a mistake of the user."""
        text = msg[:1].lower() + msg[1:].strip()
        raise errors.PreprocessorError(text, loc=_loc(file or self.read.name, line))

    def on_include_not_found(
        self, is_malformed: bool, is_system_include: bool, curdir: str, includepath: str
    ) -> NoReturn:
        """A missing header."""
        directive: Any = self.lastdirective
        where = _loc(directive.source or self.read.name, directive.lineno)
        if is_malformed:
            raise errors.PreprocessorError(f"malformed #include: {includepath}", loc=where)
        searched = curdir or "no folder, since the source is a string"
        raise errors.PreprocessorError(
            f"cannot find '{includepath}', looked in {searched}",
            'only the user\'s own headers exist, beside the source: #include "name.h"',
            loc=where,
        )

    def on_directive_unknown(
        self, directive: Any, toks: Any, ifpassthru: bool, precedingtoks: Any
    ) -> bool:
        """`#error`, and what is no directive; pragmas mean nothing."""
        if directive.value == "pragma":
            return True
        where = _loc(directive.source or self.read.name, directive.lineno)
        if directive.value in ("error", "warning"):
            detail = f"#{directive.value} " + "".join(t.value for t in toks).strip()
        else:
            detail = f"unknown directive #{directive.value}"
        if directive.value == "warning":
            return True
        raise errors.PreprocessorError(detail, loc=where)

    def on_directive_handle(
        self, directive: Any, toks: Any, ifpassthru: bool, precedingtoks: Any
    ) -> bool:
        """Directives that lack what they need."""
        self.lastdirective = directive
        if directive.value in ("define", "undef", "ifdef", "ifndef", "include") and not toks:
            where = _loc(directive.source or self.read.name, directive.lineno)
            raise errors.PreprocessorError(f"#{directive.value} needs a name", loc=where)
        return True

    def on_file_open(self, is_system_include: bool, includepath: str) -> TextIO:
        """Read a header, and remember its lines."""
        file = super().on_file_open(is_system_include, includepath)
        text = file.read()
        file.seek(0)
        self.read.lines[includepath] = text.splitlines()
        self.read.texts.append(text)
        return file

    def expand_macros(self, tokens: Any, expanding_from: Sequence[str] = ()) -> Any:
        """As pcpp does, except that an unclosed call of a macro is a mistake."""
        _check_closed(self, tokens)
        return super().expand_macros(tokens, list(expanding_from))


def _check_closed(preprocessor: Any, tokens: Sequence[PreprocessorToken]) -> None:
    """Raise for `MACRO(` without its `)`: pcpp would leave the rest as it is."""
    solid = [t for t in tokens if t.type not in _BLANK]
    for index, token in enumerate(solid[:-1]):
        macro = preprocessor.macros.get(token.value) if token.type == "CPP_ID" else None
        if macro is None or macro.arglist is None or solid[index + 1].value != "(":
            continue
        depth = 0
        for following in solid[index + 1 :]:
            depth += {"(": 1, ")": -1}.get(following.value, 0)
            if depth == 0:
                break
        if depth:
            where = span_of(token, preprocessor.read.name)
            detail = f"the call of macro '{token.value}' is not closed"
            raise errors.PreprocessorError(detail, "add the missing ')'", loc=location(where))


def preprocess(source: Source, defines: Mapping[str, str]) -> list[Token]:
    """The tokens of a source after preprocessing, for the parser. Errors: PreprocessorError.

    defines: macros that are there from the beginning, each with its text.
    """
    processor: Any = _Preprocessor(source)
    source.lines[source.name] = source.text.splitlines()
    for name in _BUILT_IN:
        processor.undef(name)
    for name, text in defines.items():
        processor.define(f"{name} {text}")
        _check_define(name, processor.macros[name].value)
    found: Iterator[PreprocessorToken] = processor.parsegen(source.text, source.name, source.name)
    return [_token(t, source.name) for t in found if t.type not in _BLANK]


def _check_define(name: str, tokens: Sequence[PreprocessorToken]) -> None:
    """A definition must not break into the code around it: its brackets belong together."""
    closing = {")": "(", "]": "[", "}": "{"}
    opened: list[str] = []
    for token in tokens:
        if token.value in closing.values():
            opened.append(token.value)
        elif token.value in closing and (not opened or opened.pop() != closing[token.value]):
            opened.append(token.value)
            break
    if opened:
        text = "".join(t.value for t in tokens)
        detail = f"the definition of '{name}' is unbalanced: {text}"
        raise errors.PreprocessorError(detail, f"close or remove '{opened[-1]}'")


def _token(token: PreprocessorToken, file: str) -> Token:
    span = span_of(token, file)
    kind = _LITERALS.get(token.type)
    if kind is None:
        kind = _KINDS.get(token.value, "NAME") if token.type == "CPP_ID" else ""
    return Token(kind, token.value, span)


def _loc(file: str, line: int) -> SourceLoc:
    """Where a directive is; `line` may know its columns."""
    return SourceLoc(file, int(line), getattr(line, "col", -1), getattr(line, "end", -1))


def location(span: Span, function: str = "", caller: SourceLoc | None = None) -> SourceLoc:
    """A span as messages and ops have it."""
    return SourceLoc(span.file, span.line, span.col, span.end, function, caller)


def expansion_notes(span: Span, defines: Mapping[str, str]) -> tuple[str, ...]:
    """One note for each macro that a place comes from, outermost first."""
    return tuple(
        f"expanded from macro '{name}'"
        + (f", defined as '{defines[name]}' by the host" if name in defines else "")
        for name in span.macros
    )
