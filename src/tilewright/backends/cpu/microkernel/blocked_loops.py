"""Emits the loops of the micro-kernel; the package docstring shows their shape."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

from tilewright.backends.cpu.microkernel import panel_packing
from tilewright.backends.cpu.microkernel.assembled_matmul import matmul_function
from tilewright.backends.cpu.microkernel.assembled_rows import call_of_rows, rows_function
from tilewright.backends.cpu.microkernel.function_text import (
    Loop,
    Run,
    Size,
    Writer,
    panels,
    repeated,
)
from tilewright.backends.cpu.microkernel.panel_packing import (
    MemoryBlocks,
    accumulators_of_column,
    fetch_line,
    function,
    lanes_below,
    memory_declarations,
)
from tilewright.backends.cpu.microkernel.register_blocking import (
    CACHE_LINE,
    UNROLL,
    DotSpec,
    column_runs,
    row_runs,
)
from tilewright.backends.cpu.microkernel.tile_copies import KeptPanels
from tilewright.llvm import llvm_type


def dot_declarations(spec: DotSpec) -> tuple[str, ...]:
    """The `declare` lines that the text of `dot_function` relies on; merge them by equality."""
    if spec.operand.group > 1:
        return (*memory_declarations(spec), panel_packing.declaration(spec))
    suffix = f"v{spec.lanes}{spec.type.name}"
    vector, mask = f"<{spec.lanes} x {spec.element}>", f"<{spec.lanes} x i1>"
    lines = list(memory_declarations(spec))
    if spec.fused:
        lines.append(f"declare {vector} @llvm.fma.{suffix}({vector}, {vector}, {vector})")
    if spec.n % spec.lanes:
        lines.append(f"declare {vector} @llvm.masked.load.{suffix}.p0(ptr, {mask}, {vector})")
        lines.append(f"declare void @llvm.masked.store.{suffix}.p0({vector}, ptr, {mask})")
    return tuple(lines)


def dot_function(name: str, spec: DotSpec) -> str:
    """LLVM IR text of `define internal void @name(ptr %c, ptr %a, ptr %b)` for `spec`; from memory
    followed by `i64 %a.row, i64 %b.row, i64 %depth, i64 %rows, i64 %columns`, and `i1 %adds` if it
    does not always accumulate.

    The buffers must not overlap. No element outside the m x n, m x k and k x n elements is read or
    written, including the padding of rows.
    """
    packs = spec.operand.group > 1 or spec.b_columns
    kernel = _PackedKernel if packs else _Kernel
    if spec.is_assembled and not spec.b_columns:
        return matmul_function(name, spec)
    if spec.from_memory:
        kernel = _AssembledKernel if spec.is_assembled else _MemoryKernel
    return kernel(spec).text(name)


class _Panel(NamedTuple):
    """One block of accumulators."""

    rows: int
    vectors: int
    masked: bool  # its columns are the rest of N beyond whole vectors


class _Kernel:
    """Appends the loops of one `DotSpec` to `out`; pointers and accumulators are names of IR
    values."""

    def __init__(self, spec: DotSpec) -> None:
        self.spec, self.out, self.lanes = spec, Writer(), spec.lanes
        self.vector = f"<{self.lanes} x {llvm_type(spec.type)}>"
        self.suffix = f"v{self.lanes}{spec.type.name}"
        self.size, self.width = spec.type.bytes, self.lanes * spec.type.bytes
        self.llvm_type = llvm_type(spec.type)
        self.a_start, self.b_start = "%a", "%b"
        self.depth: Size = spec.k  # steps of the innermost loop
        self.a_row, self.b_row, self.c_row = (stride * self.size for stride in spec.strides)
        self.a_step = self.size  # from one k to the next
        if spec.a_columns:
            self.a_row, self.a_step = self.a_step, self.a_row
        bits = ["i1 true" if i < spec.n % self.lanes else "i1 false" for i in range(self.lanes)]
        self.mask = f"<{self.lanes} x i1> <{', '.join(bits)}>"

    def text(self, name: str) -> str:
        self.column_panels()
        return function(name, self.spec, self.out)

    # -- loops over panels and k ------------------------------------------------------------------

    def column_panels(self) -> None:
        c, b = "%c", self.b_start
        for run in column_runs(self.spec):
            c, b = self.column_run(run, c, b)
        # The rest of N, less than a vector, under a mask.
        if self.spec.n % self.lanes:
            self.row_panels(c, b, vectors=1, masked=True)

    def column_run(self, run: Run, c: str, b: str) -> Sequence[str]:
        loop = Loop(self.out, run.times, [("ptr", c), ("ptr", b)])
        c, b = loop.values
        self.row_panels(c, b, run.size, masked=False)
        below = self.out.offset(b, self.column_step(run.size))
        return loop.close([self.out.offset(c, run.size * self.width), below])

    def column_step(self, vectors: int) -> Size:
        """Bytes from one column panel of B to the next."""
        return vectors * self.width

    def row_panels(self, c: str, b: str, vectors: int, masked: bool) -> None:
        a = self.a_start
        for run in row_runs(self.spec, vectors):
            loop = Loop(self.out, run.times, [("ptr", c), ("ptr", a)])
            c, a = loop.values
            panel = _Panel(run.size, vectors, masked)
            self.write_back(panel, c, self.accumulators(panel, a, b))
            below = self.out.offset(c, run.size * self.c_row)
            c, a = loop.close([below, self.a_at(a, run.size, 0)])

    def accumulators(self, panel: _Panel, a: str, b: str) -> Sequence[str]:
        """The accumulators of a panel, row by row, after the loop over k."""
        # With lane broadcast, one vector of A holds the scalars of `lanes` steps.
        unroll = self.lanes if self.spec.unit.lane_broadcast else UNROLL
        turns, rest = self.out.part(self.depth, unroll), 0
        if isinstance(self.depth, int):
            rest = self.depth % unroll
        accumulators: Sequence[str] = self.first_accumulators(panel)
        if turns:
            carried = [("ptr", a), ("ptr", b), *((self.vector, total) for total in accumulators)]
            loop = Loop(self.out, turns, carried)
            a, b, *accumulators = loop.values
            accumulators = self.turn(panel, accumulators, a, b, unroll)
            a, b = self.further(a, unroll), self.out.offset(b, unroll * self.b_row)
            a, b, *accumulators = loop.close([a, b, *accumulators])
        for k in range(rest):
            accumulators = self.step(panel, accumulators, self.scalars(panel, a, k), b, k)
        return accumulators

    def further(self, a: str, k: int) -> str:
        """An address in A, `k` steps further along K."""
        return self.out.offset(a, k * self.a_step)

    def first_accumulators(self, panel: _Panel) -> list[str]:
        """Accumulators of 0, not from C: the package docstring has the reason."""
        return ["zeroinitializer"] * (panel.rows * panel.vectors)

    def turn(
        self, panel: _Panel, accumulators: Sequence[str], a: str, b: str, unroll: int
    ) -> Sequence[str]:
        """`unroll` steps of k; with lane broadcast, one vector of each row of A serves them all."""
        lane = self.spec.unit.lane_broadcast
        rows = range(panel.rows if lane else 0)
        wide = [self.load(self.a_at(a, i, 0), self.a_row) for i in rows]
        for k in range(unroll):
            scalars = [self.splat_lane(x, k) for x in wide] or self.scalars(panel, a, k)
            accumulators = self.step(panel, accumulators, scalars, b, k)
        return accumulators

    # -- one step of k ----------------------------------------------------------------------------

    def step(
        self, panel: _Panel, accumulators: Sequence[str], scalars: Sequence[str], b: str, k: int
    ) -> Sequence[str]:
        """Add the rank-1 update of `scalars`, which hold A[:, k], and B[k, :]."""
        columns = self.row_of_b(panel, self.out.offset(b, k * self.b_row))
        return self.rank_1_update(accumulators, scalars, columns)

    def rank_1_update(
        self, accumulators: Sequence[str], scalars: Sequence[str], columns: Sequence[str]
    ) -> Sequence[str]:
        pairs = [(scalar, column) for scalar in scalars for column in columns]
        return [self.multiply_add(x, y, z) for (x, y), z in zip(pairs, accumulators, strict=True)]

    def row_of_b(self, panel: _Panel, base: str) -> list[str]:
        """B[k, :] of the row at `base`."""
        return [self.load_columns(panel, base, v, self.b_row) for v in range(panel.vectors)]

    def scalars(self, panel: _Panel, a: str, k: int) -> list[str]:
        """A[:, k], each element in all lanes of a vector."""
        return [self.splat(self.a_at(a, i, k)) for i in range(panel.rows)]

    def splat(self, pointer: str) -> str:
        kind = self.llvm_type
        align = self.spec.operand.bytes
        scalar = self.out.value(f"load {kind}, ptr {pointer}, align {align}")
        first = self.out.value(f"insertelement {self.vector} poison, {kind} {scalar}, i64 0")
        return self.splat_lane(first, 0)

    def splat_lane(self, vector: str, lane: int) -> str:
        indices = ", ".join([f"i32 {lane}"] * self.lanes)
        operands = f"{self.vector} {vector}, {self.vector} poison"
        return self.out.value(f"shufflevector {operands}, <{self.lanes} x i32> <{indices}>")

    def multiply_add(self, x: str, y: str, z: str) -> str:
        vector = self.vector
        if self.spec.fused:
            operands = f"{vector} {x}, {vector} {y}, {vector} {z}"
            return self.out.value(f"call {vector} @llvm.fma.{self.suffix}({operands})")
        multiply = "fmul" if self.spec.type.is_float else "mul"
        return self.add(self.out.value(f"{multiply} {vector} {x}, {y}"), z)

    def add(self, x: str, y: str) -> str:
        add = "fadd" if self.spec.type.is_float else "add"
        return self.out.value(f"{add} {self.vector} {x}, {y}")

    # -- memory; `row` is the distance between rows of the buffer, in bytes -----------------------

    def a_at(self, a: str, i: int, k: int) -> str:
        return self.out.offset(a, i * self.a_row + k * self.a_step)

    def alignment(self, row: int) -> int:
        """The guaranteed alignment of every vector of a buffer, in bytes."""
        return gcd(CACHE_LINE, row, self.width) if self.spec.aligned else self.size

    def load(self, pointer: str, row: int) -> str:
        return self.out.value(f"load {self.vector}, ptr {pointer}, align {self.alignment(row)}")

    def load_columns(self, panel: _Panel, base: str, v: int, row: int) -> str:
        """Vector `v` of the panel's columns in the row at `base`."""
        pointer = self.out.offset(base, v * self.width)
        if not panel.masked:
            return self.load(pointer, row)
        where = f"ptr align {self.alignment(row)} {pointer}, {self.mask}"
        call = f"call {self.vector} @llvm.masked.load.{self.suffix}.p0"
        return self.out.value(f"{call}({where}, {self.vector} zeroinitializer)")

    def write_back(self, panel: _Panel, c: str, accumulators: Sequence[str]) -> None:
        for i in range(panel.rows):
            base = self.out.offset(c, i * self.c_row)
            for v in range(panel.vectors):
                total = accumulators[i * panel.vectors + v]
                before = self.sum_before(panel, base, v)
                if before:
                    total = self.add(before, total)
                self.store(panel, self.out.offset(base, v * self.width), total)

    def sum_before(self, panel: _Panel, base: str, v: int) -> str:
        """The vector of C that is added to, if any."""
        if not self.spec.accumulate:
            return ""
        return self.load_columns(panel, base, v, self.c_row)

    def store(self, panel: _Panel, pointer: str, value: str) -> None:
        align, vector = self.alignment(self.c_row), self.vector
        if panel.masked:
            where = f"ptr align {align} {pointer}, {self.mask}"
            self.out.emit(
                f"call void @llvm.masked.store.{self.suffix}.p0({vector} {value}, {where})"
            )
        else:
            self.out.emit(f"store {vector} {value}, ptr {pointer}, align {align}")


