"""Placement of memory blocks with live ranges, so that blocks that are live at once do not overlap.

Optimal placement is as hard as graph coloring. This is the usual greedy one: the largest block
first, each at the lowest offset that is free for its live range. For blocks of one size it is
optimal: intervals need as many colors as are live at once. Its time is quadratic, so with very many
requests only blocks of one size share memory, which needs no search.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from heapq import heappop, heappush

from tilewright.support.data_class import dataclass

VERY_MANY = 1000
"""The number of requests above which only those of one size share memory."""


@dataclass(frozen=True, slots=True)
class LiveRange:
    """The live range of a block, both ends included."""

    first: int
    last: int

    def overlaps(self, other: LiveRange) -> bool:
        """Whether both are live at once."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class Request:
    """A block of memory and its live range; `alignment` is a power of two, in bytes."""

    bytes: int
    live: LiveRange
    alignment: int = 64


@dataclass(frozen=True, slots=True)
class Packing:
    """The offset of each request, in their order, and the total size in bytes."""

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
    # ties in the order of live ranges, so that blocks of one size are optimal
    order = sorted(range(len(requests)), key=lambda i: (-requests[i].bytes, requests[i].live.first))
    for i in order:
        request = requests[i]
        rivals = [j for j in placed if requests[j].live.overlaps(request.live)]
        taken = sorted((offsets[j], offsets[j] + requests[j].bytes) for j in rivals)
        offsets[i] = _lowest_gap(taken, request)
        placed.append(i)
    return offsets


def _place_by_size(requests: Sequence[Request]) -> list[int]:
    """For each size: in the order of live ranges, each in a free block or a new one."""
    offsets = [0] * len(requests)
    sizes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for i, request in enumerate(requests):
        sizes[request.bytes, request.alignment].append(i)
    end = 0
    for (size, alignment), members in sizes.items():
        busy: list[tuple[int, int]] = []
        for i in sorted(members, key=lambda i: requests[i].live.first):
            # Ends are included, so a block is free after the last position of its previous user.
            if busy and busy[0][0] < requests[i].live.first:
                _, offsets[i] = heappop(busy)
            else:
                offsets[i] = -(-end // alignment) * alignment
                end = offsets[i] + size
            heappush(busy, (requests[i].live.last, offsets[i]))
    return offsets


def _lowest_gap(taken: list[tuple[int, int]], request: Request) -> int:
    """The lowest free offset among (start, end) pairs in the order of their starts."""
    offset = 0
    for start, end in taken:
        if offset + request.bytes <= start:
            break
        # max, since a block with a later start may end earlier.
        offset = max(offset, -(-end // request.alignment) * request.alignment)
    return offset
