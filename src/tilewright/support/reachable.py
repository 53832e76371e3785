"""Transitive closure: the items that some reach, each once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)


def reachable(
    starts: Iterable[Item], following: Callable[[Item], Iterable[Item]]
) -> Iterator[Item]:
    """The items, and those that follow them, depth first from the last one; cycles end."""
    found, stack = set[Item](), list(starts)
    while stack:
        item = stack.pop()
        if item not in found:
            found.add(item)
            yield item
            stack += following(item)


def nearest_first(
    starts: Iterable[Item], following: Callable[[Item], Iterable[Item]]
) -> Iterator[Item]:
    """The same items, breadth first from the first one."""
    found = dict.fromkeys(starts)
    queue = list(found)
    # Grows during the iteration.
    for item in queue:
        yield item
        new = [x for x in dict.fromkeys(following(item)) if x not in found]
        found.update(dict.fromkeys(new))
        queue += new
