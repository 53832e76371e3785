"""The preprocessor: pcpp, with locations that survive expansion and designed errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import field
from pathlib import Path
from typing import Any, NoReturn, TextIO

from pcpp.preprocessor import Preprocessor

from tilewright.frontend.c.c_tokens import (
    PreprocessorLexer,
    PreprocessorToken,
    Span,
    Token,
    beyond,
    span_of,
)
from tilewright.frontend.c.preprocessor_conditions import evaluate
from tilewright.frontend.semantics import warn_once
from tilewright.support import SourceLoc, errors
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass

TYPES = frozenset(
    {
        "void", "bool", "char", "short", "int", "long", "signed", "unsigned", "half", "bfloat16",
        "float", "double", "float8e4nv", "float8e5", "fp8e4nv", "fp8e5", "fp8e4m3", "fp8e5m2",
        "fp8e4b8", "fp8e5b16", "fp8e4b15",
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
# Against macros that double: 20 of them would expand to a million tokens.
_MAX_TOKENS = 1 << 18
"""Most tokens of all expansions of one source, including inner ones."""

_LONGEST = 1 << 17
"""Most tokens of a source and its headers: 15,000 lines, or more, which take about 3 s."""

_MAX_INCLUDES = 100
"""Nesting depth of includes; GCC allows 200."""

_NEEDED = {
    **dict.fromkeys(("define", "undef", "ifdef", "ifndef"), "a name"),
    **dict.fromkeys(("if", "elif"), "a condition"),
    "include": "the name of a header",
    "pragma": "a word",
}
"""The required rest of each directive."""

_UNREADABLE = (LookupError, ValueError, TypeError, AttributeError, AssertionError)
"""Exceptions of pcpp for malformed directives."""

_BUILT_IN = ("__DATE__", "__TIME__")
"""Macros of pcpp that depend on the time, which would change kernels."""


@dataclass(slots=True)
class Source:
    """A text to compile. name: of the file, or in angle brackets; folder: of includes.

    lines: of every file read, for messages; texts: of the headers, for cache keys.
    """

    text: str
    name: str
    folder: Path | None = None
    lines: dict[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    texts: list[str] = field(default_factory=list[str])


class _Preprocessor(Preprocessor):
    """pcpp with hooks that raise. given: texts of the host's macros; made: tokens from expansions;
    depth: of expansions; length: tokens read.
    """

    def __init__(self, source: Source, given: Mapping[str, str]) -> None:
        super().__init__(lexer=PreprocessorLexer())
        self.read = source
        self.given = given
        self.made = 0
        self.depth = 0
        self.length = 0
        # By default pcpp makes file names relative to the working directory.
        self.rewrite_paths = []
        self.path = []
        if source.folder is not None:
            self.temp_path = [str(source.folder)]

    def check_length(self, text: str, file: str) -> None:
        """Count the tokens of a source or a header. Errors: PreprocessorError."""
        count, offset = beyond(text, _LONGEST - self.length)
        self.length += count
        if offset >= 0:
            line, start = text.count("\n", 0, offset) + 1, text.rfind("\n", 0, offset) + 1
            detail = f"a source and its headers may have {_LONGEST:,} tokens, which end here"
            where = SourceLoc(file, line, offset - start, offset - start + 1)
            raise errors.PreprocessorError(detail, loc=where)

    def current_location(self) -> SourceLoc | None:
        """The directive or macro that is being read."""
        line: Any = self.linemacro
        # Set by on_directive_handle, so absent before the first directive.
        directive: Any = getattr(self, "lastdirective", None)
        if not line and directive is not None:
            return _loc(directive.source or self.read.name, directive.lineno)
        return _loc(self.read.name, line) if line else None

    def on_error(self, file: str, line: int, msg: str) -> NoReturn:
        """Raise an error for every complaint of pcpp."""
        # pcpp's messages begin with a capital.
        text = msg[:1].lower() + msg[1:].strip()
        raise errors.PreprocessorError(text, loc=_loc(file or self.read.name, line))

    def on_include_not_found(
        self, is_malformed: bool, is_system_include: bool, curdir: str, includepath: str
    ) -> NoReturn:
        """Raise the error of a missing header."""
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
        """Raise for `#error` and unknown directives; pragmas are ignored."""
        if directive.value == "pragma":
            return True
        where = _loc(directive.source or self.read.name, directive.lineno)
        if directive.value in ("error", "warning"):
            detail = f"#{directive.value} " + "".join(t.value for t in toks).strip()
        else:
            detail = f"unknown directive #{directive.value}"
        if directive.value == "warning":
            # #warning does not stop a C compiler either.
            return True
        raise errors.PreprocessorError(detail, loc=where)

    def on_directive_handle(
        self, directive: Any, toks: Any, ifpassthru: bool, precedingtoks: Any
    ) -> bool:
        """Raise for incomplete directives."""
        self.lastdirective = directive
        needed = _NEEDED.get(directive.value)
        solid = [token for token in toks if token.type not in _BLANK]
        if needed == "a name" and solid and solid[0].type != "CPP_ID":
            solid = []
        if directive.value == "if" and solid and solid[0].value == "!":
            # pcpp looks for `! defined ( NAME` without checking the length of the line.
            words = [token.value for token in solid[1:3]]
            solid = solid if len(solid) > 1 + ("defined" in words) + ("(" in words) else []
        if needed and not solid:
            where = _loc(directive.source or self.read.name, directive.lineno)
            raise errors.PreprocessorError(f"#{directive.value} needs {needed}", loc=where)
        return True

    def define(self, tokens: Any) -> None:
        """Define a macro; warn if a `#define` replaces another value from the host."""
        # a text for macros of the host
        if not isinstance(tokens, str):
            name, *words = [token.value for token in tokens if token.type not in _BLANK]
            given = self.given.get(name)
            if given is not None and "".join(given.split()) != "".join(words):
                self._warn_of_define(name, given, " ".join(words))
        super().define(tokens)

    def _warn_of_define(self, name: str, given: str, written: str) -> None:
        warn_once(
            f"this #define replaces the value of {name} that was passed: "
            f"'{written}', not '{given}'",
            self.current_location(),
            hint=f"keep it as a default: put it between #ifndef {name} and #endif",
        )

    def on_file_open(self, is_system_include: bool, includepath: str) -> TextIO:
        """Read a header, and remember its lines."""
        if self.include_depth > _MAX_INCLUDES:
            detail = f"more than {_MAX_INCLUDES} headers include each other"
            raise errors.PreprocessorError(detail, f'does "{includepath}" include itself?')
        file = super().on_file_open(is_system_include, includepath)
        text = file.read()
        file.seek(0)
        self.read.lines[includepath] = text.splitlines()
        self.read.texts.append(text)
        self.check_length(text, includepath)
        return file

    def expand_macros(self, tokens: Any, expanding_from: Sequence[str] = ()) -> Any:
        """Expand as pcpp does, except that unclosed calls and too many tokens are errors.

        A few macros, each of which uses the previous one twice, would exceed memory.
        """
        # Depth 0 is text of the source; pcpp calls this recursively for arguments and results of
        # macros.
        if not self.depth:
            _check_closed(self, tokens)
            self.depth += 1
            # super() without arguments does not work inside a generator expression.
            pieces = (super(_Preprocessor, self).expand_macros(p) for p in _pieces(tokens))
            expanded = [token for piece in pieces for token in piece]
            self.depth -= 1
            return expanded
        self.depth += 1
        expanded = super().expand_macros(tokens, list(expanding_from))
        self.depth -= 1
        self.made += len(expanded)
        if self.made > _MAX_TOKENS:
            where = location(span_of(expanded[0], self.read.name))
            detail = f"macros expand to more than {_MAX_TOKENS:,} tokens here"
            raise errors.PreprocessorError(detail, loc=where)
        return expanded

    def evalexpr(self, tokens: Any) -> tuple[int, None]:
        """The value of a condition, by `preprocessor_conditions` instead of pcpp's evaluator."""
        if not tokens:
            raise errors.PreprocessorError("a condition is missing", loc=self.current_location())
        # `defined X` before expansion, so that X is not replaced by its value (C17 6.10.1).
        solid = [t for t in self._without_defined(list(tokens)) if t.type not in _BLANK]
        # Once more: a macro may expand to `defined`, which C leaves open and GCC evaluates.
        expanded = self._without_defined(self.expand_macros(solid))
        try:
            return evaluate([t for t in expanded if t.type not in _BLANK]), None
        except errors.CompilationError as problem:
            raise problem.with_loc(self.current_location()) from None

    def _without_defined(self, tokens: list[PreprocessorToken]) -> list[PreprocessorToken]:
        """`defined X` and `defined(X)` as numbers. Errors: PreprocessorError."""
        replaced: list[PreprocessorToken] = []
        rest = iter(token for token in tokens if token.type not in _BLANK)
        for token in rest:
            if token.value != "defined":
                replaced.append(token)
                continue
            name = next(rest, None)
            opened = name is not None and name.value == "("
            name = next(rest, None) if opened else name
            closed = not opened or getattr(next(rest, None), "value", "") == ")"
            if name is None or name.type != "CPP_ID" or not closed:
                detail = "'defined' needs a name: defined(NAME)"
                raise errors.PreprocessorError(detail, loc=self.current_location())
            number = copy(token)
            number.type, number.value = "CPP_INTEGER", str(int(name.value in self.macros))
            replaced.append(number)
        return replaced


