"""Gives every tile a layout: coalesced accesses, tensor-core fragments, few conversions.

Three steps over the whole function.
1. *Homes*: a value that costs something to make has one layout. A load has the coalesced layout of
   its addresses, a product that of its tensor-core result, a reduction what its input leaves;
   element-wise results follow their operands; values carried by loops follow what is carried.
2. *Demands*, users first: each use asks for its operand in a layout. Values without a home (ranges,
   splats, pointer arithmetic, masks, shape ops) are made in every layout asked for.
3. *Emission*: result types get their layouts, homeless values are cloned for each demand, and
   where a value is wanted in another layout than its home a conversion follows its definition, so
   that it stands outside the loops that use it.

    %i = tile.range : tile<256xi32>                 %i = tile.range : tile<256xi32, A>
    %p = mem.offset %x, %i                     ->   %p = mem.offset %x, %i : tile<256xptr<f32>, A>
    %v = mem.load %p : tile<256xf32>                %v = mem.load %p : tile<256xf32, A>
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from tilewright.analysis import Alignment, analyze_alignment
from tilewright.backends.nvidia.distribute import (
    block_layout,
    broadcast_source,
    coalesced,
    default_layout,
    expand_dims_source,
    is_scannable,
    reshape_source,
    scan_layout,
    transpose_source,
    transpose_target,
    with_half,
    with_pair,
    without_pair,
)
from tilewright.backends.nvidia.ops import ConvertOp, FmaDotOp
from tilewright.backends.nvidia.select_mma import DotLayouts, dot_layouts
from tilewright.ir import Block, Builder, Function, Op, Rewriter, Trait, Value
from tilewright.ir.types import TileType, element_of, shape_of
from tilewright.layout import LinearLayout, slice_of
from tilewright.ops import (
    AtomicCasOp,
    AtomicOp,
    BroadcastOp,
    CatOp,
    DotOp,
    ExpandDimsOp,
    ForOp,
    GatherOp,
    IfOp,
    JoinOp,
    LoadOp,
    ReduceOp,
    ReshapeOp,
    ScanOp,
    SplitOp,
    StoreOp,
    TransposeOp,
    WhileOp,
    pointee,
)

Layouts = dict[LinearLayout, None]
_ACCESSES = (LoadOp, StoreOp, AtomicOp, AtomicCasOp)


class LayoutAssignment:
    """Assigns the layouts of one function for a number of warps, and bytes of an access."""

    def __init__(self, function: Function, warps: int, access_bytes: int) -> None:
        self.function, self.warps, self.access_bytes = function, warps, access_bytes
        self.facts: dict[Value, Alignment] = analyze_alignment(function)
        self.homes: dict[Value, LinearLayout] = {}
        self.dots: dict[Op, DotLayouts] = {}
        self.halves: dict[Op, LinearLayout] = {}
        self.demands: dict[Value, Layouts] = {}
        self.versions: dict[tuple[Value, LinearLayout], Value] = {}

    def run(self) -> None:
        self._homes(self.function.body)
        self._demand_block(self.function.body)
        self._emit_block(self.function.body)

    # -- 1. homes -------------------------------------------------------------------------------

    def _homes(self, block: Block) -> None:
        for raw in block:
            op = cast("Op", raw)
            if isinstance(op, ForOp | WhileOp):
                self._loop_homes(op)
            elif isinstance(op, IfOp):
                self._if_homes(op)
            elif any(isinstance(r.type, TileType) for r in op.results):
                home = self._home(op)
                if home is not None:
                    self.homes.update((r, home) for r in op.results)

    def _home(self, op: Op) -> LinearLayout | None:
        if isinstance(op, _ACCESSES):
            return self._access_layout(op.operands[0])
        if isinstance(op, DotOp):
            self.dots[op] = dot_layouts(op, self.warps)
            return self.dots[op].result
        if isinstance(op, FmaDotOp):
            return block_layout(shape_of(op.type), self.warps)
        if isinstance(op, ReduceOp):
            return slice_of(self._input_home(op), op.axis)
        if isinstance(op, ScanOp):
            return self._input_home(op)
        if isinstance(op, GatherOp):
            return self._own_or_default(op.index)
        return self._shape_home(op)

    def _shape_home(self, op: Op) -> LinearLayout | None:
        """Of ops that move elements; the rest follow their operands if they are element-wise."""
        if isinstance(op, JoinOp):
            home = self._known(op.operands)
            return None if home is None else with_pair(home)
        if isinstance(op, SplitOp):
            home = without_pair(self._own_or_default(op.x))
            return home or default_layout(shape_of(op.results[0].type), self.warps)
        if isinstance(op, CatOp):
            self.halves[op] = self._own_or_default(op.lhs)
            return with_half(self.halves[op], op.axis)
        if isinstance(op, TransposeOp):
            home = self.homes.get(op.x)
            return None if home is None else transpose_target(home, op.order)
        if isinstance(op, ReshapeOp):
            home = self.homes.get(op.x)
            return None if home is None else reshape_source(home, op.shape)
        return self._known(op.operands) if Trait.ELEMENTWISE in op.traits else None

    def _input_home(self, op: Op) -> LinearLayout:
        """Layout in which a reduction or scan takes its input."""
        shape = shape_of(op.operands[0].type)
        home = self._known(op.operands)
        if isinstance(op, ScanOp):
            if home is not None and is_scannable(home, op.axis):
                return home
            return scan_layout(shape, op.axis, self.warps)
        return home or default_layout(shape, self.warps)

    def _own_or_default(self, value: Value) -> LinearLayout:
        return self.homes.get(value) or default_layout(shape_of(value.type), self.warps)

    def _known(self, values: Sequence[Value]) -> LinearLayout | None:
        """The home of the operand that decides: a tensor-core result before others."""
        homes = [self.homes[v] for v in values if v in self.homes]
        results = {d.result for d in self.dots.values()}
        return next((h for h in homes if h in results), homes[0] if homes else None)

    def _access_layout(self, pointer: Value) -> LinearLayout:
        element = element_of(pointee(pointer.type))
        shape = shape_of(pointer.type)
        facts = self.facts[pointer]
        return coalesced(shape, element.bytes, facts, self.warps, self.access_bytes)

    def _loop_homes(self, op: ForOp | WhileOp) -> None:
        args = op.carried if isinstance(op, ForOp) else op.before.args
        for arg, init in zip(args, op.inits, strict=True):
            if isinstance(arg.type, TileType) and init in self.homes:
                self.homes[arg] = self.homes[init]
        for _ in range(3):
            before = dict(self.homes)
            for region in op.regions:
                self._carry_homes(op, region)
                self._homes(region)
            self._follow_yields(op, args)
            if before == self.homes:
                break
        for arg, result in zip(args, op.results, strict=True):
            if isinstance(arg.type, TileType):
                home = self.homes.get(arg) or default_layout(arg.type.shape, self.warps)
                self.homes[arg] = self.homes[result] = home
        for region in op.regions:
            self._carry_homes(op, region)
            self._homes(region)

    def _carry_homes(self, op: Op, region: Block) -> None:
        if isinstance(op, WhileOp) and region is op.body:
            for inner, arg in zip(op.body.args, op.before.args, strict=True):
                if arg in self.homes:
                    self.homes[inner] = self.homes[arg]

    def _follow_yields(self, op: ForOp | WhileOp, args: Sequence[Value]) -> None:
        """A carried value that starts as a constant lives where the loop makes it."""
        results = {d.result for d in self.dots.values()}
        for arg, value in zip(args, op.body.terminator.operands, strict=True):
            home = self.homes.get(value)
            if home is not None and (arg not in self.homes or home in results):
                self.homes[arg] = home

    def _if_homes(self, op: IfOp) -> None:
        for region in op.regions:
            self._homes(region)
        for i, result in enumerate(op.results):
            if isinstance(result.type, TileType):
                yields = [region.terminator.operands[i] for region in op.regions]
                home = self._known(yields) or default_layout(result.type.shape, self.warps)
                self.homes[result] = home

    # -- 2. demands -----------------------------------------------------------------------------

    def _want(self, value: Value, layout: LinearLayout) -> None:
        if isinstance(value.type, TileType):
            self.demands.setdefault(value, {})[layout] = None

    def _demand_block(self, block: Block) -> None:
        for raw in reversed(block):
            op = cast("Op", raw)
            for region in reversed(op.regions):
                if isinstance(op, ForOp | WhileOp | IfOp):
                    self._demand_yields(op, region)
                    self._demand_block(region)
            self._demand_operands(op)

    def _demand_yields(self, op: Op, region: Block) -> None:
        values = region.terminator.operands
        if isinstance(op, WhileOp) and region is op.before:
            values = values[1:]
        for value, result in zip(values, op.results, strict=True):
            if result in self.homes:
                self._want(value, self.homes[result])

    def _demand_operands(self, op: Op) -> None:
        if isinstance(op, ForOp | WhileOp):
            for init, result in zip(op.inits, op.results, strict=True):
                if result in self.homes:
                    self._want(init, self.homes[result])
            return
        for index, layout in self._operand_layouts(op):
            self._want(op.operands[index], layout)

    def _operand_layouts(self, op: Op) -> list[tuple[int, LinearLayout]]:
        """What the op asks of its tile operands, for each layout in which it is made."""
        tiles = [i for i, v in enumerate(op.operands) if isinstance(v.type, TileType)]
        if not tiles or Trait.TERMINATOR in op.traits:
            return []
        if isinstance(op, ForOp | WhileOp | IfOp):
            return []
        if isinstance(op, StoreOp):
            layout = self._access_layout(op.pointer)
            return [(i, layout) for i in tiles]
        if isinstance(op, DotOp):
            dot = self.dots[op]
            return [(0, dot.a), (1, dot.b), (2, dot.result)]
        if isinstance(op, FmaDotOp):
            a, b = (self._own_or_default(v) for v in (op.a, op.b))
            return [(0, a), (1, b), (2, self.homes[op.result])]
        if isinstance(op, ReduceOp | ScanOp):
            return [(i, self._input_home(op)) for i in tiles]
        if op.results and op.results[0] in self.homes:
            layouts = [self.homes[op.results[0]]]
        elif op.results and isinstance(op.results[0].type, TileType):
            layouts = list(self.demands.get(op.results[0], {}))
        else:
            layouts = [self._sink_layout(op, tiles)]
        return [(i, self._source(op, i, layout)) for layout in layouts for i in tiles]

    def _sink_layout(self, op: Op, tiles: Sequence[int]) -> LinearLayout:
        operands = [op.operands[i] for i in tiles]
        home = self._known(operands)
        return home or default_layout(shape_of(operands[0].type), self.warps)

    def _source(self, op: Op, index: int, layout: LinearLayout) -> LinearLayout:
        """The layout of one operand if the op is made in `layout`."""
        if isinstance(op, ExpandDimsOp):
            return expand_dims_source(layout, op.axis)
        if isinstance(op, BroadcastOp):
            return broadcast_source(layout, shape_of(op.x.type))
        if isinstance(op, TransposeOp):
            return transpose_source(layout, op.order)
        if isinstance(op, ReshapeOp):
            return reshape_source(layout, shape_of(op.x.type))
        if isinstance(op, JoinOp):
            return slice_of(layout, len(shape_of(op.lhs.type)))
        if isinstance(op, SplitOp):
            return with_pair(layout)
        if isinstance(op, CatOp):
            return self.halves[op]
        if isinstance(op, GatherOp) and index == 0:
            return self._own_or_default(op.x)
        return layout

    # -- 3. emission ----------------------------------------------------------------------------

    def _emit_block(self, block: Block) -> None:
        for arg in block.args:
            self._settle(arg, Builder(block, block.first))
        for raw in block:
            op = cast("Op", raw)
            tiles = [r for r in op.results if isinstance(r.type, TileType)]
            if tiles and tiles[0] not in self.homes:
                self._emit_versions(op)
                continue
            self._rewrite_operands(op, op)
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

    def _typed(self, value: Value):
        home = self.homes.get(value)
        if home is None or not isinstance(value.type, TileType):
            return value.type
        return TileType(value.type.shape, value.type.element, home)

    def _settle(self, value: Value, builder: Builder) -> None:
        """Give a value its home as type, and convert it to what else is asked for."""
        if value not in self.homes or not isinstance(value.type, TileType):
            return
        home = self.homes[value]
        value.type = TileType(value.type.shape, value.type.element, home)
        self.versions[value, home] = value
        for layout in self.demands.get(value, {}):
            if layout == home:
                self.versions[value, layout] = value
                continue
            wanted = TileType(value.type.shape, value.type.element, layout)
            converted = builder.value(ConvertOp(value, wanted))
            converted.name = value.name
            self.versions[value, layout] = converted

    def _emit_versions(self, op: Op) -> None:
        """Clone a homeless op for each layout asked of its results."""
        wanted: Layouts = {}
        for result in op.results:
            wanted.update(self.demands.get(result, {}))
        for layout in wanted:
            copy = op.clone({})
            for index, source in enumerate(op.operands):
                if isinstance(source.type, TileType) or (source, layout) in self.versions:
                    place = self._source(op, index, layout)
                    copy.operands[index] = self.versions[source, place]
            for old, new in zip(op.results, copy.results, strict=True):
                assert isinstance(old.type, TileType)
                new.type = TileType(old.type.shape, old.type.element, layout)
                self.versions[old, layout] = new
            if "result_type" in copy.attrs:
                copy.attrs["result_type"] = copy.results[0].type
            assert op.parent is not None
            op.parent.insert(copy, op)

    def _rewrite_operands(self, op: Op, version: Op) -> None:
        for index, layout in self._operand_layouts(op):
            version.set_operand(index, self.versions[op.operands[index], layout])
        if isinstance(op, ForOp | WhileOp):
            start = 3 if isinstance(op, ForOp) else 0
            for i, result in enumerate(op.results):
                if result in self.homes:
                    old = op.operands[start + i]
                    op.set_operand(start + i, self.versions[old, self.homes[result]])

    def rewrite_yields(self) -> None:
        """Terminators take the versions in the layouts of what they end."""
        for op in self.function.walk():
            if isinstance(op, ForOp | WhileOp | IfOp):
                for region in op.regions:
                    self._rewrite_yield(op, region)

    def _rewrite_yield(self, op: Op, region: Block) -> None:
        end = region.terminator
        start = 1 if isinstance(op, WhileOp) and region is op.before else 0
        for i, result in enumerate(op.results):
            if result in self.homes:
                old = end.operands[start + i]
                new = self.versions.get((old, self.homes[result]))
                if new is not None and new is not old:
                    end.set_operand(start + i, new)


def assign_layouts(function: Function, warps: int, access_bytes: int) -> None:
    """Run the assignment on a function; afterwards every tile type has a layout."""
    assignment = LayoutAssignment(function, warps, access_bytes)
    assignment.run()
    assignment.rewrite_yields()
    _remove_unlaid(function.body)


def _remove_unlaid(block: Block) -> None:
    """Drop the homeless originals; their clones took their place."""
    for raw in reversed(block):
        op = cast("Op", raw)
        for region in op.regions:
            _remove_unlaid(region)
        tiles = [r for r in op.results if isinstance(r.type, TileType)]
        if tiles and all(isinstance(r.type, TileType) and r.type.layout is None for r in tiles):
            Rewriter.erase(op)
