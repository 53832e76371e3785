"""Conflict degrees: textbook cases, and the rank formula against counting."""

import random

import pytest

from tests.unit.layout.wavefronts import wavefronts
from tilewright.layout import bank_conflicts, f2


@pytest.mark.parametrize(
    "stride, degree", [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32), (64, 32)]
)
def test_strided_words(stride: int, degree: int):
    assert bank_conflicts.degree([stride << i for i in range(5)], 0, 2) == degree
    assert wavefronts([4 * stride * lane for lane in range(32)], 4) == degree


def test_odd_stride_has_no_conflict():
    assert wavefronts([4 * 33 * lane for lane in range(32)], 4) == 1


def test_broadcast_and_halves_of_a_word_have_no_conflict():
    assert bank_conflicts.degree([0, 0, 0, 0, 0], 0, 2) == 1
    assert bank_conflicts.degree([1, 2, 4, 8, 16], 0, 1) == 1
    assert bank_conflicts.degree([1, 64, 128, 0, 0], 0, 1) == 4


def test_padding_makes_column_reads_free():
    assert wavefronts([4 * (33 * i + 3) for i in range(32)], 4) == 1
    assert wavefronts([4 * (32 * i + 3) for i in range(32)], 4) == 32


def test_wide_accesses_are_served_in_parts():
    assert wavefronts([16 * lane for lane in range(32)], 16) == 4
    assert wavefronts([8 * lane for lane in range(32)], 8) == 2
    assert wavefronts([128 * lane for lane in range(32)], 16) == 32


@pytest.mark.parametrize("seed", range(60))
def test_rank_formula_is_the_count(seed: int):
    """Every group of lanes, from any start, takes as many wavefronts as the ranks say."""
    rng = random.Random(seed)
    size = rng.choice((0, 1, 2, 3))
    vector = rng.randrange(5 - size)
    lanes = bank_conflicts.lanes_at_once(size + vector)
    columns = [rng.randrange(1 << 9) << vector for _ in range(lanes)]
    start = rng.randrange(1 << 9) << vector
    addresses = [(start ^ f2.apply(columns, lane)) << size for lane in range(1 << lanes)]
    assert bank_conflicts.degree(columns, vector, size) == wavefronts(addresses, 1 << size + vector)
