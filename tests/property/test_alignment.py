"""Alignment facts hold of every value that a random program computes.

That they are not vacuous is tested on kernels in tests/unit/analysis/test_alignment_of_kernels.py.
"""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.alignment_checker import assert_facts_of_random_program


@settings(max_examples=300)
@given(st.randoms(use_true_random=False))
def test_facts_hold_of_what_is_computed(random: Random):
    assert_facts_of_random_program(random)


def test_facts_hold_of_many_programs():
    finished = sum(assert_facts_of_random_program(Random(seed)) for seed in range(600))
    assert finished > 400
