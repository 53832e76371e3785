"""Modelled schedules: copies ahead, waits, and dots of pipelined loops."""

import pytest

from tests.kernels.tutorial_matmul import tutorial_matmul
from tests.unit.backends.nvidia.compiled import compiled
from tests.unit.backends.nvidia.explain.test_op_rows import BLOCKS, TUTORIAL
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright.backends import ScheduleRow
from tilewright.kernels.elementwise import add_kernel

pytestmark = needs_ptxas


def schedule(capability: int, **words: object) -> ScheduleRow:
    kernel = compiled(tutorial_matmul, TUTORIAL, capability, **BLOCKS | words)
    (row,) = kernel.explain().schedules
    return row


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_a_wait_leaves_the_copies_of_later_iterations_in_flight(stages: int) -> None:
    row = schedule(80, num_stages=stages)
    copies = [op for op in row.ops if op.kind == "copy"]
    (wait,) = (op for op in row.ops if op.kind == "wait")
    assert len(copies) == 2 and row.issuer == "the threads that compute"
    assert {op.ahead for op in copies} == {row.slots - 1}
    assert wait.pending == copies[0].ahead - 1


def test_copies_and_dots_have_the_lines_of_the_source() -> None:
    row = schedule(80)
    a, b = (op.line for op in row.ops if op.kind == "copy")
    dots = {op.line for op in row.ops if op.kind == "dot"}
    assert a is not None and b == a + 1 and dots == {a + 2}


def test_a_producer_warp_waits_for_empty_slots_and_consumers_for_full_ones() -> None:
    row = schedule(90, bulk_loads="all")
    assert row.issuer == "a producer warp" and row.slots >= 3
    waits = [op.text for op in row.ops if op.kind == "wait"]
    assert waits == ["producer waits for an empty slot", "wait for a full slot"]
    assert [op.text for op in row.ops if op.kind != "wait"] == ["TMA copy", "TMA copy", "wgmma"]


def test_kernels_without_loops_have_no_schedule() -> None:
    kernel = compiled(add_kernel, "*fp32/16 *fp32/16 *fp32/16 i32/16", BLOCK=64)
    assert kernel.explain().schedules == ()