class _PackedKernel(_Kernel):
    """A kernel that copies panels of B first; see `panel_packing`."""

    def __init__(self, spec: DotSpec) -> None:
        super().__init__(spec)
        self.depth = spec.k // spec.operand.group
        self.packing = panel_packing.Packing(spec, self.out)
        if spec.operand.group > 1:
            self.a_start, self.a_row = self.packing.a_start, self.packing.a_row
        self.corrections: list[str] = []

    def column_panels(self) -> None:
        self.packing.reserve()
        super().column_panels()

    def row_panels(self, c: str, b: str, vectors: int, masked: bool) -> None:
        assert not masked, f"columns are whole vectors: {self.spec}"
        self.b_row = vectors * self.width
        self.corrections = self.packing.pack_columns(b, vectors, self.spec.n)
        super().row_panels(c, self.packing.columns, vectors, masked)

    def column_step(self, vectors: int) -> Size:
        return self.packing.panel_step(vectors)

    def first_accumulators(self, panel: _Panel) -> list[str]:
        return (
            self.corrections * panel.rows if self.corrections else super().first_accumulators(panel)
        )

    def splat(self, pointer: str) -> str:
        return self.packing.as_operand(super().splat(pointer))

    def row_of_b(self, panel: _Panel, base: str) -> list[str]:
        return [self.packing.as_operand(x) for x in super().row_of_b(panel, base)]

    def multiply_add(self, x: str, y: str, z: str) -> str:
        grouped = self.spec.operand.group > 1
        return (self.packing if grouped else super()).multiply_add(x, y, z)


