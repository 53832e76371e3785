"""Threads among each other, as PTX: atomics, barriers, shared memory, prints and assertions."""

import re
from itertools import product

import pytest

import tilewright.language as tl
from tests.unit.backends.nvidia.compiled import compiled, count
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import jit

pytestmark = needs_ptxas

ORDERS = ("relaxed", "acquire", "release", "acq_rel")
SCOPES = ("cta", "gpu", "sys")


@jit
def counted(out, SEM: tl.constexpr, SCOPE: tl.constexpr):
    tl.atomic_add(out + tl.arange(0, 128), 1, sem=SEM, scope=SCOPE)


@jit
def added(out, x, before, n, SEM: tl.constexpr, KEPT: tl.constexpr):
    i = tl.arange(0, 1024)
    old = tl.atomic_add(out + i, tl.load(x + i, mask=i < n), mask=i < n, sem=SEM)
    if KEPT:
        tl.store(before + i, old, mask=i < n)


@pytest.mark.parametrize(
    ("dtype", "capability", "instruction", "instructions"),
    [
        ("fp32", 90, "add.v4.f32", 2), ("fp16", 90, "add.noftz.v4.f16x2", 1),
        ("bf16", 90, "add.noftz.v4.bf16x2", 1), ("fp16", 80, "add.noftz.f16x2", 4),
        ("fp32", 80, "add.f32", 8), ("i32", 90, "add.s32", 8),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kept", [False, True])
def test_consecutive_elements_are_added_at_once(
    dtype: str, capability: int, instruction: str, instructions: int, kept: bool
) -> None:
    types = f"*{dtype}/16 *{dtype}/16 *{dtype}/16 i32/16"
    kernel = compiled(added, types, capability, SEM="relaxed", KEPT=kept)
    is_vector = instructions < 8
    word = "red" if is_vector and not kept else "atom"
    assert count(kernel, f"{word}.relaxed.gpu.global.{instruction}") == instructions
    assert count(kernel, "fence.acq_rel.gpu") == 0


@pytest.mark.parametrize(
    ("sem", "kept", "fences"),
    [("release", False, 1), ("acquire", False, 0), ("acq_rel", False, 1), ("release", True, 1),
     ("acquire", True, 1), ("acq_rel", True, 2), ("relaxed", True, 0)],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["fp32", "i32"])
def test_one_fence_orders_all_additions_of_a_thread(
    dtype: str, sem: str, kept: bool, fences: int
) -> None:
    types = f"*{dtype}/16 *{dtype}/16 *{dtype}/16 i32/16"
    kernel = compiled(added, types, 90, SEM=sem, KEPT=kept)
    assert count(kernel, "fence.acq_rel.gpu") == fences
    word = "red" if dtype == "fp32" and not kept else "atom"
    name, times = ("add.v4.f32", 2) if dtype == "fp32" else ("add.s32", 8)
    assert count(kernel, f"{word}.relaxed.gpu.global.{name}") == times


@jit
def swapped(out, SEM: tl.constexpr, SCOPE: tl.constexpr):
    tl.atomic_cas(out, 0, 1, sem=SEM, scope=SCOPE)


@pytest.mark.parametrize("sem, scope", list(product(ORDERS, SCOPES)))
def test_order_and_scope_of_atomics(sem: str, scope: str) -> None:
    added = compiled(counted, "*i32/16", SEM=sem, SCOPE=scope)
    assert count(added, f"atom.{sem}.{scope}.global.add.s32") == 1
    compared = compiled(swapped, "*i32/16", SEM=sem, SCOPE=scope)
    assert count(compared, f"atom.{sem}.{scope}.global.cas.b32") == 1


@jit
def accessed(x, out, SEM: tl.constexpr, OUT: tl.constexpr, SCOPE: tl.constexpr):
    i = tl.arange(0, 128)
    tl.atomic_store(out + i, tl.atomic_load(x + i, sem=SEM, scope=SCOPE), sem=OUT, scope=SCOPE)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("sem, out", [("acquire", "release"), ("relaxed", "relaxed")])
def test_order_and_scope_of_atomic_loads_and_stores(sem: str, out: str, scope: str) -> None:
    kernel = compiled(accessed, "*fp32/16 *fp32/16", SEM=sem, OUT=out, SCOPE=scope)
    assert count(kernel, f"ld.{sem}.{scope}.global.b32") == 1
    assert count(kernel, f"st.{out}.{scope}.global.b32") == 1


@jit
def atomic(out, value, KIND: tl.constexpr):
    if KIND == "add":
        tl.atomic_add(out, value)
    elif KIND == "max":
        tl.atomic_max(out, value)
    elif KIND == "xchg":
        tl.atomic_xchg(out, value)
    elif KIND == "and":
        tl.atomic_and(out, value)
    else:
        tl.atomic_min(out, value)


@pytest.mark.parametrize(
    "kind, dtype, capability, instruction",
    [
        ("add", "fp16", 80, "add.noftz.f16"),
        ("add", "bf16", 90, "add.noftz.bf16"),
        ("add", "bf16", 80, "cas.b16"),
        ("add", "fp32", 80, "add.f32"),
        ("add", "fp64", 80, "add.f64"),
        ("add", "u64", 80, "add.u64"),
        ("max", "i32", 80, "max.s32"),
        ("max", "u32", 80, "max.u32"),
        ("max", "fp32", 80, "max.s32"),
        ("min", "fp32", 80, "max.u32"),
        ("min", "i64", 80, "min.s64"),
        ("xchg", "i64", 80, "exch.b64"),
        ("and", "i32", 80, "and.b32"),
    ],
)
def test_kinds_of_atomics(kind: str, dtype: str, capability: int, instruction: str) -> None:
    kernel = compiled(atomic, f"*{dtype}/16 {dtype}", capability, KIND=kind)
    assert count(kernel, f"atom.acq_rel.gpu.global.{instruction}") == 1


# --- barriers -------------------------------------------------------------------------------------


@jit
def barriers(out, HOW_MANY: tl.constexpr):
    i = tl.arange(0, 128)
    for _ in tl.static_range(HOW_MANY):
        tl.store(out + i, i)
        tl.debug_barrier()


@pytest.mark.parametrize("number", [0, 1, 3])
def test_debug_barrier(number: int) -> None:
    """Element-wise code has no barriers of its own."""
    assert count(compiled(barriers, "*i32/16", HOW_MANY=number), "bar.sync") == number


def test_one_warp_waits_without_a_barrier_of_the_block() -> None:
    kernel = compiled(barriers, "*i32/16", HOW_MANY=2, num_warps=1)
    assert (count(kernel, "bar.sync"), count(kernel, "bar.warp.sync")) == (0, 2)


@jit
def sums(x, out, HOW_MANY: tl.constexpr):
    i = tl.arange(0, 1024)
    value = tl.load(x + i)
    for _ in tl.static_range(HOW_MANY):
        value = value - tl.sum(value, axis=0)
    tl.store(out + i, value)


@pytest.mark.parametrize("number", [1, 2, 5])
def test_reductions_take_turns_and_need_one_barrier_each(number: int) -> None:
    kernel = compiled(sums, "*fp32/16 *fp32/16", HOW_MANY=number)
    assert count(kernel, "bar.sync") == number


@jit
def sums_in_a_loop(x, out, n, HOW_MANY: tl.constexpr):
    i = tl.arange(0, 1024)
    value = tl.load(x + i)
    for _ in range(n):
        for _ in tl.static_range(HOW_MANY):
            value = value - tl.sum(value, axis=0)
    tl.store(out + i, value)


@pytest.mark.parametrize("number, barriers", [(1, 2), (2, 2), (3, 3), (6, 6)])
def test_reductions_of_a_loop_take_turns_too(number: int, barriers: int) -> None:
    """One alone must wait until all have read what it wrote an iteration before."""
    kernel = compiled(sums_in_a_loop, "*fp32/16 *fp32/16 i32", HOW_MANY=number)
    assert count(kernel, "bar.sync") == barriers


def test_one_warp_needs_neither_barriers_nor_memory_for_a_sum() -> None:
    kernel = compiled(sums, "*fp32/16 *fp32/16", HOW_MANY=3, num_warps=1)
    assert (count(kernel, "bar.sync"), kernel.metadata.shared) == (0, 0)
    assert count(kernel, "shfl.sync") == 15


@jit
def running_sums(x, out, REVERSE: tl.constexpr):
    i = tl.arange(0, 64)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0, reverse=REVERSE))


