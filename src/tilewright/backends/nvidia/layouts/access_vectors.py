"""How many elements one instruction may move between memory and a thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from tilewright.analysis import Alignment
from tilewright.ir import Value
from tilewright.ir.types import TileType, element_of
from tilewright.layout import LinearLayout, contiguous_registers
from tilewright.ops import pointee
from tilewright.support.data_class import dataclass

MAX_VECTOR_BYTES = 16
"""Widest access to shared memory, and widest asynchronous copy; see `Arch.access_bytes`."""


@dataclass(frozen=True, slots=True)
class VectorRun:
    """Limits of a vector along a dim: elements that a thread holds in consecutive registers, that
    are consecutive in memory, that start at an aligned address, that have one mask (None: all).
    equal: that have one address."""

    dim: int
    held: int
    contiguous: int
    aligned: int
    masked: int | None
    equal: int

    @property
    def length(self) -> int:
        """Elements of the longest vector."""
        run = min(self.held, self.contiguous, self.aligned)
        # A vector has one predicate.
        return run if self.masked is None else min(run, self.masked)

    @property
    def copies(self) -> int:
        """Elements that are one in memory, of which one access is enough."""
        run = min(self.held, self.equal)
        return run if self.masked is None else min(run, self.masked)


def vector_runs(
    facts: Mapping[Value, Alignment],
    pointer: Value,
    mask: Value | None,
    layout: LinearLayout | None = None,
) -> list[VectorRun]:
    """The limits of an access to a tile, for each of its dims.

    layout: a candidate, instead of the layout that the access has
    """
    assert isinstance(pointer.type, TileType)
    alignment = facts[pointer]
    layout = layout or cast("LinearLayout | None", pointer.type.layout)
    assert isinstance(layout, LinearLayout)
    size = element_of(pointee(pointer.type)).bytes
    return [
        VectorRun(
            dim,
            contiguous_registers(layout, dim),
            alignment.contiguity[dim],
            max(1, alignment.divisibility[dim] // size),
            None if mask is None else facts[mask].constancy[dim],
            alignment.constancy[dim],
        )
        for dim in range(len(layout.outs))
    ]


def vector_length(
    facts: Mapping[Value, Alignment],
    pointer: Value,
    mask: Value | None,
    most: int = MAX_VECTOR_BYTES,
) -> int:
    """Consecutive registers that are consecutive in memory, aligned, and masked together.

    most: bytes of one access
    """
    if not isinstance(pointer.type, TileType):
        return 1
    best = max(run.length for run in vector_runs(facts, pointer, mask))
    size = element_of(pointee(pointer.type)).bytes
    return min(best, max(1, most // size))


def copies_of_one(facts: Mapping[Value, Alignment], pointer: Value, mask: Value | None) -> int:
    """Consecutive registers that are the same element in memory, masked together."""
    if not isinstance(pointer.type, TileType):
        return 1
    return max(run.copies for run in vector_runs(facts, pointer, mask))
