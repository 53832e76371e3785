"""Lines of LLVM IR for one function body: fresh names, blocks, counted loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

Size = int | str
"""A number, or the name of an i64 that holds it."""


class Writer:
    """The lines so far; `block` is the label of the block that the next line goes to."""

    def __init__(self) -> None:
        self.lines = ["entry:"]
        self.block = "entry"
        self._names = 0
        self._places: dict[tuple[str, Size], str] = {}

    def name(self) -> str:
        """An unused value name."""
        self._names += 1
        return f"%v{self._names}"

    def label(self) -> str:
        """An unused block label."""
        self._names += 1
        return f"b{self._names}"

    def emit(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {text}")

    def value(self, text: str) -> str:
        """Append an instruction, return the name of its result."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def start_block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label
        self._places.clear()

    def times(self, count: int, size: Size) -> Size:
        """count * size."""
        if isinstance(size, int):
            return count * size
        return size if count == 1 else self.value(f"mul i64 {size}, {count}") if count else 0

    def distance(self, place: Size, size: Size) -> Size:
        """place * size."""
        if isinstance(place, int):
            return self.times(place, size)
        if isinstance(size, int):
            return self.times(size, place)
        return self.value(f"mul i64 {place}, {size}")

    def part(self, size: Size, divisor: int) -> Size:
        """A quotient without remainder."""
        if isinstance(size, int):
            return size // divisor
        return size if divisor == 1 else self.value(f"udiv i64 {size}, {divisor}")

    def smaller(self, x: Size, y: Size) -> Size:
        """The minimum of two sizes."""
        if isinstance(x, int) and isinstance(y, int):
            return min(x, y)
        return self.value(f"call i64 @llvm.umin.i64(i64 {x}, i64 {y})")

    def offset(self, pointer: str, distance: Size) -> str:
        """`pointer` moved by `distance` bytes; once in a block."""
        if not distance:
            return pointer
        place = self._places.get((pointer, distance))
        if place is None:
            place = self.value(f"getelementptr inbounds i8, ptr {pointer}, i64 {distance}")
            self._places[pointer, distance] = place
        return place


class Loop:
    """A loop of `turns` iterations that stays open until `close`; a single iteration becomes
    straight code; if their number is a name, it is 1 at least

    carried: (type, start value) of each loop-carried value. `values` are their names in the body,
    `index` is that of the number of the iteration.
    """

    def __init__(self, out: Writer, turns: Size, carried: Sequence[tuple[str, str]]) -> None:
        self._out, self._turns, self.index = out, turns, "0"
        self.values = [start for _, start in carried]
        if turns != 1:
            self._carried = [("i64", "0"), *carried]
            self._entry, self._label = out.block, out.label()
            out.emit(f"br label %{self._label}")
            out.start_block(self._label)
            self._phis_at = len(out.lines)
            self.index, *self.values = [out.name() for _ in self._carried]

    def close(self, results: Sequence[str]) -> Sequence[str]:
        """End the body with the values of the next iteration; the same names hold them
        afterwards."""
        if self._turns != 1:
            out, leave = self._out, self._out.label()
            following = out.value(f"add nuw nsw i64 {self.index}, 1")
            done = out.value(f"icmp eq i64 {following}, {self._turns}")
            out.emit(f"br i1 {done}, label %{leave}, label %{self._label}")
            # Late, since the phis name results of the body; before the next block, because
            # `out.block` still is the latch.
            out.lines[self._phis_at : self._phis_at] = self._phis([following, *results])
            out.start_block(leave)
        return results

    def _phis(self, results: Sequence[str]) -> list[str]:
        names, latch = [self.index, *self.values], self._out.block
        return [
            f"  {name} = phi {kind} [ {start}, %{self._entry} ], [ {result}, %{latch} ]"
            for name, (kind, start), result in zip(names, self._carried, results, strict=True)
        ]


def repeated(
    out: Writer,
    turns: str,
    carried: Sequence[tuple[str, str]],
    body: Callable[[str, Sequence[str]], Sequence[str]],
) -> list[str]:
    """The loop-carried values (type, start value) after `turns` iterations, perhaps none.

    body: emits an iteration, of its number and the values before
    """
    before, inside, after = out.block, out.label(), out.label()
    some = out.value(f"icmp ne i64 {turns}, 0")
    out.emit(f"br i1 {some}, label %{inside}, label %{after}")
    out.start_block(inside)
    loop = Loop(out, turns, carried)
    results = loop.close(body(loop.index, loop.values))
    end = out.block
    out.emit(f"br label %{after}")
    out.start_block(after)
    return [
        out.value(f"phi {kind} [ {start}, %{before} ], [ {result}, %{end} ]")
        for (kind, start), result in zip(carried, results, strict=True)
    ]


class Run(NamedTuple):
    """`times` panels, one after the other, of `size` rows (or vectors of columns) each."""

    times: int
    size: int


def panels(
    out: Writer, runs: Sequence[Run], unit: int, extent: Size, start: Size = 0
) -> Iterator[tuple[Run, Size]]:
    """Loops over the panels that begin before an extent, 1 at least, with the start of each; the
    body is emitted for each run between two steps of the iterator.

    unit: rows (or columns) of a panel of size 1; extent: a number is that of all runs; start: in
    the first run, a number is 0
    """
    end = 0
    for index, run in enumerate(runs):
        step, after, first = run.size * unit, "", end if end else start
        turns: Size = run.times
        end += run.times * step
        if first and isinstance(extent, str):
            after, inside = out.label(), out.label()
            begins = out.value(f"icmp ugt i64 {extent}, {first}")
            out.emit(f"br i1 {begins}, label %{inside}, label %{after}")
            out.start_block(inside)
        counts = run.times > 1 or isinstance(first, str)
        if counts and isinstance(extent, str):
            last = extent if index == len(runs) - 1 else out.smaller(extent, end)
            left = out.value(f"sub i64 {last}, {first}") if first else last
            turns = out.part(out.value(f"add i64 {left}, {step - 1}"), step)
        loop = Loop(out, turns, [("i64", str(first))])
        place: Size = loop.values[0] if counts else first
        yield run, place
        loop.close([out.value(f"add i64 {place}, {step}")] if counts else [""])
        if after:
            out.emit(f"br label %{after}")
            out.start_block(after)
