"""Placing blocks by their live ranges."""

from __future__ import annotations

from random import Random

import pytest

from tilewright.analysis import LiveRange, Request, pack


def test_packing_reuses_what_is_free():
    a, b, c = (Request(100, LiveRange(*ends)) for ends in ((0, 2), (3, 4), (2, 3)))
    packing = pack([a, b, c])
    assert packing.offsets == (0, 0, 128)
    assert packing.total == 228


def test_packing_fills_gaps():
    large, long, small = (
        Request(128, LiveRange(0, 1)), Request(64, LiveRange(0, 9)), Request(64, LiveRange(2, 3)),
    )  # fmt: skip
    assert pack([large, long, small]).offsets == (0, 128, 0)


def test_packing_aligns():
    packing = pack([Request(10, LiveRange(0, 1), 16), Request(5, LiveRange(0, 1), 16)])
    assert packing.offsets == (0, 16)
    assert packing.total == 21


def test_packing_nothing():
    assert pack([]).total == 0


@pytest.mark.parametrize("seed", range(30))
def test_packing_never_overlaps_and_is_exact_for_equal_sizes(seed: int):
    random = Random(seed)
    ends = [sorted(random.sample(range(30), 2)) for _ in range(25)]
    ranges = [LiveRange(*pair) for pair in ends]
    requests = [Request(random.choice((64, 100, 640)), live) for live in ranges]
    packing = pack(requests)
    for i, (one, at) in enumerate(zip(requests, packing.offsets, strict=True)):
        assert at % one.alignment == 0
        for other, place in zip(requests[:i], packing.offsets[:i], strict=True):
            apart = at + one.bytes <= place or place + other.bytes <= at
            assert apart or not one.live.overlaps(other.live)
    most = max(sum(r.first <= t <= r.last for r in ranges) for t in range(30))
    assert pack([Request(64, live) for live in ranges]).total == 64 * most
