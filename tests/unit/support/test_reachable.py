"""Orders of the transitive closure."""

from collections.abc import Callable, Iterable

import pytest

from tilewright.support.reachable import nearest_first, reachable

AFTER = {"a": "bc", "b": "de", "c": "ea", "d": "", "e": "a"}


@pytest.mark.parametrize(
    "walk, order", [(reachable, "acebd"), (nearest_first, "abcde")], ids=["depth", "breadth"]
)
def test_each_item_comes_once(walk: Callable[..., Iterable[str]], order: str) -> None:
    assert "".join(walk(["a"], AFTER.__getitem__)) == order


def test_following_items_are_computed_only_for_those_that_are_taken() -> None:
    seen = list[str]()

    def following(item: str) -> str:
        seen.append(item)
        return AFTER[item]

    items = nearest_first(["a"], following)
    assert [next(items), next(items)] == ["a", "b"]
    assert seen == ["a"]
