"""Layout rules of op classes: how layouts of operands and results are related.

`infer_layouts` assigns layouts by these rules, and lowering relies on them.

    @layout_rule(TransposeOp)
    class _Transpose(LayoutRule[TransposeOp]): ...

The lowering of most ops moves no element between threads. So the layout of the
result decides those of the operands: element-wise code has one layout throughout, the operand of a
broadcast that of its result without what is repeated, and so on. Some ops also need the result
distributed in a certain way: a concatenation keeps the halves apart in a register bit.

    %j = tile.join %a, %b : tile<8x2xi32, L>        %a, %b : tile<8xi32, L without its last dim>
    %c = tile.cat %a, %b : tile<16xi32, L>          %a, %b : tile<8xi32, L without a register bit>

All layouts of tiles in registers are permutations: each bit of a register, lane or warp number is
one bit of one coordinate, or means a copy. Reductions and vectors rely on that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from tilewright.backends.nvidia.buffer_ops import PartOp, ReadOp, TransposeViewOp, ViewOp, WgmmaOp
from tilewright.backends.nvidia.exchange_ops import KeepBetterOp, ScanJoinOp
from tilewright.backends.nvidia.layouts.layout_context import LayoutContext
from tilewright.backends.nvidia.layouts.layout_propagation import (
    block_layout,
    broadcast_source,
    default_layout,
    expand_dims_source,
    first_of_axis,
    is_permutation,
    is_scannable,
    part_along,
    reshape_source,
    scan_combinations,
    scan_layout,
    spread,
    transpose_source,
    transpose_target,
    with_half,
    with_pair,
    without_half,
    without_pair,
)
from tilewright.backends.nvidia.layouts.mma_layouts import dot_operand, is_dot_layout
from tilewright.backends.nvidia.layouts.select_wgmma import wgmma_left, wgmma_result
from tilewright.backends.nvidia.layouts.store_lines import line_layout, run_layout
from tilewright.backends.nvidia.ops import ConvertOp, FmaDotOp
from tilewright.ir import Op, Trait, Value
from tilewright.ir.types import TileType, element_of, shape_of
from tilewright.layout import LANE, REGISTER, WARP, LinearLayout, slice_of
from tilewright.ops import (
    AsmOp,
    AtomicCasOp,
    AtomicOp,
    BroadcastOp,
    CatOp,
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorStoreOp,
    DotOp,
    ExpandDimsOp,
    ForOp,
    GatherOp,
    HistogramOp,
    IfOp,
    ItemOp,
    JoinOp,
    LoadOp,
    MapOp,
    PrintOp,
    ReduceOp,
    ReshapeOp,
    ScanOp,
    SortOp,
    SplitOp,
    StoreOp,
    TransposeOp,
    VolatileAsmOp,
    WhileOp,
)

OpT = TypeVar("OpT", bound=Op)


class LayoutRule(Generic[OpT]):
    """The layouts of one op class; the base class is for ops with one layout throughout."""

    def result(self, op: OpT, context: LayoutContext) -> LinearLayout | None:
        """The layout that the results are made in; None: in each that a user requires."""
        is_elementwise = Trait.ELEMENTWISE in op.traits
        return context.deciding_layout(op.operands) if is_elementwise else None

    def source(self, op: OpT, context: LayoutContext) -> LinearLayout | None:
        """The layout that decides those of the operands, where that of the result does not."""
        return None

    def operand(self, op: OpT, index: int, layout: LinearLayout) -> LinearLayout | None:
        """The layout of a tile operand; None if any will do.

        layout: of the result, of `source`, or of the first tile operand of ops without results
        """
        return layout

    def can_make(self, op: OpT, layout: LinearLayout) -> bool:
        """Whether lowering can leave the result in a layout."""
        return True

    def problem(self, op: OpT) -> str | None:
        """The violated rule of the types' layouts; None if lowering can rely on them."""
        values = op.results or op.operands
        leading = next(filter(None, map(_layout, values)), None)
        if leading is None:
            return None
        if not self.can_make(op, leading):
            return f"{op.opcode} cannot be made in {leading}"
        for index, value in enumerate(op.operands):
            layout = _layout(value)
            # Scalars and buffers are not spread over threads.
            needed = None if layout is None else self.operand(op, index, leading)
            if needed is not None and needed != layout:
                return f"operand {index} of {op.opcode} is in {layout}, not {needed}"
        return None


_RULES: dict[type[Op], LayoutRule[Any]] = {}
_ONE_LAYOUT = LayoutRule[Op]()


