"""Layouts of stores of what products make: whole lines, and no exchange between warps."""

import pytest

from tilewright.backends.nvidia.layouts.layout_propagation import is_permutation, spread
from tilewright.backends.nvidia.layouts.select_wgmma import wgmma_result_layout
from tilewright.backends.nvidia.layouts.store_lines import line_layout, run_layout
from tilewright.backends.nvidia.shared_memory.shared_accesses import halved_axes
from tilewright.layout import (
    LANE,
    REGISTER,
    WARP,
    LinearLayout,
    RegisterPermute,
    SharedMemory,
    WarpShuffle,
    plan,
    tile_dims,
)

CASES = [
    ((128, 256), (256, 2), 8, 2), ((128, 128), (128, 1), 4, 2), ((64, 256), (256, 1), 4, 4),
    ((256, 256), (256, 2), 8, 4), ((64, 64), (64, 1), 4, 1), ((64, 256), (128, 1), 8, 2),
]  # fmt: skip


def made(
    shape: tuple[int, int], sharing: tuple[int, int], warps: int, size: int, order: tuple[int, int]
) -> tuple[LinearLayout, LinearLayout, LinearLayout]:
    """Of the product, of a store by rows of this order, and what becomes of that."""
    product = wgmma_result_layout(sharing, 16, shape, warps)
    access = spread(shape, 16 // size, order, warps)
    found = line_layout(access, product, size)
    assert found is not None
    return product, access, found


@pytest.mark.parametrize("shape, sharing, warps, size", CASES)
def test_lines_are_whole(
    shape: tuple[int, int], sharing: tuple[int, int], warps: int, size: int
) -> None:
    product, access, found = made(shape, sharing, warps, size, (1, 0))
    assert is_permutation(found) and found.shape == product.shape
    vector = (16 // size).bit_length() - 1
    assert found.bases(REGISTER)[:vector] == access.bases(REGISTER)[:vector]
    along = sum(basis[1] for basis in found.bases(LANE) if basis[1] * size < 128)
    assert (along + 16 // size) * size == min(128, shape[1] * size)


@pytest.mark.parametrize("shape, sharing, warps, size", CASES)
def test_warps_keep_what_they_have(
    shape: tuple[int, int], sharing: tuple[int, int], warps: int, size: int
) -> None:
    product, _, found = made(shape, sharing, warps, size, (1, 0))
    assert found.bases(WARP) == product.bases(WARP)
    chosen = plan(product, found, 8 * size, matrix_stores=True)
    if isinstance(chosen, WarpShuffle):
        assert size == 1  # of few registers
        return
    assert isinstance(chosen, SharedMemory)
    assert chosen.warp_local and chosen.degree <= 2
    assert chosen.bytes >> len(halved_axes(product, found, chosen)) <= 32 * 1024


def test_columns_that_lie_side_by_side_in_memory() -> None:
    """A warp has 16 rows of each: no whole lines."""
    product = wgmma_result_layout((128, 1), 16, (128, 128), 4)
    assert line_layout(spread((128, 128), 8, (0, 1), 4), product, 2) is None


def test_warps_that_have_parts_of_lines_exchange_them() -> None:
    access = spread((64, 64), 8, (1, 0), 4)
    narrow = LinearLayout.from_bases(
        {
            REGISTER: [(0, 1), (8, 0), (0, 32), (16, 0), (32, 0)],
            LANE: [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)],
            WARP: [(0, 8), (0, 16)],
        },
        {"dim0": 64, "dim1": 64},
    )
    assert line_layout(access, narrow, 2) is None


def test_runs_of_eight_elements_that_threads_have() -> None:
    """Columns of fragments in an order in which each thread has eight of 32 side by side."""
    product = wgmma_result_layout((64, 2), 16, (128, 64), 8)
    access = spread((128, 64), 8, (1, 0), 8)
    assert run_layout(access, product, 2) is None
    moved = {(0, 2): (0, 8), (0, 4): (0, 16), (0, 8): (0, 2), (0, 16): (0, 4)}
    bases = {
        name: [moved.get((a, b), (a, b)) for a, b in product.bases(name)]
        for name in (REGISTER, LANE, WARP)
    }
    turned = LinearLayout.from_bases(bases, tile_dims(product.shape))
    found = run_layout(access, turned, 2)
    assert found is not None and found.bases(REGISTER)[:3] == ((0, 1), (0, 2), (0, 4))
    assert isinstance(plan(turned, found, 16), RegisterPermute)
