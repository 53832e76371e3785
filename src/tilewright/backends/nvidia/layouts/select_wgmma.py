"""Select the wgmma instruction of a dot, and how warpgroups share the result.

A warpgroup, four warps from a multiple of four on, computes blocks of 64 rows by up to 256 columns.
It reads B, and A unless that is in registers, from shared memory: per instruction 64 x 32 and
N x 32 bytes in N/2 cycles. So rows are split among warpgroups first, which leaves the widest N;
columns only where there are more warpgroups than blocks of 64 rows. Layouts of operands in shared
memory: see `wgmma_shared_layout`.
"""

from __future__ import annotations

from functools import lru_cache

from tilewright.backends.nvidia.arch import Arch
from tilewright.backends.nvidia.buffer_ops import WgmmaOp
from tilewright.backends.nvidia.register_model import Overhead
from tilewright.ir.types import DType, dtype_of, f16, f32, i32, shape_of
from tilewright.layout import (
    LANE,
    REGISTER,
    WARP,
    LinearLayout,
    log2,
    operand_layout,
    result_layout,
    tile_dims,
    wgmma_fragment,
)
from tilewright.ops import DotOp

WARPS = 4
"""Warps of a warpgroup."""

_ROWS = 64  # of one instruction
_MAX_COLUMNS = 256
_MIN_COLUMNS = 8
_STEP_BITS = 256  # along K, whatever the type
_REGISTERS = 65536
"""Registers of a program."""

_MAX_ACCUMULATORS = 128
"""Registers per thread for the accumulator of a dot: half of all. The rest holds addresses and,
after the loop, values computed from the accumulator."""