def layout_rule(
    *op_classes: type[Op],
) -> Callable[[type[LayoutRule[OpT]]], type[LayoutRule[OpT]]]:
    """Make a class the rule of some op classes; others have one layout throughout."""

    def register(rule: type[LayoutRule[OpT]]) -> type[LayoutRule[OpT]]:
        for op_class in op_classes:
            assert op_class not in _RULES, f"two layout rules for {op_class.opcode}"
            _RULES[op_class] = rule()
        return rule

    return register


def rule_of(op: Op) -> LayoutRule[Any]:
    """The rule for the class of an op."""
    return _RULES.get(type(op), _ONE_LAYOUT)


def broken_rule(op: Op, warps: int) -> str | None:
    """The violated layout rule of an op; None if its lowering can rely on its layouts."""
    for value in op.results:
        layout = _layout(value)
        if layout is not None and not _is_spread(layout, warps):
            return f"{layout} does not spread a tile over the threads of {warps} warps"
    return None if Trait.TERMINATOR in op.traits else rule_of(op).problem(op)


def _layout(value: Value) -> LinearLayout | None:
    """The layout of a tile in registers: None for scalars and buffers."""
    return cast("LinearLayout", value.type.layout) if isinstance(value.type, TileType) else None


def _is_spread(layout: LinearLayout, warps: int) -> bool:
    return (
        layout.in_size(LANE) == 32
        and layout.in_size(WARP) == warps
        and is_permutation(layout)
    )  # fmt: skip


# ---- memory --------------------------------------------------------------------------------------


@layout_rule(LoadOp, AtomicOp, AtomicCasOp)
class _Access(LayoutRule[LoadOp | AtomicOp | AtomicCasOp]):
    def result(
        self, op: LoadOp | AtomicOp | AtomicCasOp, context: LayoutContext
    ) -> LinearLayout | None:
        if isinstance(op, AtomicOp) and op.is_reduction:
            # Pairs of accumulators fill sectors: an exchange would cost more than lines gain.
            made = context.layouts.get(op.operand)
            if made is not None and made in context.dot_layouts:
                return made
        return context.access_layout(op, op.pointer)


@layout_rule(DescriptorLoadOp)
class _BulkLoad(LayoutRule[DescriptorLoadOp]):
    """TMA loads go to shared memory: no thread holds them, so any layout will do."""

    def result(self, op: DescriptorLoadOp, context: LayoutContext) -> LinearLayout | None:
        return default_layout(shape_of(op.type), context.warps)

    def problem(self, op: DescriptorLoadOp) -> str | None:
        return None


@layout_rule(DescriptorStoreOp, DescriptorReduceOp)
class _BulkStore(LayoutRule[DescriptorStoreOp | DescriptorReduceOp]):
    """TMA stores go through shared memory, from any layout."""

    def operand(
        self, op: DescriptorStoreOp | DescriptorReduceOp, index: int, layout: LinearLayout
    ) -> LinearLayout | None:
        return None


@layout_rule(StoreOp)
class _Store(LayoutRule[StoreOp]):
    def source(self, op: StoreOp, context: LayoutContext) -> LinearLayout | None:
        access = context.access_layout(op, op.pointer)
        stored = context.layouts.get(op.stored)
        if stored is None:
            return access
        # results of dots are exchanged, which makes lines whole
        better = line_layout if stored in context.dot_layouts else run_layout
        return better(access, stored, element_of(op.stored.type).bytes) or access


@layout_rule(GatherOp)
class _Gather(LayoutRule[GatherOp]):
    def result(self, op: GatherOp, context: LayoutContext) -> LinearLayout | None:
        return context.layout_or_default(op.index)

    def operand(self, op: GatherOp, index: int, layout: LinearLayout) -> LinearLayout | None:
        return layout if index else None  # the source goes through shared memory


# ---- dots, reductions, scans -----------------------------------------------------------------


@layout_rule(DotOp)
class _Dot(LayoutRule[DotOp]):
    def result(self, op: DotOp, context: LayoutContext) -> LinearLayout | None:
        return context.dots[op].result

    def operand(self, op: DotOp, index: int, layout: LinearLayout) -> LinearLayout | None:
        return dot_operand(op, index, layout)

    def can_make(self, op: DotOp, layout: LinearLayout) -> bool:
        return is_dot_layout(op, layout)


@layout_rule(WgmmaOp)
class _Wgmma(LayoutRule[WgmmaOp]):
    def result(self, op: WgmmaOp, context: LayoutContext) -> LinearLayout | None:
        return wgmma_result(op, context.warps)

    def operand(self, op: WgmmaOp, index: int, layout: LinearLayout) -> LinearLayout | None:
        return layout if index == 2 else wgmma_left(op, layout.in_size(WARP))

    def can_make(self, op: WgmmaOp, layout: LinearLayout) -> bool:
        return wgmma_result(op, layout.in_size(WARP)) == layout


