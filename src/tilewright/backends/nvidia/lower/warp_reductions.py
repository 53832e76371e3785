"""Reductions: registers, then lanes by butterfly shuffles, then warps through shared memory.

The order of each stage is fixed by the layout: registers in their order, lane bits from the lowest,
warps in their order. So a result does not change from run to run.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.backends.nvidia.layouts.access_vectors import MAX_VECTOR_BYTES as VECTOR_BYTES
from tilewright.backends.nvidia.lower.combine_regions import apply_region
from tilewright.backends.nvidia.lower.global_memory import shared_store
from tilewright.backends.nvidia.lower.gpu_lowering import (
    BODY,
    GpuLowering,
    gathered_bits,
    layout_of,
    lowering,
)
from tilewright.backends.nvidia.lower.layout_conversion import load_vector, shuffle_packed
from tilewright.backends.nvidia.lower.register_packing import Element, pack, unpack
from tilewright.ir.types import element_of
from tilewright.layout import LANE, REGISTER, WARP, LinearLayout
from tilewright.llvm import Val, integer_literal
from tilewright.ops import ReduceOp


@dataclass(frozen=True, slots=True)
class Split:
    """The bits of a layout that run along the reduced axis."""

    lanes: tuple[int, ...]
    warps: tuple[int, ...]


def _split_axis(layout: LinearLayout, axis: int) -> Split:
    """Lane and warp bits that move along `axis`."""
    lanes = tuple(i for i, basis in enumerate(layout.bases(LANE)) if basis[axis])
    warps = tuple(i for i, basis in enumerate(layout.bases(WARP)) if basis[axis])
    return Split(lanes, warps)


@lowering(ReduceOp)
def _reduce(state: GpuLowering, op: ReduceOp) -> None:
    layout, axis = layout_of(op.inputs[0]), op.axis
    columns = [state.registers_of(v) for v in op.inputs]
    groups = _registers_by_kept_coords(layout, axis)
    split = _split_axis(layout, axis)
    rows: list[list[Val]] = []
    for registers in groups.values():
        running = [column[registers[0]] for column in columns]
        for r in registers[1:]:
            running = apply_region(state, op.combine, [*running, *(c[r] for c in columns)])
        # A butterfly: afterwards each lane has the result of all.
        for bit in split.lanes:
            running = _across_lanes(state, op, running, bit)
        rows.append(running)
    if split.warps:
        rows = _across_warps(state, op, Exchange.of(layout, axis, len(rows), state.warps), rows)
    _finish(state, op, list(groups), rows)


def _registers_by_kept_coords(layout: LinearLayout, axis: int) -> dict[tuple[int, ...], list[int]]:
    """Registers by the coordinates that stay, each group in order."""
    registers_by_coords: dict[tuple[int, ...], list[int]] = {}
    for r in range(layout.in_size(REGISTER)):
        coords = layout.apply(register=r)
        registers_by_coords.setdefault(coords[:axis] + coords[axis + 1 :], []).append(r)
    return registers_by_coords


def _across_lanes(state: GpuLowering, op: ReduceOp, running: list[Val], bit: int) -> list[Val]:
    others: list[Val] = []
    for value, source in zip(running, op.inputs, strict=True):
        element = element_of(source.type)
        (packed_register,) = pack(state, [value], element)
        moved = shuffle_packed(state, "bfly", packed_register, integer_literal(1 << bit))
        others += unpack(state, [moved], 1, element)
    # Both partners put their own value first: the function must be commutative.
    return apply_region(state, op.combine, [*running, *others])


@dataclass(frozen=True, slots=True)
class Exchange:
    """Where the warps of a program store their parts of a reduction in shared memory.

    A slot holds one element; its number is

        part * part_step + row * row_step + holder,

    part: the warp's number along the axis; row: of the results of a thread; holder: the number of
    the lane and warp among those that hold other results, counted by `holder_step`. If a warp ends
    with one result a row, its parts lie side by side, so that one instruction reads several; else
    neighbouring lanes have neighbouring slots.
    """

    split: Split
    kept_lanes: tuple[int, ...]
    parts: int
    rows: int
    holders: int

    @classmethod
    def of(cls, layout: LinearLayout, axis: int, rows: int, warps: int) -> Exchange:
        """Of a reduction along `axis` that leaves `rows` results a thread."""
        split = _split_axis(layout, axis)
        # Lanes that hold copies have a zero basis: they do not store.
        lanes = tuple(i for i, b in enumerate(layout.bases(LANE)) if any(b) and not b[axis])
        parts = 1 << len(split.warps)
        return cls(split, lanes, parts, rows, (1 << len(lanes)) * (warps // parts))

    @property
    def slots(self) -> int:
        return self.parts * self.rows * self.holders

    @property
    def part_step(self) -> int:
        return self.rows * self.holders if self.kept_lanes else 1

    @property
    def row_step(self) -> int:
        return self.holders if self.kept_lanes else self.parts

    @property
    def holder_step(self) -> int:
        return 1 if self.kept_lanes else self.parts * self.rows

    def run(self, size: int) -> int:
        """Parts of `size` bytes that one instruction reads."""
        # Vectors only where parts of one result are neighbours.
        return 1 if self.kept_lanes else min(self.parts, VECTOR_BYTES // size)

    def bytes(self, size: int) -> int:
        """Of all slots for elements of `size` bytes, rounded up to whole vectors."""
        return -(-self.slots * size // VECTOR_BYTES) * VECTOR_BYTES


def _across_warps(
    state: GpuLowering, op: ReduceOp, exchange: Exchange, rows: list[list[Val]]
) -> list[list[Val]]:
    """Every warp leaves its part; all read all parts, in the order of the warps."""
    base = state.offsets[op]
    sizes = [exchange.bytes(element_of(v.type).bytes) for v in op.inputs]
    holder = _holder_slot(state, exchange)
    _store_parts(state, op, exchange, rows, holder)
    state.barrier()
    results: list[list[Val]] = []
    for i in range(len(rows)):
        columns = [
            _read_parts(state, exchange, element_of(v.type), base + sum(sizes[:k]), i, holder)
            for k, v in enumerate(op.inputs)
        ]
        running, *others = ([*one] for one in zip(*columns, strict=True))
        for other in others:
            running = apply_region(state, op.combine, [*running, *other])
        results.append(running)
    return results


def _holder_slot(state: GpuLowering, exchange: Exchange) -> Val:
    """Number of the first slot of this thread's results, for part 0."""
    other = [b for b in range(state.warps.bit_length() - 1) if b not in exchange.split.warps]
    step, lanes = exchange.holder_step, 1 << len(exchange.kept_lanes)
    lane = state.linear(gathered_bits(exchange.kept_lanes, step), state.lane)
    warp = state.linear(gathered_bits(other, step * lanes), state.warp)
    return Val(state.code.let_here(f"or i32 {lane}, {warp}", "i32").text, "i32", BODY)


