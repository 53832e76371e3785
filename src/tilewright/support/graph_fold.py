"""Evaluates a property over an acyclic graph from below, without recursion.

What a value is often follows from what its operands are. Programs are generated, and chains of
operands get thousands of links long, far more than Python's calls may be nested.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

__all__ = ["fold"]

Item = TypeVar("Item", bound=Hashable)
Result = TypeVar("Result")


def fold(
    root: Item,
    needs: Callable[[Item], Sequence[Item]],
    combine: Callable[[Item, list[Result]], Result],
    results: dict[Item, Result],
) -> Result:
    """The result of `root`, and in `results` those of all that it needs, each computed once.

    combine: an item, and the results of what it needs in that order
    """
    stack = [root]
    while stack:
        item = stack[-1]
        inputs = () if item in results else needs(item)
        missing = [i for i in inputs if i not in results]
        if missing:
            # The item stays on the stack and is looked at again once these are computed.
            stack += missing
            continue
        # it may be on the stack more than once, if several items need it: then it is computed
        stack.pop()
        if item not in results:
            results[item] = combine(item, [results[i] for i in inputs])
    return results[root]
