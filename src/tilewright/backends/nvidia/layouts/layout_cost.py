"""Cost of a function's layouts: exchanges between threads, and registers that loops hold.

The unit is that of `layout.plan`: an issue slot of a warp, or a pass through shared memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import cast

from tilewright.backends.nvidia.layouts.access_groups import (
    ITERATIONS,
    exchange_cost,
    reduction_cost,
)
from tilewright.backends.nvidia.layouts.infer_layouts import LayoutInference
from tilewright.ir import Block, Op, Value
from tilewright.ir.types import element_of
from tilewright.layout import (
    REGISTER,
    WARP,
    LinearLayout,
    SharedMemory,
    plan,
)
from tilewright.ops import ForOp, ReduceOp, ScanOp, WhileOp

EXPOSED = 0.5
"""The part of reads of operands that the tensor cores do not hide. An estimate."""
REGISTERS, MAX_REGISTERS = 65536, 255
"""Registers of a multiprocessor, and the maximum per thread."""
HELD = 0.6
"""The part of a thread's registers that a loop may hold before others are spilled: addresses, and
what is on its way, need the rest. An estimate: attention with heads of 256 spills at 0.75."""
SPILL = 4
"""Cost of a spilled register in each iteration."""


class LayoutCost:
    """Cost of the layouts of one function; made: values computed from dots."""

    def __init__(self, inference: LayoutInference, made: Collection[Value]) -> None:
        self.inference, self.made, self.warps = inference, made, inference.warps

    def total(self) -> float:
        """All costs, weighted by how often they are paid."""
        total = sum(
            self._times(v.block) * self._of_conversions(v) for v in self.inference.constraints
        )
        for op in self.inference.function.walk():
            if isinstance(op, ReduceOp | ScanOp):
                ((_, layout), *_) = self.inference.operand_layouts(op)
                total += self._times(op.parent) * reduction_cost(op, layout, self.warps)
            elif isinstance(op, ForOp | WhileOp):
                total += self._times(op.body) * self._of_spills(op)
        return total

    def waits_in_loops(self) -> bool:
        """Whether warps exchange values of dots in a loop."""
        layouts, constraints = self.inference.layouts, self.inference.constraints
        conversions = (
            (value, layouts[value], layout)
            for value in self.made
            if value in layouts and self._times(value.block) > 1
            for layout in constraints.get(value, {})
        )
        if any(_is_between_warps(*each) for each in conversions):
            return True
        return any(
            isinstance(op, ReduceOp | ScanOp)
            and op.operands[0] in self.made
            and self._times(op.parent) > 1
            and self._is_along_warps(op)
            for op in self.inference.function.walk()
        )

    def _is_along_warps(self, op: ReduceOp | ScanOp) -> bool:
        ((_, layout), *_) = self.inference.operand_layouts(op)
        return any(basis[op.axis] > 0 for basis in layout.bases(WARP))

    # ---- exchanges -------------------------------------------------------------------------------

    def _of_conversions(self, value: Value) -> float:
        """Cost of the conversions that follow a definition."""
        own = self.inference.layouts.get(value)
        if own is None:
            return 0.0
        required = [layout for layout in self.inference.constraints[value] if layout != own]
        return sum(self._of_conversion(value, own, layout) for layout in required)

    def _of_conversion(self, value: Value, source: LinearLayout, target: LinearLayout) -> float:
        """Cost of one conversion: a value that no dot computes counts as copied ahead."""
        size = element_of(value.type).bytes
        chosen = plan(source, target, 8 * size)
        # No barrier and no stores: the copy ahead does them, and hides most of the loads.
        if isinstance(chosen, SharedMemory) and value not in self.made:
            return self.warps * chosen.load.cost * EXPOSED
        return exchange_cost(source, target, size, self.warps)

    # ---- registers -------------------------------------------------------------------------------

    def _of_spills(self, loop: ForOp | WhileOp) -> float:
        """Cost of registers that a thread cannot hold through a loop: of carried values, and of
        values from before that the loop uses."""
        # The most registers that any thread can have: one program on a multiprocessor.
        limit = HELD * min(MAX_REGISTERS, REGISTERS // (32 * self.warps))
        held = sum(_registers(value, layout) for value, layout in self._held(loop))
        return SPILL * self.warps * max(0.0, held - limit)

    def _held(self, loop: ForOp | WhileOp) -> set[tuple[Value, LinearLayout]]:
        layouts, inside = self.inference.layouts, set(_blocks(loop))
        used = {
            (op.operands[index], layout)
            for op in loop.walk()
            for index, layout in self.inference.operand_layouts(op)
            if op.operands[index] in layouts and op.operands[index].block not in inside
        }
        return used | {(value, layouts[value]) for value in loop.results if value in layouts}

    # ---- weights ---------------------------------------------------------------------------------

    def _times(self, block: object) -> int:
        """Estimated executions of a block."""
        times = 1
        while isinstance(block, Block) and isinstance(block.owner, Op):
            times *= self._iterations(block.owner)
            block = block.owner.parent
        return times

    def _iterations(self, op: Op) -> int:
        if isinstance(op, ForOp):
            bounds = [self.inference.facts[v].value for v in (op.lower, op.upper, op.step)]
            if None not in bounds:
                return len(range(*cast("list[int]", bounds)))
        return ITERATIONS if isinstance(op, ForOp | WhileOp) else 1


def _is_between_warps(value: Value, source: LinearLayout, target: LinearLayout) -> bool:
    """Whether a conversion moves elements from one warp to another."""
    chosen = plan(source, target, 8 * element_of(value.type).bytes)
    return isinstance(chosen, SharedMemory) and not chosen.is_inside_warps


def _blocks(op: Op) -> Iterator[Block]:
    for inner in op.walk():
        yield from inner.regions


def _registers(value: Value, layout: LinearLayout) -> float:
    return layout.in_size(REGISTER) * element_of(value.type).bytes / 4
