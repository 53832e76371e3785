"""The functions of the source that a kernel's code comes from, with their tokens for colours."""

from __future__ import annotations

import ast
import linecache
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from pygments import lexers
from pygments.token import Comment, Keyword, Name, Number, String
from pygments.util import ClassNotFound

from tilewright.inspector.located_text import Chain

__all__ = ["source_files"]

_MOST_LINES = 400
"""Lines of a function that are shown."""

_AROUND = 3
"""Lines around a line that is in no function."""

_CLASSES = ((Comment, "c"), (String, "s"), (Keyword, "k"), (Number, "n"), (Name.Function, "f"),
            (Name.Decorator, "d"), (Name.Builtin, "b"))  # fmt: skip


def source_files(chains: Iterable[Chain]) -> list[dict[str, Any]]:
    """Each file with its shown lines: number, text, runs of tokens. The kernel's file, where chains
    end, is the first."""
    used: dict[str, set[int]] = defaultdict(set)
    for chain in chains:
        for file, line in reversed(chain):
            used[file].add(line)
    return [_file(file, numbers) for file, numbers in used.items()]


def _file(file: str, numbers: set[int]) -> dict[str, Any]:
    text = "".join(linecache.getlines(file))
    tokens = _tokens(file, text)
    functions = _functions(text)
    shown = sorted({line for number in numbers for line in _around(functions, number)})
    lines = text.splitlines()
    return {
        "name": Path(file).name, "path": file,
        "lines": [[n, lines[n - 1], tokens.get(n, [])] for n in shown if 0 < n <= len(lines)],
    }  # fmt: skip


def _functions(text: str) -> list[range]:
    """The lines of each function with its decorators, inner functions last; none for a file of
    another language."""
    try:
        nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    except SyntaxError:
        return []
    return [
        range(
            min([n.lineno, *(d.lineno for d in n.decorator_list)]), (n.end_lineno or n.lineno) + 1
        )
        for n in nodes
    ]


def _around(functions: Sequence[range], number: int) -> range:
    """The lines of the innermost function around a line."""
    inside = [function for function in functions if number in function]
    return inside[-1][:_MOST_LINES] if inside else range(number - _AROUND, number + _AROUND + 1)


def _tokens(file: str, text: str) -> dict[int, list[list[Any]]]:
    """By line, runs of [class, length]; "" for plain text. Empty for an unknown language."""
    try:
        name = file if "." in file else f"{file}.py"
        lexer = cast("Any", lexers).get_lexer_for_filename(name, stripnl=False)
    except ClassNotFound:
        return {}
    runs: dict[int, list[list[Any]]] = defaultdict(list)
    line = 1
    for kind, value in lexer.get_tokens(text):
        name = next((name for token, name in _CLASSES if kind in token), "")
        for part in value.splitlines(keepends=True):
            length = len(part.rstrip("\n"))
            if length:
                runs[line].append([name, length])
            line += part.endswith("\n")
    return runs
