"""Bit matrices over F2, against enumeration of all vectors."""

import random
from itertools import product

import pytest

from tilewright.layout import f2

RANDOM = random.Random(1)
MATRICES = [
    tuple(RANDOM.randrange(1 << rows) for _ in range(columns))
    for rows, columns in product((1, 3, 4), (1, 2, 4, 5))
    for _ in range(4)
]


def members(columns: f2.Matrix) -> set[int]:
    return {f2.apply(columns, x) for x in range(1 << len(columns))}


def test_apply_is_xor_of_selected_columns():
    assert f2.apply((1, 3), 0b11) == 2
    assert f2.apply((1, 3), 0b01) == 1
    assert f2.apply((5, 6, 7), 0) == 0


@pytest.mark.parametrize("columns", MATRICES)
def test_rank_basis_kernel_against_enumeration(columns: f2.Matrix):
    reached = members(columns)
    assert 1 << f2.rank(columns) == len(reached)
    assert members(f2.basis(columns)) == reached
    zeros = {x for x in range(1 << len(columns)) if f2.apply(columns, x) == 0}
    kernel = f2.kernel(columns)
    assert members(kernel) == zeros
    assert f2.rank(kernel) == len(kernel)


@pytest.mark.parametrize("columns", MATRICES)
def test_solve_finds_exactly_the_members(columns: f2.Matrix):
    reached, span = members(columns), f2.Span(columns)
    for target in range(16):
        x = span.solve(target)
        assert (x is not None) == (target in reached)
        assert x is None or f2.apply(columns, x) == target


def test_solve_prefers_early_columns():
    assert f2.Span((1, 1, 3)).solve(1) == 0b001
    assert f2.Span((0, 2, 1, 3)).solve(3) == 0b0110


def test_inverse_round_trip_and_refusals():
    matrix = (0b011, 0b110, 0b111)
    assert f2.compose(matrix, f2.inverse(matrix)) == f2.unit(3)
    assert f2.compose(f2.inverse(matrix), matrix) == f2.unit(3)
    with pytest.raises(ValueError, match="no inverse"):
        f2.inverse((1, 1))
    with pytest.raises(ValueError, match="no inverse"):
        f2.inverse((0b100, 0b001))


def test_right_inverse_needs_all_rows():
    wide = (1, 1, 2, 3)
    right = f2.right_inverse(wide, 2)
    assert right is not None and f2.compose(wide, right) == f2.unit(2)
    assert f2.right_inverse((1, 1), 2) is None


@pytest.mark.parametrize("left, right", list(zip(MATRICES, MATRICES[::-1], strict=True)))
def test_intersection_against_enumeration(left: f2.Matrix, right: f2.Matrix):
    both = f2.intersection(left, right)
    assert members(both) == members(left) & members(right)
    assert f2.rank(both) == len(both)


def test_intersection_keeps_vectors_of_the_left():
    assert f2.intersection((4, 2, 1), (1, 4)) == (4, 1)


def test_extension_and_pivots():
    assert f2.extension((1, 2), (3, 4, 5, 8)) == (4, 8)
    assert f2.pivots((0, 1, 1, 2, 3)) == 0b01010