def _pieces(tokens: Sequence[PreprocessorToken]) -> Iterator[list[PreprocessorToken]]:
    """Split the tokens where no use of a macro extends across.

    For each call of a macro pcpp copies the rest of its list.
    """
    start = depth = 0
    for index, token in enumerate(tokens):
        depth += (token.value == "(") - (token.value == ")")
        # Outside of parentheses, and at a token that can neither name nor call a macro.
        if depth == 0 and token.value in _SEPARATORS and index - start >= _SHORTEST_PIECE:
            yield list(tokens[start : index + 1])
            start = index + 1
    yield list(tokens[start:])


_SEPARATORS = frozenset(";,{}+-*/=<>&|")
_SHORTEST_PIECE = 256


def _check_closed(preprocessor: Any, tokens: Sequence[PreprocessorToken]) -> None:
    """Raise for `MACRO(` without its `)`: pcpp would leave the rest as it is."""
    before: PreprocessorToken | None = None
    calls: list[PreprocessorToken | None] = []
    for token in tokens:
        if token.type in _BLANK:
            continue
        if token.value == "(":
            called = before is not None and before.type == "CPP_ID"
            macro = preprocessor.macros.get(before.value) if called and before else None
            calls.append(before if macro is not None and macro.arglist is not None else None)
        elif token.value == ")" and calls:
            calls.pop()
        before = token
    unclosed = next(filter(None, calls), None)
    if unclosed is not None:
        where = span_of(unclosed, preprocessor.read.name)
        detail = f"the call of macro '{unclosed.value}' is not closed"
        raise errors.PreprocessorError(detail, "add the missing ')'", loc=location(where))