@layout_rule(FmaDotOp)
class _FmaDot(LayoutRule[FmaDotOp]):
    def result(self, op: FmaDotOp, context: LayoutContext) -> LinearLayout | None:
        return block_layout(shape_of(op.type), context.warps)

    def operand(self, op: FmaDotOp, index: int, layout: LinearLayout) -> LinearLayout | None:
        return layout if index == 2 else None  # A and B go through shared memory


@layout_rule(ReduceOp)
class _Reduce(LayoutRule[ReduceOp]):
    def result(self, op: ReduceOp, context: LayoutContext) -> LinearLayout | None:
        return slice_of(self.source(op, context), op.axis)

    def source(self, op: ReduceOp, context: LayoutContext) -> LinearLayout:
        return context.deciding_layout(op.operands) or context.free_layout(op)

    def problem(self, op: ReduceOp) -> str | None:
        source = cast("LinearLayout", _layout(op.inputs[0]))
        if any(_layout(value) != source for value in op.inputs):
            return "the operands of a reduction differ in layout"
        # Results may be scalars: these have no layout.
        left = slice_of(source, op.axis)
        if any(_layout(value) not in (None, left) for value in op.results):
            return f"a reduction of {source} leaves {left}"
        return None


_EXCHANGE = 16
"""Instructions that cost as much as the exchange of a register, with its barriers. An estimate."""


@layout_rule(ScanOp)
class _Scan(LayoutRule[ScanOp]):
    def result(self, op: ScanOp, context: LayoutContext) -> LinearLayout | None:
        return self.source(op, context)

    def source(self, op: ScanOp, context: LayoutContext) -> LinearLayout:
        layout = context.joined.get(op) or context.deciding_layout(op.operands)
        own = scan_layout(shape_of(op.operands[0].type), op.axis, context.warps)
        if layout is None or not is_scannable(layout, op.axis):
            return own
        more = scan_combinations(layout, op.axis) - scan_combinations(own, op.axis)
        length = sum(1 for _ in op.combine.walk())
        return own if more * length > _EXCHANGE * layout.in_size(REGISTER) else layout

    def can_make(self, op: ScanOp, layout: LinearLayout) -> bool:
        return is_scannable(layout, op.axis)


@layout_rule(SortOp)
class _Sort(LayoutRule[SortOp]):
    """Sorts: positions in registers first, then lanes, then warps."""

    def result(self, op: SortOp, context: LayoutContext) -> LinearLayout | None:
        return first_of_axis(self.source(op, context), op.axis, op.count)

    def source(self, op: SortOp, context: LayoutContext) -> LinearLayout:
        layout = context.deciding_layout(op.operands)
        if layout is not None and not any(basis[op.axis] for basis in layout.bases(WARP)):
            return layout
        return scan_layout(shape_of(op.x.type), op.axis, context.warps)

    def problem(self, op: SortOp) -> str | None:
        left = first_of_axis(cast("LinearLayout", _layout(op.x)), op.axis, op.count)
        return None if _layout(op.result) == left else f"a sort leaves {left}"


@layout_rule(HistogramOp)
class _Histogram(LayoutRule[HistogramOp]):
    """Histograms: the operands have one layout, the result any."""

    def result(self, op: HistogramOp, context: LayoutContext) -> LinearLayout | None:
        return default_layout((op.bins,), context.warps)

    def source(self, op: HistogramOp, context: LayoutContext) -> LinearLayout:
        shape = shape_of(op.x.type)
        return context.deciding_layout(op.operands) or default_layout(shape, context.warps)

    def problem(self, op: HistogramOp) -> str | None:
        layouts = {_layout(value) for value in op.operands}
        return None if len(layouts) == 1 else "the operands of a histogram differ in layout"


# ---- functions of groups -------------------------------------------------------------------------


@layout_rule(MapOp, AsmOp, VolatileAsmOp)
class _Map(LayoutRule[MapOp | AsmOp | VolatileAsmOp]):
    """Maps of groups: one layout throughout, in which a thread holds each group whole."""

    def result(
        self, op: MapOp | AsmOp | VolatileAsmOp, context: LayoutContext
    ) -> LinearLayout | None:
        layout = context.deciding_layout(op.operands)
        if layout is not None and self.can_make(op, layout):
            return layout
        shape = shape_of(op.results[0].type)
        return spread(shape, op.pack, tuple(reversed(range(len(shape)))), context.warps)

    def can_make(self, op: MapOp | AsmOp | VolatileAsmOp, layout: LinearLayout) -> bool:
        held = sum(basis[-1] for basis in layout.bases(REGISTER) if basis[-1] < op.pack)
        return held == op.pack - 1


