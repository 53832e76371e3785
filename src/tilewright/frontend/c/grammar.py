"""The parser that lark makes of grammar.lark; its tables are kept on disk, in <cache>/grammar.

Making them takes 0.1 s, reading them 6 ms.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, cast

import lark
from lark import Lark
from lark.lexer import Lexer

from tilewright.frontend.c.build import Builder
from tilewright.frontend.c.tokens import Token
from tilewright.support import settings


class TokenStream(Lexer):
    """Hands tokens on to the parser; a token without a type is a word of the grammar."""

    def __init__(self, lexer_conf: Any) -> None:
        self._names: dict[str, str] = {
            terminal.pattern.value: terminal.name
            for terminal in lexer_conf.terminals
            if terminal.pattern is not None
        }

    def lex(self, data: Any) -> Iterator[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The tokens in order."""
        names = self._names
        for token in cast("Sequence[Token]", data):
            if token.type in ("", "NAME"):
                token.type = names.get(token.value, token.type or token.value)
            yield token


@cache
def grammar() -> Lark:
    """The parser, made or read once in a process."""
    text = resources.files("tilewright.frontend.c").joinpath("grammar.lark").read_text("utf-8")
    kept = settings().cache
    file = _file(kept.dir, text)
    found = None if kept.always_compile else _read(file)
    if found is None:
        found = Lark(text, start="program", parser="lalr", lexer=TokenStream, transformer=Builder())
        _write(file, found)
    return found


def _file(folder: Path, text: str) -> Path:
    """Where the tables of a grammar are kept: what is written depends on lark and Python too."""
    key = "\0".join([lark.__version__, sys.version, text])
    return folder / "grammar" / f"triton-c-{hashlib.sha256(key.encode()).hexdigest()[:32]}.pickle"


def _read(file: Path) -> Lark | None:
    """The parser with these tables; None where there is no usable file."""
    try:
        with file.open("rb") as stream:
            return cast("Any", Lark).load(stream)
    except Exception:  # unpickling what is damaged may raise anything
        return None


def _write(file: Path, parser: Lark) -> None:
    """Keep tables, whole or not at all; where that fails they are made again next time."""
    temporary = file.with_name(f".{os.getpid()}-{uuid.uuid4().hex[:8]}")
    with suppress(OSError, pickle.PicklingError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as stream:
            cast("Any", parser).save(stream)
        temporary.replace(file)
