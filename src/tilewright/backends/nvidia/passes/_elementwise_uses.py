"""Uses of a tile through element-wise ops."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.ir import Block, Op, Trait, Value
from tilewright.support.reachable import reachable


def elementwise_uses(tile: Value, block: Block | None) -> Iterator[tuple[Value, Op]]:
    """Each use, other than by element-wise ops of a block, of a tile and of the tiles that these
    ops compute from it."""

    def is_followed(user: Op) -> bool:
        return Trait.ELEMENTWISE in user.traits and user.parent is block

    def computed(value: Value) -> Iterator[Value]:
        return (x for user in value.uses if is_followed(user) for x in user.results)

    for value in reachable([tile], computed):
        yield from ((value, user) for user in value.uses if not is_followed(user))
