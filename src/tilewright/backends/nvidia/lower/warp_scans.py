"""Scans within a warp: within a thread, then over lanes by shuffles; and joins of warps' scans.

A scannable layout (layout_propagation.py) numbers the elements along the axis by register bits,
then lanes, then warps, then register bits again: each thread holds a *run* of neighbours in each of
several *chunks*. So every element's result is, from left to right,

    elements of earlier chunks or warps  .  of earlier lanes  .  of the run up to the element

where the first two may be missing. The order of combination is that of the axis, so the function
need be associative only. A reverse scan is the same with every order reversed.
"""

from __future__ import annotations

import itertools

from tilewright.backends.nvidia.buffer_ops import buffer_type
from tilewright.backends.nvidia.exchange_ops import ScanJoinOp, WriteLastOp
from tilewright.backends.nvidia.layouts.layout_propagation import axis_order
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.lower.buffers import element_address
from tilewright.backends.nvidia.lower.combine_regions import apply_region
from tilewright.backends.nvidia.lower.global_memory import shared_store
from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering, lowering
from tilewright.backends.nvidia.lower.lane_exchange import shift_packed, shuffle_packed
from tilewright.backends.nvidia.lower.register_packing import pack, unpack
from tilewright.ir import Block
from tilewright.ir.types import element_of
from tilewright.layout import LANE, REGISTER, WARP
from tilewright.llvm import Val
from tilewright.ops import ScanOp
from tilewright.support.data_class import dataclass

Element = list[Val]
"""One value of each of the tiles that are scanned together."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """Fold with the values before, if the condition holds (None: it always does)."""

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
        assert not self.order.warps, f"{self.op} is to be expanded"
        before = [self._over_chunks([c.total for c in line]) for line in lines]
        results: dict[tuple[int, ...], Element] = {}
        for line, prefixes in zip(lines, before, strict=True):
            for chunk, prefix in zip(line, prefixes, strict=True):
                own = self._join(prefix, chunk.before)
                values = [self._after(own, value) for value in chunk.values]
                # The fold of the lanes up to this one, without another shuffle.
                values.append(self._after(prefix, chunk.total))
                results |= zip(chunk.coordinates, values, strict=True)
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
            total = self._over_lanes(values.pop())
            before = self._of_lanes_before(total) if values else None
            folded.append(_Chunk(coordinates, values, total, before))
        return folded

    def _over_lanes(self, total: Element) -> Element:
        """The fold of the lanes up to this one.

        After k steps each lane has folded 2^k lanes that end with it, or all there are.
        """
        for distance in (1 << bit for bit in self.order.lanes):
            moved, exists = self._shifted(total, distance, 2 << self.order.lanes[-1])
            total = self._choose(exists, self.combine(moved, total), total)
        return total

    def _of_lanes_before(self, total: Element) -> Prefix | None:
        """The fold of the lanes before this one. total: with this one"""
        lanes = self.order.lanes
        return Prefix(*self._shifted(total, 1 << lanes[0], 2 << lanes[-1])) if lanes else None

    def _shifted(self, values: Element, distance: int, width: int) -> tuple[Element, Val]:
        """The values of the lane to fold with, and whether there is one."""
        mode = "down" if self.op.reverse else "up"
        shifted = [
            shift_packed(self.state, mode, self._packed(value, k), distance, width)
            for k, value in enumerate(values)
        ]
        return [self._unpacked(value, k) for k, (value, _) in enumerate(shifted)], shifted[0][1]

    def _whole(self, total: Element) -> Element:
        """The fold of all lanes, which the last one has."""
        lanes = sum(1 << bit for bit in self.order.lanes)
        if not lanes:
            return total
        move = f"and i32 {self.state.lane}, {~lanes}" if self.op.reverse else ""
        return self._shuffled(
            total, self.code.let_here(move or f"or i32 {self.state.lane}, {lanes}", "i32")
        )

    def _shuffled(self, values: Element, source: Val) -> Element:
        packed = [self._packed(value, k) for k, value in enumerate(values)]
        moved = [shuffle_packed(self.state, "idx", register, source) for register in packed]
        return [self._unpacked(register, k) for k, register in enumerate(moved)]

    def _packed(self, value: Val, k: int) -> Val:
        (register,) = pack(self.state, [value], element_of(self.op.inputs[k].type))
        return register

    def _unpacked(self, register: Val, k: int) -> Val:
        return unpack(self.state, [register], 1, element_of(self.op.inputs[k].type))[0]

    # -- chunks ---------------------------------------------------------------------------------

    def _over_chunks(self, totals: list[Element]) -> list[Prefix | None]:
        running: list[Element] = []
        for total in totals[:-1]:
            whole = self._whole(total)
            running.append(self.combine(running[-1], whole) if running else whole)
        return [None, *(Prefix(before, None) for before in running)]

    # -- values that may be missing -------------------------------------------------------------

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
        return joined(self.state, self.op.combine, prefix, value)

    def _choose(self, condition: Val, x: Element, y: Element) -> Element:
        return choose(self.state, condition, x, y)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A run of one thread: where it is, its results within the thread but for the last, the fold of
    the lanes up to this one, and of those before, which a run of one element does not need."""

    coordinates: list[tuple[int, ...]]
    values: list[Element]
    total: Element
    before: Prefix | None


