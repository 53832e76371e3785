"""ldmatrix: which layouts qualify, and the address table of the mma.sync operands."""

import pytest

from tilewright.layout import (
    FRAGMENTS,
    LinearLayout,
    blocked,
    matrix_addresses,
    matrix_form,
    operand_layout,
    result_layout,
)

B16 = FRAGMENTS["m16n8k16.b16"]
TWO_TILES = result_layout(B16, (16, 16), (1, 1))  # two n8 tiles side by side
A = operand_layout(B16, TWO_TILES, "a", 16)
B = operand_layout(B16, TWO_TILES, "b", 16)


@pytest.mark.parametrize(
    "layout, transposed, expected",
    [
        # (row, column) bases of lane bits 0..4 that feed one m16n8k16 with one x4; B is (k, n).
        (A, False, ((1, 0), (2, 0), (4, 0), (8, 0), (0, 8))),
        (A, True, ((0, 1), (0, 2), (0, 4), (8, 0), (0, 8))),
        (B, False, ((0, 1), (0, 2), (0, 4), (8, 0), (0, 8))),
        (B, True, ((1, 0), (2, 0), (4, 0), (8, 0), (0, 8))),
    ],
)
def test_address_table_of_the_operands(layout: LinearLayout, transposed: bool, expected):
    form = matrix_form(layout, 16, transposed=transposed)
    assert form is not None and form.count_bits == 2
    assert tuple(layout.unpack(v) for v in matrix_addresses(form)) == expected


def test_rows_run_along_the_contiguous_dim():
    plain, turned = matrix_form(A, 16), matrix_form(A, 16, transposed=True)
    assert plain is not None and turned is not None
    assert [A.unpack(v) for v in plain.row] == [(0, 1), (0, 2), (0, 4)]
    assert [A.unpack(v) for v in turned.row] == [(1, 0), (2, 0), (4, 0)]


@pytest.mark.parametrize("name", ["m16n8k32.b8", "m16n8k8.tf32"])
def test_other_widths_go_plain_only(name: str):
    fragment = FRAGMENTS[name]
    assert matrix_form(fragment.a, fragment.element_bits) is not None
    assert matrix_form(fragment.a, fragment.element_bits, transposed=True) is None


def test_fewer_matrices_than_four():
    form = matrix_form(B16.c, 16)
    assert form is not None and form.count_bits == 1
    addresses = [B16.c.unpack(v) for v in matrix_addresses(form)]
    assert addresses == [(1, 0), (2, 0), (4, 0), (8, 0), (0, 0)]


def test_what_does_not_qualify():
    assert matrix_form(FRAGMENTS["m16n8k16.f64"].a, 64) is None  # no halves of a double
    vectors = blocked((32, 64), (1, 8), (4, 8), (1, 1), (1, 0))
    assert matrix_form(vectors, 16) is not None  # rows need not be contiguous in the tile
    copies = LinearLayout.parse("register=(0,1) lane=(0,0)(0,2)(1,0)(2,0)(4,0) -> dim0:8 dim1:4")
    assert matrix_form(copies, 16) is None  # a row of 16 bytes would hold copies
    few = LinearLayout.parse("register=(1) lane=(2..8) -> dim0:16")
    assert matrix_form(few, 16) is None  # not a whole warp
    single = LinearLayout.parse("register= lane=(1..16) -> dim0:32")
    assert matrix_form(single, 16) is None  # half a register
    assert matrix_form(single, 32) is not None
