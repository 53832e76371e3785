"""The parser: tokens to syntax trees by grammar.lark, with designed errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from lark import UnexpectedToken

from tilewright.frontend.c import cuda_names
from tilewright.frontend.c.c_grammar import grammar
from tilewright.frontend.c.c_tokens import Span, Token
from tilewright.frontend.c.nesting_limit import check_nesting
from tilewright.frontend.c.preprocess import (
    TYPES,
    Source,
    expansion_notes,
    location,
    preprocess,
)
from tilewright.frontend.c.syntax import Program
from tilewright.support import errors
from tilewright.support.data_class import dataclass

_TERMINALS_IN_MESSAGES = {
    "NAME": "a name", "INTEGER": "a number", "TYPE": "a type", "$END": "the end of the source",
    "SEMICOLON": "';'", "RPAR": "')'", "LPAR": "'('", "RBRACE": "'}'", "LBRACE": "'{'",
    "RSQB": "']'", "COMMA": "','", "COLON": "':'", "EQUAL": "'='",
}  # fmt: skip
"""Names of terminals in messages."""

_RESERVED = frozenset(
    {"struct", "union", "enum", "typedef", "switch", "goto", "case", "default",
     "extern", "register", "auto", "asm", "template", "class"}
)  # fmt: skip
"""Keywords of C that begin constructs Triton-C lacks."""

# At most three are named; a list of all possible tokens would not help.
_ORDER = ("SEMICOLON", "RPAR", "RSQB", "COLON", "LBRACE", "RBRACE", "LPAR", "TYPE", "NAME")
"""The likeliest of the expected terminals, in this order."""


@dataclass(frozen=True, slots=True)
class ParsedSource:
    """A syntax tree with its source and definitions, for messages."""

    program: Program
    source: Source
    defines: Mapping[str, str]


def parse(source: Source, defines: Mapping[str, str]) -> ParsedSource:
    """Preprocess and parse a source. Errors: PreprocessorError, CSyntaxError, MissingDefine."""
    try:
        tokens = preprocess(source, defines)
        lark: Any = grammar()
        program = _parsed(lark, tokens, defines)
        check_nesting(program)
    except errors.TilewrightError as problem:
        raise problem.with_loc(None, source.lines) from problem.__cause__
    return ParsedSource(program, source, defines)


def _parsed(lark: Any, tokens: list[Token], defines: Mapping[str, str]) -> Program:
    try:
        return lark.parse(tokens)
    except UnexpectedToken as problem:
        # `from None`: lark's traceback and terminal names would not help the user.
        raise _syntax_error(problem, tokens, defines) from None


def _syntax_error(
    problem: UnexpectedToken, tokens: list[Token], defines: Mapping[str, str]
) -> errors.CompilationError:
    """The error at the first unexpected token."""
    token: Any = problem.token
    accepts = cast("set[str]", cast("Any", problem.interactive_parser).accepts())
    # At the end of the source the token has no location: the last token's is used.
    if token.type == "$END":
        last = tokens[-1].span if tokens else Span("", 1, 0, 1)
        return _expected(accepts, "the end of the source", last, _unclosed(tokens), defines)
    index = tokens.index(token)
    before = tokens[index - 1] if index else None
    foreign = _foreign_name(tokens[: index + 1])
    if foreign is not None:
        return _at(_foreign_error(foreign.value), foreign.span, defines)
    # Two names in a row are most often a type that a macro should define.
    missing = _missing_type(token, before, accepts)
    if missing is not None:
        error = errors.MissingDefine(missing.value)
        error.advice = _type_advice(missing.value)
        return _at(error, missing.span, defines)
    span: Span = token.span
    semicolon_hint = _missing_semicolon(tokens, index)
    # A missing `;` is shown where it belongs: after the preceding token.
    if before is not None and "SEMICOLON" in accepts and before.span.line < span.line:
        place = Span(before.span.file, before.span.line, before.span.end, before.span.end + 1)
        shown = f"{_in_message(token.value)} on the next line"
        return _expected({"SEMICOLON"}, shown, place, "", defines)
    instead = _extents_hint(token, before) or semicolon_hint
    return _expected(accepts, _in_message(token.value), span, instead, defines)


def _in_message(text: str) -> str:
    """A token for messages, with control characters as escape sequences."""
    return f"'{text if text.isprintable() else ascii(text)[1:-1]}'"


def _foreign_name(tokens: list[Token]) -> Token | None:
    """A name of C or CUDA, unknown here, on the line of the last token."""
    line = tokens[-1].span.line
    words = [token for token in tokens if token.span.line == line]
    # CUDA names first: their advice is more specific than that for C's keywords.
    of_cuda = next((token for token in words if cuda_names.replacement_of(token.value)), None)
    return of_cuda or next((token for token in words if token.value in _RESERVED), None)


def _foreign_error(word: str) -> errors.CompilationError:
    instead = cuda_names.replacement_of(word)
    if instead is None:
        return errors.CSyntaxError("what Triton-C has", f"'{word}' of C")
    return errors.UnsupportedLanguageConstruct(f"'{word}' of CUDA", instead)


def _missing_semicolon(tokens: list[Token], index: int) -> str:
    """A hint about the line above, if it ends as no statement does."""
    line = tokens[index].span.line
    above = next((t for t in reversed(tokens[:index]) if t.span.line < line), None)
    if above is None or not (above.value.isidentifier() or above.value[-1] in "0123456789)]"):
        return ""
    return f"is a ';' missing at the end of line {above.span.line}?"


def _missing_type(token: Token, before: Token | None, accepts: set[str]) -> Token | None:
    """The name in a position where only a type, or a macro for one, makes sense."""
    if token.type == "NAME" and "TYPE" in accepts and "NAME" not in accepts:
        return token
    if token.type == "NAME" and before is not None and before.type == "NAME":
        return before
    return None


def _type_advice(name: str) -> str:
    close = errors.did_you_mean(name, TYPES)
    return close or f"if it is a type, give it one: {name}='float' among defines, or -D{name}=float"


def _extents_hint(token: Token, before: Token | None) -> str:
    if token.value == "[" and before is not None and before.value == "]":
        return "a tile has all extents in one pair of brackets: float x[16, 8]"
    return ""


def _unclosed(tokens: Iterable[Token]) -> str:
    """The bracket that is still open at the end."""
    closing = {")": "(", "]": "[", "}": "{"}
    opened: list[Token] = []
    for token in tokens:
        if token.value in closing.values():
            opened.append(token)
        elif token.value in closing and opened and opened[-1].value == closing[token.value]:
            opened.pop()
    if not opened:
        return ""
    return f"'{opened[-1].value}' of line {opened[-1].span.line} is not closed"


def _expected(
    accepts: set[str], actual: str, span: Span, instead: str, defines: Mapping[str, str]
) -> errors.CompilationError:
    likely = [word for word in _ORDER if word in accepts][:3]
    expected = " or ".join(_TERMINALS_IN_MESSAGES[word] for word in likely) or "an operator"
    return _at(errors.CSyntaxError(expected, actual, instead), span, defines)


def _at(
    error: errors.CompilationError, span: Span, defines: Mapping[str, str]
) -> errors.CompilationError:
    error.notes = (*error.notes, *expansion_notes(span, defines))
    return error.with_loc(location(span))
