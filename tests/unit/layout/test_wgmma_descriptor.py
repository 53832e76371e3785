"""Descriptors of wgmma against the addresses that the hardware computes from them."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.layout.wgmma_reads import addresses_read, element_addresses
from tilewright.layout import (
    OFFSET,
    LinearLayout,
    blocked,
    log2,
    operand_layout,
    plan_shared_conversion,
    result_layout,
    shared_row_major,
    shared_swizzled,
    shared_xor,
    wgmma_fragment,
    wgmma_operand,
    wgmma_shared_layout,
)

SIZES = (64, 128, 256)
DEPTHS = (16, 32, 64, 128)


def assert_read(layout: LinearLayout, k_dim: int, bits: int, extent: int | None = None) -> None:
    """All instructions of the tile read what the layout stores."""
    operand = wgmma_operand(layout, k_dim=k_dim, element_bits=bits)
    assert operand is not None
    size = bits // 8
    wanted = element_addresses(layout, k_dim, size)
    base = 3 * 1024 if operand.alignment > 16 else 3 * 16
    assert base % operand.alignment == 0
    block = extent or (64 if k_dim == 1 else min(operand.mn_extent, 256))
    depth = 32 // size
    assert len(operand.k_steps) == wanted.shape[1] // depth
    for mn, (i, step) in product(range(0, wanted.shape[0], block), enumerate(operand.k_steps)):
        start = base + operand.mn_offset(mn) + step
        assert start % 16 == 0
        descriptor = operand.high << 32 | operand.low | start >> 4
        got = addresses_read(descriptor, operand.k_major, block, size)
        expected = base + wanted[mn : mn + block, depth * i : depth * (i + 1)]
        assert np.array_equal(got, expected), (mn, i)


def tile(k_dim: int, mn: int, k: int) -> tuple[int, int]:
    return (mn, k) if k_dim == 1 else (k, mn)


@pytest.mark.parametrize("k_dim, contiguous, swizzle", list(product((0, 1), (0, 1), (32, 64, 128))))
def test_swizzled_tiles_of_16_bits_are_read_in_either_order(k_dim, contiguous, swizzle):
    for mn, k in product(SIZES, DEPTHS):
        shape = tile(k_dim, mn, k)
        if shape[contiguous] * 2 < swizzle:
            continue
        layout = shared_swizzled(shape, 16, swizzle, (contiguous, 1 - contiguous))
        assert_read(layout, k_dim, 16)
        operand = wgmma_operand(layout, k_dim=k_dim, element_bits=16)
        assert operand is not None
        assert (operand.swizzle, operand.k_major) == (swizzle, contiguous == k_dim)
        assert operand.mn_extent == mn and operand.alignment == 8 * swizzle


@pytest.mark.parametrize("k_dim", [0, 1])
@pytest.mark.parametrize("swizzle", [32, 64, 128])
@pytest.mark.parametrize("bits", [8, 32])
def test_swizzled_tiles_of_other_types_are_read_along_k(bits, swizzle, k_dim):
    for mn, k_bytes in product(SIZES, (32, 64, 128, 256)):
        shape = tile(k_dim, mn, k_bytes * 8 // bits)
        if k_bytes < swizzle:
            continue
        assert_read(shared_swizzled(shape, bits, swizzle, (k_dim, 1 - k_dim)), k_dim, bits)


def cores(shape: tuple[int, int], bits: int, contiguous: int, cores_first: int) -> LinearLayout:
    """Blocks of 8 rows x 16 bytes, each stored as 128 bytes, those along ``cores_first`` first."""
    bases = {dim: [_on(dim, 1 << i) for i in range(log2(shape[dim]))] for dim in (0, 1)}
    row = log2(128 // bits)
    low = bases[contiguous][:row] + bases[1 - contiguous][:3]
    rest = {contiguous: bases[contiguous][row:], 1 - contiguous: bases[1 - contiguous][3:]}
    order = [*low, *rest[cores_first], *rest[1 - cores_first]]
    return LinearLayout.from_bases({OFFSET: order}, {"dim0": shape[0], "dim1": shape[1]})


def _on(dim: int, value: int) -> tuple[int, int]:
    return (value, 0) if dim == 0 else (0, value)


@pytest.mark.parametrize("k_dim, contiguous, first", list(product((0, 1), (0, 1), (0, 1))))
def test_tiles_without_a_swizzle_are_made_of_cores(k_dim, contiguous, first):
    for mn, k in product(SIZES, DEPTHS):
        layout = cores(tile(k_dim, mn, k), 16, contiguous, first)
        assert_read(layout, k_dim, 16)
        operand = wgmma_operand(layout, k_dim=k_dim, element_bits=16)
        assert operand is not None
        assert (operand.swizzle, operand.k_major) == (0, contiguous == k_dim)


@pytest.mark.parametrize("bits", [8, 32])
def test_cores_of_other_types_lie_along_k(bits):
    for k_dim, first in product((0, 1), (0, 1)):
        shape = tile(k_dim, 128, 512 // bits * 2)
        assert_read(cores(shape, bits, k_dim, first), k_dim, bits)
        wrong = cores(shape, bits, 1 - k_dim, first)
        assert wgmma_operand(wrong, k_dim=k_dim, element_bits=bits) is None


@pytest.mark.parametrize("extent", [8, 16, 32, 64, 128, 256])
def test_narrow_instructions_read_blocks_of_a_wide_tile(extent):
    for contiguous, swizzle in product((0, 1), (32, 64, 128)):
        assert_read(
            shared_swizzled((64, 256), 16, swizzle, (contiguous, 1 - contiguous)), 0, 16, extent
        )


def test_words_are_those_of_known_kernels():
    """Constants that were checked on hardware."""
    known = {128: 0x40000040, 64: 0x80000020, 32: 0xC0000010}
    for swizzle, high in known.items():
        operand = wgmma_operand(shared_swizzled((64, 64), 16, swizzle), k_dim=1, element_bits=16)
        assert operand is not None and (operand.high, operand.low) == (high, 1 << 16)
        assert operand.k_steps[:2] == (0, 32 if swizzle > 32 else 64 * 32)
    b = wgmma_operand(shared_swizzled((64, 256), 16, 128), k_dim=0, element_bits=16)
    assert b is not None and (b.high, b.low) == (0x40000040, 0x02000000)
    assert b.k_steps == (0, 2048, 4096, 6144)
    assert [b.mn_offset(n) for n in (8, 64, 192)] == [16, 8192, 3 * 8192]


def test_other_layouts_are_refused():
    fragment = wgmma_fragment(64, 16)
    result = result_layout(fragment, (64, 64), (1, 1))
    register = operand_layout(fragment, result, "a", 64)
    own = plan_shared_conversion(
        blocked((64, 64), (1, 8), (4, 8), (4, 1), (1, 0)),
        register,
        16,
        matrix_loads=True,
        matrix_stores=False,
    )
    unreadable = [
        shared_row_major((64, 64)),
        shared_row_major((64, 64), (0, 1)),
        shared_xor((64, 64), 8, 2, 8),
        shared_xor((64, 64), 4, 1, 8),
        shared_swizzled((32, 64), 16, 128),  # fewer rows than an instruction has
        shared_swizzled((64, 64), 16, 128).with_columns(OFFSET, (0,) * 12),
        own.shared,
    ]
    for layout in unreadable:
        assert wgmma_operand(layout, k_dim=1, element_bits=16) is None, layout
    # Less of K than one instruction takes.
    assert wgmma_operand(shared_swizzled((8, 64), 16, 128), k_dim=0, element_bits=16) is None
    double = shared_swizzled((64, 64), 64, 128)
    assert wgmma_operand(double, k_dim=1, element_bits=64) is None
    batch = LinearLayout.identity(OFFSET, "dim2", 2)
    three = shared_swizzled((64, 64), 16, 128) * batch
    assert wgmma_operand(three, k_dim=1, element_bits=16) is None


@pytest.mark.parametrize("k_dim, contiguous", list(product((0, 1), (0, 1))))
@given(data=st.data())
def test_what_is_called_readable_is_read_rightly(k_dim, contiguous, data):
    """Groups of eight rows and panels in any order: either refused, or read where they are."""
    shape = tile(k_dim, data.draw(st.sampled_from((64, 128))), data.draw(st.sampled_from((32, 64))))
    swizzle = data.draw(st.sampled_from((32, 64)))
    plain = shared_swizzled(shape, 16, swizzle, (contiguous, 1 - contiguous))
    kept = log2(swizzle * 8 // 2) - data.draw(st.sampled_from((0, 0, 1)))
    columns = plain.packed(OFFSET)
    moved = plain.with_columns(
        OFFSET, (*columns[:kept], *data.draw(st.permutations(columns[kept:])))
    )
    operand = wgmma_operand(moved, k_dim=k_dim, element_bits=16)
    if operand is not None:
        assert_read(moved, k_dim, 16)


@pytest.mark.parametrize(
    "shape, bits, k_dim, contiguous, swizzle",
    [
        ((128, 64), 16, 1, 1, 128),
        ((128, 32), 16, 1, 1, 64),
        ((128, 16), 16, 1, 1, 32),
        ((128, 32), 16, 1, 0, 128),
        ((64, 256), 16, 0, 1, 128),
        ((64, 32), 16, 0, 1, 64),
        ((64, 16), 16, 0, 1, 32),
        ((64, 8), 16, 0, 1, 0),
        ((64, 8), 16, 0, 0, 128),
        ((128, 128), 8, 1, 1, 128),
        ((32, 256), 8, 0, 0, 32),
        ((64, 32), 32, 1, 1, 128),
        ((8, 64), 32, 0, 0, 32),
        ((128, 128), 8, 1, 0, None),
        ((64, 256), 8, 0, 1, None),
        ((64, 64), 32, 0, 1, None),
        ((32, 64), 16, 1, 1, None),
        ((64, 8), 16, 1, 1, None),
    ],
)
def test_a_tile_gets_the_widest_swizzle_that_its_rows_have(shape, bits, k_dim, contiguous, swizzle):
    layout = wgmma_shared_layout(shape, bits, k_dim, contiguous)
    if swizzle is None:
        assert layout is None
        return
    assert layout is not None
    assert_read(layout, k_dim, bits)
    operand = wgmma_operand(layout, k_dim=k_dim, element_bits=bits)
    assert operand is not None
    assert (operand.swizzle, operand.k_major) == (swizzle, contiguous == k_dim)
