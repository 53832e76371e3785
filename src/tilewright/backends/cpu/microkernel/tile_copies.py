"""Copies for matmuls of matrices in memory: cached panels of B, and for tiles rows of A.

A tile is loaded from 16 rows of A, a cache line of each. Where rows are not aligned to cache lines,
it reads twice as many, and rows that are a power of two apart evict each other from the L2 cache.
Such rows are copied, tile after tile, for each block of K:

    for each panel of 32 rows
        for each 64 bytes of K: 32 lines

Panels of B are cached for the next matmul if that one has the same columns (gemm_groups.py). Copies
of A are cached for those with the same rows, which programs of a few columns use again after those
of all other rows of their group.
"""

from __future__ import annotations

from typing import NamedTuple

from tilewright.backends.cpu.microkernel.function_text import Loop, Size, Writer
from tilewright.backends.cpu.microkernel.panel_packing import Packing, masked_load
from tilewright.backends.cpu.microkernel.register_blocking import (
    CACHE_LINE,
    KEPT_ROWS,
    KEY_NUMBERS,
    PANEL_ROWS,
    TILE_ROW_BYTES,
    DotSpec,
    copied_bytes,
    kept_blocks,
    kept_columns_bytes,
    kept_rows_blocks,
)

_MOST_SPAN = 1 << 20
"""Limit of rows times the power of two that divides their distance. The L2 cache of CPUs with AMX
has 16 ways of 128 KiB: with more, a block of K fills half of the ways of its sets."""

_COLUMNS_OF_A_COPY = 64
"""Columns whose matmul takes about as long as copying rows of A."""

_MOST_COLUMNS_OF_KEPT_ROWS = 256
"""Columns up to which rows of A are cached: for more, copies from the L3 cache are as fast as rows
that are copied once."""

_KEY_BYTES = 32  # four numbers
_NEXT_SLOT = _KEY_BYTES


class RowsOfA(NamedTuple):
    """Address of a panel of rows, the bytes from one to the next, and those of a step along K."""

    place: str
    pitch: Size
    step: Size = TILE_ROW_BYTES


class _Slots(NamedTuple):
    """Cached copies of rows: the keys, the slot of some rows, whether they are cached (i1), have
    been used before, are copied."""

    key: str
    slot: str
    keeps: str
    again: str
    copied: str


def empty_key(out: Writer) -> str:
    """A key that matches nothing, on the stack."""
    kind = f"[{KEY_NUMBERS} x i64]"
    none = out.value(f"alloca {kind}, align 32")
    out.emit(f"store {kind} zeroinitializer, ptr {none}, align 32")
    return none


def key_of(out: Writer, start: str, row: str, count: str) -> str:
    """The key of copied rows or columns."""
    key = "poison"
    begins = out.value(f"ptrtoint ptr {start} to i64")
    for lane, part in enumerate((begins, row, "%depth", count)):
        key = out.value(f"insertelement <4 x i64> {key}, i64 {part}, i64 {lane}")
    return key


def is_key(out: Writer, place: str, key: str) -> str:
    """Whether memory holds a key (i1)."""
    there = out.value(f"load <4 x i64>, ptr {place}, align 8")
    differs = out.value(f"icmp ne <4 x i64> {there}, {key}")
    return out.value(f"icmp eq i4 {out.value(f'bitcast <4 x i1> {differs} to i4')}, 0")


