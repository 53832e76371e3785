"""Queries of a syntax tree before lowering: its jumps, and the names that it assigns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cache, lru_cache
from typing import cast

from tilewright.frontend.c import syntax
from tilewright.support.fresh_stack import nested

Jumps = frozenset[str]
_LOOP = frozenset({"break", "continue"})
_KEPT = 4096
"""Size of the caches, so that trees of old sources are released."""


@lru_cache(_KEPT)
@nested
def jump_kinds(node: syntax.Statement) -> Jumps:
    """Keywords of the jumps that leave a statement; a loop contains its own."""
    if isinstance(node, syntax.Jump):
        return frozenset({node.keyword})
    if isinstance(node, syntax.Block):
        return _union(node.body)
    if isinstance(node, syntax.If):
        sides = [node.then] if node.orelse is None else [node.then, node.orelse]
        return _union(sides)
    # `return` also leaves a loop; break and continue do not.
    return jump_kinds(node.body) - _LOOP if isinstance(node, syntax.Loop) else frozenset()


def _union(nodes: Iterable[syntax.Statement]) -> Jumps:
    return frozenset(word for node in nodes for word in jump_kinds(node))


@lru_cache(_KEPT)
@nested
def always_jumps(node: syntax.Statement | None) -> bool:
    """Whether control never reaches the statements after this one."""
    if isinstance(node, syntax.Block):
        return any(map(always_jumps, node.body))
    if isinstance(node, syntax.If):
        return always_jumps(node.then) and always_jumps(node.orelse)
    # A loop may run zero times, so its jumps are never certain.
    return isinstance(node, syntax.Jump)


@lru_cache(_KEPT)
def assigned(node: syntax.Node) -> tuple[str, ...]:
    """Names that a tree assigns or declares, in the order of their first assignment."""
    return tuple(dict.fromkeys(name for inner in walk(node) for name in _targets(inner)))


def _targets(node: syntax.Node) -> Iterator[str]:
    if isinstance(node, syntax.Assign | syntax.Step) and isinstance(node.target, syntax.Name):
        yield node.target.name


@lru_cache(_KEPT)
def reads(node: syntax.Node) -> frozenset[str]:
    """Names that occur in a tree."""
    return frozenset(inner.name for inner in walk(node) if isinstance(inner, syntax.Name))


@lru_cache(_KEPT)
def is_pure(node: syntax.Expression) -> bool:
    """Whether evaluating an expression twice, or needlessly, has no effect and cannot fail."""
    # Calls may store and loads may fault: neither may be evaluated needlessly.
    impure = (syntax.Assign, syntax.Step, syntax.Call, syntax.Dereference)
    return not any(isinstance(inner, impure) for inner in walk(node))


@lru_cache(_KEPT)
def has_effects(node: syntax.Expression) -> bool:
    """Whether an expression assigns, or calls a function, which may store."""
    # Loads are absent here: they can be masked instead of branched around.
    impure = (syntax.Assign, syntax.Step, syntax.Call)
    return any(isinstance(inner, impure) for inner in walk(node))


def walk(node: syntax.Node) -> Iterator[syntax.Node]:
    """A node and all below it, in the order of the source."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        pending += reversed(children(node))


def children(node: syntax.Node) -> list[syntax.Node]:
    """The nodes right below a node, in the order of the source."""
    nodes: list[syntax.Node] = []
    for name in _names(type(node)):
        value: object = getattr(node, name)
        if isinstance(value, syntax.Node):
            nodes.append(value)
        elif isinstance(value, tuple):
            parts = cast("tuple[object, ...]", value)
            nodes += [part for part in parts if isinstance(part, syntax.Node)]
    return nodes


@cache
def _names(kind: type[syntax.Node]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
