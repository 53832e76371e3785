"""Finds the source text of a function and parses nothing but that.

The parsed tree keeps the columns of the file: an indented function is parsed as the body of an
`if 1:` line put above it, so that no text moves. `FunctionSource.line_shift` turns a line of the
tree into a line of the file.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType

from tilewright.support import errors

_CLOSING = (")", "]", "}")


@dataclass(frozen=True, slots=True, eq=False)
class FunctionSource:
    """The text and the tree of one function.

    text: its lines from `def` on; line_shift: file line = tree line + line_shift.
    facts: what analyses of the tree have found, by analysis and node.
    """

    file: str
    name: str
    text: str
    tree: ast.FunctionDef
    line_shift: int
    facts: dict[tuple[str, ast.AST], object] = field(
        default_factory=dict[tuple[str, ast.AST], object]
    )


_sources: dict[tuple[str, CodeType], FunctionSource] = {}


def source_of(fn: FunctionType) -> FunctionSource:
    """The source of a function, from a cache if it was asked for before.

    Raises SourceNotAvailable for code that is in no file: typed at a plain prompt, or passed to
    `exec`.
    """
    code = fn.__code__
    key = (code.co_filename, code)
    found = _sources.get(key)
    if found is None:
        found = _sources[key] = _read(fn)
    return found


def _read(fn: FunctionType) -> FunctionSource:
    code = fn.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, fn.__globals__)
    first = code.co_firstlineno - 1
    if not lines:
        raise _unavailable(fn, f"{code.co_filename} is not a file that can be read")
    if first >= len(lines):
        raise _unavailable(fn, f"{code.co_filename} has changed since it was imported")
    indented = lines[first][:1].isspace()
    for end in _possible_ends(lines, first):
        text = "".join(lines[first:end])
        tree = _parsed("if 1:\n" + text if indented else text)
        if tree is not None:
            node = tree.body[0]
            if isinstance(node, ast.If):
                node = node.body[0]
            return _checked(fn, text, node, first - 1 if indented else first)
    raise _unavailable(fn, "its text cannot be parsed")


def _possible_ends(lines: list[str], first: int) -> Iterator[int]:
    """Line numbers at which the function may end: before each line that is indented no deeper.

    A line inside brackets or a string may look like that too; then the text up to it does not
    parse, and the next candidate is the right one or closer to it.
    """
    indent = _indentation(lines[first])
    for number in range(first + 1, len(lines)):
        stripped = lines[number].lstrip()
        if not stripped or stripped.startswith(("#", *_CLOSING)):
            continue
        if _indentation(lines[number]) <= indent:
            yield number
    yield len(lines)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        return None


def _checked(fn: FunctionType, text: str, node: ast.stmt, line_shift: int) -> FunctionSource:
    """The found text, if it is the function that was asked for."""
    code = fn.__code__
    if isinstance(node, ast.AsyncFunctionDef):
        raise errors.UnsupportedLanguageConstruct("an async function", "write 'def'")
    if not isinstance(node, ast.FunctionDef):
        raise _unavailable(fn, "it is not written as a 'def' statement")
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    count = code.co_argcount + code.co_kwonlyargcount
    end = (node.end_lineno or 0) + line_shift
    ends_inside = all((line or 0) <= end for _, _, line in code.co_lines())
    if node.name != code.co_name or tuple(names) != code.co_varnames[:count] or not ends_inside:
        raise _unavailable(fn, f"{code.co_filename} has changed since it was imported")
    first = node.lineno + line_shift - code.co_firstlineno
    last = end - code.co_firstlineno
    text = "".join(text.splitlines(keepends=True)[first : last + 1])
    return FunctionSource(code.co_filename, node.name, text, node, line_shift)


def _unavailable(fn: FunctionType, reason: str) -> errors.SourceNotAvailable:
    return errors.SourceNotAvailable(fn.__name__, reason)
