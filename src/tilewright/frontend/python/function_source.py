"""The source text of a function, and its syntax tree; nothing else in the file is parsed.

The text is that of the function's file when it was decorated (`support.source_text`). A file that
was written after this process started may have been edited between its import and the decoration;
then the text is searched for the function whose compiled code is equal.

The parsed tree keeps the columns of the file: an indented function is parsed as the body of an
`if 1:` line inserted above it. `FunctionSource.line_shift` converts a line of the tree to the line
in the function's code.
"""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import field
from textwrap import dedent
from types import CodeType, FunctionType

from tilewright.frontend.python.match_code import lines_of_code
from tilewright.support import SourceFile, SourceText, errors, text_of
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass

_CLOSING = (")", "]", "}")


@dataclass(frozen=True, slots=True, eq=False)
class FunctionSource:
    """The text and the tree of one function.

    file: its name, with its lines; text: the function's lines from `def` on; line_shift:
    line of the code = tree line + line_shift. facts: results of analyses of the tree, by
    analysis and node.
    """

    file: SourceFile
    name: str
    text: str
    tree: ast.FunctionDef
    line_shift: int
    facts: dict[tuple[str, ast.AST], object] = field(
        default_factory=dict[tuple[str, ast.AST], object]
    )

    @property
    def dedented_text(self) -> str:
        """The text without the common indentation of its lines."""
        return dedent(self.text)


_sources: dict[tuple[SourceText, str, CodeType], FunctionSource] = {}


def source_of(fn: FunctionType) -> FunctionSource:
    """The source of a function, cached by its code and the text of its file.

    Raises SourceNotAvailable for code without a file, typed at a plain prompt or passed to `exec`,
    and if the file was edited before the function was decorated.
    """
    code, text = fn.__code__, text_of(fn)
    key = (text, code.co_filename, code)
    source = _sources.get(key)
    if source is None:
        source = _sources[key] = _read(fn, text)
    return source


def _read(fn: FunctionType, text: SourceText) -> FunctionSource:
    code = fn.__code__
    if not text.lines:
        raise _unavailable(fn, f"{code.co_filename} is not a file that can be read")
    if text.predates_process:  # unchanged since the import, so line numbers hold
        source = _at(fn, text.lines, code.co_firstlineno)
    else:
        # The saved text first, then the current file, which may match again.
        source = _of_code(fn, text) or _of_code(fn, _current(code.co_filename))
    if source is not None:
        return source
    if code.co_name == "<lambda>":
        raise _unavailable(fn, "it is not written as a 'def' statement")
    raise _unavailable(fn, f"{code.co_filename} has changed since it was imported")


def _of_code(fn: FunctionType, text: SourceText) -> FunctionSource | None:
    """The definition that compiles to the function's code, if possible at its own lines."""
    first = fn.__code__.co_firstlineno
    # Equal functions compile to equal code: the nearest one is most probably the right one.
    numbers = sorted(lines_of_code(fn.__code__, text), key=lambda number: abs(number - first))
    return next(filter(None, (_at(fn, text.lines, number) for number in numbers)), None)


def _current(file: str) -> SourceText:
    """The current file; empty if it cannot be read. (`linecache` compares time and size.)"""
    try:
        with tokenize.open(file) as opened:
            return SourceText(opened.readlines(), 0.0)
    except synchronous(OSError, SyntaxError, ValueError):
        return SourceText((), 0.0)


def _at(fn: FunctionType, lines: Sequence[str], number: int) -> FunctionSource | None:
    """The function whose first line, decorators included, has this number; None unless its name and
    parameters agree."""
    first = number - 1
    if first >= len(lines):
        return None
    indented = lines[first][:1].isspace()
    for end in _possible_ends(lines, first):
        text = "".join(lines[first:end])
        # A method or nested function parses only inside a block; `if 1:` is one line more.
        tree = _parsed("if 1:\n" + text if indented else text)
        if tree is not None:
            node = tree.body[0]
            if isinstance(node, ast.If):
                node = node.body[0]
            # The tree's first line: 2 after an `if 1:` line, else 1.
            return _checked(fn, lines, node, first, 2 if indented else 1)
    return None


def _possible_ends(lines: Sequence[str], first: int) -> Iterator[int]:
    """Line numbers at which the function may end: before each line that is indented no deeper.

    A line inside brackets or a string may have that indentation; then the text up to it does not
    parse, and the next candidate is tried.
    """
    indent = _indentation(lines[first])
    for number in range(first + 1, len(lines)):
        stripped = lines[number].lstrip()
        # Comments and closing brackets may be indented less without ending the function.
        if not stripped or stripped.startswith(("#", *_CLOSING)):
            continue
        if _indentation(lines[number]) <= indent:
            yield number
    yield len(lines)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _parsed(text: str) -> ast.Module | None:
    try:
        # ValueError: null bytes in the text.
        return ast.parse(text)
    except synchronous(SyntaxError, ValueError):
        return None


def _checked(
    fn: FunctionType, lines: Sequence[str], node: ast.stmt, first: int, tree_first: int
) -> FunctionSource | None:
    """A statement that starts at an index of the lines, if it may be the function.

    tree_first: number of its first line in the tree
    """
    code = fn.__code__
    if isinstance(node, ast.AsyncFunctionDef) and node.name == code.co_name:
        raise errors.UnsupportedLanguageConstruct("an async function", "write 'def'")
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        return None
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    count = code.co_argcount + code.co_kwonlyargcount
    if tuple(names) != code.co_varnames[:count]:
        return None
    shift = code.co_firstlineno - tree_first
    last = (node.end_lineno or 0) + shift
    # Only names and parameters were compared so far; bodies may differ in length.
    # The code has lines after this text: another function of the same head, edited since.
    if any((line or 0) > last for _, _, line in code.co_lines()):
        return None
    to_index = first - tree_first
    text = "".join(lines[node.lineno + to_index : (node.end_lineno or 0) + to_index + 1])
    file = SourceFile.of(code.co_filename, lines, code.co_firstlineno - first)
    return FunctionSource(file, node.name, text, node, shift)


def _unavailable(fn: FunctionType, reason: str) -> errors.SourceNotAvailable:
    return errors.SourceNotAvailable(fn.__name__, reason)
