"""Small loads in loops that are made where they are used, instead of coalesced over the block.

    %s = mem.load %q : tile<128xf16>        each thread loads the eight columns that it has of %w,
    %t = tile.expand_dims %s {axis = 0}     as its neighbours along the rows do
    %u = tile.broadcast %t
    %x = arith.mul %w, %u                   in the layout of %w, which is loaded

A coalesced load reads each element once, and sends it to the threads that need it through shared
memory, between two barriers in each iteration. Threads that load the same element hit in caches.
Where the layout of the use takes too many loads per thread, each warp makes a coalesced load of
its own and exchanges elements between its lanes; next to dots of one warpgroup, whose barriers are
cheap, only of a few elements:

    %s  register=(1..2) lane=(4..64) warp=(0)(0)          one vector of four
    %t  register=(1)(8..64) lane=(2..4)(0..) warp=(0)(0)  32 elements per thread, from its warp
"""

from __future__ import annotations

from tilewright.analysis import is_fence
from tilewright.backends.nvidia.buffer_ops import WgmmaOp
from tilewright.backends.nvidia.layouts.access_vectors import MAX_VECTOR_BYTES, vector_runs
from tilewright.backends.nvidia.layouts.layout_context import LayoutContext
from tilewright.backends.nvidia.layouts.layout_rules import rule_of
from tilewright.ir import Block, Op, Trait, Value
from tilewright.ir.types import element_of, shape_of
from tilewright.layout import (
    LANE,
    REGISTER,
    WARP,
    LinearLayout,
    RegisterPermute,
    WarpShuffle,
    log2,
    plan,
)
from tilewright.ops import BroadcastOp, ExpandDimsOp, ForOp, LoadOp, WhileOp

MOST_BYTES = 32
"""Bytes per thread that stay in registers from one iteration to the next."""

MOST_LOADS = 4
"""Load instructions per thread that cost less than a load, a write, a read and two barriers."""

_WARPGROUP = 4
"""Warps that multiply together, so that a barrier among them alone costs little."""

_MOST_SHUFFLES = 16
"""Elements per thread that come from other lanes, instead of such a barrier."""


def direct_layout(load: LoadOp, context: LayoutContext) -> LinearLayout | None:
    """The layout of all uses of a small load in a loop, or one in which each warp has what its
    lanes use; None if it should be coalesced over the block.
    """
    # Each element is loaded several times, so no store between may change it.
    if len(shape_of(load.type)) != 1 or not _is_in_loop(load) or is_fence(load):
        return None
    layout = _layout_of_uses(load.result, context)
    if layout is None or _is_cheap(load, layout, context):
        return layout
    is_one_group = layout.in_size(WARP) <= _WARPGROUP and _is_near_wgmma(load)
    if is_one_group and layout.in_size(REGISTER) > _MOST_SHUFFLES:
        return None
    size = element_of(load.type).bytes
    within = (_of_warps(layout, vector) for vector in (MAX_VECTOR_BYTES // size, 1))
    return next(
        (
            chosen
            for chosen in within
            if _is_cheap(load, chosen, context)
            and isinstance(plan(chosen, layout, 8 * size), WarpShuffle | RegisterPermute)
        ),
        None,
    )


def _is_near_wgmma(load: LoadOp) -> bool:
    """Whether the loop contains wgmma dots."""
    assert load.parent is not None and isinstance(load.parent.owner, Op)
    return any(isinstance(op, WgmmaOp) for op in load.parent.owner.walk())


def _is_cheap(load: LoadOp, layout: LinearLayout, context: LayoutContext) -> bool:
    """Whether threads may make a load in a layout."""
    size, count = element_of(load.type).bytes, layout.in_size(REGISTER)
    (run,) = vector_runs(context.facts, load.pointer, load.mask, layout)
    vector = min(run.length, MAX_VECTOR_BYTES // size)
    return count * size <= MOST_BYTES and count <= MOST_LOADS * vector


def _of_warps(layout: LinearLayout, most: int) -> LinearLayout:
    """The elements that each warp has in a layout, coalesced over its lanes; most: of a vector."""
    held = sorted({basis for name in (REGISTER, LANE) for (basis,) in layout.bases(name)} - {0})
    lanes = log2(layout.in_size(LANE))
    first = min(max(0, len(held) - lanes), log2(most))
    across = held[first : first + lanes]
    registers = held[:first] + held[first + lanes :]
    bases = {
        REGISTER: [(basis,) for basis in registers],
        LANE: [(basis,) for basis in across + [0] * (lanes - len(across))],
        WARP: layout.bases(WARP),
    }
    return LinearLayout.from_bases(
        bases, {name: layout.out_size(name) for name in layout.out_names}
    )


def _is_in_loop(op: Op) -> bool:
    block: Block | None = op.parent
    return block is not None and isinstance(block.owner, ForOp | WhileOp)


def _layout_of_uses(value: Value, context: LayoutContext) -> LinearLayout | None:
    """The layout that all uses of a tile require; None if they differ, or it is not known."""
    layouts = {_layout_of_use(user, value, context) for user in value.uses}
    return layouts.pop() if len(layouts) == 1 else None


def _layout_of_use(user: Op, value: Value, context: LayoutContext) -> LinearLayout | None:
    if isinstance(user, LoadOp):
        return rule_of(user).result(user, context)
    is_elementwise = Trait.ELEMENTWISE in user.traits
    if not is_elementwise and not isinstance(user, ExpandDimsOp | BroadcastOp):
        return None
    result = user.results[0]
    # Element-wise code of the load alone follows it.
    follows = is_elementwise and len(shape_of(result.type)) == 1
    made = None if follows else context.layouts.get(result)
    if made is None:
        made = _layout_of_uses(result, context)
    return None if made is None else rule_of(user).operand(user, user.operands.index(value), made)
