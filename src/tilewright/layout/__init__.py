"""Layouts: where each element of a tile sits, in registers of lanes of warps or in shared memory.

Mathematics only. `linear` is the place to start: its head comment teaches the idea on a 4 x 4 tile.
"""

from tilewright.layout.access import (
    contiguous_registers,
    elements_per_thread,
    free_variable_masks,
)
from tilewright.layout.convert import (
    ConversionPlan,
    Identity,
    RegisterPermute,
    SharedMemory,
    WarpShuffle,
    plan,
)
from tilewright.layout.families import blocked, broadcast, expand_dims, fit, grid, slice_of
from tilewright.layout.linear import (
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
from tilewright.layout.mma import (
    FRAGMENTS,
    Fragment,
    operand_layout,
    result_layout,
    wgmma_fragment,
)
from tilewright.layout.render import render, render_shared
from tilewright.layout.shared import (
    PaddedShared,
    shared_row_major,
    shared_swizzled,
    shared_xor,
)
from tilewright.layout.shared_access import SharedAccess, shared_access
from tilewright.layout.shuffle import LaneMap, ShuffleRound, Shuffles
from tilewright.layout.staging import Staging, plan_staging

__all__ = [
    "BLOCK",
    "FRAGMENTS",
    "LANE",
    "OFFSET",
    "REGISTER",
    "WARP",
    "ConversionPlan",
    "Fragment",
    "Identity",
    "LaneMap",
    "LinearLayout",
    "MatrixForm",
    "PaddedShared",
    "RegisterPermute",
    "SharedAccess",
    "SharedMemory",
    "ShuffleRound",
    "Shuffles",
    "Staging",
    "WarpShuffle",
    "blocked",
    "broadcast",
    "contiguous_registers",
    "elements_per_thread",
    "expand_dims",
    "fit",
    "free_variable_masks",
    "grid",
    "log2",
    "matrix_addresses",
    "matrix_form",
    "operand_layout",
    "plan",
    "plan_staging",
    "render",
    "render_shared",
    "result_layout",
    "shared_access",
    "shared_row_major",
    "shared_swizzled",
    "shared_xor",
    "slice_of",
    "tile_dims",
    "wgmma_fragment",
]
