"""Layout of a store of a dot's result: whole lines, by the warps that hold them.

    16 x 64 x f16 of a warp, fragments      4 rows by 8 lanes of 16 bytes, 4 times
    lane=(0,2..4)(1..4,0)             ->    lane=(0,8..32)(1..2,0)

In the layout of a coalesced load, rows would lie in other warps: the exchange would need barriers
of all warps, and shared memory for the whole tile. So each warp exchanges between its own lanes, in
several rounds. Whole vectors of threads, in whole sectors of lanes, are stored without exchange.
"""

from __future__ import annotations

from functools import lru_cache

from tilewright.layout import LANE, REGISTER, WARP, LinearLayout, log2, tile_dims

LINE_BYTES = 128
"""Adjacent bytes of a row that a warp stores: a line of the L2 cache."""

_LANE_BITS = 5
_Basis = tuple[int, ...]


@lru_cache(maxsize=1024)
def line_layout(access: LinearLayout, dot: LinearLayout, element_bytes: int) -> LinearLayout | None:
    """The layout of whole lines; None if a warp holds no whole line.

    access: the coalesced layout of the store, whose vectors are kept; dot: that of the elements"""
    if len(access.shape) != 2 or not (access.is_injective and dot.is_injective):
        return None
    row = _row_dim(access)
    along, across = _bits(access.shape, row), _bits(access.shape, 1 - row)
    line = min(LINE_BYTES // element_bytes, access.shape[row])
    warps = dot.bases(WARP)
    if any(0 < basis[row] < line for basis in warps):
        return None
    vector = _vector(access, along)
    rest = [basis for basis in along if basis not in vector and basis not in warps]
    inside = [basis for basis in rest if basis[row] < line]
    beyond = [basis for basis in rest if basis[row] >= line]
    rows = [basis for basis in across if basis not in warps]
    lanes = [*inside, *rows, *beyond][:_LANE_BITS]
    if len(lanes) < _LANE_BITS:
        return None
    registers = [*vector, *(b for b in (*inside, *beyond, *rows) if b not in lanes)]
    bases = {REGISTER: registers, LANE: lanes, WARP: warps}
    return LinearLayout.from_bases(bases, tile_dims(access.shape))


RUN_BYTES = 64
"""Adjacent bytes of a row that lanes store: two sectors of the L2 cache."""


def run_layout(
    access: LinearLayout, stored: LinearLayout, element_bytes: int
) -> LinearLayout | None:
    """The layout of the elements with the vectors of the coalesced one in front, if threads hold
    such vectors and lanes whole adjacent sectors: then nothing is exchanged."""
    if len(access.shape) != 2 or not (access.is_injective and stored.is_injective):
        return None
    along = _bits(access.shape, _row_dim(access))
    vector, registers = _vector(access, along), stored.bases(REGISTER)
    run = along[len(vector) : log2(RUN_BYTES // element_bytes)]
    if not set(vector) <= set(registers) or list(stored.bases(LANE)[: len(run)]) != run:
        return None
    registers = [*vector, *(basis for basis in registers if basis not in vector)]
    bases = {REGISTER: registers, LANE: stored.bases(LANE), WARP: stored.bases(WARP)}
    return LinearLayout.from_bases(bases, tile_dims(access.shape))


def _row_dim(access: LinearLayout) -> int:
    """The dim along which neighbouring registers, or else lanes, lie."""
    first = (*access.bases(REGISTER), *access.bases(LANE))[0]
    return 0 if first[0] else 1


def _bits(shape: tuple[int, ...], dim: int) -> list[_Basis]:
    """The unit coordinates along a dim."""
    units = [1 << bit for bit in range(log2(shape[dim]))]
    return [(unit, 0) if dim == 0 else (0, unit) for unit in units]


def _vector(access: LinearLayout, along: list[_Basis]) -> list[_Basis]:
    """The first registers that are neighbours along the rows."""
    found: list[_Basis] = []
    for own, basis in zip(access.bases(REGISTER), along, strict=False):
        if own != basis:
            break
        found.append(basis)
    return found
