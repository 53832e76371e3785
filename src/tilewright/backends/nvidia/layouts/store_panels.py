"""Panels in which a tile goes from registers through shared memory to a TMA store.

TMA stores boxes, whose rows have at most 128 bytes if they are swizzled, which avoids bank
conflicts of threads. So a tile is cut into panels of so many columns:

    128 x 256 x f16, 8 warps        4 panels of 128 x 64, 16 KB each, for each its registers
                                    written to slot 0, 1, 0, 1; stored while the next one is written

Columns that each thread holds in registers of their own are written in separate passes; the
panels of a pass are stored at once.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from tilewright.backends.nvidia.tensor_maps import MAX_BOX
from tilewright.layout import (
    LANE,
    OFFSET,
    REGISTER,
    SWIZZLE_BYTES,
    WARP,
    LinearLayout,
    SharedAccess,
    plan_shared_access,
    shared_row_major,
    shared_swizzled,
    tile_dims,
)
from tilewright.support.data_class import dataclass

PASS_BYTES = 16 * 1024
"""Bytes of a pass that is not cut further: a panel of 128 rows."""

SLOTS = 2
"""Buffers of passes: one is written while the one before is stored."""

_SWIZZLED_ROWS = 8
"""Rows after which swizzles, which are functions of the address, repeat."""


@dataclass(frozen=True, slots=True)
class StorePass:
    """One pass.

    registers: that are written, in the order of `StorePanels.access`; columns: the first column of
    each of its panels in the tile."""

    registers: tuple[int, ...]
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StorePanels:
    """The panels of a tile.

    box: its shape, of the tile's rank; swizzle: bytes of its rows, 0 for none; boxes: of a panel,
    consecutive along the first dim; access: layout in which threads write a pass."""

    box: tuple[int, ...]
    swizzle: int
    boxes: int
    access: SharedAccess
    passes: tuple[StorePass, ...]
    box_bytes: int

    @property
    def slot_bytes(self) -> int:
        """Bytes of a pass."""
        return self.box_bytes * self.boxes * len(self.passes[0].columns)

    @property
    def slots(self) -> int:
        """Passes that have their own bytes."""
        return min(SLOTS, len(self.passes))

    @property
    def bytes(self) -> int:
        """Shared memory of the whole."""
        return self.slots * self.slot_bytes


def can_store(shape: tuple[int, ...]) -> bool:
    """Whether a tile can be cut into boxes."""
    return all(extent <= MAX_BOX for extent in shape[1:-1])


@lru_cache(maxsize=256)
def store_panels(
    layout: LinearLayout, shape: tuple[int, ...], element_bytes: int, matrix: bool
) -> StorePanels:
    """The panels in which a tile is stored; matrix: the architecture has stmatrix."""
    rows, columns = prod(shape[:-1]), shape[-1]
    swizzle, width = _panel(rows, columns, element_bytes)
    flat = layout.reshape((rows, columns))
    cuts = _cuts(flat, width, rows * columns * element_bytes)
    inner = _without(flat, cuts)
    shared = _shared(rows, columns >> len(cuts), width, element_bytes, swizzle)
    access = plan_shared_access(shared, inner, 8 * element_bytes, matrix=matrix, store=True)
    first = shape[:-1] if len(shape) == 1 else (min(shape[0], MAX_BOX), *shape[1:-1])
    box = (*first, width)
    passes = tuple(_pass(number, cuts, inner, width) for number in range(1 << len(cuts)))
    return StorePanels(
        box, swizzle, prod(shape[:-1]) // prod(first), access, passes, prod(box) * element_bytes
    )


def _panel(rows: int, columns: int, element_bytes: int) -> tuple[int, int]:
    """Swizzle and columns of a panel."""
    for swizzle in SWIZZLE_BYTES[::-1]:
        if columns * element_bytes >= swizzle and rows >= _SWIZZLED_ROWS:
            return swizzle, swizzle // element_bytes
    return 0, min(columns, MAX_BOX)


_Cut = tuple[int, int]
"""A bit of register numbers, and the bit of the column that it alone decides."""


def _cuts(flat: LinearLayout, width: int, size: int) -> list[_Cut]:
    """Register bits that number the passes, so that one pass has few bytes."""
    bits = {basis: bit for bit, basis in enumerate(flat.bases(REGISTER))}
    cuts: list[_Cut] = []
    column = flat.shape[1]
    while column > width and size > PASS_BYTES:
        column //= 2
        register = bits.get((0, column))
        if register is not None:
            cuts.insert(0, (register, column.bit_length() - 1))
            size //= 2
    return cuts


def _without(flat: LinearLayout, cuts: list[_Cut]) -> LinearLayout:
    """The layout of one pass: without the registers and the columns of the others."""
    registers, columns = [r for r, _ in cuts], [c for _, c in cuts]
    bases = {
        name: [
            (row, _squeezed(column, columns))
            for bit, (row, column) in enumerate(flat.bases(name))
            if name != REGISTER or bit not in registers
        ]
        for name in (REGISTER, LANE, WARP)
    }
    rows, extent = flat.shape
    return LinearLayout.from_bases(bases, tile_dims((rows, extent >> len(cuts))))


def _squeezed(number: int, bits: list[int]) -> int:
    """A number without some of its bits."""
    for bit in sorted(bits, reverse=True):
        number = number >> bit + 1 << bit | number & (1 << bit) - 1
    return number


def _spread(number: int, bits: list[int]) -> int:
    """The inverse of `_squeezed`, with those bits 0."""
    for bit in sorted(bits):
        number = number >> bit << bit + 1 | number & (1 << bit) - 1
    return number


def _pass(number: int, cuts: list[_Cut], inner: LinearLayout, width: int) -> StorePass:
    chosen = [cut for bit, cut in enumerate(cuts) if number >> bit & 1]
    register, column = (sum(1 << cut[side] for cut in chosen) for side in (0, 1))
    registers = range(inner.in_size(REGISTER))
    starts = range(0, inner.shape[1], width)
    return StorePass(
        tuple(_spread(i, [r for r, _ in cuts]) | register for i in registers),
        tuple(_spread(start, [c for _, c in cuts]) | column for start in starts),
    )


def _shared(rows: int, columns: int, width: int, element_bytes: int, swizzle: int) -> LinearLayout:
    """The layout of a pass in shared memory: its panels one after another."""
    if swizzle:
        return shared_swizzled((rows, columns), 8 * element_bytes, swizzle)
    panels = LinearLayout.identity(OFFSET, "dim1", columns // width)
    return (shared_row_major((rows, width)) * panels).reorder_outs(["dim0", "dim1"])
