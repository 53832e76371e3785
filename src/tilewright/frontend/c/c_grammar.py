"""The parser that lark makes of grammar.lark; its tables are kept on disk, in <cache>/grammar.

Making them takes 0.1 s, reading them 8 ms. lark itself keeps tables as pickles, which can run any
code when they are read; here they are JSON: lark's description of the parser as dictionaries, whose
keys that are numbers are turned into texts and back, without the three objects of this module.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, cast

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import Lexer, TerminalDef

from tilewright.frontend.c.c_tokens import Token
from tilewright.frontend.c.syntax_builder import Builder
from tilewright.support import settings
from tilewright.support.asynchronous_exceptions import suppress, synchronous
from tilewright.support.disk_cache import Documents


class TokenStream(Lexer):
    """Hands tokens on to the parser; a token without a type is a keyword of the grammar."""

    def __init__(self, lexer_conf: Any) -> None:
        # Anonymous terminals, "if" or "+=", have names made by lark: found by their text.
        self._names: dict[str, str] = {
            terminal.pattern.value: terminal.name
            for terminal in lexer_conf.terminals
            if terminal.pattern is not None
        }

    def lex(self, data: Any) -> Iterator[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The tokens in order."""
        names = self._names
        for token in cast("Sequence[Token]", data):
            # Only names and unnamed tokens may be keywords; a string "if" is none.
            if token.type in ("", "NAME"):
                token.type = names.get(token.value, token.type or token.value)
            yield token


Tables = dict[str, Any]
_KEPT = Documents("grammar")


@cache
def grammar() -> Lark:
    """The parser, made or read once in a process."""
    text = resources.files("tilewright.frontend.c").joinpath("grammar.lark").read_text("utf-8")
    name = _name(text)
    parser = None if settings().cache.always_compile else _read(name)
    if parser is None:
        # lark takes ready-made tokens: the lexer only renames them.
        parser = Lark(
            text, start="program", parser="lalr", lexer=TokenStream, transformer=Builder()
        )
        with suppress(TypeError):  # another lark may keep something that JSON does not know
            _KEPT.write(name, tables_of(parser))
    return parser


def _name(text: str) -> str:
    """Of the tables of a grammar: what lark writes depends on its version, and Python's, too."""
    key = "\0".join([lark.__version__, sys.version, text])
    return f"triton-c-{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def _read(name: str) -> Lark | None:
    """The parser with these tables; None where there is no usable file."""
    tables = _KEPT.read(name)
    if tables is None:
        return None
    try:
        return parser_with(tables)
    except synchronous(Exception) as problem:  # lark does not check what it is given
        _KEPT.discard(name, problem)
        return None


def tables_of(parser: Lark) -> Tables:
    """What the parser is made of, as JSON knows it."""
    # TerminalDef and Rule are stored once and referred to by number.
    data, memo = cast("Any", parser).memo_serialize([TerminalDef, Rule])
    described = data["parser"]
    # The three objects that JSON cannot hold: the lexer (twice) and the transformer.
    lexer = {**described["lexer_conf"], "lexer_type": None}
    tables = _with_keys(described["parser"], str)
    options = {**data["options"], "lexer": None, "transformer": None}
    data = {
        **data,
        "options": options,
        "parser": {**described, "lexer_conf": lexer, "parser": tables},
    }
    return {"data": data, "memo": _renamed(memo, str)}


def parser_with(tables: Tables) -> Lark:
    """The parser of which `tables_of` made these."""
    # JSON has text keys only; lark looks rules up by number.
    data, memo = tables["data"], _renamed(tables["memo"], int)
    described = data["parser"]
    lexer = {**described["lexer_conf"], "lexer_type": TokenStream}
    parser = {**described, "lexer_conf": lexer, "parser": _with_keys(described["parser"], int)}
    options = {**data["options"], "lexer": TokenStream, "transformer": Builder()}
    described = {"data": {**data, "options": options, "parser": parser}, "memo": memo}
    return cast("Any", Lark).load(described)


def _with_keys(tables: Tables, kind: Callable[[Any], object]) -> Tables:
    """The tables of the parser proper, their numbers of tokens and states as `kind`."""
    states = {kind(state): _renamed(row, kind) for state, row in tables["states"].items()}
    return {**tables, "tokens": _renamed(tables["tokens"], kind), "states": states}


def _renamed(row: Mapping[Any, Any], kind: Callable[[Any], object]) -> dict[object, Any]:
    return {kind(key): value for key, value in row.items()}
