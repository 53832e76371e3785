"""Places blocks of memory with live ranges so that what lives at one time does not overlap.

Best placement is as hard as graph colouring; taken is the usual greedy one: the largest block
first, each at the lowest offset that no block in its way occupies. For blocks of one size that is
exact: intervals need as many colours as live at one time. It takes the square of their number, so
of very many, only blocks of one size share memory, which takes no search.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from heapq import heappop, heappush

from tilewright.support.data_class import dataclass

VERY_MANY = 1000
"""Requests from which only those of one size share memory."""


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
    place = _place_by_size if len(requests) > VERY_MANY else _place_largest_first
    offsets = place(requests)
    ends = (offset + r.bytes for offset, r in zip(offsets, requests, strict=True))
    return Packing(tuple(offsets), max(ends, default=0))


def _place_largest_first(requests: Sequence[Request]) -> list[int]:
    offsets = [0] * len(requests)
    placed: list[int] = []
    # ties in the order of time, which is what makes blocks of one size exact
    order = sorted(range(len(requests)), key=lambda i: (-requests[i].bytes, requests[i].live.first))
    for i in order:
        request = requests[i]
        rivals = [j for j in placed if requests[j].live.overlaps(request.live)]
        taken = sorted((offsets[j], offsets[j] + requests[j].bytes) for j in rivals)
        offsets[i] = _lowest_gap(taken, request)
        placed.append(i)
    return offsets


def _place_by_size(requests: Sequence[Request]) -> list[int]:
    """For each size in turn: in the order of time, each where one has ended, else after all."""
    offsets = [0] * len(requests)
    sizes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for i, request in enumerate(requests):
        sizes[request.bytes, request.alignment].append(i)
    end = 0
    for (size, alignment), members in sizes.items():
        busy: list[tuple[int, int]] = []
        for i in sorted(members, key=lambda i: requests[i].live.first):
            # Ends are included, so a block is free only after the last position of its former user.
            if busy and busy[0][0] < requests[i].live.first:
                _, offsets[i] = heappop(busy)
            else:
                offsets[i] = -(-end // alignment) * alignment
                end = offsets[i] + size
            heappush(busy, (requests[i].live.last, offsets[i]))
    return offsets


def _lowest_gap(taken: list[tuple[int, int]], request: Request) -> int:
    """Where a request fits between (start, end) pairs in the order of their starts."""
    offset = 0
    for start, end in taken:
        if offset + request.bytes <= start:
            break
        # max, since a later start may belong to a block that ends earlier.
        offset = max(offset, -(-end // request.alignment) * request.alignment)
    return offset
