"""The layout that each tile is made in, and those that its uses require: a fixpoint.

1. *Layouts*: a value that costs something to make has one layout. A load has the coalesced layout
   of its addresses, a dot that of its tensor-core result, a reduction what its input leaves;
   element-wise results follow their operands; values carried by loops follow what is carried.
2. *Constraints*, from users to definitions: each use requires its operand in a layout. Values
   without a layout of their own (ranges, splats, pointer arithmetic, masks, shape ops) are cheap:
   they are made again in every layout that is required, and constrain their operands as well.

    %i = tile.range                     required in A, so it is made in A
    %p = mem.offset %x, %i              required in A, by the load
    %v = mem.load %p                    made in A, coalesced; required in A and B
    %s = tile.reduce %v                 made in what A leaves
    %c = tile.dot %v, ...               made in C; requires %v in B

The body of a loop is visited until the layouts of carried values are stable. That ends: a carried
value changes its layout only for one with a stronger reason, and there are three reasons. Layouts
inside a loop depend only on those of the values that it captures, so while these are the same as at
the last visit the loop is not visited again: the visits of nested loops do not multiply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from enum import IntEnum

from tilewright.backends.nvidia.layouts.demanded_layout import demanded_layout
from tilewright.backends.nvidia.layouts.direct_loads import direct_layout
from tilewright.backends.nvidia.layouts.layout_context import LayoutContext
from tilewright.backends.nvidia.layouts.layout_propagation import default_layout
from tilewright.backends.nvidia.layouts.layout_rules import rule_of
from tilewright.backends.nvidia.layouts.operand_chains import chained_layouts
from tilewright.backends.nvidia.layouts.packed_operands import packed_layout
from tilewright.backends.nvidia.layouts.transposed_loads import transposed_layout
from tilewright.ir import Block, Op, Trait, Value
from tilewright.ir.types import TileType, shape_of
from tilewright.layout import LinearLayout
from tilewright.ops import ForOp, IfOp, LoadOp, WhileOp
from tilewright.support import cached_property
from tilewright.support.data_class import dataclass
from tilewright.support.fresh_stack import nested

Layouts = dict[LinearLayout, None]
"""A set in order of insertion, so that code does not depend on hashes."""
_CONTROL = (ForOp, WhileOp, IfOp)


class Reason(IntEnum):
    """Why a carried value has its layout; a larger one overrules."""

    NONE = 0
    HAS_LAYOUT = 1
    STARTS_AS_DOT = 2
    BECOMES_DOT = 3


@dataclass(eq=False)
class LayoutInference(LayoutContext):
    """Decides the layouts of one function.

    After `run`, `layouts` has the layout of each tile that is made once, `constraints` those that
    uses of each tile require.
    """

    constraints: dict[Value, Layouts] = field(default_factory=dict[Value, Layouts], init=False)
    _captured: dict[Op, list[Value]] = field(default_factory=dict[Op, list[Value]], init=False)
    _assigned_for: dict[Op, list[LinearLayout | None]] = field(
        default_factory=dict[Op, list[LinearLayout | None]], init=False
    )

    def run(self) -> None:
        # Before their turn: small loads look for the layouts of their uses.
        self.layouts |= self._chained
        self._assign_block(self.function.body)
        self._constrain_block(self.function.body)

    @cached_property
    def _chained(self) -> dict[Value, LinearLayout]:
        return chained_layouts(self.function, self.warps, self.dots, self.stages)

    # -- 1. layouts -----------------------------------------------------------------------------

    @nested
    def _assign_block(self, block: Block) -> None:
        for op in block:
            if isinstance(op, ForOp | WhileOp):
                self._assign_loop(op)
            elif isinstance(op, IfOp):
                self._assign_branches(op)
            elif any(isinstance(r.type, TileType) for r in op.results):
                self._set(op.results, self._layout_of_results(op))

    def _layout_of_results(self, op: Op) -> LinearLayout | None:
        own = self._chained.get(op.results[0])
        if own is None and isinstance(op, LoadOp):
            own = transposed_layout(op, self) or direct_layout(op, self)
        own = own or packed_layout(op, self)
        return own or rule_of(op).result(op, self)

    def _set(self, values: Sequence[Value], layout: LinearLayout | None) -> None:
        for value in values:
            if layout is None:
                # A loop's body is visited again: what the last visit assigned may not hold.
                self.layouts.pop(value, None)
            else:
                self.layouts[value] = layout

    # -- loops and branches ---------------------------------------------------------------------

    def _assign_loop(self, op: ForOp | WhileOp) -> None:
        """Visit a loop, unless the tiles that it captures have the layouts of the last visit."""
        if op not in self._captured:
            self._captured[op] = _captured_tiles(op)
        outside = [self.layouts.get(value) for value in self._captured[op]]
        if self._assigned_for.get(op) != outside:
            self._assign_loop_to_fixpoint(op)
            self._assigned_for[op] = outside

    def _assign_loop_to_fixpoint(self, op: ForOp | WhileOp) -> None:
        """Visit the body until the layouts of carried values are stable.

        Each visit but the last raises the reason of a carried value: at most three times for each.
        """
        args = op.carried if isinstance(op, ForOp) else op.before.args
        reasons = {
            arg: self._assign_initial(arg, init) for arg, init in zip(args, op.inits, strict=True)
        }
        self._assign_regions(op)
        while self._update_carried(op, reasons):
            self._assign_regions(op)
        # of these neither the initial nor the yielded value has a layout of its own
        for arg in args:
            if isinstance(arg.type, TileType) and arg not in self.layouts:
                self.layouts[arg] = self._layout_of_cheap(arg)
        for arg, result in zip(args, op.results, strict=True):
            self._set([result], self.layouts.get(arg))
        # Once more, with the defaults that were just assigned.
        self._assign_regions(op)

    def _assign_initial(self, arg: Value, init: Value) -> Reason:
        """Give a carried value the layout of its initial value."""
        layout = self.layouts.get(init)
        self._set([arg], layout)
        if layout is None:
            return Reason.NONE
        return Reason.STARTS_AS_DOT if layout in self.dot_layouts else Reason.HAS_LAYOUT

    def _assign_regions(self, op: ForOp | WhileOp) -> None:
        for region in op.regions:
            if isinstance(op, WhileOp) and region is op.body:
                for inner, arg in zip(op.body.args, op.before.args, strict=True):
                    self._set([inner], self.layouts.get(arg))
            self._assign_block(region)

    def _update_carried(self, op: ForOp | WhileOp, reasons: dict[Value, Reason]) -> bool:
        """Give carried values the layouts of what the body yields; whether a reason was raised.

        Values that move from one carried value to the next, as in a sliding window, move at once.
        """
        pairs = list(zip(reasons, op.body.terminator.operands, strict=True))
        raised = False
        changed = True
        while changed:
            changed = False
            for arg, value in pairs:
                layout = self.layouts.get(value)
                reason = Reason.BECOMES_DOT if layout in self.dot_layouts else Reason.HAS_LAYOUT
                if layout is not None and reason > reasons[arg]:
                    reasons[arg], self.layouts[arg] = reason, layout
                    raised = changed = True
        return raised

    def _assign_branches(self, op: IfOp) -> None:
        for region in op.regions:
            self._assign_block(region)
        for i, result in enumerate(op.results):
            if isinstance(result.type, TileType):
                known = self.deciding_layout(
                    [region.terminator.operands[i] for region in op.regions]
                )
                self.layouts[result] = known or self._layout_of_cheap(result)

    def _layout_of_cheap(self, value: Value) -> LinearLayout:
        """The layout of a carried or chosen tile that could be made in any."""
        return demanded_layout(value, self) or default_layout(shape_of(value.type), self.warps)

    # -- 2. constraints -------------------------------------------------------------------------

    def _constrain(self, value: Value, layout: LinearLayout) -> None:
        if isinstance(value.type, TileType):
            self.constraints.setdefault(value, {})[layout] = None

    @nested
    def _constrain_block(self, block: Block) -> None:
        # Users first: all layouts of a cheap value must be known before those of its operands.
        # One pass is enough: carried tiles have layouts, so no requirement goes around a loop.
        for op in reversed(block):
            for region in reversed(op.regions):
                if isinstance(op, _CONTROL):
                    self._constrain_yielded(op, yielded_values(op, region))
                    self._constrain_block(region)
            if isinstance(op, ForOp | WhileOp):
                self._constrain_yielded(op, op.inits)
            for index, layout in self.operand_layouts(op):
                self._constrain(op.operands[index], layout)

    def _constrain_yielded(self, op: Op, values: Sequence[Value]) -> None:
        """Require yielded values in the layouts of the results that they become."""
        for value, result in zip(values, op.results, strict=True):
            if result in self.layouts:
                self._constrain(value, self.layouts[result])

    def operand_layouts(self, op: Op) -> list[tuple[int, LinearLayout]]:
        """The layouts that an op requires of its tile operands, for each layout it is made in."""
        tiles = [i for i, v in enumerate(op.operands) if isinstance(v.type, TileType)]
        if not tiles or Trait.TERMINATOR in op.traits or isinstance(op, _CONTROL):
            return []
        return [
            (i, self.operand_layout(op, i, made)) for made in self._result_layouts(op, tiles)
            for i in tiles
        ]  # fmt: skip

    def _result_layouts(self, op: Op, tiles: Sequence[int]) -> list[LinearLayout]:
        """The layouts that an op is made in; without results, the one that its operands have."""
        source = rule_of(op).source(op, self)
        if source is not None:
            return [source]
        if op.results and op.results[0] in self.layouts:
            return [self.layouts[op.results[0]]]
        if op.results and isinstance(op.results[0].type, TileType):
            # A cheap value is made once for each layout that is required.
            return list(self.constraints.get(op.results[0], {}))
        operands = [op.operands[i] for i in tiles]
        return [self.deciding_layout(operands) or self.layout_or_default(operands[0])]

    def operand_layout(self, op: Op, index: int, layout: LinearLayout) -> LinearLayout:
        """The layout of one operand if the op is made in `layout`."""
        needed = rule_of(op).operand(op, index, layout)
        return needed or self.layout_or_default(op.operands[index])


def _captured_tiles(loop: Op) -> list[Value]:
    """The tiles from outside that a loop uses, initial values included."""
    inside = {region for op in loop.walk() for region in op.regions}
    values = dict.fromkeys(value for op in loop.walk() for value in op.operands)
    return [
        value for value in values if isinstance(value.type, TileType) and value.block not in inside
    ]


def yielded_values(op: Op, region: Block) -> Sequence[Value]:
    """Operands of a region's terminator that become results of the structured op."""
    values = region.terminator.operands
    return values[1:] if isinstance(op, WhileOp) and region is op.before else values
