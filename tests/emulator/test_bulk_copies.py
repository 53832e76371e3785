"""Bulk copies by tensor maps and of plain bytes against NumPy, and what is wrong around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.emulator.llvm_program import Program, launch
from tests.emulator.memory import Array, EmulationError
from tests.emulator.tensor_maps import TensorMap
from tests.emulator.test_barriers import SEEDS, put, sync
from tests.emulator.test_mbarriers import FULL, begin, pointer, wait

MAP = 'ptr byval([128 x i8]) align 64 "nvvm.grid_constant"'
SIZE = 1 << 16
DATA = 1024
FENCE = "fence.proxy.async.shared::cta;"


def aligned(array: Any) -> Array:
    """A copy at a multiple of 128 bytes."""
    array = np.ascontiguousarray(array)
    memory = np.zeros(array.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 128
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def expect(p: Program, size: int) -> None:
    p.asm("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,~{memory}",
          f"i32 {FULL}", f"i32 {size}")  # fmt: skip


def load_box(p: Program, at: Sequence[int], target: int = DATA) -> None:
    """at: coordinates, dimension 0 first."""
    names = ", ".join(f"${i}" for i in range(3, 3 + len(at)))
    p.asm(f"cp.async.bulk.tensor.{len(at)}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
          f" [$0], [$1, {{{names}}}], [$2];", "r,l,r" + ",r" * len(at) + ",~{memory}",
          f"i32 {target}", "ptr %map", f"i32 {FULL}", *[f"i32 {c}" for c in at])  # fmt: skip


def store_box(p: Program, at: Sequence[int], source: int = DATA, reduce: str = "") -> None:
    operands = [pointer(p, source), "ptr %map", *[f"i32 {c}" for c in at], "i64 0", "i1 false"]
    kind = f"reduce.{reduce}" if reduce else "s2g"
    p.call(f"cp.async.bulk.tensor.{kind}.tile.{len(at)}d", *operands)


def copy_out(p: Program, size: int) -> None:
    """Bytes of shared memory to %out."""
    for first in range(0, size, 4 * 128):
        address = p.let(f"add i32 %shared, {DATA + first}")
        value = p.asm("ld.shared.b32 $0, [$1];", "=r,r,~{memory}", f"i32 {address}", type_="i32")
        offset = p.let(f"add i32 %shared, {first}")
        place = p.let(f"getelementptr i8, ptr %out, i64 {p.let(f'zext i32 {offset} to i64')}")
        p.do(f"store i32 {value}, ptr {place}")


def run(p: Program, tensor: TensorMap, out: Array, seed: int | None = None) -> None:
    launch(p.text(f"{MAP} %map, ptr %out"), SIZE, tensor, out, seed=seed)


def loaded(at: Sequence[int], tensor: TensorMap, fault: str = "") -> Program:
    """A box to shared memory and from there as it lies to %out."""
    p = begin({FULL: 1}, fault)
    with p.only("%first"):
        wrong = {"fewer bytes": -16, "more bytes": 16}.get(fault, 0)
        if fault != "no bytes expected":
            expect(p, tensor.bytes + wrong)
        else:
            p.asm("mbarrier.arrive.shared::cta.b64 _, [$0];", "r,~{memory}", f"i32 {FULL}")
        load_box(p, at)
    if fault != "no wait":
        wait(p, FULL, 1 if fault == "wrong phase" else 0)
    copy_out(p, tensor.bytes)
    return p


def box_of(array: Array, at: Sequence[int], box: Sequence[int]) -> Array:
    """The part of an array from an index on, zeros where it has none."""
    found = np.zeros(box, array.dtype)
    for index in np.ndindex(*box):
        place = tuple(i + a for i, a in zip(index, at, strict=True))
        if all(0 <= p < n for p, n in zip(place, array.shape, strict=True)):
            found[index] = array[place]
    return found


ROW_BYTES = {0: 64, 1: 32, 2: 64, 3: 128}


def unswizzled(data: Array, width: int) -> Array:
    """Lines of `width` bytes whose pieces of 16 are where the hardware puts them."""
    lines = data.reshape(-1, width // 16, 16)
    r, c = np.ogrid[: len(lines), : width // 16]
    shift = {128: 0, 64: 1, 32: 2}[width]
    return lines[r, c ^ (r % 8 >> shift)].reshape(-1)


@pytest.mark.parametrize("swizzle", [0, 1, 2, 3])
@pytest.mark.parametrize("at", [(0, 0), (8, 16), (60, -8), (-3, 40), (70, 70)])
def test_boxes_of_two_dimensions(swizzle: int, at: tuple[int, int]) -> None:
    array = aligned(np.arange(71 * 72).reshape(71, 72).astype(np.float16))
    box = (16, ROW_BYTES[swizzle] // 2)
    tensor = TensorMap.of(array, box, swizzle)
    out = np.zeros(tensor.bytes, np.uint8)
    run(loaded(at[::-1], tensor), tensor, out)
    found = unswizzled(out, ROW_BYTES[swizzle]) if swizzle else out
    np.testing.assert_array_equal(found.view(np.float16).reshape(box), box_of(array, at, box))


@pytest.mark.parametrize("rank", [1, 3, 4, 5])
def test_boxes_of_any_rank(rank: int) -> None:
    shape, box = (3, 4, 5, 6, 16)[-rank:], (2, 1, 2, 4, 8)[-rank:]
    at = (1, 3, 4, 4, 4)[-rank:]
    array = aligned(np.random.default_rng(0).integers(0, 99, shape, np.int32))
    tensor = TensorMap.of(array, box)
    out = np.zeros(max(tensor.bytes, 512), np.uint8)
    p = begin({FULL: 1})
    with p.only("%first"):
        expect(p, tensor.bytes)
        load_box(p, at[::-1])
    wait(p, FULL, 0)
    with p.only(p.let(f"icmp ult i32 %tid, {tensor.bytes // 4}")):
        copy_out(p, min(tensor.bytes, 512))
    run(p, tensor, out)
    found = out[: tensor.bytes].view(np.int32).reshape(box)
    np.testing.assert_array_equal(found, box_of(array, at, box))


@pytest.mark.parametrize(
    ("fault", "match"),
    [
        ("no wait", "copy may be writing|nobody wrote"),
        ("wrong phase", "copy may be writing|nobody wrote"),
        ("fewer bytes", "496 bytes expected, 512 issued"),
        ("more bytes", "528 bytes expected, 512 issued"),
        ("no bytes expected", "0 bytes expected, 512 issued|copy may be writing|nobody wrote"),
        ("no fence after init", "no fence.mbarrier_init"),
    ],
)
def test_faults_of_loads(fault: str, match: str) -> None:
    array = aligned(np.zeros((16, 16), np.float16))
    tensor = TensorMap.of(array, (16, 16))
    for seed in SEEDS:
        with pytest.raises(EmulationError, match=match):
            run(loaded((0, 0), tensor, fault), tensor, np.zeros(512, np.uint8), seed)


def test_a_wait_of_another_warp_is_not_enough() -> None:
    """Warp 0 waits, the others read what has arrived by then."""
    array = aligned(np.zeros((16, 16), np.float16))
    tensor = TensorMap.of(array, (16, 16))
    p = begin({FULL: 1})
    with p.only("%first"):
        expect(p, tensor.bytes)
        load_box(p, (0, 0))
    with p.only(p.let("icmp ult i32 %tid, 32")):
        wait(p, FULL, 0)
    copy_out(p, tensor.bytes)
    for seed in SEEDS:
        with pytest.raises(EmulationError, match="without a barrier|may be writing|nobody wrote"):
            run(p, tensor, np.zeros(512, np.uint8), seed)


def test_a_source_that_changes_meanwhile() -> None:
    array = aligned(np.zeros((16, 16), np.float16))
    tensor = TensorMap.of(array, (16, 16))
    p = begin({FULL: 1})
    with p.only("%first"):
        expect(p, tensor.bytes)
        load_box(p, (0, 0))
        p.do("store i32 1, ptr %out")
    wait(p, FULL, 0)
    with pytest.raises(EmulationError, match="changed while it was on its way"):
        run(p, tensor, array)


@pytest.mark.parametrize("fence", ["", ".global", ".shared::cta"])
def test_a_source_that_the_program_has_stored(fence: str) -> None:
    """128 numbers, each stored by a thread of its own, then read by a copy."""
    array, out = aligned(np.zeros((16, 8), np.int32)), np.zeros(512, np.uint8)
    tensor = TensorMap.of(array, (16, 8))
    p = begin({FULL: 1})
    place = p.let(f"getelementptr i8, ptr %in, i64 {p.let('zext i32 %shared to i64')}")
    p.do(f"store i32 %tid, ptr {place}")
    p.asm(f"fence.proxy.async{fence};", "~{memory}")
    sync(p, 1, 128)
    with p.only("%first"):
        expect(p, tensor.bytes)
        load_box(p, (0, 0))
    wait(p, FULL, 0)
    copy_out(p, 512)
    given = p.text(f"{MAP} %map, ptr %in, ptr %out"), SIZE, tensor, array, out
    if fence == ".shared::cta":
        with pytest.raises(EmulationError, match="stored without a proxy fence"):
            launch(*given, checked=[array, out])
        return
    launch(*given, checked=[array, out])
    np.testing.assert_array_equal(out.view(np.int32), np.arange(128))


@pytest.mark.parametrize("seed", SEEDS)
def test_plain_bytes(seed: int | None) -> None:
    source, out = aligned(np.arange(128, dtype=np.int32)), aligned(np.zeros(128, np.int32))
    p = begin({FULL: 1})
    with p.only("%first"):
        expect(p, 512)
        p.call("cp.async.bulk.global.to.shared.cta", pointer(p, DATA), pointer(p, FULL),
               "ptr addrspace(1) %from", "i32 512", "i64 0", "i1 false")  # fmt: skip
    wait(p, FULL, 0)
    with p.only("%first"):
        p.call("cp.async.bulk.shared.cta.to.global", "ptr addrspace(1) %to", pointer(p, DATA),
               "i32 512", "i64 0", "i1 false")  # fmt: skip
        p.call("cp.async.bulk.commit.group")
        p.call("cp.async.bulk.wait.group", "i32 0")
    launch(p.text("ptr addrspace(1) %from, ptr addrspace(1) %to"), SIZE, source, out, seed=seed)
    np.testing.assert_array_equal(out, source)


# ---- to global memory ---------------------------------------------------------------------------


def stored(at: Sequence[int], fault: str = "", reduce: str = "", again: bool = False) -> Program:
    """128 numbers of 32 bits to a box; with `again`, others to the next one from the same place."""
    p = begin({})
    for number in range(2 if again else 1):
        if number:
            await_source(p, fault != "no wait for the source")
        if number and fault != "no barrier before reuse":
            sync(p, 1, 128)
        put(p, p.let(f"add i32 %shared, {DATA}"), p.let(f"add i32 %tid, {1000 * number}"))
        if fault != "no fence":
            p.asm(FENCE, "~{memory}")
        if fault != "no barrier":
            sync(p, 1, 128)
        with p.only("%first"):
            store_box(p, (at[0], at[1] + 16 * number), reduce=reduce)
            p.do(
                "" if fault == "no commit" else "call void @llvm.nvvm.cp.async.bulk.commit.group()"
            )
    await_source(p, fault != "no wait at the end")
    return p


def await_source(p: Program, does: bool) -> None:
    if does:
        with p.only("%first"):
            p.call("cp.async.bulk.wait.group.read", "i32 0")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("at", [(0, 0), (3, 5), (-3, -2), (7, 30)])
def test_stores_of_boxes_are_clipped(at: tuple[int, int], seed: int | None) -> None:
    out = aligned(np.full((33, 12), -1, np.int32))
    tensor = TensorMap.of(out, (16, 8))
    run(stored(at, again=True), tensor, out, seed)
    expected = np.full((33, 12), -1, np.int32)
    for number in range(2):
        box = np.arange(128).reshape(16, 8) + 1000 * number
        for (i, j), value in np.ndenumerate(box):
            row, column = i + at[1] + 16 * number, j + at[0]
            if 0 <= row < 33 and 0 <= column < 12:
                expected[row, column] = value
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("fault", "match"),
    [
        ("no fence", "without a proxy fence"),
        ("no barrier", "without a barrier|nobody wrote"),
        ("no wait for the source", "overwritten that an operation may yet read"),
        ("no barrier before reuse", "overwrit|without a barrier between"),
        ("no commit", "overwritten that an operation may yet read"),
        ("no wait at the end", "ends while a bulk copy"),
    ],
)
def test_faults_of_stores(fault: str, match: str) -> None:
    out = aligned(np.zeros((32, 8), np.int32))
    tensor = TensorMap.of(out, (16, 8))
    for seed in SEEDS:
        with pytest.raises(EmulationError, match=match):
            run(stored((0, 0), fault, again=True), tensor, out, seed)


@pytest.mark.parametrize("kind", ["add", "max"])
def test_reductions(kind: str) -> None:
    out = aligned(np.full((16, 8), 50, np.int32))
    run(stored((0, 0), reduce=kind), TensorMap.of(out, (16, 8)), out)
    numbers = np.arange(128).reshape(16, 8)
    np.testing.assert_array_equal(out, numbers + 50 if kind == "add" else np.maximum(numbers, 50))


@pytest.mark.parametrize(
    "at, columns, kind, type_, match",
    [
        ((0, -4), 8, "add", np.int32, "illegal"),
        ((-8, 0), 8, "add", np.int32, "illegal"),
        ((2, 0), 8, "add", np.int32, "illegal"),
        ((0, 0), 6, "add", np.int32, "reaches beyond"),
        ((0, 0), 8, "and", np.int64, "illegal"),
    ],
)
def test_reductions_that_the_hardware_refuses(
    at: tuple[int, int], columns: int, kind: str, type_: type[np.generic], match: str
) -> None:
    out = aligned(np.zeros((16, 8), type_))
    tensor = TensorMap.of(out[:, :columns], (16, 8 * 4 // out.itemsize))
    with pytest.raises(EmulationError, match=match):
        run(stored(at, reduce=kind), tensor, out)


@pytest.mark.parametrize("type_", [np.float32, ml_dtypes.bfloat16, np.float16], ids=str)
def test_sums_of_plain_numbers(type_: type[np.generic]) -> None:
    out = aligned(np.full(512 // np.dtype(type_).itemsize, 2, type_))
    name = {"float32": "add.f32", "bfloat16": "add.noftz.bf16", "float16": "add.noftz.f16"}
    p = begin({})
    bits = np.full(4 // out.itemsize, 3, type_).view(np.uint32)[0]
    put(p, p.let(f"add i32 %shared, {DATA}"), str(bits))
    p.asm(FENCE, "~{memory}")
    sync(p, 1, 128)
    with p.only("%first"):
        kind = name[np.dtype(type_).name]
        p.asm(f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{kind} [$0], [$1], $2;",
              "l,r,r,~{memory}", "ptr %out", f"i32 {DATA}", "i32 512")  # fmt: skip
        p.call("cp.async.bulk.commit.group")
        p.call("cp.async.bulk.wait.group.read", "i32 0")
    launch(p.text("ptr %out"), SIZE, out)
    np.testing.assert_array_equal(out.astype(np.float32), 5)


# ---- tensor maps --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"base": 8}, "address"),
        ({"strides": [24]}, "strides"),
        ({"strides": []}, "rank"),
        ({"box": [512, 1]}, "box"),
        ({"box": [4, 8]}, "box"),
        ({"dims": [0, 8]}, "dimensions"),
        ({"swizzle": 1}, "swizzle"),
    ],
)
def test_what_the_driver_refuses(changes: dict[str, Any], match: str) -> None:
    fields: dict[str, Any] = {"base": 64, "dims": [64, 8], "strides": [128], "box": [64, 8]}
    fields |= {"dtype": 6} | changes
    with pytest.raises(EmulationError, match=match):
        TensorMap(fields.pop("base"), fields.pop("dims"), fields.pop("strides"),
                  fields.pop("box"), **fields)  # fmt: skip


def test_places_that_are_not_aligned() -> None:
    array = aligned(np.zeros((16, 16), np.float16))
    tensor = TensorMap.of(array, (16, 16))
    p = begin({FULL: 1})
    with p.only("%first"):
        expect(p, tensor.bytes)
        load_box(p, (0, 0), DATA + 64)
    with pytest.raises(EmulationError, match="no multiple of 128"):
        run(p, tensor, array)


def test_a_pointer_that_is_no_tensor_map() -> None:
    p = begin({FULL: 1})
    with p.only("%first"):
        load_box(p, (0, 0))
    memory = aligned(np.zeros(256, np.uint8))
    with pytest.raises(EmulationError, match="no tensor map"):
        launch(p.text("ptr %map"), SIZE, memory)
