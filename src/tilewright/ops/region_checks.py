"""Checks of arguments and terminators of regions, for the `verify` methods of structured ops."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir import Block, Function, Op, Value
from tilewright.ir.types import Type


def types_of(values: Sequence[Value]) -> tuple[Type, ...]:
    """The types of some values."""
    return tuple([value.type for value in values])


def wrong_args(what: str, block: Block, expected: tuple[Type, ...]) -> str | None:
    """The error in the arguments of a block, or None."""
    actual = types_of(block.args)
    if actual == expected:
        return None
    return f"{what} must take {_listed(expected)}, it takes {_listed(actual)}"


def wrong_end(what: str, block: Block, opcode: str, expected: tuple[Type, ...]) -> str | None:
    """The error in the terminator of a block and its operands, or None."""
    end = block.last
    if end is None or end.opcode != opcode:
        return f"{what} must end with {opcode}"
    actual = types_of(end.operands)
    if actual == expected:
        return None
    return f"{what} must end with {_listed(expected)}, it ends with {_listed(actual)}"


def op_with_effects(block: Block) -> Op | None:
    """The first op of a block, or of a region in it, that has effects."""
    for op in block:
        if op.effects:
            return op
        inner = next(filter(None, map(op_with_effects, op.regions)), None)
        if inner is not None:
            return inner
    return None


def not_in_a_region(op: Op) -> str | None:
    """The error of a region's terminator at the end of a function, or None."""
    parent = op.parent
    if parent is not None and isinstance(parent.owner, Function):
        return f"{op.opcode} cannot end a function"
    return None


def _listed(types: tuple[Type, ...]) -> str:
    return f"({', '.join(map(str, types))})"
