"""Shuffle rounds: their promises to lowering, and where the scheme gives up."""

import pytest

from tilewright.layout import LinearLayout, f2
from tilewright.layout.element_sources import find_sources
from tilewright.layout.warp_shuffles import Shuffles, plan_shuffles


def rounds(src: str, dst: str, bits: int = 32) -> Shuffles | None:
    return plan_shuffles(find_sources(LinearLayout.parse(src), LinearLayout.parse(dst)), bits)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_each_register_arrives_once_from_different_lanes(bits: int):
    found = rounds(
        "register=(1..4) lane=(8..128) warp= -> dim0:256",
        "register=(32..128) lane=(1..16) warp= -> dim0:256",
        bits,
    )
    assert found is not None
    together = len(found.received)
    assert len(found.rounds) * together == 8
    for lane in range(32):
        arrived = [r.receive(lane) ^ e for r in found.rounds for e in found.received]
        assert sorted(arrived) == list(range(8))
    for round_ in found.rounds:
        assert sorted(map(round_.source, range(32))) == list(range(32))


def test_rounds_that_stay_in_the_lane_are_free():
    """Half of the registers change lanes: a register selects the partner."""
    found = rounds(
        "register=(1)(2) lane=(4..64) warp= -> dim0:128",
        "register=(1)(6) lane=(4..64) warp= -> dim0:128",
    )
    assert found is not None
    assert [r.source.is_own_lane for r in found.rounds] == [True, True, False, False]
    assert (found.shuffles, found.selects) == (2, 0)


def test_registers_that_depend_on_the_lane_are_selected():
    found = rounds(
        "register=(1) lane=(2..32) warp= -> dim0:64",
        "register=(1) lane=(3)(4..32) warp= -> dim0:64",
    )
    assert found is not None and found.shuffles == 0
    assert found.selects == 2
    first = found.rounds[0]
    assert first.publish(1) ^ first.receive(1) == 1 and first.publish(0) == first.receive(0)


def test_lanes_without_enough_registers_give_up():
    """Two lanes want two registers of one lane, and no round can serve both."""
    found = rounds(
        "register=(1) lane=(2)(4)(8)(16)(0) warp= -> dim0:32",
        "register= lane=(1)(2)(4)(8)(16) warp= -> dim0:32",
    )
    assert found is None


def test_other_warps_are_out_of_reach():
    assert rounds(
        "register= lane=(1..16) warp=(32) -> dim0:64", "register= lane=(2..32) warp=(1) -> dim0:64"
    ) is None  # fmt: skip


def test_lane_map():
    found = rounds(
        "register= lane=(1..16) warp= -> dim0:32",
        "register= lane=(16)(8)(4)(2)(1) warp= -> dim0:32",
    )
    assert found is not None
    (only,) = found.rounds
    assert only.publish.is_constant and not only.source.is_constant
    assert [only.source(lane) for lane in (1, 2, 3)] == [16, 8, 24]
    assert only.source.bases == (16, 8, 4, 2, 1) != f2.unit(5)