# ---- shapes --------------------------------------------------------------------------------------


@layout_rule(ExpandDimsOp)
class _ExpandDims(LayoutRule[ExpandDimsOp]):
    def operand(self, op: ExpandDimsOp, index: int, layout: LinearLayout) -> LinearLayout | None:
        return expand_dims_source(layout, op.axis)


@layout_rule(BroadcastOp)
class _Broadcast(LayoutRule[BroadcastOp]):
    def result(self, op: BroadcastOp, context: LayoutContext) -> LinearLayout | None:
        """Layout of half of a pair, that of the pairs. Otherwise users would be recomputed in each
        required layout, from halves in as many, which are no cheaper to convert."""
        expand = op.x.op
        if not isinstance(expand, ExpandDimsOp):
            return None
        reduce = expand.x.op
        if not isinstance(reduce, ReduceOp) or expand.axis != reduce.axis:
            return None
        pairs = shape_of(reduce.inputs[0].type)
        if op.shape != pairs or pairs[reduce.axis] > 2:
            return None
        return rule_of(reduce).source(reduce, context)

    def operand(self, op: BroadcastOp, index: int, layout: LinearLayout) -> LinearLayout | None:
        return broadcast_source(layout, shape_of(op.x.type))


@layout_rule(TransposeOp)
class _Transpose(LayoutRule[TransposeOp]):
    def result(self, op: TransposeOp, context: LayoutContext) -> LinearLayout | None:
        layout = context.layouts.get(op.x)
        return None if layout is None else transpose_target(layout, op.order)

    def operand(self, op: TransposeOp, index: int, layout: LinearLayout) -> LinearLayout | None:
        return transpose_source(layout, op.order)


@layout_rule(ReshapeOp)
class _Reshape(LayoutRule[ReshapeOp]):
    def result(self, op: ReshapeOp, context: LayoutContext) -> LinearLayout | None:
        layout = context.layouts.get(op.x)
        return None if layout is None else reshape_source(layout, op.shape)

    def operand(self, op: ReshapeOp, index: int, layout: LinearLayout) -> LinearLayout | None:
        return reshape_source(layout, shape_of(op.x.type))


@layout_rule(JoinOp)
class _Join(LayoutRule[JoinOp]):
    def result(self, op: JoinOp, context: LayoutContext) -> LinearLayout | None:
        layout = context.deciding_layout(op.operands)
        return None if layout is None else with_pair(layout)

    def operand(self, op: JoinOp, index: int, layout: LinearLayout) -> LinearLayout | None:
        # Not `without_pair`: for other layouts of the result, lowering selects (`_join`).
        return slice_of(layout, len(shape_of(op.lhs.type)))


@layout_rule(SplitOp)
class _Split(LayoutRule[SplitOp]):
    def result(self, op: SplitOp, context: LayoutContext) -> LinearLayout | None:
        part = without_pair(context.layout_or_default(op.x))
        return part or default_layout(shape_of(op.results[0].type), context.warps)

    def operand(self, op: SplitOp, index: int, layout: LinearLayout) -> LinearLayout | None:
        return with_pair(layout)


@layout_rule(CatOp)
class _Cat(LayoutRule[CatOp]):
    def result(self, op: CatOp, context: LayoutContext) -> LinearLayout | None:
        return with_half(context.layout_or_default(op.lhs), op.axis)

    def operand(self, op: CatOp, index: int, layout: LinearLayout) -> LinearLayout | None:
        return without_half(layout, op.axis)

    def can_make(self, op: CatOp, layout: LinearLayout) -> bool:
        return without_half(layout, op.axis) is not None


# ---- any layout ----------------------------------------------------------------------------------


@layout_rule(ItemOp, PrintOp)
class _AnyOperand(LayoutRule[Op]):
    """Ops that handle elements one by one, in any layout."""

    def operand(self, op: Op, index: int, layout: LinearLayout) -> LinearLayout | None:
        return None


@layout_rule(PartOp)
class _Part(LayoutRule[PartOp]):
    def problem(self, op: PartOp) -> str | None:
        whole = cast("LinearLayout", _layout(op.x))
        found = part_along(whole, op.axis, shape_of(op.type)[op.axis])
        is_part = found is not None and found[0] == _layout(op.result)
        return None if is_part else f"{_layout(op.result)} is no part of {whole}"


@layout_rule(
    ForOp, IfOp, WhileOp, ConvertOp, ViewOp, TransposeViewOp, ReadOp, ScanJoinOp, KeepBetterOp
)
class _Unrelated(LayoutRule[Op]):
    """The result types state the layouts; the verifier checks those of control flow."""

    def problem(self, op: Op) -> str | None:
        return None
