"""Prefetches of lines that a later nest stores to, that the next program instance loads, or that a
later step of the nest loads or stores.

The last kind depends on the computation of a step. A CPU runs ahead of a load that misses the
caches by the hundreds of instructions of its reorder buffer. Where these reach far, they fetch the
loaded lines, and stores limit the speed: a store that misses the L1 cache delays those after it,
since CPUs retire stores in order, and hardware prefetches for loads sooner than for stores. Where a
loaded line takes more instructions, the next line is not reached in time, and hardware stops
prefetching at the end of each page.

A prefetch that does not pay in a core's own caches is guarded by a test of how much memory the grid
touches: rows of reductions, and the next program's part of each row of a matrix. The figures are in
ADR 0033.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering
from tilewright.backends.cpu.lower.evaluate_lanes import Coords, Evaluator
from tilewright.backends.cpu.lower.fusion import EXPENSIVE, LoopNest, Prefetch, recompute_cost
from tilewright.backends.cpu.lower.lane_values import Lanes, literal
from tilewright.backends.cpu.lower.streaming_stores import (
    depends,
    differs_by_program,
    may_stream,
)
from tilewright.backends.cpu.lower.vector_access import memory_type
from tilewright.backends.cpu.microkernel import CACHE_LINE
from tilewright.ir import Value
from tilewright.ir.types import element_of, shape_of
from tilewright.llvm import Code, Val
from tilewright.ops import StoreOp, pointee

_STORES_AHEAD = 8 * CACHE_LINE
"""Bytes from a store to the line fetched for a later one; 256 to 2048 have the same effect."""

_ROWS_AHEAD = 4
"""Rows from a row of a result to the one fetched for its store; 2 to 8 have the same effect. Rows
of a tile are far apart, and hardware prefetches none of them."""

_LOADS_AHEAD = 32 * CACHE_LINE
"""Bytes from a load to the line fetched for a later one: half a page."""

_COMPUTES = 16
"""Instructions for a line from which on a CPU does not reach the next ones in time: of the 512 of
its reorder buffer, 32 lines, less than its L2 cache fetches concurrently."""


class RunAhead:
    """Prefetches of a nest ahead of its steps: of its loads if it computes much, else of its
    stores.

    For nests of one dimension that are contiguous for longer than the prefetch distance: the memory
    after such a tile is mostly the next program's. For two dimensions, the next program's part of
    each row if it is adjacent, or rows that are stored to, where little is computed from cached
    values, as for accumulators of dots.

    A nest that computes the tiles of a loop's next iteration prefetches its loads, however little
    it computes: it loads and stores a line of each tile for each line. Rows of the next iteration
    follow those of this one; short ones are below them. A reduction of a row does so where the grid
    touches more than the caches of a core hold.
    """

    __slots__ = ("always", "below", "beside", "loads", "rows", "state", "stored", "stores")

    def __init__(self, state: CpuLowering, nest: LoopNest, stores: Sequence[StoreOp]) -> None:
        self.state, self.always = state, not stores
        self.loads, self.stores, self.rows = list[Value](), list[Value](), list[Value]()
        self.beside, self.stored = list[Value](), [op.pointer for op in stores]
        self.below = dict[Value, int]()
        if self.always:
            self._fetch_long_rows(nest)
            return
        pointers = self.stored
        if len(nest.shape) == 1 and nest.shape[0] * min(map(_bytes, pointers)) >= 2 * _STORES_AHEAD:
            # fetched by the nest before, or read by it
            self.stores = [] if nest.fetched else pointers
            self.loads = [pointer for pointer in nest.first_reads if differs_by_program(pointer)]
        if len(nest.shape) == 2 and state.fetches:
            near = (p for p in (*nest.first_reads, *pointers) if shape_of(p.type) == nest.shape)
            self.beside = [p for p in near if state.steps.get(p, 0) > 0]
            state.fetching_nests += bool(self.beside)
        if len(nest.shape) == 2 and nest.shape[0] >= 2 * _ROWS_AHEAD and not nest.fetched:
            cheap = (op.pointer for op in stores if recompute_cost(op.stored) < EXPENSIVE)
            self.rows = [pointer for pointer in cheap if pointer not in self.beside]

    def _fetch_long_rows(self, nest: LoopNest) -> None:
        """Prefetch the loads of a reduction, or of a nest that computes a loop's tiles."""
        reduces = nest.axis is not None
        if reduces and not (self.state.fetches and len(nest.shape) == 1):
            return
        moves, longest = differs_by_program if reduces else _differs_by_iteration, max(nest.shape)
        moving = [pointer for pointer in nest.first_reads if moves(pointer)]
        self.loads = [p for p in moving if longest * _bytes(p) >= 2 * _STORES_AHEAD]
        if len(nest.shape) == 2:
            rows = {pointer: nest.shape[1] * _bytes(pointer) for pointer in moving}
            self.below = {p: _LOADS_AHEAD // row for p, row in rows.items() if row < _STORES_AHEAD}

    def emit(self, ev: Evaluator, coords: Coords, computed: int, streaming: bool) -> None:
        """Emit the prefetches of a whole step with `computed` instructions.

        streaming: whether its stores are non-temporal
        """
        lines = sum(map(_bytes, self.loads or self.stores)) / CACHE_LINE
        # for 32-bit elements, the most frequent
        if self.always or computed * 32 / self.state.vector_bits >= _COMPUTES * lines:
            pointers, ahead = self.loads, _LOADS_AHEAD
        else:
            pointers, ahead = [] if streaming else self.stores, _STORES_AHEAD
        for pointer in pointers:
            for line in _lines(ev, pointer, coords, ahead):
                _fetch(ev.math.code, line, for_store=pointers is self.stores)
        if len(coords) == 2:
            self._fetch_in_matrix(ev, coords, streaming)

    def _fetch_in_matrix(self, ev: Evaluator, coords: Coords, streaming: bool) -> None:
        """Prefetch rows below the step's, and the next program's parts of its own rows."""
        down = {p: (rows, False) for p, rows in self.below.items()}
        if not streaming:
            down |= {p: (_ROWS_AHEAD, True) for p in self.rows}
        if coords[0].stride == 0:
            for pointer, (rows, for_store) in down.items():
                below = (ev.math.add(coords[0], literal(rows)), coords[1])
                for line in _lines(ev, pointer, below):
                    _fetch(ev.math.code, line, for_store)
        for pointer in self.beside:
            if not (streaming and pointer in self.stored):
                for line in _lines(ev, pointer, coords, self._to_next_program(pointer)):
                    _fetch(ev.math.code, line, for_store=pointer in self.stored)

    def _to_next_program(self, pointer: Value) -> Val:
        """Bytes to the next program's part of the same row; 0 where the caches hold the grid's
        memory."""
        step = min(self.state.steps[pointer], _LOADS_AHEAD)
        return self.state.code.let(f"select i1 %fetching, i64 {step}, i64 0", "i64")


def _differs_by_iteration(pointer: Value) -> bool:
    """Whether a pointer depends on an argument of the block that it is in."""
    block = pointer.op.parent if pointer.op is not None else None
    return depends(pointer, lambda value: value.op is None and value.owner is block)


def _bytes(pointer: Value) -> int:
    """Bytes of an element that a pointer points to."""
    return element_of(pointee(pointer.type)).bytes


class Prefetcher:
    """Prefetches for one nest with steps of `width` lanes."""

    __slots__ = ("code", "now", "soon", "state", "width")

    def __init__(self, state: CpuLowering, width: int) -> None:
        self.state, self.code, self.width = state, state.code, width
        self.now = Evaluator(state.code, state.this_program, width)
        self.soon = Evaluator(state.code, state.next_program, width)

    def emit(self, prefetch: Prefetch, coords: Coords) -> None:
        """Emit one prefetch for each cache line of a step, if the step is contiguous.

        To the L2 cache: a tile of 64 KB would evict the nest's own lines from the L1.
        """
        ev = self.now if prefetch.for_store else self.soon
        for line in _lines(ev, prefetch.pointer, coords):
            if prefetch.for_store and may_stream(self.state):
                # The lines of a streaming store should not be cached. Scratch memory, which is
                # cached anyway, is prefetched instead and needs no branch.
                text = f"select i1 %streaming, ptr %scratch, {line.typed}"
                line = self.code.let(text, "ptr", line)
            _fetch(self.code, line, prefetch.for_store)


def _lines(ev: Evaluator, pointer: Value, coords: Coords, ahead: int | Val = 0) -> Iterator[Val]:
    """The addresses of the lines `ahead` bytes after a step; none if it is not contiguous."""
    addresses = ev.at(pointer, coords)
    if isinstance(addresses, Lanes) or addresses.offset is None or addresses.offset.stride != 1:
        return
    math, element = ev.math, element_of(pointee(pointer.type))
    first = math.first(addresses, memory_type(element))
    if isinstance(ahead, Val):
        text = f"getelementptr i8, {first.typed}, {ahead.typed}"
        first, ahead = math.code.let(text, "ptr", first, ahead), 0
    for byte in range(ahead, ahead + math.width * element.bytes, CACHE_LINE):
        yield math.code.let(f"getelementptr i8, {first.typed}, i64 {byte}", "ptr", first)


def _fetch(code: Code, line: Val, for_store: bool) -> None:
    name = "llvm.prefetch.p0"
    code.module.declare(name, f"declare void @{name}(ptr, i32, i32, i32)")
    # Locality 2 is the L2 cache; the last 1 means data, not instructions.
    code.line(f"call void @{name}(ptr {line}, i32 {int(for_store)}, i32 2, i32 1)")
