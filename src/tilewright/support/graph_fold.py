"""Bottom-up evaluation of a property over an acyclic graph, without recursion.

Properties of a value often depend on its operands. In generated programs, chains of operands have
thousands of links, more than Python can nest calls.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)
Result = TypeVar("Result")


def fold(
    root: Item,
    needs: Callable[[Item], Sequence[Item]],
    combine: Callable[[Item, list[Result]], Result],
    results: dict[Item, Result],
) -> Result:
    """Compute the result of `root`, and in `results` those of all its dependencies, each once.

    combine: maps an item, and the results of its dependencies in order, to its result
    """
    stack = [root]
    while stack:
        item = stack[-1]
        inputs = () if item in results else needs(item)
        missing = [i for i in inputs if i not in results]
        if missing:
            # The item stays on the stack until its dependencies are computed.
            stack += missing
            continue
        # an item that several others need may be on the stack more than once
        stack.pop()
        if item not in results:
            results[item] = combine(item, [results[i] for i in inputs])
    return results[root]