@lowering(ScanOp)
def _scan(state: GpuLowering, op: ScanOp) -> None:
    _Scan(state, op).run()


# ---- over warps ---------------------------------------------------------------------------------


@lowering(WriteLastOp)
def _write_last(state: GpuLowering, op: WriteLastOp) -> None:
    """By the lanes that are last along the axis, of their registers that are."""
    layout, type_ = layout_of(op.x), buffer_type(op.buffer)
    along = [(basis[op.axis], 1 << bit) for bit, basis in enumerate(layout.bases(LANE))]
    lanes = sum(bit for coordinate, bit in along if coordinate)
    own = state.code.let_here(f"and i32 {state.lane}, {lanes}", "i32")
    is_last = state.code.let_here(f"icmp eq i32 {own}, {0 if op.first else lanes}", "i1")
    in_registers = sum({basis[op.axis] for basis in layout.bases(REGISTER)})
    dims = [dim for dim in range(len(layout.shape)) if dim != op.axis]
    for r, register in enumerate(state.registers_of(op.x)):
        if layout.apply(register=r)[op.axis] != (0 if op.first else in_registers):
            continue
        coords = [state.coordinate(layout, dim, r) for dim in dims]
        address = element_address(state, state.scalar(op.buffer), coords, type_)
        (packed,) = pack(state, [register], type_.element)
        shared_store(state, address, packed, is_last if lanes else None)


class _Join:
    """The lowering of one op that joins the scans of warps."""

    def __init__(self, state: GpuLowering, op: ScanJoinOp) -> None:
        self.state, self.op = state, op
        layout, columns = layout_of(op.totals[0]), [state.registers_of(v) for v in op.totals]
        self.totals = {
            layout.apply(register=r): [column[r] for column in columns]
            for r in range(layout.in_size(REGISTER))
        }
        layout = layout_of(op.scanned[0])
        steps = [basis[op.axis] for basis in layout.bases(WARP)]
        self.groups = layout.shape[op.axis]
        # What the warp adds to the number of a group: of each warp, and of this one.
        self.parts = [sum(c) for c in itertools.product(*((0, step) for step in steps if step))]
        self.part = state.linear(steps, state.warp)
        self.before: dict[tuple[int, ...], Prefix | None] = {}

    def run(self) -> None:
        op, layout = self.op, layout_of(self.op.scanned[0])
        columns = [self.state.registers_of(v) for v in op.scanned]
        results: list[Element] = []
        for r in range(layout.in_size(REGISTER)):
            coords = layout.apply(register=r)
            group = coords[: op.axis + 1] + coords[op.axis + 2 :]
            if group not in self.before:
                self.before[group] = self._before(group)
            own = [column[r] for column in columns]
            results.append(joined(self.state, op.combine, self.before[group], own))
        for k, result in enumerate(op.results):
            self.state.set_registers(result, [element[k] for element in results])

    def _before(self, group: tuple[int, ...]) -> Prefix | None:
        """The total before a group of this warp; group: as the first warp numbers it."""
        axis, step, missing = self.op.axis, 1 if self.op.reverse else -1, None
        value: Element | None = None
        for part in self.parts:
            previous = group[axis] + part + step
            if not 0 <= previous < self.groups:
                missing = part
                continue
            found = self.totals[*group[:axis], previous, *group[axis + 1 :]]
            value = found if value is None else choose(self.state, self._is(part), found, value)
        if value is None:
            return None
        if missing is None:
            return Prefix(value, None)
        exists = self.state.code.let_here(f"icmp ne i32 {self.part}, {missing}", "i1")
        return Prefix(value, exists)

    def _is(self, part: int) -> Val:
        return self.state.code.let_here(f"icmp eq i32 {self.part}, {part}", "i1")


@lowering(ScanJoinOp)
def _scan_join(state: GpuLowering, op: ScanJoinOp) -> None:
    _Join(state, op).run()


# ---- values that may be missing -----------------------------------------------------------------


def select(state: GpuLowering, condition: Val, x: Val, y: Val) -> Val:
    """x where the condition holds, else y."""
    return state.code.let_here(f"select i1 {condition}, {x.typed}, {y.typed}", x.type)


def choose(state: GpuLowering, condition: Val, x: Element, y: Element) -> Element:
    """As `select`, for a value of each tile."""
    return [select(state, condition, a, b) for a, b in zip(x, y, strict=True)]


def joined(state: GpuLowering, combine: Block, prefix: Prefix | None, value: Element) -> Element:
    """A value folded with the values before it."""
    if prefix is None:
        return value
    # A select where there is no prefix: the function need not have a neutral element.
    both = apply_region(state, combine, [*prefix.value, *value])
    return both if prefix.exists is None else choose(state, prefix.exists, both, value)
