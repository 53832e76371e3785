"""Emits prefetches: lines that a later nest stores to, that the next program instance loads, or
that the nest itself loads or stores to some steps later.

The last depends on what a step computes. A CPU runs ahead of a load that misses the caches by the
hundreds of instructions that it holds at once. Where these reach far, they fetch what is loaded,
and hold up stores: a line that is not in the L1 cache holds up those behind it, since CPUs retire
stores in order, and hardware fetches lines ahead for loads sooner than for stores. Where a line of
what is loaded takes more instructions, the next line is not reached in time, and hardware stops
ahead of it at the end of each page. Emerald Rapids, one thread, tiles of 1024, interleaved calls:

    elements             2^14         2^16          2^18         2^20         2^22          2^24
    add fp32     1.78 -> 1.62 7.13 -> 6.43 96.0 -> 100.2 741 -> 758 2645 -> 2186 14700 -> 13970 us
    scale        1.52 -> 1.40 6.09 -> 5.57 41.0 -> 34.4  430 -> 316 1971 -> 1389 11010 -> 10010
    add, tiles of 256         6.98 -> 5.84

    elements                       2^14             2^18             2^21             2^24
    stores   Adam fp32   0.494 -> 0.489   1.014 -> 0.995   1.394 -> 1.219   2.179 -> 1.958 ns each
    loads    GELU bf16   0.447 -> 0.447   0.430 -> 0.431   0.554 -> 0.435   0.977 -> 0.442
             tanh bf16   0.378 -> 0.369   0.317 -> 0.323   0.350 -> 0.324   0.713 -> 0.383
             exp fp32    0.202 -> 0.206   0.204 -> 0.197   0.291 -> 0.290   0.778 -> 0.682
             scale bf16  0.154 -> 0.155   0.105 -> 0.102   0.151 -> 0.146   0.228 -> 0.178
    carried  Welford's sums of 32 times 50,176 fp32, in tiles of 2048: 432 -> 391 us
             sum of 8 MB fp32, in a tile of 2048: 361 -> 328 us (torch 330), of 1 MB 13.0 -> 15.0
    with less than is asked for here:
             scale fp16  0.095 -> 0.101   0.048 -> 0.051   0.149 -> 0.152   0.307 -> 0.331
             add fp32    0.155 -> 0.187   0.386 -> 0.406   0.430 -> 0.421   0.887 -> 0.893
             row sums of 8 MB 287 -> 254 us, of 1 MB 9.0 -> 14.6

So what would not pay in a core's own caches asks the program how much its grid works on: rows that
are summed, and the next program's part of each row of a matrix (an Intel Xeon with AMX, one thread,
of two programs compiled side by side that took turns; torch):

    row sums             1024 x 1024          4096 x 781          2048 x 12672
             fp16        62.4 ->  58.8  88    301 -> 271  347     5868 -> 5090  6457 us
             bf16        61.7 ->  59.8  84    310 -> 288  325     6122 -> 5560  6722
             fp32       152.4 -> 149.5 155    509 -> 495  487     8705 -> 8457  9689
    half of each row, copied by tiles of 32 x 64
             fp32         180 ->   162 203    856 -> 640  922    14360 -> 9505  9279
             bf16          80 ->    84  84    452 -> 417  422     5738 -> 4522  4596
    rows by number, by tiles of 16 x 128
             fp32         301 ->   312 321   1413 -> 1271 1619   15525 -> 13664 15710
             bf16         146 ->   137 142    814 -> 602  603     7175 -> 6318  7370

Short rows of what a loop sums, below those that are loaded (rows of 512 bytes and more: 0.7 to 1.2
times as fast, what hardware fetches being more than what it does not):

    sums of columns      1000 x 1000          4096 x 781          2048 x 12672
    16 x 128 bf16         144 -> 110 123      790 -> 585 567      10325 -> 5801 12499 us
    32 x 32  bf16         154 -> 145 123      686 -> 543 549      15620 -> 13134 15314
             fp32         178 -> 174 157      805 -> 843 826      17788 -> 14348 17089
    gradients of a norm's weight and bias, 32 x 128
             bf16         255 -> 194         1303 -> 809          17413 -> 7274
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
"""Bytes from a store to the line fetched for a later one; 256 to 2048 do the same."""

_ROWS_AHEAD = 4
"""From a row of a result to the one fetched for its store: 2 to 8 do the same. Rows of a tile lie
far apart, and hardware fetches none ahead; fp32 1024^3 1.02 times as fast, 512^3 1.04 (Intel)."""

_LOADS_AHEAD = 32 * CACHE_LINE
"""Bytes from a load: half a page (GELU of 2^24 bf16: 512 bytes 0.490 ns, 2048 0.442)."""

_COMPUTES = 16
"""Instructions for a line from which on a CPU does not reach the next ones in time: of the 512 that
it holds, 32 lines, less than what its L2 cache fetches at once."""


class RunAhead:
    """What a nest of stores fetches ahead of its steps: what it loads if it computes much, else
    what it stores to.

    For nests of one dimension that go on in memory for longer than they fetch ahead: what follows
    such a tile is mostly the next program's. Of two dimensions the next program's part of each row,
    if it lies beside this one's, or rows that are stored to, where little is computed from what is
    in the caches, as sums of products are.

    A nest that computes the tiles of a loop's next iteration fetches what it loads, however little
    it computes: it loads and stores a line of each tile beside each line. Rows of the next
    iteration go on where those of this one end; short ones lie below them. A reduction of a row
    does so where the grid works on more than the caches of a core hold.
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
            sums = (op.pointer for op in stores if recompute_cost(op.stored) < EXPENSIVE)
            self.rows = [pointer for pointer in sums if pointer not in self.beside]

    def _fetch_long_rows(self, nest: LoopNest) -> None:
        """Of what a reduction reads, or a nest that computes a loop's tiles."""
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
        """Ahead of a whole step that has computed its values by so many instructions.

        streaming: whether it stores past the caches
        """
        lines = sum(map(_bytes, self.loads or self.stores)) / CACHE_LINE
        # of numbers of 32 bits, as most are computed
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
        """Rows below the step's, and the next program's parts of its own."""
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
        """Bytes to its part of the same row; none where the caches hold what the grid works on."""
        step = min(self.state.steps[pointer], _LOADS_AHEAD)
        return self.state.code.let(f"select i1 %fetching, i64 {step}, i64 0", "i64")


def _differs_by_iteration(pointer: Value) -> bool:
    """Whether a pointer depends on an argument of the block that it is in."""
    block = pointer.op.parent if pointer.op is not None else None
    return depends(pointer, lambda value: value.op is None and value.owner is block)


def _bytes(pointer: Value) -> int:
    """Of an element that a pointer is to."""
    return element_of(pointee(pointer.type)).bytes


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
        for line in _lines(ev, prefetch.pointer, coords):
            if prefetch.for_store and may_stream(self.state):
                # The lines of a streaming store should not be cached. Scratch memory instead,
                # which is cached anyway, needs no branch.
                text = f"select i1 %streaming, ptr %scratch, {line.typed}"
                line = self.code.let(text, "ptr", line)
            _fetch(self.code, line, prefetch.for_store)


def _lines(ev: Evaluator, pointer: Value, coords: Coords, ahead: int | Val = 0) -> Iterator[Val]:
    """The addresses of the lines so many bytes ahead of a step; none if it is not contiguous."""
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
