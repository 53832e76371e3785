"""The order of a pipeline's steps, as properties of the IR that they need, give and end.

    LAYOUTS = Property("every tile has a layout")

    Step(AssignLayouts(), "choose a layout for each tile", gives=(LAYOUTS,))
    Step(SplitReductions(), "reduce within warps first", needs=(LAYOUTS,))

A step that needs a property must be after one that gives it, and before any that ends it; a
pipeline in another order raises an error when it is built. Where passes are verified, properties
are checked on the IR: by a contract on single ops, after each step from the one that gives the
property, and by a check of the whole function at the end of the pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field

from tilewright.ir.core import Function
from tilewright.ir.verifier import Contract
from tilewright.support.data_class import dataclass
from tilewright.support.errors import InternalCompilerError


@dataclass(frozen=True, slots=True)
class Property:
    """A fact about tile IR. Properties with one name are equal.

    name: a statement, such as "every tile has a layout"; contract: the ops and types that are legal
    until a later property has one; check: the violations in a function, one text each
    """

    name: str
    contract: Contract | None = field(default=None, compare=False)
    check: Callable[[Function], list[str]] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Declared:
    """The part of a step that concerns its order. work: its pass, for messages."""

    work: object
    needs: Sequence[Property]
    gives: Sequence[Property]
    ends: Sequence[Property]


def require_order(
    pipeline: str,
    given: Iterable[Property],
    steps: Iterable[Declared],
    ensures: Iterable[Property],
) -> tuple[Property, ...]:
    """The properties that hold after the last step, in the order in which they were given.

    Raises InternalCompilerError where a step, or the end, needs a property that does not hold.
    """
    held = {each.name: each for each in given}
    ended: dict[str, object] = {}
    for step in steps:
        for each in step.needs:
            if each.name not in held:
                raise _missing(each, ended, f"{pipeline}: the pass {step.work}")
        for each in step.ends:
            held.pop(each.name, None)
            ended[each.name] = step.work
        for each in step.gives:
            held[each.name] = each
    for each in ensures:
        if each.name not in held:
            raise _missing(each, ended, f"{pipeline}: its end")
    return tuple(held.values())


def _missing(each: Property, ended: dict[str, object], who: str) -> InternalCompilerError:
    by = ended.get(each.name)
    why = f"which the pass {by} ends" if by else "which no earlier pass gives"
    return InternalCompilerError(f"{who} needs the property {each.name!r}, {why}")
