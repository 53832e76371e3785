"""Names that the text of a function reads before it assigns them.

In Triton such a read of a local name gives the global of that name, which must be a constexpr.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import cast

from tilewright.frontend.python.function_source import FunctionSource
from tilewright.frontend.python.syntax_parts import parts_of

_OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def early_reads(source: FunctionSource) -> frozenset[str]:
    """Names that are read before any statement or parameter assigns them."""
    key = ("early reads", source.tree)
    cached = source.facts.get(key)
    if cached is None:
        parameters = {a.arg for a in ast.walk(source.tree.args) if isinstance(a, ast.arg)}
        cached = source.facts[key] = frozenset(_early(source.tree, parameters))
    return cast("frozenset[str]", cached)


def _early(tree: ast.FunctionDef, assigned: set[str]) -> Iterator[str]:
    stack: list[ast.AST] = [*reversed(tree.body)]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                assigned.add(node.id)
            elif node.id not in assigned:
                yield node.id
        elif not isinstance(node, _OWN_SCOPE):
            stack += _as_evaluated(node)[::-1]


def _as_evaluated(node: ast.AST) -> list[ast.AST]:
    """The parts of a node in the order of evaluation: values before their targets."""
    parts = list(parts_of(node))
    targets = [part for part in parts if isinstance(getattr(part, "ctx", None), ast.Store)]
    # The iterable of a loop, its target, its body; generators come before their element.
    first = [node.iter, node.target] if isinstance(node, ast.For) else []
    first += getattr(node, "generators", [])
    rest = [part for part in parts if part not in first and part not in targets]
    return [*first, *rest, *(part for part in targets if part not in first)]
