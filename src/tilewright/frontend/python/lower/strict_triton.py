"""Checks of `strict_triton=True` on a function's syntax: Python that Triton does not support.

The semantics refuse extensions that depend on types and values (indices of tiles, their extents,
functions of fp16). The compiler and the interpreter both run these checks before a function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum

from tilewright.frontend.frontend_options import FrontendOptions
from tilewright.frontend.python.captured_names import MISSING, Environment
from tilewright.frontend.python.function_source import FunctionSource
from tilewright.frontend.python.lower.syntax_queries import local_names
from tilewright.frontend.semantics import refuse_extension
from tilewright.language import Constexpr
from tilewright.support import SourceLoc

_CONSTRUCTS: dict[type[ast.AST], str] = {
    ast.NamedExpr: "':='",
    ast.Break: "'break'",
    ast.Continue: "'continue'",
    ast.FunctionDef: "a function inside a function",
    ast.Lambda: "a lambda",
}
_PLAIN = (bool, int, float, str, bytes, tuple, list, dict, Enum)


def refuse_extensions(
    source: FunctionSource,
    environment: Environment,
    options: FrontendOptions,
    caller: SourceLoc | None = None,
) -> None:
    """Check the body of a function. Errors: BeyondTriton, for the first extension."""
    if not options.strict_triton:
        return
    for node, construct in _extensions(source, environment):
        line = node.lineno + source.line_shift
        one_line = node.end_lineno == node.lineno
        end = node.end_col_offset if one_line and node.end_col_offset is not None else -1
        loc = SourceLoc(source.file, line, node.col_offset, end, source.name, caller)
        refuse_extension(options, construct, loc)


def _extensions(
    source: FunctionSource, environment: Environment
) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """The nodes that Triton refuses, with their names in messages, in the order of the text."""
    local = local_names(source)
    found: list[tuple[ast.expr | ast.stmt, str]] = []
    for statement in source.tree.body:
        for node in ast.walk(statement):
            construct = _CONSTRUCTS.get(type(node))
            if isinstance(node, ast.Compare) and len(node.ops) > 1:
                construct = "a chain of comparisons"
            elif isinstance(node, ast.Name) and node.id not in local:
                construct = _global(node.id, environment)
            if construct is not None and isinstance(node, ast.expr | ast.stmt):
                found.append((node, construct))
    yield from sorted(found, key=lambda pair: (pair[0].lineno, pair[0].col_offset))


def _global(name: str, environment: Environment) -> str | None:
    """Description, for messages, of a global with a plain value that is no constexpr."""
    value = environment.find(name)
    if value is MISSING or isinstance(value, Constexpr) or not isinstance(value, _PLAIN):
        return None
    return f"the global variable '{name}', which is no tl.constexpr,"
