"""Facts that layouts are derived from: other layouts, addresses, dots, and the launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod

from tilewright.analysis import Alignment
from tilewright.backends.nvidia.buffer_ops import WgmmaOp
from tilewright.backends.nvidia.layouts.access_groups import access_layouts
from tilewright.backends.nvidia.layouts.layout_propagation import (
    coalesced,
    default_layout,
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

    def access_layout(self, op: Op, pointer: Value) -> LinearLayout:
        """The coalesced layout of an access, joined with the accesses that are used with it."""
        facts = self.facts[pointer]
        addresses = self.layouts.get(pointer)
        # Nothing is known of addresses that are computed from loaded values.
        if isinstance(op, LoadOp) and addresses is not None and max(facts.contiguity) == 1:
            return addresses
        joined = self.joined.get(op)
        if joined is not None:
            return joined
        element = element_of(pointee(pointer.type))
        shape = shape_of(pointer.type)
        return coalesced(shape, element.bytes, facts, self.warps, self.access_bytes)

    @cached_property
    def joined(self) -> dict[Op, LinearLayout]:
        """Layouts of accesses that others are used with, and of scans that follow these."""
        return access_layouts(self.function, self.facts, self.warps, self.access_bytes)