class CopiesOfA:
    """Copies of rows of A: of the last panel where a tile would extend beyond the last row or
    beyond the end of K; of all, if they are slow in place, and for the end of K.

    all: whether all rows of every block are copied (i1), with zeros after the end of K
    """

    def __init__(self, spec: DotSpec, out: Writer, key: str) -> None:
        self.spec, self.out = spec, out
        self.copy = "%copy.of.a"
        self.block = copied_bytes(spec)
        out.emit(f"{self.copy} = alloca [{self.block} x i8], align {CACHE_LINE}")
        self.last = out.value("sub i64 %rows, 1")
        self.first = out.value(f"and i64 {self.last}, {-PANEL_ROWS}")
        past = out.value(f"and i64 %rows, {PANEL_ROWS - 1}")
        self.partial = out.value(f"icmp ne i64 {past}, 0")
        self.is_whole = self.row = self.moved = ""
        self.ready = "false"
        crosses, collide = self._slow_in_place()
        self._decide(crosses, collide, key)

    def _decide(self, crosses: str, collide: str, key: str) -> None:
        """Decide which rows are copied to which memory. Rows of a few columns are copied the second
        time: they may not be used again."""
        out, blocks = self.out, kept_rows_blocks(self.spec)
        copied = key_of(out, "%a", "%a.row", "%rows")
        seen = out.value(f"xor <4 x i64> {copied}, splat (i64 -1)")
        slow = out.value(f"or i1 {crosses}, {collide}")
        slots = self._find(slow, key, copied, seen)
        wide = out.value(f"icmp ugt i64 %columns, {_COLUMNS_OF_A_COPY}")
        pays = out.value(f"or i1 {wide}, {slots.again}")
        pays = out.value(f"and i1 {pays}, {crosses}")
        self.all = out.value(f"or i1 {pays}, {collide}")
        self.ready = slots.copied
        note = out.value(f"select i1 {self.all}, <4 x i64> {copied}, <4 x i64> {seen}")
        here = out.offset(slots.key, out.value(f"mul i64 {slots.slot}, {_KEY_BYTES}"))
        out.emit(f"store <4 x i64> {note}, ptr {out.offset(here, 2 * _KEY_BYTES)}, align 8")
        place = out.offset("%kept", kept_columns_bytes(self.spec))
        place = out.offset(place, out.times(blocks * self.block, slots.slot))
        self.start = out.value(f"select i1 {slots.keeps}, ptr {place}, ptr {self.copy}")
        self.stride = out.value(f"select i1 {slots.keeps}, i64 {self.block}, i64 0")

    def _slow_in_place(self) -> tuple[str, str]:
        """Whether rows are not aligned to cache lines; whether they evict each other."""
        out = self.out
        begins = out.value("ptrtoint ptr %a to i64")
        bits = out.value(f"or i64 {begins}, %a.row")
        past = out.value(f"and i64 {bits}, {CACHE_LINE - 1}")
        negative = out.value("sub i64 0, %a.row")
        period = out.value(f"and i64 %a.row, {negative}")
        span = out.value(f"mul i64 %rows, {period}")
        crosses = out.value(f"icmp ne i64 {past}, 0")
        return crosses, out.value(f"icmp ugt i64 {span}, {_MOST_SPAN}")

    def _find(self, slow: str, key: str, copied: str, seen: str) -> _Slots:
        """The slot of the rows, the next one if they have none."""
        out, spec = self.out, self.spec
        keeps = out.value("icmp ne ptr %kept, null")
        few = out.value(f"icmp ule i64 %columns, {_MOST_COLUMNS_OF_KEPT_ROWS}")
        fits = out.value(f"icmp ule i64 %depth, {kept_rows_blocks(spec) * spec.k}")
        for condition in (few, fits, slow):
            keeps = out.value(f"and i1 {keeps}, {condition}")
        key = out.value(f"select i1 {keeps}, ptr {key}, ptr {empty_key(out)}")
        following = out.offset(key, _NEXT_SLOT)
        free = slot = out.value(f"load i64, ptr {following}")
        again = ready = "false"
        for n in range(KEPT_ROWS):
            place = out.offset(key, (n + 2) * _KEY_BYTES)
            is_copied, is_seen = (is_key(out, place, wanted) for wanted in (copied, seen))
            same = out.value(f"or i1 {is_copied}, {is_seen}")
            ready = out.value(f"or i1 {ready}, {is_copied}")
            again = out.value(f"or i1 {again}, {same}")
            slot = out.value(f"select i1 {same}, i64 {n}, i64 {slot}")
        later = out.value(f"add i64 {free}, 1")
        later = out.value(f"and i64 {later}, {KEPT_ROWS - 1}")
        later = out.value(f"select i1 {again}, i64 {free}, i64 {later}")
        out.emit(f"store i64 {later}, ptr {following}")
        return _Slots(key, slot, keeps, again, ready)

    def fill(self, a: str, length: str, index: str) -> None:
        """Copy the needed rows of a block."""
        out, size = self.out, self.spec.operand.bytes
        self.copy = out.offset(self.start, out.distance(index, self.stride))
        step = TILE_ROW_BYTES // size
        short = out.value(f"icmp ult i64 {length}, {step}")
        self.is_whole = whole = out.value(f"or i1 {short}, {self.all}")
        some = out.value(f"or i1 {whole}, {self.partial}")
        some = out.value(f"select i1 {self.ready}, i1 false, i1 {some}")
        self.moved = out.value(f"select i1 {whole}, i64 0, i64 {self.first}")
        all_rows = out.value(f"add i64 {self.first}, {PANEL_ROWS}")
        turns = out.value(f"select i1 {whole}, i64 {all_rows}, i64 {PANEL_ROWS}")
        steps = out.part(out.value(f"add i64 {length}, {step - 1}"), step)
        self.row = out.value(f"mul i64 {steps}, {TILE_ROW_BYTES}")
        label, after = out.label(), out.label()
        out.emit(f"br i1 {some}, label %{label}, label %{after}")
        out.start_block(label)
        loop = Loop(out, turns, [("i64", self.moved)])
        (row,) = loop.values
        source = out.offset(a, out.distance(out.smaller(row, self.last), "%a.row"))
        inside = out.value(f"and i64 {loop.index}, {PANEL_ROWS - 1}")
        panel = out.value(f"sub i64 {loop.index}, {inside}")
        target = out.offset(self.copy, out.distance(panel, self.row))
        target = out.offset(target, out.times(TILE_ROW_BYTES, inside))
        self._copy_row(source, target, steps, str(out.times(size, length)))
        loop.close([out.value(f"add i64 {row}, 1")])
        out.emit(f"br label %{after}")
        out.start_block(after)

    def _copy_row(self, source: str, target: str, steps: Size, size: str) -> None:
        """Copy the lines of a row, with zeros after its end; size: its bytes."""
        out = self.out
        loop = Loop(out, steps, [("ptr", source), ("ptr", target), ("i64", size)])
        place, there, left = loop.values
        past = out.value(f"sub i64 {TILE_ROW_BYTES}, {out.smaller(left, TILE_ROW_BYTES)}")
        mask = out.value(f"bitcast i64 {out.value(f'lshr i64 -1, {past}')} to <64 x i1>")
        line = masked_load(out, "<64 x i8>", place, mask, self.spec.operand.bytes)
        out.emit(f"store <64 x i8> {line}, ptr {there}, align {CACHE_LINE}")
        loop.close([
            out.offset(place, TILE_ROW_BYTES), out.offset(there, PANEL_ROWS * TILE_ROW_BYTES),
            out.value(f"sub i64 {left}, {TILE_ROW_BYTES}"),
        ])  # fmt: skip

    def rows_from(self, row: Size, place: str) -> RowsOfA:
        """The rows of a panel."""
        out = self.out
        last = out.value(f"icmp eq i64 {row}, {self.first}")
        copied = out.value(f"or i1 {self.is_whole}, {out.value(f'and i1 {last}, {self.partial}')}")
        number = out.value(f"sub i64 {row}, {self.moved}")
        copy = out.offset(self.copy, out.distance(number, self.row))
        pitch = out.value(f"select i1 {copied}, i64 {TILE_ROW_BYTES}, i64 %a.row")
        tile = PANEL_ROWS * TILE_ROW_BYTES
        step = out.value(f"select i1 {copied}, i64 {tile}, i64 {TILE_ROW_BYTES}")
        return RowsOfA(out.value(f"select i1 {copied}, ptr {copy}, ptr {place}"), pitch, step)


