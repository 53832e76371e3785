"""Barriers stand where threads of a program may meet in global memory, and nowhere else."""

import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.figures import source_with
from tests.corpus.users.scans import running_sum
from tilewright.backends import GPUTarget
from tilewright.compiler import ASTSource, compile
from tilewright.runtime import JITFunction


@tilewright.jit
def in_place(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) * 2)


@tilewright.jit
def swapped(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(x + i, b)
    tl.store(y + i, a)


@tilewright.jit
def reversed_in_place(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + (BLOCK - 1 - i), tl.load(x + i))


@tilewright.jit
def read_back_elsewhere(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 1.0)
    tl.store(y + i, tl.load(x + (BLOCK - 1 - i)))


@tilewright.jit
def read_back_after_barrier(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 1.0)
    tl.debug_barrier()
    tl.store(y + i, tl.load(x + (BLOCK - 1 - i)))


@tilewright.jit
def one_element(x, y, n, BLOCK: tl.constexpr):
    tl.store(x, 5.0)
    tl.store(y + tl.arange(0, BLOCK), tl.load(x) + tl.arange(0, BLOCK))


@tilewright.jit
def sliding(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in range(n):
        tl.store(x + k + i, tl.load(x + k + i) + 1)


@tilewright.jit
def copied_in_a_loop(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in range(n):
        tl.store(y + k * BLOCK + i, tl.load(x + k * BLOCK + i))


@tilewright.jit
def changed_in_a_loop(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in range(n):
        tl.store(x + k * BLOCK + i, tl.load(x + k * BLOCK + i) * 2)


@tilewright.jit
def changed_through_a_pointer(x, y, n, BLOCK: tl.constexpr):
    p = x + tl.arange(0, BLOCK)
    for _ in range(n):
        tl.store(p, tl.load(p) * 2)
        p += BLOCK


@tilewright.jit
def changed_in_place_again(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for _ in range(n):
        tl.store(x + i, tl.load(x + i) * 2)


@tilewright.jit
def overlapping_windows(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in range(n):
        tl.store(y + k * (BLOCK // 2) + i, tl.load(x + k * BLOCK + i))


@tilewright.jit
def windows_backwards(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in range(n):
        tl.store(y + (n - k) * BLOCK + i, 1.0)


@tilewright.jit
def every_second_window(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in range(0, n, 2):
        tl.store(y + k * (BLOCK // 2) + i, 1.0)


@tilewright.jit
def columns_of_known_rows(x, y, n, BLOCK: tl.constexpr):
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    for k in range(0, BLOCK, 16):
        tl.store(y + i * BLOCK + k + j, 1.0)


@tilewright.jit
def columns_into_the_next_row(x, y, n, BLOCK: tl.constexpr):
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    for k in range(0, 2 * BLOCK, 16):
        tl.store(y + i * BLOCK + k + j, 1.0)


@tilewright.jit
def masked_rows(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in range(8):
        tl.store(y + row * n + i, 1.0, mask=i < n)


@tilewright.jit
def interleaved(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + 2 * i, 1.0)
    tl.store(y + 2 * i + 1, 2.0)
    tl.store(y + 2 * BLOCK + i, 3.0)


@tilewright.jit
def one_place_by_several(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i // 4, 1.0)
    tl.store(y + i // 4, 2.0)


@tilewright.jit
def chosen_places(x, y, n, BLOCK: tl.constexpr):
    """Two elements of the tile may be one of the array."""
    i = tl.load(x + tl.arange(0, BLOCK)).to(tl.int32)
    tl.store(y + i, tl.load(y + i) + 1)


@tilewright.jit
def scalar_twice(x, y, n, BLOCK: tl.constexpr):
    tl.store(y, 1.0)
    tl.store(y, 2.0)


@tilewright.jit
def stored_in_a_branch(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if n > 5:
        tl.store(x + i, 1.0)
    tl.store(y + i, tl.load(x + (BLOCK - 1 - i)))


@tilewright.jit
def counted(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(x + i, 1.0)
    tl.atomic_add(x + (BLOCK - 1 - i), 1.0)


@tilewright.jit
def read_after_atomics(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(x + i, 1.0)
    tl.store(y + i, tl.load(x + (BLOCK - 1 - i)))


@tilewright.jit
def chosen_pointer(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(tl.where(i < n, x + i, y + i), 1.0)
    tl.store(y + (BLOCK - 1 - i), 2.0)


@tilewright.jit
def from_one_to_the_other(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@tilewright.jit
def a_small_tile_from_one_to_the_other(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK // 4)
    tl.store(y + i, tl.load(x + i) * 2)


@tilewright.jit
def a_number_from_one_to_the_other(x, y, n, BLOCK: tl.constexpr):
    tl.store(y + n, tl.load(x + n) * 2)


@tilewright.jit
def a_small_tile_to_another_place(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK // 4)
    tl.store(y + BLOCK + i, tl.load(x + i) * 2)


@tilewright.jit
def a_second_pass(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), 0.0, tl.float32)
    for k in range(0, n, BLOCK):
        largest = tl.maximum(largest, tl.load(x + k + i))
    top = tl.max(largest)
    for k in range(0, n, BLOCK):
        tl.store(y + k + i, tl.load(x + k + i) / top)


BARRIERS: list[tuple[JITFunction, int]] = [
    (in_place, 0),
    (swapped, 0),
    (reversed_in_place, 1),
    (read_back_elsewhere, 1),
    (read_back_after_barrier, 1),
    (one_element, 1),
    (sliding, 1),
    (copied_in_a_loop, 0),
    (changed_in_a_loop, 0),
    (changed_through_a_pointer, 0),
    (changed_in_place_again, 0),
    (overlapping_windows, 1),
    (windows_backwards, 0),
    (every_second_window, 0),
    (columns_of_known_rows, 0),
    (columns_into_the_next_row, 1),
    (masked_rows, 0),
    (interleaved, 0),
    (one_place_by_several, 1),
    (chosen_places, 1),
    (scalar_twice, 0),
    (stored_in_a_branch, 1),
    (counted, 0),
    (read_after_atomics, 1),
    (chosen_pointer, 1),
    (from_one_to_the_other, 0),
    (a_small_tile_from_one_to_the_other, 0),
    (a_number_from_one_to_the_other, 1),
    (a_small_tile_to_another_place, 0),
    (a_second_pass, 1),  # of the reduction, between its warps
]


def ttgir(kernel: JITFunction) -> str:
    types = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    return ttgir_of(ASTSource(kernel, types, {"BLOCK": 256}))


def ttgir_of(source: ASTSource) -> str:
    return str(compile(source, target=GPUTarget("cuda", 90, 32)).asm["ttgir"])


@pytest.mark.parametrize(("kernel", "count"), BARRIERS, ids=lambda v: getattr(v, "__name__", v))
def test_barriers(kernel: JITFunction, count: int) -> None:
    text = ttgir(kernel)
    assert text.count("mem.barrier") == count
    assert "cf.if" not in text or kernel is stored_in_a_branch


# --- where the launch decides ---------------------------------------------------------------------


@tilewright.jit
def rows(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in range(8):
        tl.store(y + row * n + i, 1.0)


@tilewright.jit
def rows_in_place(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in range(8):
        tl.store(y + row * n + i, tl.load(y + row * n + i) * 2)


@tilewright.jit
def tiles_of_rows(x, y, n, BLOCK: tl.constexpr):
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    for row in range(0, 64, 16):
        tl.store(y + (row + i) * n + j, 1.0)


@tilewright.jit
def tiles_of_columns(x, y, n, BLOCK: tl.constexpr):
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    for column in range(0, BLOCK, 16):
        tl.store(y + i * n + column + j, 1.0)


@tilewright.jit
def as_many_columns_as_asked_for(x, y, n, BLOCK: tl.constexpr):
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    for column in range(0, n, 16):
        tl.store(y + i * BLOCK + column + j, 1.0)


AT_A_LAUNCH = [rows, rows_in_place, tiles_of_rows, tiles_of_columns, as_many_columns_as_asked_for]


@pytest.mark.parametrize("kernel", AT_A_LAUNCH, ids=lambda kernel: kernel.__name__)
def test_loops_have_a_version_for_launches_that_need_no_barrier(kernel: JITFunction) -> None:
    """The condition is before both; only the other version has barriers, each under it."""
    text = ttgir(kernel)
    assert text.count("mem.barrier") == 1 and text.count("cf.for") == text.count("cf.if") == 2
    before, fast, slow = text.split("cf.for")
    assert "arith.compare" in before and "arith.compare" not in fast + slow
    assert "mem.barrier" not in fast and "mem.store" in fast
    assert slow.index("mem.barrier") < slow.index("mem.store")


def ttgir_of_running_sum() -> str:
    return ttgir_of(source_with(running_sum, "*fp32 *fp32 i32", {"B": 16}))


def test_different_parameters_need_no_barrier_in_a_loop() -> None:
    text = ttgir_of_running_sum()
    before, fast, slow = text.split("cf.for")
    assert '{predicate = "ne"}' in before
    assert "mem.barrier" not in fast and "mem.barrier" in slow


def test_elements_that_are_only_stored_again_are_loaded_by_their_owners() -> None:
    text = ttgir(a_small_tile_from_one_to_the_other)
    assert "mem.barrier" not in text and "by_owner = true" in text
    assert "by_owner" not in ttgir_of_running_sum()
