"""Shared-memory layouts against address formulas."""

from itertools import product

import pytest

from tilewright.layout import (
    LinearLayout,
    shared_row_major,
    shared_swizzled,
    shared_xor,
)


def offsets(layout: LinearLayout) -> dict[tuple[int, ...], int]:
    return {layout.apply(offset=i): i for i in range(layout.in_size("offset"))}


def test_row_major_and_column_major():
    rows = offsets(shared_row_major((4, 8)))
    columns = offsets(shared_row_major((4, 8), order=(0, 1)))
    for i, j in product(range(4), range(8)):
        assert rows[i, j] == 8 * i + j
        assert columns[i, j] == 4 * j + i


@pytest.mark.parametrize("element_bits, swizzle", list(product((8, 16, 32), (32, 64, 128))))
@pytest.mark.parametrize("order", [(1, 0), (0, 1)])
def test_swizzle_is_the_address_xor_of_the_hardware(element_bits, swizzle, order):
    """Address bits 4 and up ^= address bits 7 and up, inside panels of ``swizzle`` bytes."""
    size = element_bits // 8
    width = swizzle // size
    shape = (16, 2 * width) if order == (1, 0) else (2 * width, 16)
    found = offsets(shared_swizzled(shape, element_bits, swizzle, order))
    mask = {32: 0x10, 64: 0x30, 128: 0x70}[swizzle]
    for i, j in product(range(shape[0]), range(shape[1])):
        row, column = (i, j) if order == (1, 0) else (j, i)
        address = row * swizzle + column % width * size
        address ^= address >> 3 & mask
        assert found[i, j] * size == address + column // width * 16 * swizzle


def test_known_row_bases():
    """2-byte elements: offsets of rows 1, 2, 4, 8 as tabulated for TMA."""
    for swizzle, expected in ((128, (72, 144, 288, 512)), (64, (32, 72, 144, 256))):
        found = offsets(shared_swizzled((16, swizzle // 2), 16, swizzle))
        assert tuple(found[1 << bit, 0] for bit in range(4)) == expected


def test_narrow_rows_and_odd_widths_are_refused():
    with pytest.raises(ValueError, match="not a 128-byte panel"):
        shared_swizzled((16, 32), 16, 128)
    with pytest.raises(ValueError, match="32, 64, 128"):
        shared_swizzled((16, 64), 16, 256)


@pytest.mark.parametrize("vec, per_phase, max_phase", [(8, 1, 8), (4, 2, 4), (1, 1, 1), (8, 4, 2)])
@pytest.mark.parametrize("order", [(1, 0), (0, 1)])
def test_xor_swizzle_formula(vec, per_phase, max_phase, order):
    shape = (16, 64) if order == (1, 0) else (64, 16)
    found = offsets(shared_xor(shape, vec, per_phase, max_phase, order))
    for row, column in product(range(16), range(64)):
        group = column // vec ^ row // per_phase % max_phase
        point = (row, column) if order == (1, 0) else (column, row)
        assert found[point] == row * 64 + group * vec + column % vec


def test_xor_swizzle_with_batch_dim():
    layout = shared_xor((2, 4, 8), 2, 1, 4, order=(2, 1, 0))
    assert layout.shape == (2, 4, 8)
    found = offsets(layout)
    assert found[1, 2, 3] == 32 + 2 * 8 + ((3 // 2) ^ 2) * 2 + 1
