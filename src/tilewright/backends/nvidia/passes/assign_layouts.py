"""Gives every tile a layout: coalesced accesses, tensor-core fragments, few conversions.

What each value is made in, and asked for in, is found first (`infer_layouts`), for the shares of
products among warps that need the fewest exchanges. Then result types get their layouts, values
that cost nothing are cloned for each demand, and where a value is wanted in another layout than it
is made in a conversion follows its definition, so that it stands outside the loops that use it.

    %i = tile.range : tile<256xi32>                 %i = tile.range : tile<256xi32, A>
    %p = mem.offset %x, %i                     ->   %p = mem.offset %x, %i : tile<256xptr<f32>, A>
    %v = mem.load %p : tile<256xf32>                %v = mem.load %p : tile<256xf32, A>
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.analysis import analyze_alignment
from tilewright.backends.nvidia.layouts.infer_layouts import LayoutInference, Layouts, passed_on
from tilewright.backends.nvidia.layouts.warp_split import share_products
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.ir import Block, Builder, Function, Op, Pass, Rewriter, Value
from tilewright.ir.types import TileType, Type
from tilewright.layout import LinearLayout
from tilewright.ops import ForOp, IfOp, WhileOp
from tilewright.support.fresh_stack import nested


@dataclass(frozen=True)
class AssignLayouts(Pass, name="nvidia-assign-layouts"):
    """Give every tile a layout.

    warps: of a program instance; access: bytes of the widest access to global memory.
    """

    warps: int = 4
    access: int = 16

    def run(self, function: Function) -> bool:
        facts = analyze_alignment(function)
        LayoutEmission(share_products(function, facts, self.warps, self.access)).run()
        return True


class LayoutEmission:
    """Rewrites a function with the layouts that were inferred.

    versions: the value that has what another one holds, in a layout.
    """

    def __init__(self, inference: LayoutInference) -> None:
        self.inference, self.function = inference, inference.function
        self.layouts, self.demands = inference.layouts, inference.demands
        self.versions: dict[tuple[Value, LinearLayout], Value] = {}

    def run(self) -> None:
        self._emit_block(self.function.body)
        self._rewrite_yields()
        _remove_unlaid(self.function.body)

    @nested
    def _emit_block(self, block: Block) -> None:
        for arg in block.args:
            self._settle(arg, Builder(block, block.first))
        for op in block:
            tiles = [r for r in op.results if isinstance(r.type, TileType)]
            if tiles and tiles[0] not in self.layouts:
                self._emit_versions(op)
                continue
            self._rewrite_operands(op)
            for region in op.regions:
                if isinstance(op, ForOp | WhileOp | IfOp):
                    self._emit_block(region)
            self._set_result_types(op)
            for result in tiles:
                self._settle(result, Builder.after(op))

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

    def _settle(self, value: Value, builder: Builder) -> None:
        """Give a value its layout as type, and convert it to what else is asked for."""
        if value not in self.layouts or not isinstance(value.type, TileType):
            return
        own = self.layouts[value]
        value.type = TileType(value.type.shape, value.type.element, own)
        self.versions[value, own] = value
        for layout in self.demands.get(value, {}):
            if layout == own:
                continue
            wanted = TileType(value.type.shape, value.type.element, layout)
            converted = builder.value(ConvertOp(value, wanted))
            converted.name = value.name
            self.versions[value, layout] = converted

    def _emit_versions(self, op: Op) -> None:
        """Clone an op without a layout of its own for each layout asked of its results."""
        wanted: Layouts = {}
        for result in op.results:
            wanted.update(self.demands.get(result, {}))
        for layout in wanted:
            copy = op.clone({})
            for index, source in enumerate(op.operands):
                if isinstance(source.type, TileType):
                    asked = self.inference.operand_layout(op, index, layout)
                    copy.operands[index] = self.versions[source, asked]
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
            self._rewrite_passed(op, op, len(op.operands) - len(op.results))

    def _rewrite_yields(self) -> None:
        """Terminators take the versions in the layouts of what they end."""
        for op in self.function.walk():
            for region in op.regions if isinstance(op, ForOp | WhileOp | IfOp) else ():
                end = region.terminator
                self._rewrite_passed(op, end, len(end.operands) - len(passed_on(op, region)))

    def _rewrite_passed(self, op: Op, user: Op, start: int) -> None:
        """Operands from `start` on take the layouts of the results of `op`."""
        for i, result in enumerate(op.results):
            if result in self.layouts:
                old = user.operands[start + i]
                user.set_operand(start + i, self.versions[old, self.layouts[result]])


@nested
def _remove_unlaid(block: Block) -> None:
    """Drop the originals of what was cloned."""
    for op in reversed(block):
        for region in op.regions:
            _remove_unlaid(region)
        tiles = [r for r in op.results if isinstance(r.type, TileType)]
        if tiles and all(isinstance(r.type, TileType) and r.type.layout is None for r in tiles):
            Rewriter.erase(op)
