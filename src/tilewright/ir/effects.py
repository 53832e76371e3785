"""Effects of ops, including those of the ops in their regions."""

from __future__ import annotations

from collections.abc import Set

from tilewright.ir.core import Function, Op
from tilewright.ir.op_definition import Effect, Trait


def is_pure(op: Op) -> bool:
    """Whether the op and all ops in its regions have no effect."""
    inside = op.walk() if op.regions else (op,)
    return all(Trait.PURE in o.traits or Trait.TERMINATOR in o.traits for o in inside)


def effects_of(op: Op) -> frozenset[Effect]:
    """The effects of the op and of all ops in its regions."""
    if not op.regions:
        return op.effects
    return op.effects.union(*(inner.effects for inner in op.walk()))


def ops_with(function: Function, effects: Set[Effect]) -> set[Op]:
    """The ops of a function with one of these effects, or with such an op in their regions."""
    having: set[Op] = set()
    for op in function.walk():
        around: object = op if op.effects & effects else None
        while isinstance(around, Op) and around not in having:
            having.add(around)
            around = around.parent.owner if around.parent is not None else None
    return having
