"""What memory accesses ask: vectors, copies, registers."""

from itertools import product

import pytest

from tilewright.layout import (
    LinearLayout,
    blocked,
    contiguous_registers,
)


@pytest.mark.parametrize(
    "text, dim, expected",
    [
        ("register=(0,1..4) lane=(0,8)(1,0) -> dim0:2 dim1:16", 1, 8),
        ("register=(0,1..4) lane=(0,8)(1,0) -> dim0:2 dim1:16", 0, 1),
        ("register=(0,1)(0,4) lane=(0,2)(0,8) -> dim0:1 dim1:16", 1, 2),
        ("register=(0,2)(0,1) lane=(0,4) -> dim0:1 dim1:8", 1, 1),
        ("register=(0,1..4) lane=(1,2) -> dim0:2 dim1:8", 1, 2),  # lane 1 starts at column 2
        ("register=(0,1..2)(1,1) lane=(0,4) -> dim0:2 dim1:8", 1, 1),
        ("lane=(0,4) register=(0,1..2) -> dim0:1 dim1:8", 1, 4),
        ("register= lane=(1) -> dim0:2", 0, 1),
    ],
)
def test_contiguous_registers(text: str, dim: int, expected: int):
    assert contiguous_registers(LinearLayout.parse(text), dim) == expected


def test_contiguous_registers_of_common_layouts():
    assert contiguous_registers(blocked((128, 128), (1, 8), (4, 8), (4, 1), (1, 0)), 1) == 8
    assert contiguous_registers(blocked((128, 128), (4, 4), (4, 8), (4, 1), (1, 0)), 1) == 4
    assert contiguous_registers(blocked((1, 128), (1, 4), (1, 16), (1, 1), (1, 0)), 1) == 4


@pytest.mark.parametrize(
    "text",
    [
        "register=(1)(1) lane=(2)(0)(3) warp=(4)(0) -> dim0:8",
        "register=(0,1) lane=(1,0)(1,0)(1,1) warp=(0,0)(2,0) -> dim0:4 dim1:2",
        "register= lane=(0)(0) warp=(0) -> dim0:1",
    ],
)
def test_owners_hold_every_element_once(text: str):
    layout = LinearLayout.parse(text)
    free = layout.free_masks()
    owned: list[tuple[int, ...]] = []
    for place in product(*(range(layout.in_size(name)) for name in layout.in_names)):
        named = dict(zip(layout.in_names, place, strict=True))
        if not any(named[name] & free[name] for name in named):
            owned.append(layout.apply(**named))
    assert sorted(owned) == sorted(product(*map(range, layout.shape)))


def test_registers_are_kept_before_lanes_before_warps():
    layout = LinearLayout.parse("register=(1) lane=(1)(2) warp=(2)(3) -> dim0:4")
    assert layout.free_masks() == {"register": 0, "lane": 0b01, "warp": 0b11}
    assert layout.in_size("register") == 2
