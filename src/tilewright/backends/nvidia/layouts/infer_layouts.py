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
from tilewright.backends.nvidia.layouts.layout_context import LayoutContext
from tilewright.backends.nvidia.layouts.layout_propagation import default_layout
from tilewright.backends.nvidia.layouts.layout_rules import rule_of
from tilewright.backends.nvidia.layouts.select_mma import DotLayouts
from tilewright.ir import Block, Function, Op, Trait, Value
from tilewright.ir.types import TileType
from tilewright.layout import LinearLayout
from tilewright.ops import (
    ForOp,
    IfOp,
    WhileOp,
)
from tilewright.support.fresh_stack import nested

Layouts = dict[LinearLayout, None]
_CONTROL = (ForOp, WhileOp, IfOp)


class Reason(IntEnum):
    """Why a carried value has its layout; a larger one overrules."""

    NONE = 0
    KNOWN = 1
    STARTS_AS_PRODUCT = 2
    BECOMES_PRODUCT = 3


class LayoutInference(LayoutContext):
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
        super().__init__(function, facts, warps, access_bytes, products)
        self.demands: dict[Value, Layouts] = {}
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
                self._set(op.results, rule_of(op).result(op, self))

    def _set(self, values: Sequence[Value], layout: LinearLayout | None) -> None:
        for value in values:
            if layout is None:
                self.layouts.pop(value, None)
            else:
                self.layouts[value] = layout

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
        return Reason.STARTS_AS_PRODUCT if layout in self.product_layouts else Reason.KNOWN

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
                reason = Reason.BECOMES_PRODUCT if layout in self.product_layouts else Reason.KNOWN
                if layout is not None and reason > reasons[arg]:
                    reasons[arg], self.layouts[arg] = reason, layout
                    raised = again = True
        return raised

    def _lay_branches(self, op: IfOp) -> None:
        for region in op.regions:
            self._lay(region)
        for i, result in enumerate(op.results):
            if isinstance(result.type, TileType):
                known = self.deciding_layout(
                    [region.terminator.operands[i] for region in op.regions]
                )
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
        return [
            (i, self.operand_layout(op, i, made)) for made in self._made_in(op, tiles)
            for i in tiles
        ]  # fmt: skip

    def _made_in(self, op: Op, tiles: Sequence[int]) -> list[LinearLayout]:
        """The layouts that the op is made in; without results, the one that its operands have."""
        source = rule_of(op).source(op, self)
        if source is not None:
            return [source]
        if op.results and op.results[0] in self.layouts:
            return [self.layouts[op.results[0]]]
        if op.results and isinstance(op.results[0].type, TileType):
            return list(self.demands.get(op.results[0], {}))
        operands = [op.operands[i] for i in tiles]
        return [self.deciding_layout(operands) or self.layout_or_default(operands[0])]

    def operand_layout(self, op: Op, index: int, layout: LinearLayout) -> LinearLayout:
        """The layout of one operand if the op is made in `layout`."""
        needed = rule_of(op).operand(op, index, layout)
        return needed or self.layout_or_default(op.operands[index])


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
