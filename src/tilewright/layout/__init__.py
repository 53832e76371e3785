"""Layouts of tiles: in registers of lanes of warps, or in shared memory.

It has no IR. Start with the docstring of `linear_layout`, which has a 4 x 4 example.
"""

# pyright: reportUnusedImport=false

from tilewright.layout.conversion_plan import (
    SYNC_COST,
    ConversionPlan,
    Identity,
    RegisterPermute,
    SharedMemory,
    WarpShuffle,
    plan,
)
from tilewright.layout.distributed_layouts import (
    blocked,
    fit,
    grid,
    slice_of,
)
from tilewright.layout.layout_pictures import render, render_shared
from tilewright.layout.linear_layout import (
    BLOCK,
    LANE,
    OFFSET,
    REGISTER,
    WARP,
    LinearLayout,
    log2,
    tile_dims,
)
from tilewright.layout.matrix_access import MatrixForm, matrix_addresses, matrix_form
from tilewright.layout.mma_fragments import (
    FRAGMENTS,
    Fragment,
    operand_layout,
    result_layout,
    wgmma_fragment,
)
from tilewright.layout.register_access import contiguous_registers
from tilewright.layout.shared_access import SharedAccess, plan_shared_access
from tilewright.layout.shared_conversion import SharedConversion, plan_shared_conversion
from tilewright.layout.shared_layouts import (
    SWIZZLE_BYTES,
    shared_row_major,
    shared_swizzled,
    shared_xor,
)
from tilewright.layout.warp_shuffles import LaneMap, ShuffleRound, Shuffles
from tilewright.layout.wgmma_descriptor import (
    WgmmaOperand,
    wgmma_operand,
    wgmma_shared_layout,
)
