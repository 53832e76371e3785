"""How deep a syntax tree is. Later steps call themselves for what is nested, so depth has a limit.

Long sums are no nesting: `a + b + c` is a tree that leans to the left, and is followed in a loop.
C asks for 127 blocks and 63 parentheses inside each other.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.frontend.c import syntax
from tilewright.frontend.c.preprocess import location
from tilewright.frontend.c.syntax_queries import children
from tilewright.support import errors

MOST = 128
"""Levels of a function."""


def check_nesting(program: syntax.Program) -> None:
    """Errors: NestedTooDeeply, at the first node that is too deep."""
    # A stack of our own: recursion would hit the limit that is to be checked.
    pending: list[tuple[syntax.Node, int]] = [(program, 0)]
    while pending:
        node, depth = pending.pop()
        if depth > MOST:
            what = "this expression" if isinstance(node, syntax.Expression) else "this statement"
            raise errors.NestedTooDeeply(what, MOST, loc=location(node.span))
        pending += _deeper(node, depth)


def _deeper(node: syntax.Node, depth: int) -> Iterator[tuple[syntax.Node, int]]:
    for child in children(node):
        # The left side of an operator is followed in a loop by the lowering.
        follows = isinstance(node, syntax.Binary) and child is node.left
        # The braces of a body are no level of their own.
        body = isinstance(child, syntax.Block) and not isinstance(node, syntax.Block)
        yield child, depth if follows or body else depth + 1