def preprocess(source: Source, defines: Mapping[str, str]) -> list[Token]:
    """The tokens of a source after preprocessing, for the parser. Errors: PreprocessorError.

    defines: predefined macros, each with its text.
    """
    processor: Any = _Preprocessor(source, defines)
    source.lines[source.name] = source.text.splitlines()
    try:
        processor.check_length(source.text, source.name)
        for name in _BUILT_IN:
            processor.undef(name)
        for name, text in defines.items():
            # pcpp's form of -D: the name and its text, separated by a space.
            processor.define(f"{name} {text}")
            _check_define(name, processor.macros[name].value)
        expanded = list(processor.parsegen(source.text, source.name, source.name))
    except RecursionError:
        raise errors.NestedTooDeeply(
            "what macros expand to", loc=processor.current_location()
        ) from None
    except synchronous(*_UNREADABLE) as problem:
        if isinstance(problem, errors.TilewrightError):
            raise
        detail = "this directive, or a macro used here, cannot be read"
        raise errors.PreprocessorError(detail, loc=processor.current_location()) from None
    return [_token(t, source.name) for t in expanded if t.type not in _BLANK]


def _check_define(name: str, tokens: Sequence[PreprocessorToken]) -> None:
    """Check that the brackets of a definition match, so that it cannot affect the code around
    it."""
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
    # Keywords are recognised after preprocessing, so macros may have their names.
    span = span_of(token, file)
    kind = _LITERALS.get(token.type)
    if kind is None:
        kind = _KINDS.get(token.value, "NAME") if token.type == "CPP_ID" else ""
    return Token(kind, token.value, span)


def _loc(file: str, line: int) -> SourceLoc:
    """The location of a directive; `line` may have columns."""
    return SourceLoc(file, int(line), getattr(line, "col", -1), getattr(line, "end", -1))


def location(span: Span, function: str = "", caller: SourceLoc | None = None) -> SourceLoc:
    """A span as a source location."""
    return SourceLoc(span.file, span.line, span.col, span.end, function, caller)


def expansion_notes(span: Span, defines: Mapping[str, str]) -> tuple[str, ...]:
    """One note for each macro that a location comes from, outermost first."""
    return tuple(
        f"expanded from macro '{name}'"
        + (f", defined as '{defines[name]}' by the host" if name in defines else "")
        for name in span.macros
    )
