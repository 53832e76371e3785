"""Scans: within a thread, then over lanes by butterfly shuffles, then over warps in shared memory.

A scannable layout (layout_propagation.py) numbers the elements along the axis by register bits,
then lanes, then warps, then register bits again: each thread holds a *run* of neighbours in each of
several *chunks*. So every element's result is, from left to right,

    what lies in earlier chunks or warps  .  in earlier lanes  .  in the run up to the element

where the first two may be missing. The order of combination is that of the axis, so the function
need be associative only. A reverse scan is the same with every order turned around.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.backends.nvidia.layouts.layout_propagation import axis_order
from tilewright.backends.nvidia.lower.combine_regions import apply_region
from tilewright.backends.nvidia.lower.global_memory import shared_load, shared_store
from tilewright.backends.nvidia.lower.gpu_lowering import (
    GpuLowering,
    gathered_bits,
    layout_of,
    lowering,
)
from tilewright.backends.nvidia.lower.layout_conversion import shuffle_packed
from tilewright.backends.nvidia.lower.register_packing import pack, packed_type, unpack
from tilewright.ir.types import element_of
from tilewright.layout import REGISTER, LinearLayout
from tilewright.llvm import Val, integer_literal
from tilewright.ops import ScanOp

Element = list[Val]
"""One value of each of the tiles that are scanned together."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """What comes before, if the condition holds (None: it always does)."""

    value: Element
    exists: Val | None


class _Scan:
    """The lowering of one scan."""

    def __init__(self, state: GpuLowering, op: ScanOp) -> None:
        self.state, self.op, self.code = state, op, state.code
        self.layout = layout_of(op.inputs[0])
        self.order = axis_order(self.layout, op.axis)
        self.columns = [state.registers_of(v) for v in op.inputs]

    def run(self) -> None:
        lines = [self._line(chunks) for chunks in self._lines()]
        if self.order.warps:
            before = self._over_warps([[c.total for c in line] for line in lines])
        else:
            before = [self._over_chunks([c.total for c in line]) for line in lines]
        results: dict[tuple[int, ...], Element] = {}
        for line, prefixes in zip(lines, before, strict=True):
            for chunk, prefix in zip(line, prefixes, strict=True):
                own = self._join(prefix, chunk.before)
                for coords, value in zip(chunk.coordinates, chunk.values, strict=True):
                    results[coords] = self._after(own, value)
        for k, result in enumerate(self.op.results):
            layout = layout_of(result)
            coordinates = (layout.apply(register=r) for r in range(layout.in_size(REGISTER)))
            self.state.set_registers(result, [results[coords][k] for coords in coordinates])

    def _lines(self) -> list[list[list[int]]]:
        """Registers by line, chunk and position in the run, in the order of the scan."""
        axis, lines = self.op.axis, dict[tuple[int, ...], dict[int, dict[int, int]]]()
        for r in range(self.layout.in_size(REGISTER)):
            coords = self.layout.apply(register=r)
            line = lines.setdefault(coords[:axis] + coords[axis + 1 :], {})
            chunk = line.setdefault(coords[axis] // self.order.chunk, {})
            # The place in a chunk orders the registers of a run, whatever their numbers.
            chunk.setdefault(coords[axis] % self.order.chunk, r)
        turn = -1 if self.op.reverse else 1
        return [
            [[run[i] for i in sorted(run)[::turn]] for _, run in sorted(line.items())[::turn]]
            for line in lines.values()
        ]

    def combine(self, first: Element, second: Element) -> Element:
        return apply_region(self.state, self.op.combine, [*first, *second])

    # -- one thread, then the lanes -------------------------------------------------------------

    def _line(self, chunks: list[list[int]]) -> list[_Chunk]:
        folded: list[_Chunk] = []
        for run in chunks:
            values = [[column[run[0]] for column in self.columns]]
            for r in run[1:]:
                values.append(self.combine(values[-1], [column[r] for column in self.columns]))
            coordinates = [self.layout.apply(register=r) for r in run]
            total, before = self._over_lanes(values[-1])
            folded.append(_Chunk(coordinates, values, total, before))
        return folded

    def _over_lanes(self, total: Element) -> tuple[Element, Prefix | None]:
        """The fold of all lanes, and of the lanes before this one."""
        before: Prefix | None = None
        passed = 0
        # From the lowest coordinate bit up, so that each total is of neighbouring lanes.
        for bit in self.order.lanes:
            other = [self._shuffled(v, k, bit) for k, v in enumerate(total)]
            later = self._has_bit(self.state.lane, bit)
            first = [self._select(later, o, t) for o, t in zip(other, total, strict=True)]
            second = [self._select(later, t, o) for o, t in zip(other, total, strict=True)]
            total = self.combine(first, second)
            if before is None:
                before = Prefix(other, later)
            else:
                # In the later half: all of the earlier half, then what precedes in the own half.
                inner = self._any_bit(passed)
                longer = self.combine(other, before.value)
                grown = self._choose(inner, longer, other)
                value = self._choose(later, grown, before.value)
                before = Prefix(value, self._any_bit(passed | 1 << bit))
            passed |= 1 << bit
        return total, before

    def _shuffled(self, value: Val, k: int, bit: int) -> Val:
        element = element_of(self.op.inputs[k].type)
        (packed_register,) = pack(self.state, [value], element)
        moved = shuffle_packed(self.state, "bfly", packed_register, integer_literal(1 << bit))
        return unpack(self.state, [moved], 1, element)[0]

    def _has_bit(self, index: Val, bit: int) -> Val:
        """Whether a lane comes later than its partner in a step of the butterfly."""
        masked = self.code.let_here(f"and i32 {index}, {1 << bit}", "i32")
        predicate = "eq" if self.op.reverse else "ne"
        return self.code.let_here(f"icmp {predicate} i32 {masked}, 0", "i1")

    def _any_bit(self, mask: int) -> Val:
        """Whether this lane is not the first among those that differ in these bits."""
        masked = self.code.let_here(f"and i32 {self.state.lane}, {mask}", "i32")
        first = mask if self.op.reverse else 0
        return self.code.let_here(f"icmp ne i32 {masked}, {first}", "i1")

    # -- chunks and warps -----------------------------------------------------------------------

    def _over_chunks(self, totals: list[Element]) -> list[Prefix | None]:
        prefixes: list[Prefix | None] = [None]
        running = totals[0]
        for total in totals[1:]:
            prefixes.append(Prefix(running, None))
            running = self.combine(running, total)
        return prefixes

    def _over_warps(self, lines: list[list[Element]]) -> list[list[Prefix | None]]:
        """Each warp leaves its totals in shared memory; all fold them in order."""
        space = _Slots(self, len(lines), len(lines[0]))
        for number, line in enumerate(lines):
            for chunk, total in enumerate(line):
                space.leave(number, chunk, total)
        self.state.barrier()
        return [self._before_warp(space, number, len(line)) for number, line in enumerate(lines)]

    def _before_warp(self, space: _Slots, line: int, chunks: int) -> list[Prefix | None]:
        prefixes: list[Prefix | None] = []
        running: Element | None = None
        parts = range(1 << len(self.order.warps))
        for chunk in range(chunks):
            own: Element | None = None
            for part in parts if not self.op.reverse else reversed(parts):
                mine = self.code.let_here(f"icmp eq i32 {space.part}, {part}", "i1")
                # Nothing precedes part 0 of chunk 0: its threads do not use `own` (`exists`).
                if running is not None:
                    own = running if own is None else self._choose(mine, running, own)
                total = space.read(line, chunk, part)
                running = total if running is None else self.combine(running, total)
            assert own is not None
            prefixes.append(Prefix(own, None if chunk else self._not_first_part(space)))
        return prefixes

    def _not_first_part(self, space: _Slots) -> Val:
        first = (1 << len(self.order.warps)) - 1 if self.op.reverse else 0
        return self.code.let_here(f"icmp ne i32 {space.part}, {first}", "i1")

    # -- values that may be missing -------------------------------------------------------------

    def _select(self, condition: Val, x: Val, y: Val) -> Val:
        text = f"select i1 {condition}, {x.typed}, {y.typed}"
        return self.code.let_here(text, x.type)

    def _choose(self, condition: Val, x: Element, y: Element) -> Element:
        return [self._select(condition, a, b) for a, b in zip(x, y, strict=True)]

    def _join(self, first: Prefix | None, second: Prefix | None) -> Prefix | None:
        if first is None or second is None:
            return first or second
        both = self._after(first, second.value)
        if second.exists is None:
            return Prefix(both, None)
        value = self._choose(second.exists, both, first.value)
        if first.exists is None:
            return Prefix(value, None)
        exists = self.code.let_here(f"or i1 {first.exists}, {second.exists}", "i1")
        return Prefix(value, exists)

    def _after(self, prefix: Prefix | None, value: Element) -> Element:
        if prefix is None:
            return value
        # A select where there is no prefix: the function need not have a neutral element.
        both = self.combine(prefix.value, value)
        return both if prefix.exists is None else self._choose(prefix.exists, both, value)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A run of one thread: where it is, its results within the thread, the fold of all lanes, and
    of the lanes before."""

    coordinates: list[tuple[int, ...]]
    values: list[Element]
    total: Element
    before: Prefix | None


