"""mbarriers: phases, arrivals and the bytes of copies; and what is wrong with them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.llvm_program import Program, launch
from tests.emulator.memory import Array, EmulationError
from tests.emulator.test_barriers import SEEDS, get, put, store, sync

P3 = "ptr addrspace(3)"
FULL, EMPTY, DATA = 0, 8, 1024
"""Addresses in shared memory."""

LOOP = """{
.reg .pred done;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;
@done bra DONE;
bra WAIT;
DONE:
}"""


def pointer(p: Program, address: int | str) -> str:
    at = p.let(f"add i32 {address}, 0")
    return f"{P3} {p.let(f'inttoptr i32 {at} to {P3}')}"


def init(p: Program, address: int, count: int) -> None:
    p.call("mbarrier.init.shared", pointer(p, address), f"i32 {count}")


def begin(counts: dict[int, int], fault: str = "") -> Program:
    """Thread 0 makes mbarriers; %tid, %shared and %first."""
    p = Program()
    p.do("%tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()")
    p.do("%shared = shl i32 %tid, 2")
    p.do("%first = icmp eq i32 %tid, 0")
    with p.only("%first"):
        for address, count in counts.items():
            init(p, address, count)
        if fault != "no fence after init":
            p.call("fence.mbarrier_init.release.cluster")
    if fault != "no barrier after init":
        p.asm("bar.sync 0;", "~{memory}")
    return p


def wait(p: Program, address: int | str, parity: int | str) -> None:
    p.asm(LOOP, "r,r,~{memory}", f"i32 {address}", f"i32 {parity}")


def wait_by_intrinsic(p: Program, address: int, parity: int) -> None:
    p.count += 1
    head, end = f"wait{p.count}", f"waited{p.count}"
    where = pointer(p, address)
    p.label(head)
    name = "mbarrier.try.wait.parity.scope.cta.space.cta"
    done = p.call(name, where, f"i32 {parity}", type_="i1")
    p.do(f"br i1 {done}, label %{end}, label %{head}\n{end}:")


def arrive(p: Program, address: int, predicate: str = "true") -> None:
    p.asm("@$1 mbarrier.arrive.shared::cta.b64 _, [$0];", "r,b,~{memory}",
          f"i32 {address}", f"i1 {predicate}")  # fmt: skip


def run(p: Program, seed: int | None, warps: int = 4) -> Array:
    out = np.full(32 * warps, -1, np.int32)
    launch(p.text("ptr %out"), 4096, out, warps=warps, seed=seed)
    return out


def assert_refused(p: Program, match: str) -> None:
    for seed in SEEDS:
        with pytest.raises(EmulationError, match=match):
            run(p, seed)


def ring(fault: str = "", rounds: int = 5, slots: int = 2) -> Program:
    """Two warps put numbers in a ring of slots, the other two add them up."""
    counts = {16 * s + which: 64 for s in range(slots) for which in (FULL, EMPTY)}
    if fault == "a count too many":
        counts[FULL] += 1
    p = begin(counts, fault)
    producer = p.let("icmp ult i32 %tid, 64")
    slot = p.let("and i32 %shared, 255")
    p.do(f"br i1 {producer}, label %produce, label %consume\nproduce:")
    for i in range(rounds):
        s, phase = i % slots, i // slots % 2
        if fault != "a slot reused too early" or i != slots:
            wait(p, 16 * s + EMPTY, phase if fault == "producer in the wrong phase" else 1 - phase)
        put(p, p.let(f"add i32 {slot}, {DATA + 256 * s}"), p.let(f"add i32 %tid, {100 * i}"))
        if fault != "no arrival":
            arrive(p, 16 * s + FULL)
    p.do("br label %end\nconsume:")
    total = "0"
    for i in range(rounds):
        s, phase = i % slots, i // slots % 2
        wrong = fault == "consumer in the wrong phase" and i >= slots
        wait_by_intrinsic(p, 16 * s + FULL, 1 - phase if wrong else phase)
        value = get(p, p.let(f"add i32 {slot}, {DATA + 256 * s}"))
        total = p.let(f"add i32 {total}, {value}")
        arrive(p, 16 * s + EMPTY)
    store(p, total)
    p.label("end")
    return p


@pytest.mark.parametrize("seed", SEEDS)
def test_a_ring_of_slots(seed: int | None) -> None:
    found = run(ring(), seed)
    np.testing.assert_array_equal(found[64:], 5 * np.arange(64) + 1000)


@pytest.mark.parametrize(
    ("fault", "match"),
    [
        ("no barrier after init", "without a barrier after it was made|there is no mbarrier"),
        ("a count too many", "parity 0 of the mbarrier at 0x0, in phase 0: 1 of 65 arrivals lack"),
        ("a slot reused too early", "without a barrier between"),
        ("producer in the wrong phase", "parity 0 of the mbarrier at 0x8"),
        ("no arrival", "parity 0 of the mbarrier at 0x0, in phase 0: 64 of 64 arrivals lack"),
        ("consumer in the wrong phase", "without a barrier between|all warps wait"),
    ],
)
def test_faults_of_a_ring(fault: str, match: str) -> None:
    assert_refused(ring(fault), match)


def test_more_arrivals_than_a_phase_counts() -> None:
    p = begin({FULL: 1})
    p.asm("mbarrier.arrive.shared::cta.b64 _, [$0], 2;", "r,~{memory}", "i32 0")
    assert_refused(p, "more arrivals")


def test_bytes_that_nothing_brings() -> None:
    p = begin({FULL: 1})
    with p.only("%first"):
        p.asm("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,~{memory}",
              "i32 0", "i32 512")  # fmt: skip
    wait(p, FULL, 0)
    assert_refused(p, "0 of 1 arrivals lack, 512 bytes expected, 0 issued")


def test_data_where_an_mbarrier_is() -> None:
    p = begin({FULL: 1})
    put(p, "%shared", "%tid")
    assert_refused(p, "where an mbarrier is")


def test_an_mbarrier_that_is_made_twice() -> None:
    p = begin({FULL: 1})
    with p.only("%first"):
        init(p, FULL, 1)
    assert_refused(p, "made twice")


def test_an_mbarrier_that_is_given_up() -> None:
    p = begin({FULL: 1})
    with p.only("%first"):
        p.call("mbarrier.inval.shared", pointer(p, FULL))
    sync(p, 0, 128)
    put(p, "%shared", "%tid")
    store(p, get(p, "%shared"))
    np.testing.assert_array_equal(run(p, None), np.arange(128))


def test_a_wait_orders_only_what_came_before_the_arrival() -> None:
    """What is written after the arrival is still a race."""
    p = begin({FULL: 32})
    one = p.let("icmp ult i32 %tid, 32")
    with p.only(one):
        arrive(p, FULL)
        put(p, p.let(f"add i32 %shared, {DATA}"), "%tid")
    with p.only(p.let(f"xor i1 {one}, true")):
        wait(p, FULL, 0)
        store(p, get(p, p.let(f"add i32 {p.let('and i32 %shared, 127')}, {DATA}")))
    assert_refused(p, "without a barrier between|nobody wrote")
