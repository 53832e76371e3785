"""The text pictures."""

from tilewright.layout import (
    LinearLayout,
    blocked,
    render,
    render_shared,
    shared_row_major,
    shared_xor,
)


def test_the_worked_example():
    layout = LinearLayout.parse("register=(0,1)(1,0) lane=(0,2)(2,0) -> dim0:4 dim1:4")
    assert render(layout).splitlines() == [
        "0 | l0r0 l0r1 l1r0 l1r1",
        "1 | l0r2 l0r3 l1r2 l1r3",
        "2 | l2r0 l2r1 l3r0 l3r1",
        "3 | l2r2 l2r3 l3r2 l3r3",
    ]


def test_copies_warps_and_cuts():
    layout = blocked((8, 16), (1, 4), (4, 4), (4, 1), (1, 0))
    lines = render(layout, max_rows=2, max_columns=5).splitlines()
    assert lines == [
        "0 | w0l0r0+ w0l0r1+ w0l0r2+ w0l0r3+ w0l1r0+ ...",
        "1 | w0l4r0+ w0l4r1+ w0l4r2+ w0l4r3+ w0l5r0+ ...",
        "... 6 more rows",
    ]


def test_holes_lines_and_pages():
    assert render(LinearLayout.parse("lane=(2) -> dim0:4")) == "0 | l0 .  l1 ."
    pages = render(LinearLayout.parse("lane=(1,0,0) register=(0,0,1) -> dim0:2 dim1:1 dim2:2"))
    assert pages == "[0, :, :]\n0 | r0l0 r1l0\n\n[1, :, :]\n0 | r0l1 r1l1"


def test_shared_offsets_and_banks():
    assert render_shared(shared_row_major((2, 2)), 16).splitlines() == [
        "0 | 0/b0 1/b0",
        "1 | 2/b1 3/b1",
    ]
    assert render_shared(shared_xor((2, 4), 1, 1, 4), 32).splitlines() == [
        "0 | 0/b0 1/b1 2/b2 3/b3",
        "1 | 5/b5 4/b4 7/b7 6/b6",
    ]
