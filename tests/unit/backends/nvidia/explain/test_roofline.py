"""The work of a launch, counted from its sizes, and the least time that it takes on a device."""

import pytest

import tilewright
import tilewright.language as tl
from tests.kernels.tutorial_matmul import tutorial_matmul
from tests.unit.backends.nvidia.compiled import compiled
from tests.unit.backends.nvidia.explain.test_op_rows import BLOCKS, TUTORIAL
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright.backends import Bound
from tilewright.backends.nvidia.explain import roofline
from tilewright.kernels.elementwise import add_kernel
from tilewright.support import errors

pytestmark = needs_ptxas


@pytest.fixture(autouse=True)
def _no_device(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """Figures are those of the table, whatever device is here."""
    monkeypatch.setattr(roofline, "unavailable_reason", lambda: "a test")


def bound_of(
    kernel: object, types: str, sizes: dict[str, int], grid: tuple[int, ...], **words: int
) -> Bound:
    bound = compiled(kernel, types, **words).explain(sizes, grid).bound
    assert bound is not None
    return bound


ADD = "*fp32/16 *fp32/16 *fp32/16 i32/16"


def test_an_addition_moves_three_arrays() -> None:
    n = 1 << 20
    bound = bound_of(add_kernel, ADD, {"n": n}, (n // 1024,), BLOCK=1024)
    assert bound.requested == bound.distinct == 12 * n
    assert (bound.product_flops, bound.other_flops) == (0, n)
    assert bound.limit == "memory"
    assert bound.byte_seconds == pytest.approx(12 * n / 3352e9)


def test_a_product_reads_each_tile_often_but_distinct_bytes_are_those_of_the_matrices() -> None:
    size = 1024
    sizes = {name: size for name in ("M", "N", "K", "stride_am", "stride_bk", "stride_cm")}
    bound = bound_of(tutorial_matmul, TUTORIAL, sizes, (64,), **BLOCKS)
    assert bound.product_flops == 2 * size**3
    assert bound.distinct == 3 * size * size * 2
    tiles = size // 128
    assert bound.requested == 2 * size * size * (2 * tiles + 1)
    assert bound.flop_seconds >= 2 * size**3 / 989.5e12


def test_a_size_that_a_loop_needs_is_asked_for() -> None:
    kernel = compiled(tutorial_matmul, TUTORIAL, **BLOCKS)
    with pytest.raises(errors.InvalidOption, match="with K, on which a loop depends"):
        kernel.explain({"M": 1024, "N": 1024}, (64,))


def test_sizes_need_a_grid() -> None:
    with pytest.raises(errors.InvalidOption, match="given with sizes"):
        compiled(add_kernel, ADD, BLOCK=1024).explain({"n": 1024})


@tilewright.jit
def conditional(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if tl.program_id(0) < n:
        tl.store(x_ptr + tl.program_id(0) * BLOCK + i, i.to(tl.float32) * 2.0)


def test_branches_count_for_the_programs_that_take_them() -> None:
    bound = bound_of(conditional, "*fp32/16 i32", {"n": 3}, (8,), BLOCK=128)
    assert bound.requested == 3 * 128 * 4


@tilewright.jit
def accumulated(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(tl.program_id(0), n, tl.num_programs(0)):
        total += tl.load(x_ptr + k * BLOCK + i)
    tl.store(out_ptr + tl.program_id(0) * BLOCK + i, total)


def test_loops_count_as_often_as_each_program_runs_them() -> None:
    bound = bound_of(accumulated, "*fp32/16 *fp32/16 i32", {"n": 10}, (4,), BLOCK=128)
    assert bound.requested == bound.distinct == (10 + 4) * 128 * 4
    assert bound.other_flops == 10 * 128


@tilewright.jit
def looked_up(x_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(index_ptr + tl.program_id(0))
    tl.store(out_ptr + tl.program_id(0) * BLOCK + i, tl.load(x_ptr + row * BLOCK + i))


def test_addresses_from_memory_count_as_distinct() -> None:
    bound = bound_of(looked_up, "*fp32/16 *i32/16 *fp32/16", {}, (8,), BLOCK=128)
    assert bound.requested == bound.distinct == 8 * (2 * 128 * 4 + 4)


@tilewright.jit
def until(x_ptr, n):
    while n > 0:
        tl.store(x_ptr + n, 1.0)
        n -= 1


def test_a_while_loop_is_not_counted() -> None:
    with pytest.raises(errors.InvalidOption, match="`while` loop"):
        compiled(until, "*fp32/16 i32").explain({"n": 4}, (1,))
