"""Which layout each tile is made in, and in which it is asked for: a fixpoint over the function.

1. *Layouts*: a value that costs something to make has one layout. A load has the coalesced layout
   of its addresses, a product that of its tensor-core result, a reduction what its input leaves;
   element-wise results follow their operands; values carried by loops follow what is carried.
2. *Demands*, users first: each use asks for its operand in a layout. Values without a layout of
   their own (ranges, splats, pointer arithmetic, masks, shape ops) are remade in every layout
   asked for, so they pass the question on to their operands.

    %i = tile.range                     asked for in A, so it is made in A
    %p = mem.offset %x, %i              asked for in A, by the load
    %v = mem.load %p                    made in A, coalesced; asked for in A and B
    %s = tile.reduce %v                 made in what A leaves
    %c = tile.dot %v, ...               made in C; asks for %v in B

The body of a loop is gone through until what it carries keeps its layout. That ends: a carried
value changes its layout only for one with a stronger reason, and there are three reasons. What a
loop lays depends on the layouts of what it takes from outside alone, so as long as these are those
of the last time it is not gone through again: loops in loops do not multiply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

from tilewright.analysis import Alignment
from tilewright.backends.nvidia.layouts.layout_propagation import (
    block_layout,
    coalesced,
    default_layout,
    is_scannable,
    reshape_source,
    scan_layout,
    transpose_target,
    with_half,
    with_pair,
    without_pair,
)
from tilewright.backends.nvidia.layouts.layout_rules import operand_layout
from tilewright.backends.nvidia.layouts.select_mma import DotLayouts
from tilewright.backends.nvidia.ops import FmaDotOp
from tilewright.ir import Block, Function, Op, Trait, Value
from tilewright.ir.types import TileType, element_of, shape_of
from tilewright.layout import LinearLayout, slice_of
from tilewright.ops import (
    AtomicCasOp,
    AtomicOp,
    CatOp,
    DotOp,
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
from tilewright.support.fresh_stack import nested

Layouts = dict[LinearLayout, None]
_ACCESSES = (LoadOp, StoreOp, AtomicOp, AtomicCasOp)
_CONTROL = (ForOp, WhileOp, IfOp)


class Reason(IntEnum):
    """Why a carried value has its layout; a larger one overrules."""

    NONE = 0
    KNOWN = 1
    STARTS_AS_PRODUCT = 2
    BECOMES_PRODUCT = 3


class LayoutInference:
    """Layouts of one function, for a number of warps, and bytes of the widest access.

    facts: alignment of all values; products: layouts of all products. After `run`, `layouts` has
    the layout of each tile that is made once, `demands` those in which each tile is asked for.
    """

    def __init__(
        self,
        function: Function,
        facts: Mapping[Value, Alignment],
        warps: int,
        access_bytes: int,
        products: Mapping[Op, DotLayouts],
    ) -> None:
        self.function, self.facts, self.products = function, facts, products
        self.warps, self.access_bytes = warps, access_bytes
        self.layouts: dict[Value, LinearLayout] = {}
        self.demands: dict[Value, Layouts] = {}
        self._results = {product.result for product in products.values()}
        self._taken: dict[Op, list[Value]] = {}
        self._laid: dict[Op, list[LinearLayout | None]] = {}

    def run(self) -> None:
        self._lay(self.function.body)
        self._demand_block(self.function.body)

    # -- 1. layouts -----------------------------------------------------------------------------

    @nested
    def _lay(self, block: Block) -> None:
        for op in block:
            if isinstance(op, ForOp | WhileOp):
                self._lay_loop(op)
            elif isinstance(op, IfOp):
                self._lay_branches(op)
            elif any(isinstance(r.type, TileType) for r in op.results):
                self._set(op.results, self._layout_of(op))

    def _set(self, values: Sequence[Value], layout: LinearLayout | None) -> None:
        for value in values:
            if layout is None:
                self.layouts.pop(value, None)
            else:
                self.layouts[value] = layout

    def _layout_of(self, op: Op) -> LinearLayout | None:
        """That of the results; None for what is remade in each layout asked for."""
        if isinstance(op, _ACCESSES):
            return self._access_layout(op.operands[0])
        if isinstance(op, DotOp):
            return self.products[op].result
        if isinstance(op, FmaDotOp):
            return block_layout(shape_of(op.type), self.warps)
        if isinstance(op, ReduceOp):
            return slice_of(self._input_layout(op), op.axis)
        if isinstance(op, ScanOp):
            return self._input_layout(op)
        if isinstance(op, GatherOp):
            return self._own_or_default(op.index)
        return self._layout_of_moved(op)

    def _layout_of_moved(self, op: Op) -> LinearLayout | None:
        """Of ops that move elements; the rest follow their operands if they are element-wise."""
        if isinstance(op, JoinOp):
            known = self._known(op.operands)
            return None if known is None else with_pair(known)
        if isinstance(op, SplitOp):
            part = without_pair(self._own_or_default(op.x))
            return part or default_layout(shape_of(op.results[0].type), self.warps)
        if isinstance(op, CatOp):
            return with_half(self._own_or_default(op.lhs), op.axis)
        if isinstance(op, TransposeOp):
            known = self.layouts.get(op.x)
            return None if known is None else transpose_target(known, op.order)
        if isinstance(op, ReshapeOp):
            known = self.layouts.get(op.x)
            return None if known is None else reshape_source(known, op.shape)
        return self._known(op.operands) if Trait.ELEMENTWISE in op.traits else None

    def _input_layout(self, op: ReduceOp | ScanOp) -> LinearLayout:
        """Layout in which a reduction or scan takes its input."""
        shape = shape_of(op.operands[0].type)
        known = self._known(op.operands)
        if isinstance(op, ReduceOp):
            return known or default_layout(shape, self.warps)
        if known is not None and is_scannable(known, op.axis):
            return known
        return scan_layout(shape, op.axis, self.warps)

    def _own_or_default(self, value: Value) -> LinearLayout:
        return self.layouts.get(value) or default_layout(shape_of(value.type), self.warps)

    def _known(self, values: Sequence[Value]) -> LinearLayout | None:
        """The layout of the operand that decides: a tensor-core result before others."""
        layouts = [self.layouts[v] for v in values if v in self.layouts]
        return next((x for x in layouts if x in self._results), layouts[0] if layouts else None)

    def _access_layout(self, pointer: Value) -> LinearLayout:
        element = element_of(pointee(pointer.type))
        shape = shape_of(pointer.type)
        facts = self.facts[pointer]
        return coalesced(shape, element.bytes, facts, self.warps, self.access_bytes)

    # -- loops and branches ---------------------------------------------------------------------

    def _lay_loop(self, op: ForOp | WhileOp) -> None:
        """Lay a loop, unless it is laid for these layouts of what it takes from outside."""
        if op not in self._taken:
            self._taken[op] = _taken(op)
        outside = [self.layouts.get(value) for value in self._taken[op]]
        if self._laid.get(op) != outside:
            self._settle_loop(op)
            self._laid[op] = outside

    def _settle_loop(self, op: ForOp | WhileOp) -> None:
        """Go through the body until what it carries keeps its layout.

        Each round but the last raises the reason of a carried value: at most three for each.
        """
        args = op.carried if isinstance(op, ForOp) else op.before.args
        reasons = {arg: self._start(arg, init) for arg, init in zip(args, op.inits, strict=True)}
        self._lay_regions(op)
        while self._follow(op, reasons):
            self._lay_regions(op)
        for arg in args:
            if isinstance(arg.type, TileType) and arg not in self.layouts:
                self.layouts[arg] = default_layout(arg.type.shape, self.warps)
        for arg, result in zip(args, op.results, strict=True):
            self._set([result], self.layouts.get(arg))
        self._lay_regions(op)

    def _start(self, arg: Value, init: Value) -> Reason:
        """Lay a carried value as what it starts from."""
        layout = self.layouts.get(init)
        self._set([arg], layout)
        if layout is None:
            return Reason.NONE
        return Reason.STARTS_AS_PRODUCT if layout in self._results else Reason.KNOWN

    def _lay_regions(self, op: ForOp | WhileOp) -> None:
        for region in op.regions:
            if isinstance(op, WhileOp) and region is op.body:
                for inner, arg in zip(op.body.args, op.before.args, strict=True):
                    self._set([inner], self.layouts.get(arg))
            self._lay(region)

    def _follow(self, op: ForOp | WhileOp, reasons: dict[Value, Reason]) -> bool:
        """Lay carried values as what the body yields for them; whether a reason was raised.

        What moves from one carried value to the next, as in a sliding window, moves at once.
        """
        pairs = list(zip(reasons, op.body.terminator.operands, strict=True))
        raised = False
        again = True
        while again:
            again = False
            for arg, value in pairs:
                layout = self.layouts.get(value)
                reason = Reason.BECOMES_PRODUCT if layout in self._results else Reason.KNOWN
                if layout is not None and reason > reasons[arg]:
                    reasons[arg], self.layouts[arg] = reason, layout
                    raised = again = True
        return raised

    def _lay_branches(self, op: IfOp) -> None:
        for region in op.regions:
            self._lay(region)
        for i, result in enumerate(op.results):
            if isinstance(result.type, TileType):
                known = self._known([region.terminator.operands[i] for region in op.regions])
                self.layouts[result] = known or default_layout(result.type.shape, self.warps)

    # -- 2. demands -----------------------------------------------------------------------------

    def _want(self, value: Value, layout: LinearLayout) -> None:
        if isinstance(value.type, TileType):
            self.demands.setdefault(value, {})[layout] = None

    @nested
    def _demand_block(self, block: Block) -> None:
        for op in reversed(block):
            for region in reversed(op.regions):
                if isinstance(op, _CONTROL):
                    self._demand_passed(op, passed_on(op, region))
                    self._demand_block(region)
            if isinstance(op, ForOp | WhileOp):
                self._demand_passed(op, op.inits)
            for index, layout in self.operand_layouts(op):
                self._want(op.operands[index], layout)

    def _demand_passed(self, op: Op, values: Sequence[Value]) -> None:
        """What is passed for the results of a structured op is asked for in their layouts."""
        for value, result in zip(values, op.results, strict=True):
            if result in self.layouts:
                self._want(value, self.layouts[result])

    def operand_layouts(self, op: Op) -> list[tuple[int, LinearLayout]]:
        """What the op asks of its tile operands, for each layout in which it is made."""
        tiles = [i for i, v in enumerate(op.operands) if isinstance(v.type, TileType)]
        if not tiles or Trait.TERMINATOR in op.traits or isinstance(op, _CONTROL):
            return []
        if isinstance(op, ReduceOp | ScanOp):
            return [(i, self._input_layout(op)) for i in tiles]
        return [
            (i, self.operand_layout(op, i, made)) for made in self._made_in(op, tiles)
            for i in tiles
        ]  # fmt: skip

    def _made_in(self, op: Op, tiles: Sequence[int]) -> list[LinearLayout]:
        """The layouts that the op is made in; without results, the one that its operands have."""
        if isinstance(op, StoreOp):
            return [self._access_layout(op.pointer)]
        if op.results and op.results[0] in self.layouts:
            return [self.layouts[op.results[0]]]
        if op.results and isinstance(op.results[0].type, TileType):
            return list(self.demands.get(op.results[0], {}))
        operands = [op.operands[i] for i in tiles]
        return [self._known(operands) or self._own_or_default(operands[0])]

    def operand_layout(self, op: Op, index: int, layout: LinearLayout) -> LinearLayout:
        """The layout of one operand if the op is made in `layout`."""
        return operand_layout(op, index, layout) or self._own_or_default(op.operands[index])


def _taken(loop: Op) -> list[Value]:
    """The tiles from outside that a loop starts from or uses."""
    inside = {region for op in loop.walk() for region in op.regions}
    values = dict.fromkeys(value for op in loop.walk() for value in op.operands)
    return [
        value
        for value in values
        if isinstance(value.type, TileType)
        and (value.owner if value.op is None else value.op.parent) not in inside
    ]


def passed_on(op: Op, region: Block) -> Sequence[Value]:
    """What a region of a structured op passes on for its results."""
    values = region.terminator.operands
    return values[1:] if isinstance(op, WhileOp) and region is op.before else values
