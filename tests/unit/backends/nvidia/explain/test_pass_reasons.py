"""Notes of `kernel.explain()` on the whole kernel: why no producer warp, why few stages, what holds
the registers of a kernel that spills."""

import re
from typing import Any

import pytest

import tilewright
import tilewright.language as tl
from tests.kernels.tutorial_matmul import tutorial_matmul
from tests.unit.backends.nvidia.compiled import compiled
from tests.unit.backends.nvidia.explain.test_op_rows import BLOCKS, TUTORIAL
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright.backends import Resources
from tilewright.kernels.elementwise import add_kernel

pytestmark = needs_ptxas

SMALL = BLOCKS | {"BLOCK_M": 64, "num_warps": 4}


def notes(types: str = TUTORIAL, capability: int = 90, **words: Any) -> tuple[str, ...]:
    return compiled(tutorial_matmul, types, capability, **SMALL | words).explain().notes


def producer_note(**words: Any) -> str | None:
    found = [note for note in notes(**words) if note.startswith("no producer warp: ")]
    return found[0].partition(": ")[2] if found else None


def test_loads_by_threads_have_no_producer_warp():
    assert producer_note() == "TMA issues none of the loads of its loops"


def test_a_kernel_with_a_producer_warp_has_no_note():
    assert producer_note(bulk_loads="all") is None


@pytest.mark.parametrize("option", [{"maxnreg": 128}, {"num_ctas": 2}])
def test_options_that_leave_no_producer_warp_are_named(option: dict[str, int]):
    assert (
        producer_note(bulk_loads="all", **option) == "maxnreg or num_ctas leaves no producer warp"
    )


@tilewright.jit
def short(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr):
    i = tl.arange(0, 64)
    acc = tl.zeros((64, 64), dtype=tl.float32)
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [64, BLOCK])
    b = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [64, BLOCK])
    for k in range(0, 3):
        acc = tl.dot(a.load([0, k * BLOCK]), b.load([0, k * BLOCK]).T, acc)
    tl.store(c_ptr + i[:, None] * N + i[None, :], acc)


def test_a_loop_of_few_iterations_is_named():
    explained = compiled(short, "*fp16/16 *fp16/16 *fp32/16 i32/16 i32/16 i32/16", BLOCK=64)
    assert "no producer warp: a loop has fewer than 4 iterations" in explained.explain().notes


def test_kernels_without_dots_in_loops_have_no_note():
    assert compiled(add_kernel, "*fp32/16 *fp32/16 *fp32/16 i32/16", BLOCK=64).explain().notes == ()


def test_an_older_architecture_has_no_note_on_producers():
    assert producer_note(capability=80) is None


# ---- stages --------------------------------------------------------------------------------------


def test_stages_that_shared_memory_does_not_hold_are_reported():
    words: dict[str, Any] = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128, "num_stages": 4}
    (note,) = (note for note in notes(capability=80, **words) if "stages" in note)
    found = re.search(r"has (\d) stages of 4 requested: (\d) take (\d+) bytes", note)
    assert found is not None
    slots, refused, size = map(int, found.groups())
    assert refused == slots + 1 and size == refused * 2 * 128 * 128 * 2
    assert size > 163 * 1024


def test_stages_as_requested_have_no_note():
    assert not any("stages" in note for note in notes(capability=80, num_stages=3))


# ---- registers -----------------------------------------------------------------------------------


def test_the_tiles_that_hold_the_registers_of_a_spill_are_named():
    words = BLOCKS | {"BLOCK_M": 128, "BLOCK_N": 256, "num_warps": 4, "maxnreg": 255}
    explained = compiled(tutorial_matmul, TUTORIAL, 80, **words).explain()
    assert isinstance(explained.resources, Resources) and explained.resources.spills > 0
    (note,) = (note for note in explained.notes if "registers per thread" in note)
    first = note.partition(": ")[2]
    assert re.match(r"\w+ 256 \(line \d+\)", first)
    assert int(re.findall(r"up to (\d+)", note)[0]) > 255


def test_a_kernel_without_spills_has_no_note_on_registers():
    assert not any("registers per thread" in note for note in notes())