class _Columns(NamedTuple):
    """A panel of columns of a matmul from memory.

    b: its address in B; column: its first one; left: columns from this one on; last: row of A
    following: the panel of B to prefetch
    """

    vectors: int
    b: str
    column: Size
    left: Size
    last: str
    following: str


class _MemoryKernel(_PackedKernel):
    """A kernel that reads A and B in place, in blocks of `spec.k` along K.

    Panels are whole: beyond the last row of A they read that row again, beyond the last column of B
    zeros or that column; the elements of C beyond its rows and columns are undefined.
    """

    def __init__(self, spec: DotSpec) -> None:
        super().__init__(spec)
        self.places: list[Size] = []  # bytes from the first row of A to those of the panel
        self.rows_further: Size = 0  # bytes to the rows of A that come next; after the last, first
        self.adds = True  # whether to add to C
        self.columns_ahead = ""  # rows of the next panel of B, to be prefetched in the loop over K
        self.b_pitch: Size = ""  # bytes from one of them to the next
        self.kept: KeptPanels | None = None
        self.rows_ahead: Size = 1  # of the next panel of B, to be prefetched with each row of A

    def column_panels(self) -> None:
        out, packing = self.out, self.packing
        packing.b_row = "%b.row"
        packing.reserve()
        self.kept = KeptPanels(packing) if self.spec.keeps else None
        last = out.value("sub i64 %rows, 1")
        above = out.value(f"add i64 %rows, {self.spec.k - 1}")
        self.rows_ahead = out.value(f"udiv i64 {above}, %rows")
        self.blocks = blocks = MemoryBlocks(packing)
        self.a_start, self.b_start, groups = blocks.values
        self.depth = packing.groups = groups
        if self.kept is not None:
            self.kept.begin_block(blocks.index)
        for run, column in panels(out, column_runs(self.spec), self.lanes, "%columns"):
            width = packing.b_row if self.spec.b_columns else packing.size
            b = out.offset(self.b_start, out.distance(column, width))
            left = out.value(f"sub i64 %columns, {column}")
            self.b_row = run.size * self.width
            self.panel_of_columns(b, column, run.size, left)
            following = blocks.next_panel(b, run.size, left) if blocks.fetches else ""
            self.b_pitch = packing.b_row
            if following and self.kept is not None:
                following, self.b_pitch = self.kept.following(following, run.size)
            self.memory_rows(_Columns(run.size, b, column, left, last, following))
        blocks.close()

    def panel_of_columns(self, b: str, column: Size, vectors: int, left: Size) -> None:
        """Set the address of a panel, and copy it, unless it is cached or copied with the first
        rows."""
        packing, kept = self.packing, self.kept
        if kept is None:
            self.corrections = packing.pack_columns(b, vectors, left)
            return
        kept.find(column)
        if not self.packs_first:
            ready = kept.begin_panels()
            packing.pack_columns(b, vectors, left)
            kept.end_panels(ready)

    @property
    def packs_first(self) -> bool:
        """Whether panels of B are copied during the first rows."""
        return not (self.spec.b_columns or self.packing.signed)

    def memory_rows(self, columns: _Columns) -> None:
        """All rows of a panel of columns."""
        out, start = self.out, "0"
        vectors, b, column, left, last, following = columns
        c = accumulators_of_column(out, self.spec, column)
        runs = row_runs(self.spec, vectors)
        if self.packs_first:
            assert self.kept is not None
            self.mask = lanes_below(out, vectors * self.lanes, left)
            size, before = runs[0].size, out.block
            after = self.kept.begin_panels()
            panel = self.begin_rows(0, size, vectors, last, following)
            self.write_back(panel, c, self.accumulate_and_copy(panel, b))
            end = out.block
            self.kept.end_panels(after)
            start = out.value(f"phi i64 [ 0, %{before} ], [ {size}, %{end} ]")
        for run, row in panels(out, runs, 1, "%rows", start if self.packs_first else 0):
            panel = self.begin_rows(row, run.size, vectors, last, following)
            accumulators = self.accumulators(panel, self.a_start, self.packing.columns)
            self.write_back(panel, out.offset(c, out.times(self.c_row, row)), accumulators)

    def begin_rows(self, row: Size, count: int, vectors: int, last: str, following: str) -> _Panel:
        """Set the addresses of the rows of a panel, and of the prefetches during it."""
        out, panel = self.out, _Panel(count, vectors, masked=False)
        between = self.spec.operand.bytes if self.spec.a_columns else "%a.row"
        rows = [out.value(f"add i64 {row}, {i}") for i in range(count)]
        self.places = [out.distance(out.smaller(i, last), between) for i in rows]
        below = out.value(f"add i64 {row}, {count}")
        there = out.value(f"icmp ule i64 {below}, {last}")
        below = out.value(f"select i1 {there}, i64 {below}, i64 0")
        self.rows_further = out.distance(out.value(f"sub i64 {below}, {row}"), between)
        self.columns_ahead = self.fetched_panel(panel, row, following) if following else ""
        return panel

    def fetched_panel(self, panel: _Panel, row: Size, following: str) -> str:
        """The address in the next panel of B of the prefetches with some rows of C, if not here."""
        out = self.out
        if self.spec.b_columns:  # two columns
            most = panel.vectors * self.lanes - 2
            column = out.smaller(out.value(f"lshr i64 {row}, 2"), most)
            return out.offset(following, out.distance(column, self.b_pitch))
        place = out.offset(
            following, out.distance(out.distance(row, self.rows_ahead), self.b_pitch)
        )
        if not self.spec.unit.bursts:
            return place
        self.blocks.fetch(
            place, out.times(panel.rows, self.rows_ahead), panel.vectors, self.b_pitch
        )
        return ""

    def accumulators(self, panel: _Panel, a: str, b: str) -> Sequence[str]:
        """One iteration for each cache line of each row of A, with its prefetches, and the rest.

        One loop of whole lines, not two of shorter iterations, which take longer with prefetches.
        """
        out, steps = self.out, self.spec.line_groups

        def some_steps(values: Sequence[str], count: int) -> list[str]:
            a, b, *accumulators = values
            accumulators = self.turn(panel, accumulators, a, b, count)
            return [self.further(a, count), out.offset(b, count * self.b_row), *accumulators]

        def line(number: str, values: Sequence[str]) -> list[str]:
            self.fetch_ahead(panel, values[0], number)
            return some_steps(values, steps)

        kinds = ["ptr", "ptr", *[self.vector] * (panel.rows * panel.vectors)]
        carried = list(zip(kinds, [a, b, *self.first_accumulators(panel)], strict=True))
        values = repeated(out, out.value(f"udiv i64 {self.depth}, {steps}"), carried, line)
        carried = list(zip(kinds, values, strict=True))
        rest = out.value(f"and i64 {self.depth}, {steps - 1}")
        turns = str(out.part(rest, UNROLL))
        return repeated(out, turns, carried, lambda _, values: some_steps(values, UNROLL))[2:]

    def accumulate_and_copy(self, panel: _Panel, b: str) -> Sequence[str]:
        """The accumulators, as `accumulators`, with B in place, whose panel is also copied: the
        multiply-adds hide the latency of the copy. Of 32 or 64 rows it takes less time than copies
        beforehand."""
        out, packing, steps = self.out, self.packing, self.spec.line_groups
        places = [("ptr", self.a_start), ("ptr", b), ("ptr", packing.columns)]
        carried = [*places, *((self.vector, total) for total in self.first_accumulators(panel))]
        lines = out.part(out.value(f"add i64 {self.depth}, {steps - 1}"), steps)
        outer = Loop(out, lines, [("i64", str(self.depth)), *carried])
        left, *values = outer.values
        self.fetch_ahead(panel, values[0], outer.index)
        # a shorter last round ends the loop
        turns = out.part(out.smaller(left, steps), UNROLL)
        inner = Loop(out, turns, [(k, v) for (k, _), v in zip(carried, values, strict=True)])
        a, b, copy, *accumulators = inner.values
        for k in range(UNROLL):
            place = out.offset(copy, k * self.b_row)
            columns = packing.copy_groups(b, place, panel.vectors, self.mask)
            accumulators = self.rank_1_update(accumulators, self.scalars(panel, a, k), columns)
            b = out.offset(b, out.times(packing.group, "%b.row"))
        following = [self.further(a, UNROLL), b, out.offset(copy, UNROLL * self.b_row)]
        values = inner.close([*following, *accumulators])
        values = outer.close([out.value(f"sub i64 {left}, {steps}"), *values])
        return values[1 + len(places) :]

    def fetch_ahead(self, panel: _Panel, a: str, number: str) -> None:
        """In a round of the loop over K, prefetch a line of each of the next rows of A, and two
        rows, or a line of two columns, of the next panel of B.

        B to the L2 cache, a few lines at a time: an Intel core has 16 outstanding misses of the L1,
        and bursts (as on Zen, `MemoryBlocks.fetch`) make A wait.

        Rows that are a multiple of 4 KiB apart evict each other from the L2 cache before the next
        panel of columns uses them. The figures are in ADR 0033.
        """
        out = self.out
        if not self.spec.a_columns:  # whose lines hold several panels of rows
            there = out.offset(a, self.rows_further)
            for place in self.places:
                out.emit(fetch_line(out.offset(there, place), 3))
        if self.columns_ahead and self.spec.b_columns:
            place = out.offset(self.columns_ahead, out.times(CACHE_LINE, number))
            out.emit(fetch_line(place, 2))
            out.emit(fetch_line(out.offset(place, self.b_pitch), 2))
        elif self.columns_ahead:
            rounds = self.spec.k // self.spec.operand.group // self.spec.line_groups
            count = out.times(panel.rows, self.rows_ahead)
            row = out.value(f"udiv i64 {out.distance(number, count)}, {rounds}")
            place = out.offset(self.columns_ahead, out.distance(row, self.b_pitch))
            self.fetch_columns(panel, place)
            self.fetch_columns(panel, out.offset(place, self.b_pitch))

    def fetch_columns(self, panel: _Panel, place: str) -> None:
        for byte in range(0, int(self.packing.panel_step(panel.vectors)), CACHE_LINE):
            self.out.emit(fetch_line(self.out.offset(place, byte), 2))

    def splat(self, pointer: str) -> str:
        group = super().splat(pointer)
        if not self.packing.signed:
            return group
        return self.out.value(f"xor {self.packing.operand} {group}, splat (i8 -128)")

    def write_back(self, panel: _Panel, c: str, accumulators: Sequence[str]) -> None:
        """The accumulators of the first block are written, those of others added to C."""
        if not self.blocks.first:
            super().write_back(panel, c, accumulators)
            return
        out, (written, added, after) = self.out, (self.out.label() for _ in range(3))
        out.emit(f"br i1 {self.blocks.first}, label %{written}, label %{added}")
        for label, self.adds in ((written, False), (added, True)):
            out.start_block(label)
            super().write_back(panel, c, accumulators)
            out.emit(f"br label %{after}")
        out.start_block(after)

    def sum_before(self, panel: _Panel, base: str, v: int) -> str:
        return self.load_columns(panel, base, v, self.c_row) if self.adds else ""

    def further(self, a: str, k: int) -> str:
        if self.spec.a_columns:
            return self.out.offset(a, self.out.times(k, "%a.row"))
        return super().further(a, k)

    def a_at(self, a: str, i: int, k: int) -> str:
        return self.further(self.out.offset(a, self.places[i]), k)


