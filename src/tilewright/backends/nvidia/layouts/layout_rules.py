"""How the layouts of an op's tiles hang together: what assigning makes so, and lowering relies on.

The lowering of most ops gives a thread nothing but what it holds already. So the layout of the
result decides those of the operands: element-wise code has one layout throughout, the operand of a
broadcast that of its result without what is repeated, and so on. `operand_layout` answers for each
op class; `assign_layouts` asks it for what to convert to, and `broken_rule` checks the finished
function against it, op by op, before code is made of it. Some ops also need the result spread in a
certain way (`_SPREADS`): a concatenation keeps the halves apart in a register bit.

    %j = tile.join %a, %b : tile<8x2xi32, L>        %a, %b : tile<8xi32, L without its last dim>
    %c = tile.cat %a, %b : tile<16xi32, L>          %a, %b : tile<8xi32, L without a register bit>

All layouts of tiles in registers are permutations: each bit of a register, lane or warp number is
one bit of one coordinate, or means a copy. Reductions and vectors rely on that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from tilewright.backends.nvidia.layouts.layout_propagation import (
    broadcast_source,
    expand_dims_source,
    is_permutation,
    is_scannable,
    reshape_source,
    transpose_source,
    with_pair,
    without_half,
)
from tilewright.backends.nvidia.layouts.select_mma import is_product_layout, product_operand
from tilewright.backends.nvidia.ops import (
    CommitOp,
    ConvertOp,
    FmaDotOp,
    GetOp,
    PutOp,
    RingOp,
    WaitOp,
)
from tilewright.ir import Op, Trait, Value
from tilewright.ir.types import shape_of
from tilewright.layout import LANE, WARP, LinearLayout, slice_of
from tilewright.ops import (
    BroadcastOp,
    CatOp,
    DotOp,
    ExpandDimsOp,
    ForOp,
    GatherOp,
    IfOp,
    ItemOp,
    JoinOp,
    PrintOp,
    ReduceOp,
    ReshapeOp,
    ScanOp,
    SplitOp,
    TransposeOp,
    WhileOp,
)

Operand = Callable[[Any, int, LinearLayout], LinearLayout | None]
"""(op, index of an operand, layout of the result) -> layout of the operand; None: any."""


def _any(op: Op, index: int, layout: LinearLayout) -> None:
    """It is exchanged through shared memory, or looked at element by element."""


def _gather(op: GatherOp, index: int, layout: LinearLayout) -> LinearLayout | None:
    """The source goes through shared memory."""
    return layout if index else None


def _fma_dot(op: FmaDotOp, index: int, layout: LinearLayout) -> LinearLayout | None:
    """The factors go through shared memory."""
    return layout if index == 2 else None


_OPERANDS: dict[type[Op], Operand] = {
    ExpandDimsOp: lambda op, _, layout: expand_dims_source(layout, op.axis),
    BroadcastOp: lambda op, _, layout: broadcast_source(layout, shape_of(op.x.type)),
    TransposeOp: lambda op, _, layout: transpose_source(layout, op.order),
    ReshapeOp: lambda op, _, layout: reshape_source(layout, shape_of(op.x.type)),
    JoinOp: lambda op, _, layout: slice_of(layout, len(shape_of(op.lhs.type))),
    SplitOp: lambda _op, _, layout: with_pair(layout),
    CatOp: lambda op, _, layout: without_half(layout, op.axis),
    DotOp: product_operand,
    FmaDotOp: _fma_dot,
    GatherOp: _gather,
    ItemOp: _any,
    PrintOp: _any,
}
"""All others have one layout throughout."""


def operand_layout(op: Op, index: int, layout: LinearLayout) -> LinearLayout | None:
    """The layout of a tile operand of an op whose result has this layout; None if any will do.

    Ops without results have the layout of their first tile operand. Not for reductions, whose
    result follows from the operand, nor for control flow.
    """
    rule = _OPERANDS.get(type(op))
    return layout if rule is None else rule(op, index, layout)


# ---- what lowering relies on ---------------------------------------------------------------------

_SPREADS: dict[type[Op], Callable[[Any, LinearLayout], bool]] = {
    CatOp: lambda op, layout: without_half(layout, op.axis) is not None,
    ScanOp: lambda op, layout: is_scannable(layout, op.axis),
    DotOp: is_product_layout,
}
"""What lowering needs of a result's layout, beyond that the operands fit it."""

_FREE = (ForOp, IfOp, WhileOp, ConvertOp, RingOp, PutOp, GetOp, CommitOp, WaitOp)
"""Types tell all about these."""


def broken_rule(op: Op, warps: int) -> str | None:
    """What is wrong with the layouts of an op; None if they are what its lowering relies on."""
    for value in op.results:
        layout = _layout(value)
        if layout is not None and not _is_spread(layout, warps):
            return f"{layout} does not spread a tile over the threads of {warps} warps"
    if isinstance(op, _FREE) or Trait.TERMINATOR in op.traits:
        return None
    if isinstance(op, ReduceOp):
        return _broken_reduction(op)
    leading = _leading(op)
    if leading is None:
        return None
    spread = _SPREADS.get(type(op))
    if spread is not None and not spread(op, leading):
        return f"{op.opcode} cannot be made in {leading}"
    for index, value in enumerate(op.operands):
        layout = _layout(value)
        wanted = None if layout is None else operand_layout(op, index, leading)
        if wanted is not None and wanted != layout:
            return f"operand {index} of {op.opcode} is in {layout}, not {wanted}"
    return None


def _layout(value: Value) -> LinearLayout | None:
    """None for scalars, and for tiles in shared memory."""
    return cast("LinearLayout | None", getattr(value.type, "layout", None))


def _leading(op: Op) -> LinearLayout | None:
    """The layout that decides the others: that of the result, or of the first tile operand."""
    values = op.results or op.operands
    return next(filter(None, map(_layout, values)), None)


def _broken_reduction(op: ReduceOp) -> str | None:
    """All operands have one layout, and the results are what it leaves."""
    source = cast("LinearLayout", _layout(op.inputs[0]))
    if any(_layout(value) != source for value in op.inputs):
        return "the operands of a reduction differ in layout"
    left = slice_of(source, op.axis)
    if any(_layout(value) not in (None, left) for value in op.results):
        return f"a reduction of {source} leaves {left}"
    return None


def _is_spread(layout: LinearLayout, warps: int) -> bool:
    return (
        layout.in_size(LANE) == 32
        and layout.in_size(WARP) == warps
        and is_permutation(layout)
    )  # fmt: skip
