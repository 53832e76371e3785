"""Facts about a syntax tree before it is lowered: the names that statements assign and use.

Results are cached in `FunctionSource.facts`, since a function is lowered many times.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import cast

from tilewright.frontend.python.function_source import FunctionSource
from tilewright.frontend.python.syntax_parts import parts_of

_OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def assigned_in_loop(source: FunctionSource, loop: ast.For | ast.While) -> tuple[str, ...]:
    """Names that the body or the condition of a loop may assign, in the order of their first
    assignment; not the loop's own target, unless the body assigns it."""
    key = ("assigned", loop)
    cached = source.facts.get(key)
    if cached is None:
        parts: list[ast.AST] = list(loop.body)
        if isinstance(loop, ast.While):
            # A `:=` in the test assigns, although lowering refuses it later.
            parts.append(loop.test)
        cached = source.facts[key] = tuple(dict.fromkeys(_assigned(parts)))
    return cast("tuple[str, ...]", cached)


def has_break(source: FunctionSource, loop: ast.For | ast.While) -> bool:
    """Whether a loop contains a `break` of its own."""
    key = ("has break", loop)
    cached = source.facts.get(key)
    if cached is None:
        cached = source.facts[key] = any(map(_breaks, loop.body))
    return cast("bool", cached)


def _breaks(statement: ast.AST) -> bool:
    # In an inner loop, `break` leaves that loop, except in its `else`.
    inside = ast.iter_child_nodes(statement)
    if isinstance(statement, ast.For | ast.While):
        inside = iter(statement.orelse)
    return isinstance(statement, ast.Break) or any(map(_breaks, inside))


def is_used_outside_loops(source: FunctionSource, name: str) -> bool:
    """Whether a function uses a name outside of the loops and comprehensions that set it."""
    key = ("used outside", source.tree)
    cached = source.facts.get(key)
    if cached is None:
        cached = source.facts[key] = frozenset(_used(source.tree, frozenset()))
    return name in cast("frozenset[str]", cached)


def _used(tree: ast.AST, outside: frozenset[str]) -> Iterator[str]:
    """Names read where no enclosing loop or comprehension assigns them, other than `outside`."""
    stack = [(tree, outside)]
    while stack:
        node, bound = stack.pop()
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Store) and node.id not in bound:
                yield node.id
        # `x += 1` reads x although its node has the context Store only.
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield from {node.target.id} - bound
            stack.append((node.value, bound))
        elif isinstance(node, ast.For):
            inside = bound.union(_assigned([node.target]))
            stack += [(node.iter, bound), *((part, inside) for part in node.body)]
            # `else` runs after the loop: there the target counts as used outside.
            stack += [(part, bound) for part in node.orelse]
        else:
            for generator in getattr(node, "generators", ()):
                bound = bound.union(_assigned([generator.target]))
            stack += [(child, bound) for child in parts_of(node)]


def assigned_in(statements: Iterable[ast.AST]) -> tuple[str, ...]:
    """Names that statements may assign, in the order of their first assignment."""
    return tuple(dict.fromkeys(_assigned(statements)))


def local_names(source: FunctionSource) -> frozenset[str]:
    """Every name that the function assigns, parameters included: Python treats them as local."""
    key = ("local", source.tree)
    cached = source.facts.get(key)
    if cached is None:
        arguments = source.tree.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        parameters += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
        names = {a.arg for a in parameters}
        names.update(_assigned(source.tree.body))
        cached = source.facts[key] = frozenset(names)
    return cast("frozenset[str]", cached)


def _assigned(nodes: Iterable[ast.AST]) -> Iterator[str]:
    # Reversed, since a stack gives the last first and the order of assignment counts.
    stack = list(nodes)[::-1]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                yield node.id
        elif isinstance(node, ast.alias):
            # `import a.b` binds a.
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            yield from _named_inside(node)
        elif isinstance(node, ast.FunctionDef):
            yield node.name
        # Names that a nested function or class assigns are local to it.
        elif not isinstance(node, _OWN_SCOPE):
            stack += parts_of(node)[::-1]


def _named_inside(comprehension: ast.AST) -> Iterator[str]:
    """Names of the function in a comprehension: those bound by `:=`."""
    for node in ast.walk(comprehension):
        if isinstance(node, ast.NamedExpr):
            yield node.target.id
