"""A producer warp, a ring of slots and a warpgroup that multiplies; and faults that are planted."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.llvm_program import Program, launch
from tests.emulator.memory import Array, EmulationError
from tests.emulator.tensor_maps import TensorMap
from tests.emulator.test_barriers import SEEDS, sync
from tests.emulator.test_bulk_copies import FENCE, MAP, aligned
from tests.emulator.test_mbarriers import EMPTY, FULL, arrive, begin, pointer, wait

SLOTS, BLOCKS = 2, 5
TILE = 64 * 128
"""Bytes of 64 rows of 64 numbers of 16 bits."""
RING, OUT = 1024, 1024 + SLOTS * 2 * TILE
SIZE = OUT + TILE
ATTRIBUTES = '"nvvm.reqntid"="256" "nvvm.minctasm"="1"'

FAULTS = {
    "a slot reused too early": "overwrites what others use|overwritten that|another copy",
    "the producer starts in the wrong phase": "all warps wait",
    "the consumer is a phase ahead": "copy may be writing|nobody wrote|all warps wait|without a",
    "no wait for data": "copy may be writing|nobody wrote|without a barrier",
    "released while it is read": "overwritten that|overwrites what others use|may be writing",
    "not released": "all warps wait",
    "counted by all threads": "all warps wait",
    "too few bytes": "bytes expected|may be writing",
    "wrong stride": "groups of 8 rows are 512 bytes apart",
    "no wgmma fence": "no wgmma.fence",
    "no last wait": "is read while",
    "no proxy fence": "without a proxy fence",
    "no barrier before the store": "without a barrier between|nobody wrote",
    "no barrier after init": "without a barrier|there is no mbarrier",
    "no fence after init": "no fence.mbarrier_init",
    "no wait at the end": "the program ends",
    "registers not given back": "others must give back",
}


def slot(block: int) -> tuple[int, int, int]:
    """Its mbarriers, its data, and the phase."""
    number = block % SLOTS
    return 16 * number, RING + number * 2 * TILE, block // SLOTS % 2


def tensor_load(p: Program, target: int, barrier: int, map_: str, x: int, y: int) -> None:
    operands = [pointer(p, target), pointer(p, barrier), f"ptr {map_}", f"i32 {x}", f"i32 {y}"]
    p.call("cp.async.bulk.tensor.g2s.cta.tile.2d", *operands, "i64 0", "i1 false")


def produce(p: Program, fault: str) -> None:
    """One thread fills the ring."""
    if fault != "registers not given back":
        p.call("setmaxnreg.dec.sync.aligned.u32", "i32 40")
    with p.only("%chosen"):
        for block in range(BLOCKS):
            barriers, data, phase = slot(block)
            if fault != "a slot reused too early":
                wrong = fault == "the producer starts in the wrong phase"
                wait(p, barriers + EMPTY, phase if wrong else 1 - phase)
            size = TILE if fault == "too few bytes" else 2 * TILE
            p.call("mbarrier.arrive.expect.tx.scope.cta.space.cta", pointer(p, barriers + FULL),
                   f"i32 {size}", type_="i64")  # fmt: skip
            tensor_load(p, data, barriers + FULL, "%a", 64 * block, 0)
            tensor_load(p, data + TILE, barriers + FULL, "%b", 64 * block, 0)


def block_of_wgmma(keep: int, fault: str) -> str:
    """$64 is the start of A >> 4; B follows."""
    sums = ", ".join(f"${i}" for i in range(32))
    high = (1 << 30) + ((512 if fault == "wrong stride" else 1024) >> 4)
    lines = ["{", ".reg .b64 da, db;", ".reg .b32 ta, tb, h;", f"mov.b32 h, {high};"]
    lines += ["wgmma.fence.sync.aligned;"] if fault != "no wgmma fence" else []
    for step in range(4):
        lines += [
            f"add.u32 ta, $64, {2 * step};", "mov.b64 da, {ta, h};",
            f"add.u32 tb, $64, {2 * step + TILE // 16};", "mov.b64 db, {tb, h};",
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
            f"{{{sums}}}, da, db, {int(bool(keep or step))}, 1, 1, 0, 0;",
        ]  # fmt: skip
    return "\n".join(
        [*lines, "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 1;", "}"]
    )


def consume(p: Program, fault: str) -> list[str]:
    """The product, 32 sums a thread. A slot is released when the next block is on its way."""
    p.call("setmaxnreg.inc.sync.aligned.u32", "i32 256")
    sums = ["0.0"] * 32
    for block in range(BLOCKS):
        barriers, data, phase = slot(block)
        if fault != "no wait for data":
            wait(
                p, barriers + FULL, 1 - phase if fault == "the consumer is a phase ahead" else phase
            )
        sums = p.tied(block_of_wgmma(block, fault), sums, "float", ",r", f"i32 {data >> 4}")
        before = block if fault == "released while it is read" else block - 1
        if before >= 0 and fault != "not released":
            arrive(p, slot(before)[0] + EMPTY, "%leader")
    if fault != "no last wait":
        sums = p.tied("wgmma.wait_group.sync.aligned 0;", sums, "float", "")
    return sums


def store_tile(p: Program, sums: list[str], fault: str) -> None:
    """As 16 bits to a swizzled tile, from there to the array."""
    row = p.let(f"add i32 {p.let('lshr i32 %lane, 2')}, {p.let('shl i32 %quarter, 4')}")
    low = p.let(f"and i32 {row}, 7")
    for number in range(16):
        pair = sums[2 * number : 2 * number + 2]
        packed = p.call("ff2f16x2.rn", f"float {pair[1]}", f"float {pair[0]}", type_="<2 x half>")
        bits = p.let(f"bitcast <2 x half> {packed} to i32")
        chunk = p.let(f"shl i32 {p.let(f'xor i32 {low}, {number // 2}')}, 4")
        line = p.let(f"shl i32 {p.let(f'add i32 {row}, {number % 2 * 8}')}, 7")
        within = p.let(f"shl i32 {p.let('and i32 %lane, 3')}, 2")
        at = p.let(f"add i32 {line}, {p.let(f'add i32 {chunk}, {within}')}")
        p.do(f"store i32 {bits}, {pointer(p, p.let(f'add i32 {at}, {OUT}'))}")
    if fault != "no proxy fence":
        p.asm(FENCE, "~{memory}")
    if fault != "no barrier before the store":
        sync(p, 1, 128)
    with p.only("%leader"):
        p.call("cp.async.bulk.tensor.s2g.tile.2d", pointer(p, OUT), "ptr %c", "i32 0", "i32 0",
               "i64 0", "i1 false")  # fmt: skip
        p.call("cp.async.bulk.commit.group")
        if fault != "no wait at the end":
            p.call("cp.async.bulk.wait.group.read", "i32 0")


def product(fault: str = "") -> str:
    """c = a @ b.T of 64 x 64, by two warpgroups."""
    arrivals = 128 if fault == "counted by all threads" else 1
    counts = {16 * s + FULL: 1 for s in range(SLOTS)}
    p = begin(counts | {16 * s + EMPTY: arrivals for s in range(SLOTS)}, fault)
    p.do("%lane = and i32 %tid, 31\n%warp = lshr i32 %tid, 5\n%quarter = and i32 %warp, 3")
    p.do("%leader = icmp eq i32 %tid, 128")
    first = p.let("icmp eq i32 %warp, 0")
    elected = p.call("elect.sync", "i32 -1", type_="{i32, i1}")
    p.do(f"%one = extractvalue {{i32, i1}} {elected}, 1")
    p.do(f"%chosen = and i1 {first}, %one")
    p.do(f"br i1 {p.let('icmp ult i32 %tid, 128')}, label %produce, label %consume\nproduce:")
    produce(p, fault)
    p.do("br label %finish\nconsume:")
    store_tile(p, consume(p, fault), fault)
    p.label("finish")
    return p.text(f"{MAP} %a, {MAP} %b, {MAP} %c", ATTRIBUTES)


def run(text: str, seed: int | None) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    a, b = (aligned(rng.integers(-3, 4, (64, 64 * BLOCKS)).astype(np.float16)) for _ in range(2))
    c = aligned(np.full((64, 64), np.nan, np.float16))
    maps = [TensorMap.of(x, (64, 64), 3) for x in (a, b, c)]
    launch(text, SIZE, *maps, warps=8, seed=seed)
    return c, a.astype(np.float64) @ b.astype(np.float64).T


@pytest.mark.parametrize("seed", SEEDS)
def test_a_producer_and_a_consumer(seed: int | None) -> None:
    found, expected = run(product(), seed)
    np.testing.assert_array_equal(found.astype(np.float64), expected)


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_found(fault: str) -> None:
    text = product(fault)
    assert text != product()
    for seed in SEEDS:
        with pytest.raises(EmulationError, match=FAULTS[fault]):
            run(text, seed)


def test_a_deadlock_tells_the_states_of_mbarriers() -> None:
    with pytest.raises(EmulationError) as caught:
        run(product("not released"), None)
    message = str(caught.value)
    assert (
        "warp 0 waits for parity 0 of the mbarrier at 0x8, in phase 0: 1 of 1 arrivals" in message
    )
    assert "warp 4 waits for parity 1 of the mbarrier at 0x0" in message
