"""Matmuls of fp16 by bf16 tiles: each number of fp16 is the sum of two of bf16.

    x = high + low        high: the first 8 bits of its 11, low: the others, both exact
    a b = a.high b.high + a.low b.high + a.low b.low + a.high b.low        each exact in f32

Four AMX instructions take a third of the time of f32 on vectors. Both operands are copied, a step
of K of high parts before that of the low ones:

    A    a row            high of K 0 ... 31 (64 bytes), low of them, high of K 32 ... 63, ...
    B    a group of rows  high of all columns of the panel, low of them

An infinite or NaN element has a NaN as its low part, and its accumulators are NaN. Accumulators of
finite numbers are finite. So where one is NaN, the result is discarded and the loop runs (the
function returns whether all are numbers).
"""

from __future__ import annotations

from tilewright.backends.cpu.microkernel.function_text import Loop, Size, Writer
from tilewright.backends.cpu.microkernel.panel_packing import (
    accumulators_of_column,
    lanes_below,
    masked_load,
)
from tilewright.backends.cpu.microkernel.register_blocking import (
    CACHE_LINE,
    TILE_ROW_BYTES,
    TILE_ROWS,
    DotSpec,
)
from tilewright.backends.cpu.microkernel.tile_copies import RowsOfA

_STEP = TILE_ROW_BYTES // 2
"""Elements along K in a row of a tile."""

LINE = f"<{_STEP} x i16>"
"""The type of one load of a row of A."""

ORDER_OF_PARTS = ((0, 0), (0, 1), (1, 1), (1, 0))
"""Parts of A and of B, so that one operand stays from one multiply-add to the next, A more often,
from the L2."""


class SplitRowsOfA:
    """Copies of all rows of a block, in whole panels, with zeros after the end of K."""

    def __init__(self, spec: DotSpec, out: Writer, panel_rows: int) -> None:
        self.spec, self.out, self.copy = spec, out, "%copy.of.a"
        # a line more, or the rows of a tile would share cache sets
        self.pitch = spec.k * spec.operand.bytes * spec.operand.parts + CACHE_LINE
        rows = -(-spec.m // panel_rows) * panel_rows
        out.emit(f"{self.copy} = alloca [{rows * self.pitch} x i8], align {CACHE_LINE}")
        self.last = out.value("sub i64 %rows, 1")
        above = out.value(f"add i64 %rows, {panel_rows - 1}")
        self.whole = out.value(f"and i64 {above}, {-panel_rows}")

    def fill(self, a: str, length: str, _index: str) -> None:
        """Copy a block."""
        out = self.out
        steps = out.part(out.value(f"add i64 {length}, {_STEP - 1}"), _STEP)
        loop = Loop(out, self.whole, [("ptr", self.copy)])
        (target,) = loop.values
        source = out.offset(a, out.distance(out.smaller(loop.index, self.last), "%a.row"))
        along = Loop(out, steps, [("ptr", source), ("ptr", target), ("i64", length)])
        place, to, left = along.values
        line = masked_load(out, LINE, place, lanes_below(out, _STEP, left), 2)
        for n, part in enumerate(_parts_of_line(out, line)):
            there = out.offset(to, n * TILE_ROW_BYTES)
            out.emit(f"store {LINE} {part}, ptr {there}, align {CACHE_LINE}")
        along.close([
            out.offset(place, TILE_ROW_BYTES), out.offset(to, 2 * TILE_ROW_BYTES),
            out.value(f"sub i64 {left}, {_STEP}"),
        ])  # fmt: skip
        loop.close([out.offset(target, self.pitch)])

    def rows_from(self, row: Size, place: str) -> RowsOfA:
        """The rows of a panel."""
        copy = self.out.offset(self.copy, self.out.distance(row, self.pitch))
        return RowsOfA(copy, self.pitch, self.spec.operand.parts * TILE_ROW_BYTES)


def _high_and_rest(out: Writer, halves: str, lanes: int) -> tuple[str, str]:
    """The bits of numbers as f32, and the rest beyond their first 16 bits."""
    floats, words = f"<{lanes} x float>", f"<{lanes} x i32>"
    numbers = out.value(f"bitcast <{lanes} x i16> {halves} to <{lanes} x half>")
    wide = out.value(f"fpext <{lanes} x half> {numbers} to {floats}")
    bits = out.value(f"bitcast {floats} {wide} to {words}")
    first = out.value(f"and {words} {bits}, splat (i32 -65536)")
    rest = out.value(f"fsub {floats} {wide}, {out.value(f'bitcast {words} {first} to {floats}')}")
    return first, out.value(f"bitcast {floats} {rest} to {words}")


def _parts_of_line(out: Writer, line: str) -> list[str]:
    """High and low parts of neighbours along K."""
    odd = ", ".join(f"i32 {2 * n + 1}" for n in range(_STEP))
    words, both = f"<{_STEP} x i32>", f"<{2 * _STEP} x i16>"
    cut = [
        out.value(f"bitcast {words} {bits} to {both}") for bits in _high_and_rest(out, line, _STEP)
    ]
    mask = f"<{_STEP} x i32> <{odd}>"
    return [out.value(f"shufflevector {both} {x}, {both} poison, {mask}") for x in cut]


def parts_of_groups(out: Writer, groups: str, kind: str) -> list[str]:
    """High and low parts of a vector of groups, two neighbours along K in each lane."""
    words, narrow = f"<{TILE_ROWS} x i32>", f"<{TILE_ROWS} x i16>"
    bits = out.value(f"bitcast {kind} {groups} to {words}")
    upper = out.value(f"lshr {words} {bits}, splat (i32 16)")
    sides = [out.value(f"trunc {words} {x} to {narrow}") for x in (bits, upper)]
    parts = zip(*(_high_and_rest(out, side, TILE_ROWS) for side in sides), strict=True)
    joined: list[str] = []
    for first, second in parts:
        below = out.value(f"lshr {words} {first}, splat (i32 16)")
        joined.append(out.value(f"or {words} {below}, {second}"))
    return [out.value(f"bitcast {words} {x} to {kind}") for x in joined]


def accumulators_are_numbers(out: Writer, spec: DotSpec) -> str:
    """Whether no accumulator is NaN (i1)."""
    none, vector = f"<{TILE_ROWS} x i1>", f"<{TILE_ROWS} x float>"
    above = out.value(f"add i64 %columns, {TILE_ROWS - 1}")
    across = Loop(out, out.part(above, TILE_ROWS), [("i64", "%columns"), (none, "zeroinitializer")])
    left, seen = across.values
    top = accumulators_of_column(out, spec, out.value(f"mul i64 {across.index}, {TILE_ROWS}"))
    down = Loop(out, "%rows", [("ptr", top), (none, seen)])
    place, before = down.values
    accumulators = out.value(f"load {vector}, ptr {place}, align {CACHE_LINE}")
    odd = out.value(f"fcmp uno {vector} {accumulators}, zeroinitializer")
    inside = out.value(f"and {none} {odd}, {lanes_below(out, TILE_ROWS, left)}")
    after = out.value(f"or {none} {before}, {inside}")
    down.close([out.offset(place, spec.strides.ldc * spec.type.bytes), after])
    across.close([out.value(f"sub i64 {left}, {TILE_ROWS}"), after])
    bits = out.value(f"bitcast {none} {after} to i{TILE_ROWS}")
    return out.value(f"icmp eq i{TILE_ROWS} {bits}, 0")
