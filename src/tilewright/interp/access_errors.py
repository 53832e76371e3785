"""Errors of accesses that a check rejects, interpreted or compiled.

index: of the lane in the tile, () for a scalar; root: the argument of the pointer, or None if it is
unknown
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.interp.kernel_memory import Span, outside
from tilewright.support import errors

__all__ = [
    "BOUND", "CONDITION", "gather_outside", "lanes_differ", "out_of_bounds", "outside", "race",
    "undefined_address", "undefined_condition", "undefined_mask", "undefined_value",
    "wrapped_offset",
]  # fmt: skip

CONDITION, BOUND = "the condition of a branch or loop", "a bound of a loop"
"""Names of the values that control flow depends on."""

Index = Sequence[int]
Program = tuple[int, int, int]


def out_of_bounds(detail: str, program: Program, index: Index) -> errors.OutOfBounds:
    """The error of an access out of bounds. detail: of `kernel_memory.outside`"""
    where = f" (program {program}"
    if index:
        where += f", tile index {tuple(index)}"
    return errors.OutOfBounds(f"{detail}{where})")


def gather_outside(index: int, extent: int) -> errors.OutOfBounds:
    return errors.OutOfBounds(f"index {index} of a gather along an extent of {extent}")


def undefined_condition(what: str) -> errors.UndefinedElement:
    """The error of control flow by an undefined element. what: CONDITION or BOUND"""
    return errors.UndefinedElement(what)


def undefined_mask(verb: str) -> errors.UndefinedElement:
    return errors.UndefinedElement(f"the mask of a {verb}")


def undefined_address(verb: str, root: Span | None, index: Index) -> errors.UndefinedElement:
    return errors.UndefinedElement(f"the address of a {verb}{_of(root)}, {_at(index)}")


def undefined_value(root: Span | None, index: Index) -> errors.UndefinedElement:
    return errors.UndefinedElement(f"what is stored{_of(root)}, {_at(index)}")


def wrapped_offset(verb: str, root: Span | None, index: Index) -> errors.OffsetOverflow:
    return errors.OffsetOverflow(f"{verb}{_of(root)}, {_at(index)}")


def race(
    program: Program, span: Span, address: int, now: str, before: str, other: Program | None
) -> errors.RaceCondition:
    """The error of two accesses in a race.

    now, before: "reads", "writes", "updates", and "read", "wrote", "updated"; other: None for
    several programs
    """
    who = "other programs" if other is None else f"program {other}"
    place = span.place(address)
    return errors.RaceCondition(f"program {program} {now} {place}; {who} {before} it")


def lanes_differ(program: Program, span: Span, address: int) -> errors.RaceCondition:
    """The error for lanes of one store."""
    place = span.place(address)
    detail = f"program {program} stores different values to {place}, in several lanes"
    return errors.RaceCondition(detail)


def _of(root: Span | None) -> str:
    return "" if root is None else f" of argument '{root.name}'"


def _at(index: Index) -> str:
    return f"tile index {tuple(index)}"
