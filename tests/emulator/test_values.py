"""Values of instructions, in what NumPy does not do by itself."""

import numpy as np
import pytest

from tests.emulator.values import merge

MASK = np.array([True, False])


@pytest.mark.parametrize("new", [2**127, 2**64 - 100, 5])
@pytest.mark.parametrize("old", [2**70, 2**63, 0])
def test_scalars_of_128_bits_stay_exact_where_threads_differ(new: int, old: int) -> None:
    assert merge(MASK, new, old).tolist() == [new, old]
    assert merge(MASK, new, np.array([old, old], object)).tolist() == [new, old]
