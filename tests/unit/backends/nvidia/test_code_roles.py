"""What programs with a producer are in PTX: two roles, a loop without barriers, no spills."""

import re
from typing import Any

import pytest

from tests.kernels.looped_products import (
    batched,
    chained,
    flat,
    nested,
    stored_by_descriptor,
    twice,
)
from tests.kernels.tutorial_matmul import tutorial_matmul
from tests.unit.backends.nvidia.compiled import compiled, loops_of_products
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright.backends.nvidia.assemble.ptxas import assemble
from tilewright.backends.nvidia.driver.gpu_launcher import launch_shape

pytestmark = needs_ptxas

TYPES = "*fp16/16 *fp16/16 *fp16/16 i32/16 i32/16 i32/16"


def product(kernel: Any = nested, capability: int = 90, warps: int = 8, **words: Any) -> Any:
    blocks = {"PROGRAMS": 132, "BM": 128, "BN": 128, "BK": 64}
    return compiled(kernel, TYPES, capability, num_warps=warps, **(blocks | words))


@pytest.mark.parametrize("kernel", [nested, flat, twice], ids=lambda kernel: kernel.fn.__name__)
@pytest.mark.parametrize(("columns", "slots"), [(128, 6), (256, 4)])
def test_the_loop_of_products_has_no_barrier_and_no_copy(
    kernel: Any, columns: int, slots: int
) -> None:
    made = product(kernel, BN=columns)
    ptx = made.asm["ptx"]
    body = min(loops_of_products(ptx), key=len)
    assert not re.search(r"bar\.sync|cp\.async", body)
    assert len(re.findall(r"wgmma\.mma_async", body)) == 4
    assert re.findall(r"wgmma\.wait_group\.sync\.aligned (\d)", body)[0] == "1"
    moved = re.findall(r"setmaxnreg\.(\w+)\.sync\.aligned\.u32 (\d+)", ptx)
    assert sorted(moved) == [("dec", "40"), ("inc", "232")]
    assert f"nvidia.alloc : buffer<{slots} * 128x64xf16" in made.asm["ttgir"]
    report = assemble(ptx, "sm_90a", made.metadata.name).report
    assert (report.spill_stores, report.warnings) == (0, ())


def test_products_that_end_in_their_iteration_have_a_producer_too() -> None:
    made = product(chained)
    assert "nvidia.roles" in made.asm["ttgir"]
    # the operand of the outer loop has two slots
    assert "nvidia.alloc : buffer<2 * 128x128xf16" in made.asm["ttgir"]


def test_the_producer_is_a_warpgroup_more() -> None:
    made = product()
    assert launch_shape(made.metadata._asdict()).threads == 384
    assert '"nvvm.reqntid"="384" "nvvm.maxnreg"="168"' in made.asm["llir"]


@pytest.mark.parametrize("words", [{"maxnreg": 128}, {"num_ctas": 2}])
def test_options_that_leave_no_producer(words: dict[str, int]) -> None:
    made = product(**words)
    assert "nvidia.roles" not in made.asm["ttgir"]
    assert "bulk_copy" not in made.asm["ttgir"]


def test_other_architectures_have_no_producer() -> None:
    assert "nvidia.roles" not in product(capability=80, warps=4, BN=64).asm["ttgir"]
    assert "nvidia.roles" not in product(capability=120, warps=4, BN=64).asm["ttgir"]


def test_tiles_that_do_not_fit_beside_what_is_exchanged_are_loaded_by_threads() -> None:
    made = product(BN=256, BK=128)
    assert "bulk" not in made.asm["ttgir"]
    assert "nvidia.async_copy" in made.asm["ttgir"]


def test_blocks_run_several_programs_if_these_take_equally_long() -> None:
    words = {"num_warps": 8, "BM": 128, "BN": 128, "BK": 64}
    made = compiled(batched, f"{TYPES} i32/16", **words)
    assert made.metadata.resident == 1
    assert "nvidia.blocks" in made.asm["ttgir"]
    report = assemble(made.asm["ptx"], "sm_90a", made.metadata.name).report
    assert (report.spill_stores, report.warnings) == (0, ())
    whole = compiled(batched, f"{TYPES} i32/16", launch_cooperative_grid=True, **words)
    assert "nvidia.roles" in whole.asm["ttgir"]
    assert "nvidia.blocks" not in whole.asm["ttgir"]
    # the number of its tiles depends on the program
    assert "nvidia.blocks" not in product(nested).asm["ttgir"]
    assert "nvidia.blocks" not in product(flat).asm["ttgir"]


@pytest.mark.parametrize(("rows", "columns", "slots"), [(128, 128, 5), (64, 256, 4)])
def test_groups_of_four_warps_take_turns_where_two_programs_would_be_resident(
    rows: int, columns: int, slots: int
) -> None:
    words = {"num_warps": 4, "BM": rows, "BN": columns, "BK": 64}
    made = compiled(stored_by_descriptor, TYPES, **words)
    ptx, ttgir = made.asm["ptx"], made.asm["ttgir"]
    assert re.search(r"nvidia\.roles {registers = \[168, 40, 232\], groups = 2}", ttgir)
    assert f"nvidia.alloc : buffer<{slots} * {rows}x64xf16" in ttgir
    assert launch_shape(made.metadata._asdict()).threads == 384
    assert not re.search(r"bar\.sync", min(loops_of_products(ptx), key=len))
    report = assemble(ptx, "sm_90a", made.metadata.name).report
    assert (report.spill_stores, report.warnings) == (0, ())


def test_programs_of_a_block_do_not_wait_for_the_stores_of_the_last() -> None:
    """In turns, too: programs have no order."""
    types = " ".join(["*fp16/16"] * 3 + ["i32/16"] * 3 + ["i32/16", "i32=1"] * 3)
    words = {"num_warps": 4, "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}
    made = compiled(tutorial_matmul, types, bulk_loads="all", EVEN_K=False, **words)
    assert "groups = 2" in made.asm["ttgir"]
    assert made.asm["ttgir"].count("mem.barrier") == 1


def test_small_tiles_do_not_take_turns() -> None:
    words = {"num_warps": 4, "BM": 64, "BN": 64, "BK": 64}
    assert "groups" not in compiled(stored_by_descriptor, TYPES, **words).asm["ttgir"]


def test_explanations_know_the_producer() -> None:
    explained = product().explain()
    assert explained.resources.warps == 12
    copied = {row.tile: row.through for row in explained.rows if row.op == "load"}
    assert copied["128x64xf16"] == "global -> shared (6 slots), issued by a producer warp"
    without = product(warps=8, maxnreg=168, num_stages=2).explain()
    assert without.resources.warps == 8