class _Slots:
    """The totals of warps in shared memory: one for each line, chunk, part, and place across."""

    def __init__(self, scan: _Scan, lines: int, chunks: int) -> None:
        self.scan, self.state = scan, scan.state
        warps = scan.order.warps
        self.part = self.state.linear(gathered_bits(warps), self.state.warp)
        others = [b for b in range(self.state.warps.bit_length() - 1) if b not in warps]
        other = self.state.linear(gathered_bits(others), self.state.warp)
        # Every lane has a slot in each part: it stores and reads without a mask.
        shifted = self.state.code.let_here(f"shl i32 {other}, 5", "i32")
        self.slot = self.state.code.let_here(f"or i32 {shifted}, {self.state.lane}", "i32")
        self.across = 32 * (self.state.warps >> len(warps))
        self.chunks, self.parts = chunks, 1 << len(warps)
        self.size = lines * chunks * self.parts * self.across

    def _start(self, line: int, chunk: int, part: int) -> int:
        return ((line * self.chunks + chunk) * self.parts + part) * self.across

    def leave(self, line: int, chunk: int, total: Element) -> None:
        code = self.state.code
        mine = code.let_here(f"mul i32 {self.part}, {self.across}", "i32")
        number = code.let_here(f"add i32 {mine}, {self.slot}", "i32")
        for k, value in enumerate(total):
            element = element_of(self.scan.op.inputs[k].type)
            (packed_register,) = pack(self.state, [value], element)
            address = self._address(k, number, self._start(line, chunk, 0))
            shared_store(self.state, address, packed_register, None)

    def read(self, line: int, chunk: int, part: int) -> Element:
        elements: Element = []
        for k, source in enumerate(self.scan.op.inputs):
            element = element_of(source.type)
            address = self._address(k, self.slot, self._start(line, chunk, part))
            packed_register = shared_load(self.state, address, packed_type(element, 1))
            elements += unpack(self.state, [packed_register], 1, element)
        return elements

    def _address(self, k: int, number: Val, start: int) -> Val:
        sizes = [element_of(v.type).bytes for v in self.scan.op.inputs]
        base = self.state.offsets[self.scan.op] + sum(sizes[:k]) * self.size + start * sizes[k]
        scaled = self.state.code.let_here(f"mul i32 {number}, {sizes[k]}", "i32")
        address = self.state.code.let_here(f"add i32 {self.state.shared}, {scaled}", "i32")
        return self.state.code.let_here(f"add i32 {address}, {base}", "i32")


@lowering(ScanOp)
def _scan(state: GpuLowering, op: ScanOp) -> None:
    _Scan(state, op).run()


def scan_bytes(op: ScanOp, warps: int) -> int:
    """Shared memory for the totals of warps."""
    layout = layout_of(op.inputs[0])
    order = axis_order(layout, op.axis)
    if not order.warps:
        return 0
    lines = _distinct(layout, lambda p: p[: op.axis] + p[op.axis + 1 :])
    chunks = _distinct(layout, lambda p: (p[op.axis] // order.chunk,))
    return sum(32 * warps * lines * chunks * element_of(v.type).bytes for v in op.inputs)


def _distinct(layout: LinearLayout, key: Callable[[tuple[int, ...]], tuple[int, ...]]) -> int:
    return len({key(layout.apply(register=r)) for r in range(layout.in_size(REGISTER))})


__all__ = ["scan_bytes"]
