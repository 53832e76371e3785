"""Hints that name what an expression of the kernel's source applies an operator to.

    x_ptr[o]        hint: load through it: tl.load(x_ptr + o)
    n + 1           hint: argument 'n' is '1000': pass a number

The semantics of operators see values without names; the names are in the source line.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tilewright.frontend.semantics.literal_constants import describe
from tilewright.language import tensor, unwrap
from tilewright.support import errors
from tilewright.support.asynchronous_exceptions import suppress
from tilewright.support.diagnostics import source_line


def advise_operands(error: errors.TilewrightError, parameters: Mapping[str, object]) -> None:
    """Add a hint to an error of an operator, if the kernel's own line shows the operands.

    parameters: the language values of the kernel's parameters
    """
    if not isinstance(error, errors.InvalidOperation) or error.advice is not None:
        return
    node = _expression(error)
    if isinstance(node, ast.Subscript) and error.operation.startswith("index pointer"):
        error.advice = f"load through it: tl.load({ast.unparse(node.value)} + {_offsets(node)})"
    elif node is not None and _is_in_kernel(error) and error.operation.startswith("combine "):
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        shown = sorted(names & parameters.keys())
        hints = (_about(error, name, parameters[name]) for name in shown)
        error.advice = next(filter(None, hints), None)


def _expression(error: errors.TilewrightError) -> ast.expr | None:
    """The expression at an error's place; None without its text."""
    loc = error.loc
    if loc is None or loc.col < 0 or loc.end_col < 0:
        return None
    line = source_line(loc, error.sources) or ""
    with suppress(SyntaxError, ValueError):
        text = line.encode()[loc.col : loc.end_col].decode(errors="replace")
        return ast.parse(text, mode="eval").body
    return None


def _is_in_kernel(error: errors.TilewrightError) -> bool:
    """Whether the place is in the kernel itself, not in a function that it calls."""
    return error.loc is not None and error.loc.caller is None


def _offsets(node: ast.Subscript) -> str:
    """The offsets that an index of a pointer denotes."""
    index = node.slice
    if not isinstance(index, ast.Slice):
        loose = isinstance(index, ast.Compare | ast.BoolOp | ast.IfExp | ast.Tuple)
        return f"({ast.unparse(index)})" if loose else ast.unparse(index)
    start = "0" if index.lower is None else ast.unparse(index.lower)
    end = "SIZE" if index.upper is None else ast.unparse(index.upper)
    return f"tl.arange({start}, {end})"


def _about(error: errors.InvalidOperation, name: str, value: object) -> str | None:
    """The hint about a parameter, if its value is the one that the error reports."""
    if error.operation != f"combine {describe(value)} with {error.operation.split(' with ')[-1]}":
        return None
    if isinstance(value, tensor):
        return f"argument '{name}' is a pointer: pass a number, or load it by tl.load({name})"
    kind = "a number or an array" if unwrap(value) is None else "a number"
    return f"argument '{name}' is {describe(value)}: pass {kind}"
