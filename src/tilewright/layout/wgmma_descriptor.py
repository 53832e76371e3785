"""Shared-memory operands of ``wgmma``: the layouts that it can read, and their descriptors.

A descriptor names a start address, two strides and a swizzle. From them the hardware computes the
address of each element of one instruction: strides are added, then bits 4 and up are XORed
with bits 7 and up, as `shared_swizzled` stores it. So a layout is readable if, once the swizzle is
undone, every bit of the tile's coordinates moves exactly one address bit (addition is then XOR),
and the lowest bits of either dim are those that the instruction fixes. In units of
address bits, with ``w = log2(W)`` for rows of W bytes, the swizzle's width (16 without one):

    K-major     k: bits 0 .. 4 (without swizzle bits 0 .. 3, then LBO)
                m or n: w, w+1, w+2, then SBO, 2 SBO, ...
    MN-major    m or n: bits 0 .. w-1, then LBO, 2 LBO, ... (without swizzle SBO, 2 SBO, ...)
                k: w, w+1, w+2, then SBO (without swizzle LBO)

All other bits of k select an instruction of the dot (`k_steps`), all other bits of m or n one of
its blocks (`mn_offset`). Source: PTX ISA 8.7, "Matrix descriptor format" and "Strides" of
``wgmma.mma_async``.
"""

from collections.abc import Sequence

from tilewright.layout import f2
from tilewright.layout.linear_layout import LinearLayout, log2
from tilewright.layout.shared_layouts import SWIZZLE_BYTES, shared_row_major, shared_swizzled
from tilewright.support.data_class import dataclass

_STEP_BYTES_LOG2 = 5  # an instruction covers 32 bytes of K in a K-major operand
_CHUNK_BYTES_LOG2 = 4  # the unit of addresses and strides in a descriptor, and of swizzles
_CORE_ROWS_LOG2 = 3  # rows come in groups of eight
_FIELD_LIMIT = 1 << 18  # strides are 14 bits in units of 16 bytes
_SWIZZLE_CODES = {0: 0, 128: 1, 64: 2, 32: 3}
_WIDTHS = (*sorted(SWIZZLE_BYTES, reverse=True), 0)


@dataclass(frozen=True, slots=True)
class WgmmaOperand:
    """A tile in shared memory as wgmma reads it; offsets and strides are in bytes.

    ``swizzle`` is 128, 64, 32 or 0; ``k_major``: K is contiguous. ``leading_bytes`` and
    ``stride_bytes`` are the descriptor's LBO and SBO. ``k_steps[i]`` is added to the start
    address for the i-th instruction along K. ``mn_extent`` is the largest block of rows of A or
    columns of B that one instruction can read: a power of two, for A no less than 64.
    """

    swizzle: int
    k_major: bool
    leading_bytes: int
    stride_bytes: int
    k_steps: tuple[int, ...]
    mn_extent: int
    mn_columns: f2.Matrix

    @property
    def low(self) -> int:
        """The low word of the descriptor without the start address, which is added as
        ``(address & 0x3FFFF) >> 4``."""
        return self.leading_bytes >> _CHUNK_BYTES_LOG2 << 16

    @property
    def high(self) -> int:
        """The high word of the descriptor, the same for every instruction."""
        return _SWIZZLE_CODES[self.swizzle] << 30 | self.stride_bytes >> _CHUNK_BYTES_LOG2

    @property
    def alignment(self) -> int:
        """The alignment of the tile's address: the swizzle uses absolute addresses, and the
        descriptor's base offset is 0 only for whole groups of eight rows."""
        return self.swizzle << _CORE_ROWS_LOG2 if self.swizzle else 1 << _CHUNK_BYTES_LOG2

    def mn_offset(self, start: int) -> int:
        """The offset of the block at row (column) ``start``, a multiple of the block's size, from
        the start address."""
        assert start % (1 << _CORE_ROWS_LOG2) == 0, "blocks start at multiples of eight"
        return f2.apply(self.mn_columns, start)


