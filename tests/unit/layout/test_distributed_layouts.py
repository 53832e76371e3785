"""Blocked layouts, slices and what happens at the edges of small and large tiles."""

from itertools import product

import pytest

from tilewright.layout import (
    blocked,
    fit,
    slice_of,
)


def by_hand(shape, per_thread, lanes, warps, order, register, lane, warp):
    """Coordinates by division with remainder, level by level; None beyond the thread's block."""
    result = [0] * len(shape)
    scale = [1] * len(shape)
    for index, counts in ((register, per_thread), (lane, lanes), (warp, warps)):
        for dim in order:
            result[dim] += index % counts[dim] * scale[dim]
            index //= counts[dim]
            scale[dim] *= counts[dim]
    return tuple(result)


@pytest.mark.parametrize(
    "shape, per_thread, lanes, warps, order",
    [
        ((16, 64), (1, 8), (4, 8), (4, 1), (1, 0)),
        ((64, 16), (4, 2), (8, 4), (2, 2), (0, 1)),
        ((256,), (4,), (32,), (2,), (0,)),
        ((4, 8, 8), (1, 2, 2), (2, 4, 2), (2, 1, 2), (2, 0, 1)),
    ],
)
def test_blocked_counts_registers_then_lanes_then_warps(shape, per_thread, lanes, warps, order):
    layout = blocked(shape, per_thread, lanes, warps, order)
    assert layout.is_bijective
    for register, lane, warp in product(
        *(range(layout.in_size(name)) for name in ("register", "lane", "warp"))
    ):
        expected = by_hand(shape, per_thread, lanes, warps, order, register, lane, warp)
        assert layout.apply(register=register, lane=lane, warp=warp) == expected


def test_blocked_text_of_the_docstring():
    layout = blocked((16, 64), (1, 8), (4, 8), (4, 1), order=(1, 0))
    assert str(layout) == (
        "register=(0,1..4) lane=(0,8..32)(1..2,0) warp=(4..8,0) -> dim0:16 dim1:64"
    )


def test_small_tile_leaves_copies():
    layout = blocked((2, 16), (1, 4), (4, 8), (2, 2), (1, 0))
    assert str(layout) == (
        "register=(0,1..2) lane=(0,4..8)(0,0)(1,0)(0,0) warp=(0,0)(0,0) -> dim0:2 dim1:16"
    )
    assert layout.free_masks() == {"register": 0, "lane": 0b10100, "warp": 0b11}


def test_tile_smaller_than_a_thread_drops_registers():
    layout = blocked((2,), (8,), (32,), (4,), (0,))
    assert layout.in_size("register") == 2
    assert layout.free_masks() == {"register": 0, "lane": 0b11111, "warp": 0b11}


def test_scalar_tile():
    layout = blocked((1, 1), (1, 4), (4, 8), (2, 2), (1, 0))
    assert layout.in_size("register") == 1 and layout.rank == layout.out_bits


def test_large_tile_repeats_in_registers():
    layout = blocked((64, 128), (1, 4), (2, 16), (4, 1), (1, 0))
    assert str(layout) == (
        "register=(0,1..2)(0,64)(8..32,0) lane=(0,4..32)(1,0) warp=(2..4,0) -> dim0:64 dim1:128"
    )
    assert layout.in_size("register") == 64


def test_blocked_refuses_what_makes_no_sense():
    with pytest.raises(ValueError, match="powers of two"):
        blocked((48,), (1,), (32,), (4,), (0,))
    with pytest.raises(ValueError, match="2 entries"):
        blocked((16, 16), (1,), (4, 8), (4, 1), (1, 0))
    with pytest.raises(ValueError, match="2 entries"):
        blocked((16, 16), (1, 1), (4, 8), (4, 1), (1, 1))


def test_slice_keeps_values_where_they_were():
    parent = blocked((16, 64), (2, 4), (4, 8), (2, 2), (1, 0))
    rows = slice_of(parent, 1)
    assert rows.out_names == ("dim0",) and rows.shape == (16,)
    assert rows.in_size("register") == 2
    for lane, warp in product(range(32), range(4)):
        held = {rows.apply(register=r, lane=lane, warp=warp)[0] for r in range(2)}
        whole = {
            parent.apply(register=r, lane=lane, warp=warp)[0]
            for r in range(parent.in_size("register"))
        }
        assert held == whole


def test_slice_renumbers_dims():
    parent = blocked((4, 8, 16), (1, 1, 4), (2, 4, 4), (2, 2, 1), (2, 1, 0))
    assert slice_of(parent, 0).shape == (8, 16)
    assert slice_of(parent, 1).out_names == ("dim0", "dim1")


def test_fit_of_a_fitting_layout_is_itself():
    layout = blocked((16, 64), (1, 8), (4, 8), (4, 1), order=(1, 0))
    assert fit(layout, (16, 64), (0, 1)) == layout