class KeptPanels:
    """Panels of B in memory that lasts from one matmul to the next, as long as %keep holds and
    there is room.

    %kept: the memory, or null; %key: its key: of B the address, bytes of a row, K, columns
    """

    def __init__(self, packing: Packing) -> None:
        self.packing, self.out = packing, packing.out
        out, spec = self.out, packing.spec
        self.stack = packing.columns
        self.vector = packing.panel_bytes(1)
        self.block, self.blocks = self.vector * (spec.n // spec.lanes), kept_blocks(spec)
        some = out.value("icmp ne ptr %kept, null")
        self.key = key = out.value(f"select i1 {some}, ptr %key, ptr {empty_key(out)}")
        wanted = key_of(out, "%b", "%b.row", "%columns")
        same = is_key(out, key, wanted)
        self.same = out.value(f"and i1 {some}, {same}")
        keeps = out.value(f"and i1 {some}, %keep")
        self.used = out.value(f"or i1 {self.same}, {keeps}")
        now = out.value(f"select i1 {self.used}, <4 x i64> {wanted}, <4 x i64> zeroinitializer")
        out.emit(f"store <4 x i64> {now}, ptr {key}, align 8")
        self.ready = self.start = self.width = ""

    def begin_block(self, index: str) -> None:
        """Begin a block of K."""
        out = self.out
        fits = out.value(f"icmp ult i64 {index}, {self.blocks}")
        here = out.value(f"and i1 {self.used}, {fits}")
        self.ready = out.value(f"and i1 {self.same}, {fits}")
        place = out.offset("%kept", out.times(self.block, index))
        self.start = out.value(f"select i1 {here}, ptr {place}, ptr {self.stack}")
        lane = self.vector // self.packing.lanes
        self.width = out.value(f"select i1 {here}, i64 {lane}, i64 0")

    def find(self, column: Size) -> None:
        """Set the address of panels that begin with a column."""
        out = self.out
        self.packing.columns = out.offset(self.start, out.distance(column, self.width))

    def following(self, place: str, vectors: int) -> tuple[str, str]:
        """The address from which the next panel is read, and bytes from row (or column) to row:
        here if it is cached, else in B."""
        out, packing = self.out, self.packing
        size, depth = packing.panel_bytes(vectors), packing.spec.k
        behind = out.offset(packing.columns, size)
        row = depth * packing.size if packing.spec.b_columns else size // depth
        place = out.value(f"select i1 {self.ready}, ptr {behind}, ptr {place}")
        return place, out.value(f"select i1 {self.ready}, i64 {row}, i64 {packing.b_row}")

    def begin_panels(self) -> str:
        """Skip the next code if the panels are cached."""
        out = self.out
        copy, ready = out.label(), out.label()
        out.emit(f"br i1 {self.ready}, label %{ready}, label %{copy}")
        out.start_block(copy)
        return ready

    def end_panels(self, ready: str) -> None:
        """The label to skip to."""
        self.out.emit(f"br label %{ready}")
        self.out.start_block(ready)