def _store_parts(
    state: GpuLowering, op: ReduceOp, exchange: Exchange, rows: list[list[Val]], holder: Val
) -> None:
    # Parts and holders use different bits of the slot number, so `or` adds them.
    part = state.linear(gathered_bits(exchange.split.warps, exchange.part_step), state.warp)
    number = state.code.let_here(f"or i32 {holder}, {part}", "i32")
    # After the butterfly the lanes along the axis agree: the first of them stores.
    idle = 31 & ~sum(1 << bit for bit in exchange.kept_lanes)
    own = state.code.let_here(f"and i32 {state.lane}, {idle}", "i32")
    is_first_idle_lane = state.code.let_here(f"icmp eq i32 {own}, 0", "i1")
    base = state.offsets[op]
    for k, source in enumerate(op.inputs):
        element = element_of(source.type)
        for i, row in enumerate(rows):
            (packed_register,) = pack(state, [row[k]], element)
            slot = i * exchange.row_step
            address = _address(state, number, base + slot * element.bytes, element.bytes)
            shared_store(state, address, packed_register, is_first_idle_lane if idle else None)
        base += exchange.bytes(element.bytes)


def _address(state: GpuLowering, number: Val, base: int, size: int) -> Val:
    offset = state.code.let_here(f"mul i32 {number}, {size}", "i32")
    start = state.code.let_here(f"add i32 {state.shared}, {offset}", "i32")
    return state.code.let_here(f"add i32 {start}, {base}", "i32") if base else start


def _read_parts(
    state: GpuLowering, exchange: Exchange, element: Element, base: int, row: int, holder: Val
) -> list[Val]:
    """One result's parts, in their order."""
    size, run = element.bytes, exchange.run(element.bytes)
    values: list[Val] = []
    for part in range(0, exchange.parts, run):
        slot = part * exchange.part_step + row * exchange.row_step
        address = _address(state, holder, base + slot * size, size)
        packed = load_vector(state, address, element, run)
        values += unpack(state, packed, run, element)
    return values


def _finish(
    state: GpuLowering, op: ReduceOp, coordinates: list[tuple[int, ...]], rows: list[list[Val]]
) -> None:
    """Results in the registers of their layout."""
    for k, result in enumerate(op.results):
        # The only dim was reduced: the result is a scalar.
        if not coordinates[0]:
            state.set_registers(result, [rows[0][k]])
            continue
        layout = layout_of(result)
        at = {coords: row[k] for coords, row in zip(coordinates, rows, strict=True)}
        registers = range(layout.in_size(REGISTER))
        state.set_registers(result, [at[layout.apply(register=r)] for r in registers])


def reduce_bytes(op: ReduceOp, warps: int) -> int:
    """Shared memory for the exchange between warps."""
    layout = layout_of(op.inputs[0])
    if not _split_axis(layout, op.axis).warps:
        return 0
    exchange = Exchange.of(layout, op.axis, len(_registers_by_kept_coords(layout, op.axis)), warps)
    return sum(exchange.bytes(element_of(v.type).bytes) for v in op.inputs)


__all__ = ["reduce_bytes"]