class _AssembledKernel(_MemoryKernel):
    """A kernel of a column-major B whose loops over rows are functions of `assembled_rows`."""

    def __init__(self, spec: DotSpec) -> None:
        super().__init__(spec)
        self.functions: dict[str, str] = {}

    def text(self, name: str) -> str:
        """Calls are written before the function's name is known."""
        text = super().text(name)
        return "".join([text, *self.functions.values()]).replace("@rows.", f"@{name}.rows.")

    def memory_rows(self, columns: _Columns) -> None:
        out, blocks = self.out, self.blocks
        adds = out.value(f"xor i1 {blocks.first}, true") if blocks.first else "true"
        values: dict[str, Size] = {
            "a": self.a_start, "panel": self.packing.columns,
            "c": accumulators_of_column(out, self.spec, columns.column),
            "depth": self.depth, "rows": "%rows", "a_row": "%a.row",
            "ahead": columns.following or "null", "ahead_row": self.b_pitch,
            "rows_ahead": self.rows_ahead, "adds": out.value(f"zext i1 {adds} to i64"),
        }  # fmt: skip
        first = 0
        for run in row_runs(self.spec, columns.vectors):
            name = f"rows.{columns.vectors}.{first}"
            function = rows_function(name, self.spec, columns.vectors, run, first)
            self.functions[name] = function
            out.emit(call_of_rows(name, values))
            first += run.times * run.size
