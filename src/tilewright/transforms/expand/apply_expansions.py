"""Apply expansions: at most one to each op of the function."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilewright.ir import Builder, Function, Op, Rewriter, Value

Expansion = Callable[[Op, Builder], Value | None]
"""The value that replaces an op's result; None if the op stays (it may have changed in place)."""


def expand(function: Function, rules: Mapping[type[Op], Expansion]) -> bool:
    """Apply at most one rule to each op, in regions too; whether any was replaced."""
    changed = False
    # Collected first: the ops that an expansion emits are not expanded again.
    matching = [op for op in function.walk() if type(op) in rules]
    for op in matching:
        value = rules[type(op)](op, Builder.at(op))
        if value is not None:
            Rewriter.replace(op, value)
            changed = True
    return changed