def wgmma_sharing(
    op: DotOp, arch: Arch, warps: int, swapped: bool = False
) -> tuple[int, int] | None:
    """N of the instruction that computes a dot, and the warpgroups along M.

    swapped: of the transposed dot. None if warpgroups cannot compute it, or not as exactly: see
    `wgmma_obstacle`.
    """
    if wgmma_obstacle(op, arch, warps, swapped):
        return None
    return _sharing(*_extents(op, swapped), warps // WARPS, dtype_of(op.type).bits)


def _extents(op: DotOp, swapped: bool) -> tuple[int, int]:
    m, n = shape_of(op.type)
    return (n, m) if swapped else (m, n)


def wgmma_obstacle(op: DotOp, arch: Arch, warps: int, swapped: bool = False) -> str:
    """Why warpgroups cannot compute a dot, or not as exactly; "" if they can.

    Dots of fp8 accumulate with fewer bits than fp32 has. f32 is truncated to tf32.
    Only tiles of rank 2, of 64 x 8 or more for each warpgroup and of the instruction's K or more
    are computed.
    """
    if not arch.wgmma:
        return f"{arch.name} has no wgmma"
    kinds = (dtype_of(op.a.type), dtype_of(op.b.type), dtype_of(op.type))
    if len(shape_of(op.type)) != 2 or not _has_types(*kinds):
        return f"wgmma does not multiply {op.a.type} and {op.b.type} in {kinds[2]}"
    if (kinds[0] is f32 and op.precision != "tf32") or (kinds[0].is_fp8 and op.max_imprecise):
        return f"wgmma is less exact than {op.precision if kinds[0] is f32 else 'max_imprecise'}"
    *_, k = shape_of(op.a.type)
    if k * kinds[0].bits < _STEP_BITS:
        return f"K is {k}, wgmma takes {_STEP_BITS // kinds[0].bits} at a time"
    if warps % WARPS:
        return f"{warps} warps are no whole warpgroups of {WARPS}"
    m, n = _extents(op, swapped)
    groups = warps // WARPS
    if _sharing(m, n, groups, kinds[2].bits) is None:
        return (
            f"{groups} warpgroup{'s' * (groups > 1)} cannot compute {m} x {n}: 64 rows each, "
            f"{_most_accumulators(groups)} registers of the accumulator at most"
        )
    return ""


def _most_accumulators(groups: int) -> int:
    """Registers per thread for the accumulator: more than two warpgroups have fewer."""
    return min(_MAX_ACCUMULATORS, _REGISTERS // (32 * WARPS * groups) - Overhead.LEAST)


@lru_cache(maxsize=256)
def _sharing(m: int, n: int, groups: int, accumulator_bits: int) -> tuple[int, int] | None:
    rows = min(groups, m // _ROWS)
    if not rows:
        return None
    columns = n // (groups // rows)
    # More warpgroups than parts would compute copies: mma.sync has smaller parts.
    if columns < _MIN_COLUMNS:
        return None
    if (m // rows) * columns * accumulator_bits > _most_accumulators(groups) * 32 * 32 * WARPS:
        return None
    return min(columns, _MAX_COLUMNS), rows


def wgmma_result(op: WgmmaOp, warps: int) -> LinearLayout:
    """The layout of the result of a dot."""
    made = instruction_result(op, warps)
    return _named(made, made, _lanes_last(op), op.swapped)


def instruction_result(op: WgmmaOp, warps: int) -> LinearLayout:
    """The same by the instructions' rows and columns; registers are those of the result."""
    m, n = shape_of(op.type)
    shape = (n, m) if op.swapped else (m, n)
    return wgmma_result_layout((op.columns, op.rows), dtype_of(op.b.type).bits, shape, warps)


def wgmma_left(op: WgmmaOp, warps: int, lanes_last: int | None = None) -> LinearLayout:
    """The layout of the operand of a dot that is in registers; lanes_last: in place of its."""
    result = instruction_result(op, warps)
    fragment = wgmma_fragment(op.columns, dtype_of(op.b.type).bits)
    k = shape_of(op.b.type)[0] if op.swapped else shape_of(op.a.type)[1]
    left = operand_layout(fragment, result, "a", k)
    last = _lanes_last(op) if lanes_last is None else lanes_last
    return _named(left, result, last, op.swapped)


def _lanes_last(op: WgmmaOp) -> int | None:
    """See `WgmmaOp`; None if rows are as instructions number them."""
    return op.lanes_last if op.interleaved else None


@lru_cache(maxsize=256)
def _named(
    layout: LinearLayout, result: LinearLayout, lanes_last: int | None, swapped: bool
) -> LinearLayout:
    """A layout by rows of the tile instead of the instructions' rows."""
    if lanes_last is not None:
        registers, lanes, warps = (
            [basis[0] for basis in result.bases(name) if basis[0]]
            for name in (REGISTER, LANE, WARP)
        )
        first, group = len(lanes) - lanes_last, log2(WARPS)
        rows = [*registers, *lanes[:first], *warps[:group], *lanes[first:], *warps[group:]]
        place = {0: 0} | {row: 1 << i for i, row in enumerate(rows)}
        bases = {
            name: [(place[row], column) for row, column in layout.bases(name)]
            for name in layout.in_names
        }
        layout = LinearLayout.from_bases(bases, tile_dims(layout.shape))
    return layout.transpose((1, 0)) if swapped else layout


@lru_cache(maxsize=256)
def wgmma_result_layout(
    sharing: tuple[int, int], bits: int, shape: tuple[int, int], warps: int
) -> LinearLayout:
    """The layout of an (M, N) result shared so, for operands of as many bits."""
    columns, rows = sharing
    groups = warps // WARPS
    return result_layout(wgmma_fragment(columns, bits), shape, (rows, groups // rows))


def _has_types(a: DType, b: DType, acc: DType) -> bool:
    """Whether wgmma has these operand types and that accumulator type."""
    if a.is_fp8 and b.is_fp8:
        return acc is f32 or acc is f16
    if a.is_integer and b.is_integer:
        # Signed and unsigned operands mix; a bool is no number.
        return a.bits == b.bits == 8 and acc is i32
    if a is not b or not a.is_float or a.bits not in (16, 32):
        return False
    return acc is f32 or (acc is f16 and a is f16)
