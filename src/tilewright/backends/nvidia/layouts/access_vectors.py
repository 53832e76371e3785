"""How many elements one instruction may move between memory and a thread."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.analysis import Alignment
from tilewright.ir import Value
from tilewright.ir.types import TileType, element_of
from tilewright.layout import LinearLayout, contiguous_registers
from tilewright.ops import pointee

MAX_VECTOR_BYTES = 16
"""Of shared memory and of asynchronous copies; see `Arch.access_bytes` for global memory."""


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
    layout, alignment = pointer.type.layout, facts[pointer]
    assert isinstance(layout, LinearLayout)
    size = element_of(pointee(pointer.type)).bytes
    best = 1
    for dim in range(len(layout.outs)):
        run = contiguous_registers(layout, dim)
        run = min(run, alignment.contiguity[dim], max(1, alignment.divisibility[dim] // size))
        if mask is not None:
            # A vector has one predicate.
            run = min(run, facts[mask].constancy[dim])
        best = max(best, run)
    return min(best, max(1, most // size))
