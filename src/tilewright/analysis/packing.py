"""Places blocks of memory with live ranges so that what lives at one time does not overlap.

Best placement is as hard as graph colouring; taken is the usual greedy one: the largest block
first, each at the lowest offset that no block in its way occupies. For blocks of one size that is
exact: intervals need as many colours as live at one time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LiveRange:
    """From when to when something is needed, both ends included."""

    first: int
    last: int

    def overlaps(self, other: LiveRange) -> bool:
        """Whether both are needed at one time."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class Request:
    """Memory that is needed for some time; `alignment` is a power of two, in bytes."""

    bytes: int
    live: LiveRange
    alignment: int = 64


@dataclass(frozen=True, slots=True)
class Packing:
    """Offset of each request, in their order, and the bytes of the whole."""

    offsets: tuple[int, ...]
    total: int


def pack(requests: Sequence[Request]) -> Packing:
    """Place all requests."""
    offsets = [0] * len(requests)
    placed: list[int] = []
    order = sorted(range(len(requests)), key=lambda i: (-requests[i].bytes, requests[i].live.first))
    for i in order:
        request = requests[i]
        rivals = [j for j in placed if requests[j].live.overlaps(request.live)]
        taken = sorted((offsets[j], offsets[j] + requests[j].bytes) for j in rivals)
        offsets[i] = _lowest_gap(taken, request)
        placed.append(i)
    ends = (offset + r.bytes for offset, r in zip(offsets, requests, strict=True))
    return Packing(tuple(offsets), max(ends, default=0))


def _lowest_gap(taken: list[tuple[int, int]], request: Request) -> int:
    """Where a request fits between (start, end) pairs in the order of their starts."""
    offset = 0
    for start, end in taken:
        if offset + request.bytes <= start:
            break
        offset = max(offset, -(-end // request.alignment) * request.alignment)
    return offset
