"""Child nodes of a syntax tree, without expression contexts and operators."""

from __future__ import annotations

import ast
from functools import cache
from typing import cast


def parts_of(node: ast.AST) -> list[ast.AST]:
    """As `ast.iter_child_nodes`, in its order, without operators and contexts (`ast.Load`), which
    are half of the nodes of a function."""
    parts: list[ast.AST] = []
    for name in _fields_of(type(node)):
        value: object = getattr(node, name, None)
        if isinstance(value, list):
            items = cast("list[object]", value)
            parts += [item for item in items if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            parts.append(value)
    return parts


_WITHOUT_PARTS = frozenset(("ctx", "op", "ops", "id", "attr", "kind"))


@cache
def _fields_of(kind: type[ast.AST]) -> tuple[str, ...]:
    return tuple(name for name in kind._fields if name not in _WITHOUT_PARTS)
