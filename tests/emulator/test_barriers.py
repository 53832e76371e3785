"""Named barriers, roles of warps, elections and register counts; and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.emulator.llvm_program import Program, launch
from tests.emulator.memory import Array, EmulationError

SEEDS = [None, 0, 1, 2]
"""In step, and in random orders."""


def start() -> Program:
    p = Program()
    p.do("%tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()")
    p.do("%warp = lshr i32 %tid, 5")
    p.do("%shared = shl i32 %tid, 2")
    return p


def sync(p: Program, ident: int | str, count: int) -> None:
    p.asm("bar.sync $0, $1;", "r,r,~{memory}", f"i32 {ident}", f"i32 {count}")


def arrive(p: Program, ident: int, count: int) -> None:
    p.call("barrier.cta.arrive.aligned.count", f"i32 {ident}", f"i32 {count}")


def put(p: Program, address: str, value: str) -> None:
    p.asm("st.shared.b32 [$0], $1;", "r,r,~{memory}", f"i32 {address}", f"i32 {value}")


def get(p: Program, address: str) -> str:
    return p.asm("ld.shared.b32 $0, [$1];", "=r,r,~{memory}", f"i32 {address}", type_="i32")


def store(p: Program, value: str) -> None:
    wide = p.let("zext i32 %tid to i64")
    p.do(f"store i32 {value}, ptr {p.let(f'getelementptr i32, ptr %out, i64 {wide}')}")


def run(p: Program, seed: int | None, warps: int = 4, attributes: str = "") -> Array:
    out = np.full(32 * warps, -1, np.int32)
    launch(p.text("ptr %out", attributes), 4096, out, warps=warps, seed=seed)
    return out


def assert_refused(p: Program, match: str, warps: int = 4, attributes: str = "") -> None:
    for seed in SEEDS:
        with pytest.raises(EmulationError, match=match):
            run(p, seed, warps, attributes)


def handed_over(rounds: int = 3, fault: str = "") -> Program:
    """Warps 0 and 1 put numbers, 2 and 3 take them, through one slot of 64 numbers: barrier 1 says
    that it is full, barrier 2 that it is empty."""
    p = start()
    producer = p.let("icmp ult i32 %tid, 64")
    p.do(f"br i1 {producer}, label %produce, label %consume\nproduce:")
    for i in range(rounds):
        if i and fault != "no wait for empty":
            sync(p, 2, 128)
        put(p, "%shared", p.let(f"add i32 %tid, {100 * i}"))
        if fault != "no word of full":
            arrive(p, 1, 96 if fault == "another count" else 128)
    p.do("br label %end\nconsume:")
    address = p.let("sub i32 %shared, 256")
    total = "0"
    for i in range(rounds):
        if fault != "no wait for full":
            sync(p, 1, 128)
        total = p.let(f"add i32 {total}, {get(p, address)}")
        if i + 1 < rounds and fault != "no word of empty":
            arrive(p, 2, 128)
    store(p, total)
    p.label("end")
    return p


@pytest.mark.parametrize("seed", SEEDS)
def test_roles_hand_over_by_named_barriers(seed: int | None) -> None:
    found = run(handed_over(), seed)
    np.testing.assert_array_equal(found[64:], 3 * np.arange(64) + 300)


@pytest.mark.parametrize(
    ("fault", "match"),
    [
        ("no wait for empty", "without a barrier|twice before it opens"),
        ("no word of full", "barrier 1 that not all threads reach .64 of 128"),
        ("another count", "different counts|more threads|without a barrier|twice"),
        ("no wait for full", "without a barrier|nobody wrote"),
        ("no word of empty", "barrier 2 that not all threads reach .64 of 128"),
    ],
)
def test_faults_of_a_hand_over(fault: str, match: str) -> None:
    assert_refused(handed_over(fault=fault), match)


def test_a_deadlock_tells_who_waits_for_what() -> None:
    p = start()
    first = p.let("icmp ult i32 %tid, 64")
    ident = p.let(f"select i1 {first}, i32 3, i32 4")
    sync(p, ident, 128)
    with pytest.raises(EmulationError) as caught:
        run(p, None)
    lines = str(caught.value).splitlines()
    assert "warp 0 waits for barrier 3 that not all threads reach (64 of 128)" in lines[1]
    assert "warp 3 waits for barrier 4" in lines[4]


@pytest.mark.parametrize(("ident", "count"), [(16, 128), (1, 100), (1, 0), (1, 256)])
def test_barriers_that_do_not_exist(ident: int, count: int) -> None:
    p = start()
    sync(p, ident, count)
    assert_refused(p, "barrier")


def test_part_of_a_warp_at_a_barrier() -> None:
    p = start()
    with p.only(p.let("icmp ult i32 %tid, 40")):
        sync(p, 1, 64)
    assert_refused(p, "not all threads of a warp")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["popc", "or", "and"])
def test_votes_at_a_barrier_of_some_warps(kind: str, seed: int | None) -> None:
    p = start()
    yes = p.let("icmp ult i32 %tid, 70")
    with p.only(p.let("icmp uge i32 %tid, 64")):
        type_ = "i32" if kind == "popc" else "i1"
        name = f"barrier.cta.red.{kind}.aligned.count"
        found = p.call(name, "i32 1", "i32 64", f"i1 {yes}", type_=type_)
        store(p, found if kind == "popc" else p.let(f"zext i1 {found} to i32"))
    expected = {"popc": 6, "or": 1, "and": 0}[kind]
    assert set(run(p, seed)[64:].tolist()) == {expected}


@pytest.mark.parametrize("seed", SEEDS)
def test_one_lane_of_each_warp_is_elected(seed: int | None) -> None:
    p = start()
    pair = p.call("elect.sync", "i32 -1", type_="{i32, i1}")
    store(p, "0")
    with p.only(p.let(f"extractvalue {{i32, i1}} {pair}, 1")):
        store(p, "1")
    found = run(p, seed).reshape(4, 32)
    np.testing.assert_array_equal(found.sum(1), 1)
    assert (found == found[:1]).all()


def test_lanes_by_shuffles() -> None:
    p = start()
    store(p, p.call("shfl.sync.idx.i32", "i32 -1", "i32 %tid", "i32 5", "i32 31", type_="i32"))
    np.testing.assert_array_equal(run(p, None), np.repeat([5, 37, 69, 101], 32))


@pytest.mark.parametrize(("mode", "limits", "expected"), [
    ("up", 24 << 8, [0, 0, 1, 2, 3, 4, 5, 6, 8, 8]), ("up", 0, [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]),
    ("down", 24 << 8 | 31, [1, 2, 3, 4, 5, 6, 7, 7, 9, 10]),
])  # fmt: skip
def test_shifts_stop_at_the_ends_of_segments(mode: str, limits: int, expected: list[int]) -> None:
    p = start()
    arguments = ("i32 -1", "i32 %tid", "i32 1", f"i32 {limits}")
    store(p, p.let(f"extractvalue {{i32, i1}} {_shifted(p, mode, arguments)}, 0"))
    np.testing.assert_array_equal(run(p, None)[:10], expected)


@pytest.mark.parametrize(
    ("mode", "limits", "lane"), [("up", 24 << 8, 0), ("down", 24 << 8 | 31, 7)]
)
def test_a_shift_says_where_a_segment_has_no_lane(mode: str, limits: int, lane: int) -> None:
    p = start()
    arguments = ("i32 -1", "i32 %tid", "i32 1", f"i32 {limits}")
    inside = p.let(f"extractvalue {{i32, i1}} {_shifted(p, mode, arguments)}, 1")
    store(p, p.let(f"zext i1 {inside} to i32"))
    found = run(p, None)[:32]
    assert set(np.flatnonzero(found == 0) % 8) == {lane}


def _shifted(p: Program, mode: str, arguments: tuple[str, ...]) -> str:
    return p.call(f"shfl.sync.{mode}.i32p", *arguments, type_="{i32, i1}")


# ---- registers ----------------------------------------------------------------------------------

KNOWN = '"nvvm.reqntid"="256" "nvvm.minctasm"="1"'  # 248 registers at the start


def changed(first: tuple[str, int], second: tuple[str, int], whole: bool = True) -> Program:
    """One warpgroup changes its registers, the other too."""
    p = start()
    edge = 128 if whole else 96
    one = p.let(f"icmp ult i32 %tid, {edge}")
    p.do(f"br i1 {one}, label %one, label %two\none:")
    p.call(f"setmaxnreg.{first[0]}.sync.aligned.u32", f"i32 {first[1]}")
    p.do("br label %end\ntwo:")
    p.call(f"setmaxnreg.{second[0]}.sync.aligned.u32", f"i32 {second[1]}")
    p.label("end")
    return p


@pytest.mark.parametrize("seed", SEEDS)
def test_registers_go_from_one_warpgroup_to_another(seed: int | None) -> None:
    p = changed(("dec", 24), ("inc", 256))
    store(p, "1")
    assert run(p, seed, 8, KNOWN).all()


@pytest.mark.parametrize(
    ("program", "match"),
    [
        (lambda: changed(("dec", 24), ("inc", 250)), "cannot set 250"),
        (lambda: changed(("dec", 16), ("inc", 256)), "cannot set 16"),
        (lambda: changed(("inc", 24), ("inc", 256)), "wrong direction"),
        (lambda: changed(("dec", 248), ("inc", 256)), "others must give back"),
        (lambda: changed(("dec", 24), ("dec", 40), whole=False), "not all warps"),
    ],
)
def test_faults_of_register_counts(program: Callable[[], Program], match: str) -> None:
    assert_refused(program(), match, 8, KNOWN)


def test_the_text_says_how_many_threads_there_are() -> None:
    p = start()
    store(p, p.let("call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()"))
    out = np.zeros(256, np.int32)
    launch(p.text("ptr %out", KNOWN), 0, out, warps=4)
    np.testing.assert_array_equal(out, 256)


def test_registers_at_the_start_that_ptxas_cannot_know() -> None:
    assert_refused(changed(("dec", 24), ("inc", 256)), "not known", 8, '"nvvm.reqntid"="256"')
