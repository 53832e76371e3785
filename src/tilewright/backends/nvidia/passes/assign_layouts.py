"""Assign a layout to every tile: coalesced accesses, tensor-core fragments, few conversions.

First `infer_layouts` decides the layout in which each value is computed and those that its uses
require, for the split of dots among warps that needs the fewest exchanges. Then they are
materialized: result types get their layouts, values that cost nothing are cloned for each required
layout, and for any other value a conversion follows its definition, outside of the loops with uses.
An exchange of a small tile follows the loads between its definition and its first use.

    %i = tile.range : tile<256xi32>                 %i = tile.range : tile<256xi32, A>
    %p = mem.offset %x, %i                     ->   %p = mem.offset %x, %i : tile<256xptr<f32>, A>
    %v = mem.load %p : tile<256xf32>                %v = mem.load %p : tile<256xf32, A>
"""

from __future__ import annotations

from tilewright.analysis import analyze_alignment
from tilewright.backends.nvidia.layouts.infer_layouts import (
    LayoutInference,
    Layouts,
    yielded_values,
)
from tilewright.backends.nvidia.layouts.warp_split import split_dots
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.ir import Block, Builder, Function, Op, Pass, Rewriter, Value
from tilewright.ir.types import TileType, Type, element_of
from tilewright.layout import REGISTER, LinearLayout, SharedMemory, WarpShuffle, plan
from tilewright.ops import ForOp, IfOp, LoadOp, WhileOp, ancestor_in
from tilewright.support.data_class import dataclass
from tilewright.support.fresh_stack import nested

MOST_WAITING = 64
"""Bytes per thread of a tile that waits for loads before its exchange: more costs programs or
spills, as in small_matmuls/one_dot fp32 64x128."""


@dataclass(frozen=True)
class AssignLayouts(Pass, name="nvidia-assign-layouts"):
    """Give every tile a layout.

    warps: of a program instance; access: bytes of the widest access to global memory; stages: slots
    of the buffers of loops without a number of their own, 0 where no load is copied ahead
    """

    warps: int = 4
    access: int = 16
    stages: int = 0

    def run(self, function: Function) -> bool:
        facts = analyze_alignment(function)
        inference = split_dots(function, facts, self.warps, self.access, self.stages)
        LayoutMaterialization(inference).run()
        return True


