"""Reductions: registers, then lanes by butterfly shuffles, then warps through shared memory.

The order of each stage is fixed by the layout: registers in their order, lane bits from the lowest,
warps in their order. So a result does not change from run to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from tilewright.backends.nvidia.lower.convert import shuffle_word
from tilewright.backends.nvidia.lower.elementwise import lower_one
from tilewright.backends.nvidia.lower.memory import shared_load, shared_store
from tilewright.backends.nvidia.lower.state import State, layout_of, lowering
from tilewright.backends.nvidia.lower.words import pack, unpack, word_type
from tilewright.ir import Block, Op, Value
from tilewright.ir.types import element_of
from tilewright.layout import LANE, REGISTER, WARP, LinearLayout
from tilewright.llvm import Val, integer_literal
from tilewright.ops import ReduceOp


def apply_region(state: State, block: Block, args: Sequence[Val]) -> list[Val]:
    """Run the straight-line ops of a combine region on one element of each argument."""
    local: dict[Value, Val] = dict(zip(block.args, args, strict=True))
    for raw in block:
        op = cast("Op", raw)
        operands = [local[v] if v in local else state.scalar(v) for v in op.operands]
        if op.next is None:
            return operands
        local[op.results[0]] = lower_one(state, op, operands)
    raise AssertionError("combine region without terminator")


@dataclass(frozen=True, slots=True)
class Split:
    """The bits of a layout that run along the reduced axis."""

    lanes: tuple[int, ...]
    warps: tuple[int, ...]


def split_axis(layout: LinearLayout, axis: int) -> Split:
    """Lane and warp bits that move along `axis`."""
    lanes = tuple(i for i, basis in enumerate(layout.bases(LANE)) if basis[axis])
    warps = tuple(i for i, basis in enumerate(layout.bases(WARP)) if basis[axis])
    return Split(lanes, warps)


@lowering(ReduceOp)
def _reduce(state: State, op: Op) -> None:
    reduce = cast("ReduceOp", op)
    layout, axis = layout_of(reduce.inputs[0]), reduce.axis
    columns = [state.of(v) for v in reduce.inputs]
    groups = _groups(layout, axis)
    split = split_axis(layout, axis)
    rows: list[list[Val]] = []
    for registers in groups.values():
        running = [column[registers[0]] for column in columns]
        for r in registers[1:]:
            running = apply_region(state, reduce.combine, [*running, *(c[r] for c in columns)])
        for bit in split.lanes:
            running = _across_lanes(state, reduce, running, bit)
        rows.append(running)
    if split.warps:
        rows = _across_warps(state, reduce, layout, split, rows)
    _finish(state, reduce, list(groups), rows)


def _groups(layout: LinearLayout, axis: int) -> dict[tuple[int, ...], list[int]]:
    """Registers by the coordinates that stay, each group in order."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for r in range(layout.in_size(REGISTER)):
        place = layout.apply(register=r)
        groups.setdefault(place[:axis] + place[axis + 1 :], []).append(r)
    return groups


def _across_lanes(state: State, op: ReduceOp, running: list[Val], bit: int) -> list[Val]:
    others: list[Val] = []
    for value, source in zip(running, op.inputs, strict=True):
        element = element_of(source.type)
        (word,) = pack(state, [value], element)
        moved = shuffle_word(state, "bfly", word, integer_literal(1 << bit))
        others += unpack(state, [moved], 1, element)
    return apply_region(state, op.combine, [*running, *others])


def _across_warps(
    state: State, op: ReduceOp, layout: LinearLayout, split: Split, rows: list[list[Val]]
) -> list[list[Val]]:
    """Every warp leaves its part; all read all parts, in the order of the warps."""
    base = state.offsets[op]
    parts = 1 << len(split.warps)
    state.barrier()
    stride = 32 * (state.warps // parts) * len(rows)
    own = _part_slot(state, split, layout)
    for k, source in enumerate(op.inputs):
        element = element_of(source.type)
        size = element.bytes
        for i, row in enumerate(rows):
            (word,) = pack(state, [row[k]], element)
            number = _number(state, own[0], own[1], stride, i, len(rows))
            shared_store(state, _address(state, number, base, size), word, None)
        base += parts * stride * size
    state.barrier()
    return _read_parts(state, op, rows, parts, stride, own[1])


def _part_slot(state: State, split: Split, layout: LinearLayout) -> tuple[Val, Val]:
    """Which part this warp holds, and a number for its lane and its other warp bits."""
    part = state.linear(_pick_bits(split.warps), state.warp)
    kept = [b for b in range(state.warps.bit_length() - 1) if b not in split.warps]
    other = state.linear(_pick_bits(tuple(kept)), state.warp)
    shifted = state.code.let_here(f"shl i32 {other}, 5", "i32")
    place = state.code.let_here(f"or i32 {shifted}, {state.lane}", "i32")
    return part, place


def _pick_bits(bits: tuple[int, ...]) -> list[int]:
    """Columns that gather some bits of an index into the lowest ones."""
    columns = [0] * (max(bits, default=-1) + 1)
    for position, bit in enumerate(bits):
        columns[bit] = 1 << position
    return columns


def _number(state: State, part: Val, place: Val, stride: int, index: int, count: int) -> Val:
    row = state.code.let_here(f"mul i32 {place}, {count}", "i32")
    line = state.code.let_here(f"mul i32 {part}, {stride}", "i32")
    both = state.code.let_here(f"add i32 {row}, {line}", "i32")
    return state.code.let_here(f"add i32 {both}, {index}", "i32") if index else both


def _address(state: State, number: Val, base: int, size: int) -> Val:
    offset = state.code.let_here(f"mul i32 {number}, {size}", "i32")
    start = state.code.let_here(f"add i32 {state.shared}, {offset}", "i32")
    return state.code.let_here(f"add i32 {start}, {base}", "i32") if base else start


def _read_parts(
    state: State, op: ReduceOp, rows: list[list[Val]], parts: int, stride: int, place: Val
) -> list[list[Val]]:
    results: list[list[Val]] = []
    for i in range(len(rows)):
        running: list[Val] = []
        for part in range(parts):
            base = state.offsets[op]
            values: list[Val] = []
            for source in op.inputs:
                element = element_of(source.type)
                index = integer_literal(part)
                number = _number(state, index, place, stride, i, len(rows))
                word = shared_load(
                    state, _address(state, number, base, element.bytes), word_type(element, 1)
                )
                values += unpack(state, [word], 1, element)
                base += parts * stride * element.bytes
            running = apply_region(state, op.combine, [*running, *values]) if running else values
        results.append(running)
    return results


def _finish(
    state: State, op: ReduceOp, places: list[tuple[int, ...]], rows: list[list[Val]]
) -> None:
    """Results in the registers of their layout."""
    for k, result in enumerate(op.results):
        if not places[0]:
            state.set(result, [rows[0][k]])
            continue
        layout = layout_of(result)
        at = {place: row[k] for place, row in zip(places, rows, strict=True)}
        registers = range(layout.in_size(REGISTER))
        state.set(result, [at[layout.apply(register=r)] for r in registers])


def reduce_bytes(op: ReduceOp, warps: int) -> int:
    """Shared memory for the exchange between warps."""
    layout = layout_of(op.inputs[0])
    split = split_axis(layout, op.axis)
    if not split.warps:
        return 0
    rows = len(_groups(layout, op.axis))
    return sum(32 * warps * rows * element_of(v.type).bytes for v in op.inputs)


__all__ = ["apply_region", "reduce_bytes", "split_axis"]
