"""Reductions within a warp: registers, then lanes by butterfly shuffles; 16-bit floats are added by
MMAs (mma_reductions.py).

The order of each stage is fixed by the layout: registers in their order, lane bits from the lowest.
So a result does not change from run to run. Those over warps are two (split_reductions.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.lower.combine_regions import apply_region
from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering, lowering
from tilewright.backends.nvidia.lower.lane_exchange import shuffle_packed
from tilewright.backends.nvidia.lower.literal_folding import is_literal
from tilewright.backends.nvidia.lower.mma_reductions import LANES, sum_by_mma, summed_by_mma
from tilewright.backends.nvidia.lower.register_packing import pack, unpack
from tilewright.ir.types import dtype_of, element_of
from tilewright.layout import LANE, REGISTER, WARP, LinearLayout
from tilewright.llvm import Val, integer_literal
from tilewright.ops import ReduceOp


@lowering(ReduceOp)
def _reduce(state: GpuLowering, op: ReduceOp) -> None:
    layout, axis = layout_of(op.inputs[0]), op.axis
    groups = _registers_by_kept_coords(layout, axis)
    assert not any(basis[axis] for basis in layout.bases(WARP)), f"{op} is to be split"
    source = summed_by_mma(state, op)
    columns = [state.registers_of(v) for v in (op.inputs if source is None else (source,))]
    lanes = [bit for bit, basis in enumerate(layout.bases(LANE)) if basis[axis]]
    rows: list[list[Val]] = []
    for registers in groups.values():
        if source is None:
            running = _over_registers(state, op, columns, registers)
        else:
            values = [columns[0][r] for r in registers]
            running = [sum_by_mma(state, dtype_of(source.type), values)]
        # A butterfly: afterwards each lane has the result of all.
        for bit in lanes if source is None else LANES:
            running = _across_lanes(state, op, running, bit)
        rows.append(running)
    _finish(state, op, list(groups), rows)


def _over_registers(
    state: GpuLowering, op: ReduceOp, columns: Sequence[Sequence[Val]], registers: Sequence[int]
) -> list[Val]:
    """The elements per thread combined, in order."""
    running = [column[registers[0]] for column in columns]
    for r in registers[1:]:
        running = apply_region(state, op.combine, [*running, *(c[r] for c in columns)])
    return running


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
        if is_literal(value):
            others.append(value)
            continue
        element = element_of(source.type)
        (packed_register,) = pack(state, [value], element)
        moved = shuffle_packed(state, "bfly", packed_register, integer_literal(1 << bit))
        others += unpack(state, [moved], 1, element)
    # Both partners put their own value first: the function must be commutative.
    return apply_region(state, op.combine, [*running, *others])


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
