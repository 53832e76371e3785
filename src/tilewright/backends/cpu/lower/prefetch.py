"""Emits prefetches: lines that a later nest stores to, or that the next program instance loads."""

from __future__ import annotations

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering
from tilewright.backends.cpu.lower.evaluate_lanes import Coords, Evaluator
from tilewright.backends.cpu.lower.fusion import Prefetch
from tilewright.backends.cpu.lower.lane_values import Lanes
from tilewright.backends.cpu.lower.streaming_stores import may_stream
from tilewright.backends.cpu.lower.vector_access import memory_type
from tilewright.backends.cpu.microkernel import CACHE_LINE
from tilewright.ir.types import element_of
from tilewright.ops import pointee


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
        name = "llvm.prefetch.p0"
        self.code.module.declare(name, f"declare void @{name}(ptr, i32, i32, i32)")
        write = int(prefetch.for_store)
        for byte in range(0, self.width * element.bytes, CACHE_LINE):
            line = self.code.let(f"getelementptr i8, {first.typed}, i64 {byte}", "ptr", first)
            if prefetch.for_store and may_stream(self.state):
                # The lines of a streaming store should not be cached. Scratch memory instead,
                # which is cached anyway, needs no branch.
                text = f"select i1 %streaming, ptr %scratch, {line.typed}"
                line = self.code.let(text, "ptr", line)
            # Locality 2 is the L2 cache; the last 1 means data, not instructions.
            self.code.line(f"call void @{name}(ptr {line}, i32 {write}, i32 2, i32 1)")
