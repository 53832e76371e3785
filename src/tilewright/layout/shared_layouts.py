"""Layouts of a tile in shared memory: the element at each offset.

A shared layout is a `LinearLayout` from the one input dim ``offset``, counted in elements, to the
tile's dims. Its inverse gives addresses.
"""

from collections.abc import Sequence

from tilewright.layout.distributed_layouts import grid
from tilewright.layout.linear_layout import OFFSET, LinearLayout, log2, tile_dims

SWIZZLE_BYTES = (32, 64, 128)
"""The swizzles of TMA and wgmma: the width of a panel whose 16-byte chunks are permuted."""


def shared_row_major(shape: Sequence[int], order: Sequence[int] | None = None) -> LinearLayout:
    """Elements in order, ``order[0]`` fastest; by default the last dim, as in a C array."""
    order = range(len(shape))[::-1] if order is None else order
    return _in_tile_order(grid(OFFSET, shape, order), shape)


def shared_xor(
    shape: Sequence[int], vec: int, per_phase: int, max_phase: int, order: Sequence[int] = (1, 0)
) -> LinearLayout:
    """Rows whose groups of ``vec`` elements are permuted by an XOR with the row's phase.

    ``order[0]`` is the dim along a row, ``order[1]`` counts rows. Group ``g`` of row ``r`` is
    stored at group ``g ^ (r // per_phase % max_phase)``, modulo the groups of a row.
    """
    row_dim, column_dim = order[1], order[0]
    rows, columns = shape[row_dim], shape[column_dim]
    bases = [_point(len(shape), {column_dim: 1 << bit}) for bit in range(log2(columns))]
    for bit in range(log2(rows)):
        phase = (1 << bit) // per_phase % max_phase
        turn = phase * vec % columns
        bases.append(_point(len(shape), {row_dim: 1 << bit, column_dim: turn}))
    for dim in order[2:]:
        bases += [_point(len(shape), {dim: 1 << bit}) for bit in range(log2(shape[dim]))]
    return LinearLayout.from_bases({OFFSET: bases}, tile_dims(shape))


def shared_swizzled(
    shape: Sequence[int],
    element_bits: int,
    swizzle_bytes: int,
    order: Sequence[int] = (1, 0),
) -> LinearLayout:
    """The 128-, 64- or 32-byte swizzle of TMA and wgmma.

    The tile is split along ``order[0]`` into panels of ``swizzle_bytes``, stored one after the
    other. A panel's rows follow each other, and the 16-byte chunk ``c`` of row ``r`` is at chunk
    ``c ^ (r & 7)``, ``c ^ (r >> 1 & 3)`` or ``c ^ (r >> 2 & 1)``: address bits 4 and up are XORed
    with address bits 7 and up. ValueError if a row is narrower than a panel.
    """
    width = swizzle_bytes * 8 // element_bits
    row_dim, column_dim = order[1], order[0]
    if swizzle_bytes not in SWIZZLE_BYTES:
        raise ValueError(f"swizzles are {SWIZZLE_BYTES} bytes wide, not {swizzle_bytes}")
    if shape[column_dim] < width:
        raise ValueError(
            f"a row of {shape[column_dim]} elements is not a {swizzle_bytes}-byte panel"
        )
    panel = shared_xor(
        (shape[row_dim], width),
        # Chunks of 16 bytes; rows that share 128 bytes share a phase (address bits 7 and up).
        vec=128 // element_bits,
        per_phase=128 // swizzle_bytes,
        max_phase=swizzle_bytes // 16,
    ).rename({"dim0": f"dim{row_dim}", "dim1": f"dim{column_dim}"})
    panels = LinearLayout.identity(OFFSET, f"dim{column_dim}", shape[column_dim] // width)
    return _in_tile_order(panel * panels, shape)


def _point(rank: int, coordinates: dict[int, int]) -> tuple[int, ...]:
    return tuple(coordinates.get(dim, 0) for dim in range(rank))


def _in_tile_order(layout: LinearLayout, shape: Sequence[int]) -> LinearLayout:
    return layout.reorder_outs([name for name in tile_dims(shape)])
