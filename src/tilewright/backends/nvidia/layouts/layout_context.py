"""Facts that layouts are derived from: other layouts, addresses, dots, and the launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod

from tilewright.analysis import Alignment
from tilewright.backends.nvidia.buffer_ops import WgmmaOp
from tilewright.backends.nvidia.layouts.joined_loads import Vector, joined_vectors
from tilewright.backends.nvidia.layouts.layout_propagation import (
    coalesced,
    default_layout,
    with_vector,
)
from tilewright.backends.nvidia.layouts.mma_layouts import DotLayouts
from tilewright.backends.nvidia.layouts.select_wgmma import wgmma_result
from tilewright.ir import Function, Op, Value
from tilewright.ir.types import element_of, shape_of
from tilewright.layout import LinearLayout
from tilewright.ops import LoadOp, pointee
from tilewright.support import cached_property
from tilewright.support.data_class import dataclass


@dataclass(eq=False)
class LayoutContext:
    """The layouts of one function so far.

    facts: alignment of all values; warps: of a program instance; access_bytes: of the widest access
    to global memory; dots: layouts of each; stages: slots of a loop's buffers, where
    the loop does not say, 0 where no load is copied ahead; layouts: of each tile that is computed
    in one layout and converted to others.
    """

    function: Function
    facts: Mapping[Value, Alignment]
    warps: int
    access_bytes: int
    dots: Mapping[Op, DotLayouts]
    stages: int = 0
    layouts: dict[Value, LinearLayout] = field(
        default_factory=dict[Value, LinearLayout], init=False
    )
    _free: dict[Op, LinearLayout] = field(default_factory=dict[Op, LinearLayout], init=False)

    @cached_property
    def dot_layouts(self) -> set[LinearLayout]:
        """Layouts of the results of all dots."""
        by_warpgroups = (op for op in self.function.walk() if isinstance(op, WgmmaOp))
        return {dot.result for dot in self.dots.values()}.union(
            wgmma_result(op, self.warps) for op in by_warpgroups
        )

    def layout_or_default(self, value: Value) -> LinearLayout:
        """The layout of a tile; rows along the lanes if it has none of its own."""
        return self.layouts.get(value) or default_layout(shape_of(value.type), self.warps)

    def free_layout(self, op: Op) -> LinearLayout:
        """The layout of the operands of an op that none of them decides: that of the first load of
        as many elements so far, with which they are likely used; else rows along the lanes."""
        if op not in self._free:
            shape = shape_of(op.operands[0].type)
            loaded = (
                layout for value, layout in self.layouts.items()
                if isinstance(value.op, LoadOp) and prod(layout.shape) == prod(shape)
            )  # fmt: skip
            known = next(loaded, None)
            default = default_layout(shape, self.warps)
            # once: what loops carry is visited again, and other loads may have got layouts since
            self._free[op] = default if known is None else known.reshape(shape)
        return self._free[op]

    def deciding_layout(self, values: Sequence[Value]) -> LinearLayout | None:
        """The layout among those of some tiles that the others follow: a tensor-core result before
        others, then the first. None if no tile has one."""
        layouts = [self.layouts[v] for v in values if v in self.layouts]
        first = layouts[0] if layouts else None
        # Tensor cores fix the layout of their result; other ops can follow it.
        return next((layout for layout in layouts if layout in self.dot_layouts), first)

    def load_layout(self, op: LoadOp) -> LinearLayout:
        """The coalesced layout of a load, joined with the loads that are used with it."""
        facts = self.facts[op.pointer]
        addresses = self.layouts.get(op.pointer)
        # Nothing is known of addresses that are computed from loaded values.
        if addresses is not None and max(facts.contiguity) == 1:
            return addresses
        joined = self._joined.get(op)
        if joined is None:
            return self.access_layout(op.pointer)
        return with_vector(shape_of(op.type), joined.length, facts, self.warps, joined.dim)

    @cached_property
    def _joined(self) -> dict[LoadOp, Vector]:
        return joined_vectors(self.function, self.facts, self.access_bytes)

    def access_layout(self, pointer: Value) -> LinearLayout:
        """The coalesced layout of a load or store through a tile of pointers."""
        element = element_of(pointee(pointer.type))
        shape = shape_of(pointer.type)
        return coalesced(shape, element.bytes, self.facts[pointer], self.warps, self.access_bytes)
