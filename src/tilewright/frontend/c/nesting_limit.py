"""The limit on the depth of syntax trees, which later steps walk recursively.

Long sums are not nested: `a + b + c` is a left-leaning tree, which is walked in a loop. C requires
support for 127 nested blocks and 63 nested parentheses.
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
    # An explicit stack: recursion would hit the limit that is to be checked.
    pending: list[tuple[syntax.Node, int]] = [(program, 0)]
    while pending:
        node, depth = pending.pop()
        if depth > MOST:
            what = "this expression" if isinstance(node, syntax.Expression) else "this statement"
            raise errors.NestedTooDeeply(what, MOST, loc=location(node.span))
        pending += _deeper(node, depth)


def _deeper(node: syntax.Node, depth: int) -> Iterator[tuple[syntax.Node, int]]:
    for child in children(node):
        # The lowering walks the left side of an operator in a loop.
        follows = isinstance(node, syntax.Binary) and child is node.left
        # The braces of a body are not a separate level.
        body = isinstance(child, syntax.Block) and not isinstance(node, syntax.Block)
        yield child, depth if follows or body else depth + 1
