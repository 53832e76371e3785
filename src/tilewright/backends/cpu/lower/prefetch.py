"""Emits prefetches: lines that a later nest stores to, that the next program instance loads, or
that the nest itself stores to some steps later.

The last are for nests that only move data: a line that is not in the L1 cache holds up the stores
behind it, since CPUs retire stores in order, and hardware fetches lines ahead for loads sooner than
for stores. Microseconds on Emerald Rapids, one thread, tiles of 1024, medians of interleaved calls:

    elements            2^14         2^16          2^18         2^20         2^22          2^24
    add fp32    1.78 -> 1.62 7.13 -> 6.43 96.0 -> 100.2 741 -> 758 2645 -> 2186 14700 -> 13970
    scale       1.52 -> 1.40 6.09 -> 5.57 41.0 -> 34.4  430 -> 316 1971 -> 1389 11010 -> 10010
    add, tiles of 256        6.98 -> 5.84
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering
from tilewright.backends.cpu.lower.evaluate_lanes import Coords, Evaluator
from tilewright.backends.cpu.lower.fusion import EXPENSIVE, LoopNest, Prefetch, recompute_cost
from tilewright.backends.cpu.lower.lane_values import LaneMath, Lanes
from tilewright.backends.cpu.lower.streaming_stores import may_stream
from tilewright.backends.cpu.lower.vector_access import Access, memory_type
from tilewright.backends.cpu.microkernel import CACHE_LINE
from tilewright.ir.types import element_of
from tilewright.llvm import Code, Val
from tilewright.ops import StoreOp, pointee

_AHEAD = 8 * CACHE_LINE
"""Bytes from a store to the line fetched for a later one; 256 to 2048 do the same."""


def stores_run_ahead(nest: LoopNest, stores: Sequence[StoreOp]) -> bool:
    """Whether a nest fetches the lines that it will store to: one for which none before it does,
    that computes little, and goes on in memory for longer than it fetches ahead. What follows a
    tile of one dimension is mostly the next program's."""
    least = min(element_of(pointee(op.pointer.type)).bytes for op in stores)
    return (
        not nest.fetched
        and len(nest.shape) == 1
        and nest.shape[0] * least >= 2 * _AHEAD
        and all(recompute_cost(op.stored, load=0) < EXPENSIVE for op in stores)
    )


def fetch_stored_ahead(math: LaneMath, access: Access) -> None:
    """Fetch the lines that a later step stores to, given where this one does."""
    address, element = access.address, access.element
    if isinstance(address, Lanes) or address.offset is None or address.offset.stride != 1:
        return
    first = math.first(address, memory_type(element))
    for byte in range(_AHEAD, _AHEAD + math.width * element.bytes, CACHE_LINE):
        line = math.code.let(f"getelementptr i8, {first.typed}, i64 {byte}", "ptr", first)
        _fetch(math.code, line, for_store=True)


class Prefetcher:
    """Prefetches for one nest with steps of `width` lanes."""

    __slots__ = ("code", "now", "soon", "state", "width")

    def __init__(self, state: CpuLowering, width: int) -> None:
        self.state, self.code, self.width = state, state.code, width
        self.now = Evaluator(state.code, state.this_program, width)
        self.soon = Evaluator(state.code, state.next_program, width)

    def emit(self, prefetch: Prefetch, coords: Coords) -> None:
        """One prefetch for each cache line of a step, if the step is contiguous.

        To the L2 cache: a tile of 64 KB would push what the nest works on out of the L1 (a
        transposition of 4096 x 4096: 5.9 ms so, 3.4 ms to the L2).
        """
        ev = self.now if prefetch.for_store else self.soon
        addresses = ev.at(prefetch.pointer, coords)
        if isinstance(addresses, Lanes) or addresses.offset is None or addresses.offset.stride != 1:
            return
        element = element_of(pointee(prefetch.pointer.type))
        first = ev.math.first(addresses, memory_type(element))
        for byte in range(0, self.width * element.bytes, CACHE_LINE):
            line = self.code.let(f"getelementptr i8, {first.typed}, i64 {byte}", "ptr", first)
            if prefetch.for_store and may_stream(self.state):
                # The lines of a streaming store should not be cached. Scratch memory instead,
                # which is cached anyway, needs no branch.
                text = f"select i1 %streaming, ptr %scratch, {line.typed}"
                line = self.code.let(text, "ptr", line)
            _fetch(self.code, line, prefetch.for_store)


def _fetch(code: Code, line: Val, for_store: bool) -> None:
    name = "llvm.prefetch.p0"
    code.module.declare(name, f"declare void @{name}(ptr, i32, i32, i32)")
    # Locality 2 is the L2 cache; the last 1 means data, not instructions.
    code.line(f"call void @{name}(ptr {line}, i32 {int(for_store)}, i32 2, i32 1)")
