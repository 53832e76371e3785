"""Loads that asynchronous copies transpose: rows in memory become columns of a buffer.

    32 x 128 x f32, rows in memory           2 rows by 16 columns of a warp, 16 columns further on
    buffer<32x128xf32>, adjacent columns    lane=(0,1..8)(1,0), register=(0,16..)

The shortest copy moves 4 bytes. So elements of 4 bytes can be moved one by one, each to where the
transposed tile has it, and nothing passes through registers.
"""

from __future__ import annotations

from typing import cast

from tilewright.backends.nvidia.buffer_ops import ShareOp, buffer_type
from tilewright.backends.nvidia.layouts.layout_context import LayoutContext
from tilewright.ir.types import element_of, shape_of
from tilewright.layout import LinearLayout, blocked
from tilewright.ops import LoadOp

TRANSPOSED_BYTES = 4
"""Bytes of an element that can be copied alone (PTX ISA, cp.async)."""

_RUN = 64 // TRANSPOSED_BYTES
"""Adjacent elements in one copy of a warp: two sectors. With one, its writes have no bank
conflicts, but it requests twice the lines, which is slower."""

_ROWS = 32 // _RUN


def transposed_layout(load: LoadOp, context: LayoutContext) -> LinearLayout | None:
    """The layout of a load whose copy transposes it; None for other loads."""
    buffers = [op.result for op in load.result.uses if isinstance(op, ShareOp)]
    shape = shape_of(load.type)
    if not buffers or len(shape) != 2 or element_of(load.type).bytes != TRANSPOSED_BYTES:
        return None
    contiguity = context.facts[load.pointer].contiguity
    along = 0 if contiguity[0] > contiguity[1] else 1
    is_transposed = not cast("LinearLayout", buffer_type(buffers[0]).layout).apply(offset=1)[along]
    if not is_transposed or contiguity[along] < _RUN or shape[1 - along] < _ROWS:
        return None
    lanes, warps = [_ROWS, _ROWS], [1, 1]
    lanes[along] = _RUN
    # Further registers are as far along the row of memory: their addresses differ by constants.
    warps[1 - along] = min(context.warps, shape[1 - along] // _ROWS)
    warps[along] = context.warps // warps[1 - along]
    return blocked(shape, (1, 1), lanes, warps, (along, 1 - along))
