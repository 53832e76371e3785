"""Small loads in loops that are made in the layout of their use, instead of coalesced.

    %s = mem.load %q : tile<128xf16>        each thread loads the eight columns that it has of %w,
    %t = tile.expand_dims %s {axis = 0}     as its neighbours along the rows do
    %u = tile.broadcast %t
    %x = arith.mul %w, %u                   in the layout of %w, which is loaded

Coalesced, each element is loaded once, and goes to the threads that need it through shared memory,
between two barriers in each iteration. Caches serve those that load the same.
"""

from __future__ import annotations

from tilewright.analysis import is_fence
from tilewright.backends.nvidia.layouts.access_vectors import MAX_VECTOR_BYTES, vector_runs
from tilewright.backends.nvidia.layouts.layout_context import LayoutContext
from tilewright.backends.nvidia.layouts.layout_rules import rule_of
from tilewright.ir import Block, Op, Trait, Value
from tilewright.ir.types import element_of, shape_of
from tilewright.layout import REGISTER, LinearLayout
from tilewright.ops import BroadcastOp, ExpandDimsOp, ForOp, LoadOp, WhileOp

MOST_BYTES = 32
"""Of a thread: in registers, from one iteration to the next."""

MOST_LOADS = 4
"""Instructions of a thread, instead of a load, a write, a read and two barriers."""


def direct_layout(load: LoadOp, context: LayoutContext) -> LinearLayout | None:
    """The layout of all uses of a small load in a loop; None if it should be coalesced."""
    # Each element is loaded several times: what others write meanwhile must not tell.
    if len(shape_of(load.type)) != 1 or not _is_in_loop(load) or is_fence(load):
        return None
    layout = _layout_of_uses(load.result, context)
    if layout is None:
        return None
    size, count = element_of(load.type).bytes, layout.in_size(REGISTER)
    (run,) = vector_runs(context.facts, load.pointer, load.mask, layout)
    vector = min(run.length, MAX_VECTOR_BYTES // size)
    return layout if count * size <= MOST_BYTES and count <= MOST_LOADS * vector else None


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