class LayoutMaterialization:
    """The rewrite of a function by inferred layouts.

    versions: (value, layout) -> the value with the same elements in that layout
    """

    def __init__(self, inference: LayoutInference) -> None:
        self.inference, self.function = inference, inference.function
        self.layouts, self.constraints = inference.layouts, inference.constraints
        self.versions: dict[tuple[Value, LinearLayout], Value] = {}

    def run(self) -> None:
        self._materialize_block(self.function.body)
        # After all blocks: all yielded values have their versions.
        self._rewrite_yields()
        _remove_originals(self.function.body)

    @nested
    def _materialize_block(self, block: Block) -> None:
        for arg in block.args:
            self._materialize(arg)
        for op in block:
            tiles = [r for r in op.results if isinstance(r.type, TileType)]
            # Cheap to compute again: no conversions.
            if tiles and tiles[0] not in self.layouts:
                self._clone_per_layout(op)
                continue
            self._rewrite_operands(op)
            for region in op.regions:
                if isinstance(op, ForOp | WhileOp | IfOp):
                    self._materialize_block(region)
            self._set_result_types(op)
            for result in tiles:
                self._materialize(result)

    def _set_result_types(self, op: Op) -> None:
        if "result_types" in op.attrs:
            op.attrs["result_types"] = tuple(self._typed(r) for r in op.results)
        elif "result_type" in op.attrs:
            op.attrs["result_type"] = self._typed(op.results[0])

    def _typed(self, value: Value) -> Type:
        layout = self.layouts.get(value)
        if layout is None or not isinstance(value.type, TileType):
            return value.type
        return TileType(value.type.shape, value.type.element, layout)

    def _materialize(self, value: Value) -> None:
        """Put a value's layout into its type, and convert it to the other required layouts."""
        if value not in self.layouts or not isinstance(value.type, TileType):
            return
        own = self.layouts[value]
        value.type = TileType(value.type.shape, value.type.element, own)
        self.versions[value, own] = value
        for layout in self.constraints.get(value, {}):
            if layout == own:
                continue
            size = element_of(value.type).bytes
            is_small = own.in_size(REGISTER) * size <= MOST_WAITING
            waits = is_small and isinstance(plan(own, layout, 8 * size), SharedMemory | WarpShuffle)
            builder = _after_loads(value) if waits else _after_definition(value)
            target = TileType(value.type.shape, value.type.element, layout)
            converted = builder.value(ConvertOp(value, target))
            converted.name = value.name
            self.versions[value, layout] = converted

    def _clone_per_layout(self, op: Op) -> None:
        """Clone an op without a layout of its own for each layout required of its results."""
        # Results of one op share a layout: all get the layouts that any of them needs.
        required: Layouts = {}
        for result in op.results:
            required.update(self.constraints.get(result, {}))
        for layout in required:
            copy = op.clone({})
            for index, source in enumerate(op.operands):
                if isinstance(source.type, TileType):
                    source_layout = self.inference.operand_layout(op, index, layout)
                    copy.operands[index] = self.versions[source, source_layout]
            for old, new in zip(op.results, copy.results, strict=True):
                assert isinstance(old.type, TileType)
                new.type = TileType(old.type.shape, old.type.element, layout)
                self.versions[old, layout] = new
            if "result_type" in copy.attrs:
                copy.attrs["result_type"] = copy.results[0].type
            assert op.parent is not None
            op.parent.insert(copy, op)

    def _rewrite_operands(self, op: Op) -> None:
        for index, layout in self.inference.operand_layouts(op):
            op.set_operand(index, self.versions[op.operands[index], layout])
        if isinstance(op, ForOp | WhileOp):
            self._rewrite_yielded(op, op, len(op.operands) - len(op.results))

    def _rewrite_yields(self) -> None:
        """Give terminators the versions in the layouts of the results of their ops."""
        for op in self.function.walk():
            for region in op.regions if isinstance(op, ForOp | WhileOp | IfOp) else ():
                end = region.terminator
                self._rewrite_yielded(op, end, len(end.operands) - len(yielded_values(op, region)))

    def _rewrite_yielded(self, op: Op, user: Op, start: int) -> None:
        """Give operands from `start` on the layouts of the results of `op`."""
        for i, result in enumerate(op.results):
            if result in self.layouts:
                old = user.operands[start + i]
                user.set_operand(start + i, self.versions[old, self.layouts[result]])


def _after_definition(value: Value) -> Builder:
    if value.op is not None:
        return Builder.after(value.op)
    assert isinstance(value.owner, Block)
    return Builder(value.owner, value.owner.first)


def _after_loads(value: Value) -> Builder:
    """After the definition of a value, or after the loads between this and the first use, which
    then do not wait for the exchange."""
    if value.op is None:
        return _after_definition(value)
    last, following = value.op, value.op.next
    users = {ancestor_in(value.op.parent, user) for user in value.uses}
    while following is not None and following not in users:
        last = following if isinstance(following, LoadOp) else last
        following = following.next
    return Builder.after(last)


@nested
def _remove_originals(block: Block) -> None:
    """Erase the originals of clones."""
    # Backwards: users are erased first. Tiles without layouts are originals.
    for op in reversed(block):
        for region in op.regions:
            _remove_originals(region)
        tiles = [r for r in op.results if isinstance(r.type, TileType)]
        if tiles and all(isinstance(r.type, TileType) and r.type.layout is None for r in tiles):
            Rewriter.erase(op)
