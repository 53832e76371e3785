"""Emits matmuls by AMX: registers that are tiles of 16 rows of 64 bytes, and one instruction that
multiplies two of them.

    acc[16, 16] += a[16, 16 groups] @ b[16 groups, 16]        a group: 2 of bf16, 4 of bytes

A register holds rows of A as they are in memory; the groups of B are contiguous, as `panel_packing`
copies it. A panel of 32 x 32 accumulators is four registers, and each step of K loads two of A and
two of B:

    for each panel of 32 columns
        copy the columns of B                        # 64 bytes x 2 for each group of rows;
        for each panel of 32 rows                    # from memory several panels together
            acc[2][2] = C[panel]
            for each 64 bytes of K
                load a[0], a[1], b[0], b[1]
                acc[i][j] += a[i] @ b[j]             # 16 cycles each, as long as two loads
            C[panel] = acc

The registers are named by number: sizes are constants, so LLVM's allocation of tiles has nothing to
decide, and would load a configuration of its own (some 100 cycles) in each function. All kernels
use one, `TILE_CONFIGURATION`, which their entry loads.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tilewright.backends.cpu.microkernel.function_text import Loop, Run, Size, Writer, panels
from tilewright.backends.cpu.microkernel.panel_packing import (
    MemoryBlocks,
    Packing,
    accumulators_of_column,
    function,
    memory_declarations,
)
from tilewright.backends.cpu.microkernel.register_blocking import (
    PAIR,
    PANEL_ROWS,
    TILE_ROW_BYTES,
    TILE_ROWS,
    DotSpec,
    column_runs,
)
from tilewright.backends.cpu.microkernel.split_halves import (
    ORDER_OF_PARTS,
    SplitRowsOfA,
    accumulators_are_numbers,
    parts_of_groups,
)
from tilewright.backends.cpu.microkernel.tile_copies import CopiesOfA, KeptPanels, RowsOfA

_FIRST_OF_A, _FIRST_OF_B = 4, 6

_MULTIPLY = {"bfloat": "tdpbf16ps", "half": "tdpbf16ps", "i8": "tdpbssd", "u8": "tdpbusd"}


def dot_declarations(spec: DotSpec) -> tuple[str, ...]:
    """See `blocked_loops.dot_declarations`."""
    number = "i8 immarg"
    return (
        *memory_declarations(spec),
        f"declare void @llvm.x86.{_MULTIPLY[spec.element]}({number}, {number}, {number})",
        *(
            f"declare void @llvm.x86.{load}({number}, ptr, i64)"
            for load in dict.fromkeys(("tileloadd64", _load_of_a(spec)))
        ),
        f"declare void @llvm.x86.tilestored64({number}, ptr, i64)",
        f"declare void @llvm.x86.tilezero({number})",
    )


def _load_of_a(spec: DotSpec) -> str:
    """The instruction that loads A. A panel's rows of matrices in memory are read once, from the L2
    cache: the hint keeps panels of B in the L1."""
    return "tileloaddt164" if spec.from_memory else "tileloadd64"


def dot_function(name: str, spec: DotSpec) -> str:
    """See `blocked_loops.dot_function`; the caller has loaded TILE_CONFIGURATION."""
    kernel = _TileKernel(spec)
    kernel.blocks()
    result = accumulators_are_numbers(kernel.out, spec) if spec.may_fail else ""
    return function(name, spec, kernel.out, result)


class _TileKernel:
    """Appends the loops of one matmul to `out`."""

    def __init__(self, spec: DotSpec) -> None:
        self.spec, self.out = spec, Writer()
        self.packing = Packing(spec, self.out)
        self.a_row: Size = spec.strides.lda * spec.operand.bytes
        self.c_row = spec.strides.ldc * spec.type.bytes
        self.multiply, self.parts = _MULTIPLY[spec.element], spec.operand.parts
        self.copies: CopiesOfA | SplitRowsOfA | None = None
        self.memory: MemoryBlocks | None = None
        self.kept: KeptPanels | None = None
        self.b_panel = self.packing.columns
        self.rows: Size = spec.m
        self.columns: Size = spec.n

    def blocks(self) -> None:
        """The whole matmul: from memory one block of K after the other."""
        self.packing.reserve()
        if not self.spec.from_memory:
            self.column_panels("%a", "%b")
            return
        self.a_row, self.packing.b_row = "%a.row", "%b.row"
        self.rows, self.columns = "%rows", "%columns"
        self.kept = KeptPanels(self.packing)
        if self.spec.may_fail:
            copies = SplitRowsOfA(self.spec, self.out, PANEL_ROWS)
            self.packing.parts = partial(parts_of_groups, self.out, kind=self.packing.operand)
            memory = MemoryBlocks(self.packing)
        else:
            copies = CopiesOfA(self.spec, self.out, self.kept.key)
            whole = TILE_ROW_BYTES // self.spec.operand.bytes
            memory = MemoryBlocks(self.packing, whole, copies.all)
        self.memory, self.copies = memory, copies
        a, b, self.packing.groups = memory.values
        copies.fill(a, memory.length, memory.index)
        self.kept.begin_block(memory.index)
        self.column_panels(a, b)
        memory.close()

    def column_panels(self, a: str, b: str) -> None:
        out, packing = self.out, self.packing
        for run, column in panels(out, column_runs(self.spec), TILE_ROWS, self.columns):
            width = packing.b_row if self.spec.b_columns else packing.size
            left: Size = self.columns
            if isinstance(left, str):
                left = out.value(f"sub i64 {left}, {column}")
            across, ready = min(run.size, PAIR), ""
            if self.kept is not None:
                self.kept.find(column)
                ready = self.kept.begin_panels()
            packing.pack_columns(out.offset(b, out.distance(column, width)), run.size, left)
            if self.kept is not None:
                for n in range(0, run.size, across):
                    self.pad_groups(out.offset(packing.columns, packing.panel_bytes(n)), across)
                self.kept.end_panels(ready)
            turns: Size = run.size // across
            if isinstance(left, str) and turns != 1:
                begun = out.value(f"add i64 {left}, {across * TILE_ROWS - 1}")
                turns = out.smaller(out.part(begun, across * TILE_ROWS), turns)
            loop = Loop(out, turns, [("ptr", packing.columns)])
            (self.b_panel,) = loop.values
            begins = column
            if turns != 1:
                inside = out.times(across * TILE_ROWS, loop.index)
                begins = out.value(f"add i64 {column}, {inside}")
            self.row_panels(accumulators_of_column(out, self.spec, begins), a, across)
            loop.close([out.offset(self.b_panel, packing.panel_bytes(across))])

    def pad_groups(self, panel: str, across: int) -> None:
        """Write zeros after a packed panel, up to a whole number of tiles."""
        out, row = self.out, across * self.parts * TILE_ROW_BYTES
        groups = self.packing.groups
        rest = out.value(f"and i64 {groups}, {TILE_ROWS - 1}")
        label, after = out.label(), out.label()
        some = out.value(f"icmp ne i64 {rest}, 0")
        out.emit(f"br i1 {some}, label %{label}, label %{after}")
        out.start_block(label)
        end = out.offset(panel, out.distance(groups, row))
        turns = out.value(f"sub i64 {TILE_ROWS}, {rest}")
        loop = Loop(out, turns, [("ptr", end)])
        (place,) = loop.values
        out.emit(f"store <{row} x i8> zeroinitializer, ptr {place}, align {TILE_ROW_BYTES}")
        loop.close([out.offset(place, row)])
        out.emit(f"br label %{after}")
        out.start_block(after)

    def row_panels(self, c: str, a: str, across: int) -> None:
        """All rows of `across` tiles of columns."""
        out = self.out
        full, rest = divmod(self.spec.m // TILE_ROWS, PAIR)
        runs = [run for run in (Run(full, PAIR), Run(1, rest)) if run.times * run.size]
        for run, row in panels(out, runs, TILE_ROWS, self.rows):
            rows = RowsOfA(out.offset(a, out.distance(row, self.a_row)), self.a_row)
            if self.copies is not None:
                rows = self.copies.rows_from(row, rows.place)
            self.panel(out.offset(c, out.times(self.c_row, row)), rows, run.size, across)

    def panel(self, c: str, a: RowsOfA, down: int, across: int) -> None:
        """The accumulators of down x across tiles."""
        places = [(i, j) for i in range(down) for j in range(across)]
        tiles = {
            PAIR * i + j: self.out.offset(c, i * TILE_ROWS * self.c_row + j * TILE_ROW_BYTES)
            for i, j in places
        }
        self.start_accumulators(tiles)
        self.steps(a, down, across)
        for tile, place in tiles.items():
            self.call("tilestored64", f"i8 {tile}, ptr {place}, i64 {self.c_row}")

    def start_accumulators(self, tiles: Mapping[int, str]) -> None:
        """Start the accumulators with zeros or with C."""
        out, after = self.out, ""
        if not self.spec.accumulate:
            for tile in tiles:
                self.call("tilezero", f"i8 {tile}")
            if self.memory is None:
                return
            further, after = out.label(), out.label()
            out.emit(f"br i1 {self.memory.first}, label %{after}, label %{further}")
            out.start_block(further)
        for tile, place in tiles.items():
            self.load(tile, place, self.c_row)
        if after:
            out.emit(f"br label %{after}")
            out.start_block(after)

    def steps(self, rows: RowsOfA, down: int, across: int) -> None:
        """The loop over K."""
        out, b_row = self.out, across * self.parts * TILE_ROW_BYTES
        groups = self.packing.groups
        if isinstance(groups, str):
            groups = out.value(f"add i64 {groups}, {TILE_ROWS - 1}")
        loop = Loop(out, out.part(groups, TILE_ROWS), [("ptr", rows.place), ("ptr", self.b_panel)])
        a, b = loop.values
        now: tuple[int, ...] = ()
        for parts in ORDER_OF_PARTS[: self.parts**2]:
            if now[:1] != parts[:1]:
                self.load_a(out.offset(a, parts[0] * TILE_ROW_BYTES), rows.pitch, down)
            if now[1:] != parts[1:]:
                for j in range(across):
                    place = out.offset(b, (parts[1] * across + j) * TILE_ROW_BYTES)
                    self.load(_FIRST_OF_B + j, place, b_row)
            for i, j in ((i, j) for i in range(down) for j in range(across)):
                tiles = (PAIR * i + j, _FIRST_OF_A + i, _FIRST_OF_B + j)
                self.call(self.multiply, ", ".join(f"i8 {tile}" for tile in tiles))
            now = parts
        loop.close([out.offset(a, rows.step), out.offset(b, TILE_ROWS * b_row)])

    def load_a(self, a: str, a_row: Size, down: int) -> None:
        for i in range(down):
            place = self.out.offset(a, self.out.times(i * TILE_ROWS, a_row))
            operands = f"i8 {_FIRST_OF_A + i}, ptr {place}, i64 {a_row}"
            self.call(_load_of_a(self.spec), operands)

    def load(self, tile: int, place: str, row: Size) -> None:
        self.call("tileloadd64", f"i8 {tile}, ptr {place}, i64 {row}")

    def call(self, name: str, operands: str) -> None:
        self.out.emit(f"call void @llvm.x86.{name}({operands})")
