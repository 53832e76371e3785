"""How the code for a linear map of bits is cut into masks, shifts and products."""

from __future__ import annotations

from random import Random

from tilewright.backends.nvidia.lower.gpu_lowering import doubling_run


def by_runs(columns: list[int], index: int) -> int:
    """What the emitted code computes."""
    total = bit = 0
    while bit < len(columns):
        run = doubling_run(columns, bit) if columns[bit] else 1
        total ^= (index >> bit & (1 << run) - 1) * columns[bit]
        bit += run
    return total


def by_bits(columns: list[int], index: int) -> int:
    total = 0
    for bit, column in enumerate(columns):
        total ^= column if index >> bit & 1 else 0
    return total


def test_fields_are_as_long_as_they_are_moved_whole():
    assert doubling_run([1, 2, 4, 16], 0) == 3
    assert doubling_run([5, 10, 20], 0) == 2  # 5 and 20 share a bit
    assert doubling_run([3, 6], 0) == 1


def test_products_of_fields_are_the_xor_of_their_columns():
    random = Random(3)
    for _ in range(500):
        first = random.randrange(1, 32)
        columns = [first << k if random.random() < 0.8 else random.randrange(64) for k in range(5)]
        for index in range(32):
            assert by_runs(columns, index) == by_bits(columns, index), (columns, index)
