"""LinearLayout on the worked 4 x 4 example, and the refusals."""

import pickle

import pytest

from tests.unit.layout.same_map import is_same_map
from tilewright.layout import LinearLayout, f2

EXAMPLE = LinearLayout.parse("register=(0,1)(1,0) lane=(0,2)(2,0) -> dim0:4 dim1:4")
PICTURE = [
    ["l0r0", "l0r1", "l1r0", "l1r1"],
    ["l0r2", "l0r3", "l1r2", "l1r3"],
    ["l2r0", "l2r1", "l3r0", "l3r1"],
    ["l2r2", "l2r3", "l3r2", "l3r3"],
]


def test_apply_is_the_picture():
    for lane in range(4):
        for register in range(4):
            row, column = EXAMPLE.apply(register=register, lane=lane)
            assert PICTURE[row][column] == f"l{lane}r{register}"


def test_inverse_names_the_owner():
    assert EXAMPLE.invert().apply(dim0=3, dim1=1) == (3, 2)
    assert EXAMPLE.invert().invert() == EXAMPLE


def test_construction_forms_agree():
    built = LinearLayout.from_bases(
        {"register": [(0, 1), (1, 0)], "lane": [(0, 2), (2, 0)]}, {"dim0": 4, "dim1": 4}
    )
    step = LinearLayout.identity
    made = (
        step("register", "dim1", 2) * step("register", "dim0", 2)
        * step("lane", "dim1", 2) * step("lane", "dim0", 2)
    )  # fmt: skip
    assert built == EXAMPLE == made.reorder_outs(["dim0", "dim1"])
    assert is_same_map(made, EXAMPLE) and made != EXAMPLE
    assert hash(built) == hash(EXAMPLE)


def test_sizes_and_bases():
    assert EXAMPLE.shape == (4, 4)
    assert EXAMPLE.in_size("lane") == 4 and EXAMPLE.in_size("warp") == 1
    assert EXAMPLE.out_size("dim0") == 4 and EXAMPLE.out_size("dim7") == 1
    assert EXAMPLE.bases("lane") == ((0, 2), (2, 0)) and EXAMPLE.bases("warp") == ()


def test_product_puts_the_second_above_the_first():
    lanes = LinearLayout.identity("lane", "dim0", 4)
    warps = LinearLayout.identity("warp", "dim0", 8)
    both = lanes * warps
    assert both.shape == (32,)
    assert both.apply(lane=3, warp=5) == (23,)


def test_compose_reorders_by_name():
    buffer = LinearLayout.parse("offset=(0,1)(0,2)(1,0)(2,0) -> dim0:4 dim1:4")
    address = buffer.invert() @ EXAMPLE.reorder_outs(["dim1", "dim0"])
    assert address.apply(register=3, lane=2) == (3 * 4 + 1,)


def test_transpose_and_reshape():
    flipped = EXAMPLE.transpose((1, 0))
    assert flipped.apply(register=1) == (1, 0)
    flat = EXAMPLE.reshape((16,))
    assert flat.apply(register=3, lane=2) == (13,)
    assert flat.reshape((4, 4)) == EXAMPLE
    assert EXAMPLE.reshape((2, 2, 4)).apply(register=3, lane=2) == (1, 1, 1)


def test_sublayout_restricts_and_projects():
    part = EXAMPLE.sublayout(["lane"], ["dim1"])
    assert part == LinearLayout.parse("lane=(2)(0) -> dim1:4")
    assert EXAMPLE.restrict(["lane"]).apply(lane=3) == (2, 2)


def test_broadcast_is_a_kernel():
    copied = LinearLayout.parse("register=(0,1) lane=(0,0)(1,0) warp=(1,1) -> dim0:2 dim1:2")
    assert f2.kernel(copied.columns) == (0b0010, 0b1101)
    assert copied.free_masks() == {"register": 0, "lane": 0b01, "warp": 0b1}
    assert copied.rank == copied.out_bits and not copied.is_injective


def test_inverse_refuses_copies_and_holes():
    with pytest.raises(ValueError, match="only a bijection"):
        LinearLayout.parse("lane=(0)(1) -> dim0:2").invert()


def test_same_map_ignores_order_and_empty_dims():
    other = LinearLayout.parse("lane=(2,0)(0,2) warp= register=(1,0)(0,1) -> dim1:4 dim0:4")
    assert is_same_map(EXAMPLE, other) and EXAMPLE != other


@pytest.mark.parametrize(
    "text",
    [
        "register=(0,1..4)(8,0) lane=(0,8..16)(1..4,0) warp= -> dim0:16 dim1:32",
        "offset=(1..8) -> dim0:16",
        "register= -> ",
        "lane=(0)(0)(1) -> dim0:2",
        "register=(3,1)(6,2) -> dim0:8 dim1:4",
    ],
)
def test_text_round_trip(text: str):
    assert str(LinearLayout.parse(text)) == text


@pytest.mark.parametrize(
    "text, message",
    [
        ("register=(0,1)", "a layout reads"),
        ("register(0,1) -> dim0:2 dim1:2", "an input dim reads"),
        ("register=(0,1) -> dim0", "an output dim reads"),
        ("register=(0,1) -> dim0:3 dim1:2", "powers of two"),
        ("register=(0,4) -> dim0:2 dim1:2", "outside dim1"),
        ("register=(1) -> dim0:2 dim1:2", "one coordinate for each"),
        ("register=(1..6) -> dim0:8", "doubles along one dim"),
        ("register=(1..2,1..2) -> dim0:8 dim1:8", "doubles along one dim"),
        ("register=(1,) -> dim0:8 dim1:8", "a coordinate reads"),
    ],
)
def test_bad_text_says_what_is_wrong(text: str, message: str):
    with pytest.raises(ValueError, match=message):
        LinearLayout.parse(text)


def test_layouts_are_values():
    with pytest.raises(AttributeError, match="immutable"):
        EXAMPLE.columns = ()
    assert pickle.loads(pickle.dumps(EXAMPLE)) == EXAMPLE
    assert eval(repr(EXAMPLE)) == EXAMPLE
    assert {EXAMPLE: 1}[LinearLayout.parse(str(EXAMPLE))] == 1
    assert EXAMPLE != "register"