@pytest.mark.parametrize(("reverse", "mode"), [(False, "up"), (True, "down")])
def test_scans_shift_among_lanes_and_take_the_predicate(reverse: bool, mode: str) -> None:
    kernel = compiled(running_sums, "*fp32/16 *fp32/16", REVERSE=reverse, num_warps=1)
    shifts = re.findall(r"shfl\.sync\.(\w+)\.b32\s+%r\d+\|%p", kernel.asm["ptx"])
    assert set(shifts) == {mode} and count(kernel, "shfl.sync") == len(shifts) == 6


@jit
def turned(x, out, HOW_MANY: tl.constexpr):
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    for k in tl.static_range(HOW_MANY):
        tile = tl.load(x + 4096 * k + i * 64 + j)
        tl.store(out + 4096 * k + i * 64 + j, tl.trans(tile))


def test_shared_memory_is_used_again_by_what_comes_later() -> None:
    """By liveness: three transpositions one after another need the memory of one."""
    one, three = (
        compiled(turned, "*fp32/16 *fp32/16", HOW_MANY=number).metadata.shared for number in (1, 3)
    )
    assert one == three == 64 * 64 * 4


def test_memory_that_is_used_again_is_waited_for() -> None:
    """Written before it is read: a barrier. Read before it is written again: another one."""
    counts = [count(compiled(turned, "*fp32/16 *fp32/16", HOW_MANY=n), "bar.sync") for n in (1, 3)]
    assert counts == [1, 5]


# --- prints and assertions ------------------------------------------------------------------------


@jit
def printing(x):
    tl.device_print("x =", tl.load(x + tl.arange(0, 128)))


def test_a_print_is_a_record_in_memory() -> None:
    kernel = compiled(printing, "*fp32/16")
    assert len(kernel.metadata.prints) == 1
    assert count(kernel, "atom.") == 1


@jit
def asserting(x):
    tl.device_assert(tl.load(x + tl.arange(0, 128)) > 0, "must be positive")


def test_an_assertion_is_checked_by_each_warp() -> None:
    kernel = compiled(asserting, "*fp32/16", debug=True)
    assert ["must be positive" in text for text in kernel.metadata.asserts] == [True]
    assert count(kernel, "vote.sync.any.pred") == 1
    assert count(kernel, "bar.red") == 0
    assert count(compiled(asserting, "*fp32/16"), "vote") == 0
    ptx = kernel.asm["ptx"]
    assert ptx.index("ret;") < ptx.index("trap;"), "what is hardly ever run stands in the way"


@jit
def asserting_and_adding(x):
    value = tl.load(x + tl.arange(0, 128))
    tl.device_assert(value > 0, "must be positive")
    tl.store(x, tl.sum(value))


def test_an_assertion_is_checked_by_all_threads_together_where_warps_meet() -> None:
    kernel = compiled(asserting_and_adding, "*fp32/16", debug=True)
    assert count(kernel, "bar.red.or.pred") == 1
    assert count(kernel, "vote.sync.any.pred") == 0
