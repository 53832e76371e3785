"""Warns of `i < n & i > 2`, which Python reads as `i < (n & i) > 2`: `&` binds tighter than `<`."""

from __future__ import annotations

import ast

from tilewright.frontend.python.function_source import FunctionSource
from tilewright.frontend.semantics import warn_once
from tilewright.support import SourceLoc

_SYMBOLS: dict[type[ast.operator], str] = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}


def misread_chain(source: FunctionSource, node: ast.Compare) -> str | None:
    """The cause of a warning: a middle operand `a & b` (or |, ^) of a chain, not in parentheses."""
    operands = (node.left, *node.comparators)
    # Only middle operands: `i & 1 < n` has two operands and is no chain.
    for before, operand in zip(operands, node.comparators[:-1], strict=False):
        symbol = _SYMBOLS.get(type(operand.op)) if isinstance(operand, ast.BinOp) else None
        if symbol is not None and not _in_parentheses(source, before, operand):
            inner = ast.unparse(operand)
            read = ast.unparse(node).replace(inner, f"({inner})")
            return f"this reads as `{read}`: '{symbol}' binds tighter than a comparison"
    return None


def _in_parentheses(source: FunctionSource, before: ast.expr, operand: ast.expr) -> bool:
    """Whether a parenthesis opens between two adjacent operands."""
    # Columns of syntax trees count UTF-8 bytes, hence encode().
    lines = source.text.encode().splitlines(keepends=True)
    first = (before.end_lineno or before.lineno) - source.tree.lineno
    last = operand.lineno - source.tree.lineno
    between = b"".join(lines[first : last + 1])
    end = len(between) - len(lines[last]) + operand.col_offset
    return b"(" in between[before.end_col_offset : end]


def warn_of_precedence(message: str, loc: SourceLoc) -> None:
    """Warn of `misread_chain`: once for a line, unless Python's filters differ."""
    warn_once(message, loc, hint="put each comparison in parentheses")