def wgmma_operand(shared: LinearLayout, *, k_dim: int, element_bits: int) -> WgmmaOperand | None:
    """The operand for a tile of this layout (offset -> tile), or None if wgmma cannot read it.

    The tile is A as (m, k), for which ``k_dim`` is 1, or B as (k, n), for which it is 0. Only
    16-bit elements can be contiguous along m or n.
    """
    if len(shared.outs) != 2 or element_bits not in (8, 16, 32) or not shared.is_bijective:
        return None
    size = log2(element_bits // 8)
    addresses = shared.invert()
    names = shared.out_names
    k, mn = (
        tuple(offset << size for offset in addresses.packed(name))
        for name in (names[k_dim], names[1 - k_dim])
    )
    for swizzle in _WIDTHS:
        k_bits, mn_bits = _address_bits(k, swizzle), _address_bits(mn, swizzle)
        if k_bits is None or mn_bits is None:
            continue
        tile = _Tile(swizzle, size, k_bits, mn_bits)
        operand = tile.k_major() or tile.mn_major()
        # A block of A has the 64 rows of the instruction, one of B at least 8 columns.
        if operand is not None and operand.mn_extent >= (64 if k_dim == 1 else 8):
            return operand
    return None


def wgmma_shared_layout(
    shape: Sequence[int], element_bits: int, k_dim: int, contiguous_dim: int
) -> LinearLayout | None:
    """The layout with the widest swizzle in which wgmma reads a tile, or None if it cannot.

    ``shape`` and ``k_dim`` as in `wgmma_operand`; ``contiguous_dim`` is the dim along which the
    tile is contiguous in global memory, so that copies move whole rows.
    """
    order = (contiguous_dim, 1 - contiguous_dim)
    row_bytes = shape[contiguous_dim] * element_bits // 8
    layouts = [
        shared_swizzled(shape, element_bits, width, order)
        for width in _WIDTHS
        if 0 < width <= row_bytes
    ]
    # Rows of 16 bytes, as in a B of 8 columns, need no swizzle.
    layouts.append(shared_row_major(shape, order))
    readable = (
        layout
        for layout in layouts
        if wgmma_operand(layout, k_dim=k_dim, element_bits=element_bits) is not None
    )
    return next(readable, None)


def _address_bits(columns: f2.Matrix, swizzle: int) -> tuple[int, ...] | None:
    """The address bit that each bit of a coordinate moves before the swizzle; None unless each
    moves exactly one."""
    # 0x70, 0x30 or 0x10: the bits inside a row that select one of its 16-byte chunks.
    mask = max(0, swizzle - 1) >> _CHUNK_BYTES_LOG2 << _CHUNK_BYTES_LOG2
    linear = [column ^ (column >> 3 & mask) for column in columns]
    if any(column & (column - 1) for column in linear):
        return None
    return tuple(column.bit_length() - 1 for column in linear)


@dataclass(frozen=True, slots=True)
class _Tile:
    """The address bits of a tile whose swizzle is undone, lowest bit of each coordinate first.

    ``size`` is log2 of the bytes of an element.
    """

    swizzle: int
    size: int
    k: tuple[int, ...]
    mn: tuple[int, ...]

    @property
    def width(self) -> int:
        """log2 of the bytes of a row."""
        return log2(self.swizzle) if self.swizzle else _CHUNK_BYTES_LOG2

    def k_major(self) -> WgmmaOperand | None:
        """The operand if K is contiguous."""
        rows, count = self._rows(), _STEP_BYTES_LOG2 - self.size
        # A row holds all of K that an instruction reads, or half of it without a swizzle.
        inside = min(self.width, _STEP_BYTES_LOG2) - self.size
        if len(self.k) < count or not _starts_with(self.k, range(self.size, self.size + inside)):
            return None
        if not _starts_with(self.mn, rows):
            return None
        run = _run(self.mn, _CORE_ROWS_LOG2)
        leading = 1 << self.k[inside] if inside < count else 1 << _CHUNK_BYTES_LOG2
        stride = 1 << (self.mn[_CORE_ROWS_LOG2] if run else rows.stop)
        return self._operand(True, (leading, stride), count, _CORE_ROWS_LOG2 + run)

    def mn_major(self) -> WgmmaOperand | None:
        """The operand if M or N is contiguous."""
        count = _STEP_BYTES_LOG2 - self.size
        if self.size != 1 or len(self.k) < count or not _starts_with(self.k, self._rows()):
            return None
        inside = self.width - self.size
        run = next((i for i, bit in enumerate(self.mn) if bit != self.size + i), len(self.mn))
        extent = min(run, inside)
        along_mn, along_k = 1 << _CHUNK_BYTES_LOG2, 1 << self.k[_CORE_ROWS_LOG2]
        if extent == inside and len(self.mn) > inside:
            # Further panels are at multiples of another stride.
            along_mn = 1 << self.mn[inside]
            extent += _run(self.mn, inside)
        # Without a swizzle the two strides exchange their roles.
        strides = (along_mn, along_k) if self.swizzle else (along_k, along_mn)
        return self._operand(False, strides, count, extent)

    def _rows(self) -> range:
        """The address bits of a row's number among eight."""
        return range(self.width, self.width + _CORE_ROWS_LOG2)

    def _operand(
        self, k_major: bool, strides: tuple[int, int], count: int, extent: int
    ) -> WgmmaOperand | None:
        if max(strides) >= _FIELD_LIMIT:
            return None
        steps = [1 << bit for bit in self.k[count:]]
        return WgmmaOperand(
            self.swizzle,
            k_major,
            *strides,
            tuple(f2.apply(steps, i) for i in range(1 << len(steps))),
            1 << extent,
            tuple(1 << bit for bit in self.mn),
        )


def _starts_with(bits: Sequence[int], expected: range) -> bool:
    return tuple(bits[: len(expected)]) == tuple(expected)


def _run(bits: Sequence[int], start: int) -> int:
    """The number of consecutive bits from ``start`` on."""
    return next(
        (i for i, bit in enumerate(bits[start:]) if bit != bits[start] + i), len(bits) - start
    )
