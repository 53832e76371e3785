"""The launch in machine code: what the driver gets, and what goes to Python instead."""

import ctypes
import gc
import struct
import sys
import threading
import weakref
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.backends.nvidia.fake_launch import (
    FIRST_DEVICE_ADDRESS,
    FOREIGN_ADDRESS,
    FUNCTION,
    FakeDriver,
    RecordingHandlers,
    Refused,
    entry_for,
)
from tilewright.backends.nvidia.driver.launch_entry import LaunchLog, LaunchShape, PageTable

ADDRESS = FIRST_DEVICE_ADDRESS
MAX_GRID = 2**31 - 1


@pytest.fixture
def driver() -> Iterator[FakeDriver]:
    yield FakeDriver()


class Array:
    def __init__(self, address: object) -> None:
        self.address = address

    def data_ptr(self) -> object:
        return self.address


def low_bytes(slot: int, count: int) -> bytes:
    return slot.to_bytes(8, "little")[:count]


def test_config_holds_grid_block_stream_shared_memory_and_function(driver: FakeDriver) -> None:
    entry = entry_for(driver, [], shape=LaunchShape(256, shared_bytes=99_000))
    entry(5, 6, 7, 0xFFFF_1234_5678)
    got = driver.launched()
    assert (got.grid, got.block) == ((5, 6, 7), (256, 1, 1))
    assert (got.shared_bytes, got.stream, got.function) == (99_000, 0xFFFF_1234_5678, FUNCTION)
    assert got.attributes == []


def test_attributes_of_the_launch(driver: FakeDriver) -> None:
    shape = LaunchShape(128, cluster=(2, 1, 1), cooperative=True, dependent=True)
    entry_for(driver, [], shape=shape)(2, 1, 1, 0)
    attributes = driver.launched().attributes
    assert [struct.unpack_from("<I", a)[0] for a in attributes] == [4, 2, 6]
    assert struct.unpack_from("<3I", attributes[0], 8) == (2, 1, 1)
    assert struct.unpack_from("<i", attributes[1], 8) == (1,)
    assert struct.unpack_from("<i", attributes[2], 8) == (1,)


@pytest.mark.parametrize(
    ("grid", "blocks"),
    [((3, 1, 1), 3), ((5, 4, 1), 20), ((2, 3, 7), 20), ((1, 1, 19), 19), ((MAX_GRID, 1, 1), 20)],
)
def test_blocks_that_run_several_programs_are_few(
    driver: FakeDriver, grid: tuple[int, int, int], blocks: int
) -> None:
    log = LaunchLog()
    shape = LaunchShape(128, resident=2)
    entry = entry_for(driver, ["i32", "constexpr"], shape=shape, log=log)
    entry(*grid, 0, 8, None)
    got = driver.launched()
    assert got.grid == (blocks, 1, 1)
    # the grid follows the arguments
    assert got.slots == [8, *grid]
    assert log.latest()[0].grid == grid


@pytest.mark.parametrize(
    ("grid", "blocks"),
    [((2, 1, 1), 2), ((5, 3, 1), 16), ((3, 2, 3), 18), ((1, 1, 1), 2), ((1, 1, 21), 20),
     ((2**31 - 1, 1, 1), 20)],
)  # fmt: skip
def test_blocks_that_multicast_tma_are_pairs(
    driver: FakeDriver, grid: tuple[int, int, int], blocks: int
) -> None:
    """20 blocks at most are resident."""
    shape = LaunchShape(128, dependent=True, resident=2, shares_copies=True)
    entry_for(driver, [], shape=shape)(*grid, 0)
    got = driver.launched()
    assert (got.grid, got.slots) == ((blocks, 1, 1), [*grid])
    assert [struct.unpack_from("<I", a)[0] for a in got.attributes] == [6, 4]
    assert struct.unpack_from("<3I", got.attributes[1], 8) == (2, 1, 1)


def test_an_empty_grid_of_such_blocks_launches_nothing(driver: FakeDriver) -> None:
    entry_for(driver, [], shape=LaunchShape(128, resident=2))(4, 0, 1, 0)
    assert driver.calls == 0


@pytest.mark.parametrize(
    "grid", [(2**16, 2**15, 1), (MAX_GRID, MAX_GRID, MAX_GRID), (2**31, 1, 1), (-1, 1, 1)]
)
def test_more_programs_than_such_blocks_can_count(
    driver: FakeDriver, grid: tuple[int, int, int]
) -> None:
    recording = RecordingHandlers(converted={-4: 0})
    entry = entry_for(driver, [], recording, shape=LaunchShape(128, resident=2))
    with pytest.raises(Refused, match="grid"):
        entry(*grid, 0)
    assert driver.calls == 0


def test_a_cluster_of_blocks_runs_each_program(driver: FakeDriver) -> None:
    recording, log = RecordingHandlers(), LaunchLog()
    shape = LaunchShape(128, cluster=(3, 1, 1))
    entry = entry_for(driver, [], recording, shape=shape, log=log)
    entry(7, 2, 5, 0)
    assert driver.launched().grid == (21, 2, 5)
    assert log.latest()[0].grid == (7, 2, 5)
    entry(MAX_GRID // 3, 1, 1, 0)
    assert driver.launched().grid == (MAX_GRID // 3 * 3, 1, 1)
    with pytest.raises(Refused, match="grid"):
        entry(MAX_GRID // 3 + 1, 1, 1, 0)
    assert driver.calls == 2


@pytest.mark.parametrize("kind", ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"])
def test_integers_over_their_whole_range(driver: FakeDriver, kind: str) -> None:
    bits = int(kind[1:])
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if kind[0] == "i" else (0, 2**bits - 1)
    recording = RecordingHandlers()
    entry = entry_for(driver, [kind], recording)
    for value in {low, low + 1, 0, 1, high - 1, high, -1 if low < 0 else 2}:
        entry(1, 1, 1, 0, value)
        expected = (value % 2**bits).to_bytes(bits // 8, "little")
        assert low_bytes(driver.launched().slots[0], bits // 8) == expected
    assert recording.seen == []
    for value in (low - 1, high + 1, 2**70, -(2**70)):
        with pytest.raises(Refused):
            entry(1, 1, 1, 0, value)


def test_bool(driver: FakeDriver) -> None:
    entry = entry_for(driver, ["i1"])
    for value in (True, False, 0, 1):
        entry(1, 1, 1, 0, value)
        assert low_bytes(driver.launched().slots[0], 1) == bytes([value])
    with pytest.raises(Refused):
        entry(1, 1, 1, 0, 2)


FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 1e-7, 6e-8, 1e-45, 65504.0, 65520.0, 1e39, float("inf"), -1e300]


@pytest.mark.parametrize("kind", FLOATS)
def test_floats_round_as_numpy_rounds(driver: FakeDriver, kind: str) -> None:
    dtype = FLOATS[kind]
    entry = entry_for(driver, [kind])
    for value in [*SPECIAL, 7, -3]:
        entry(1, 1, 1, 0, value)
        with np.errstate(over="ignore"):
            expected = np.float64(value).astype(dtype).tobytes()
        assert low_bytes(driver.launched().slots[0], len(expected)) == expected
    entry(1, 1, 1, 0, float("nan"))
    got = np.frombuffer(low_bytes(driver.launched().slots[0], np.dtype(dtype).itemsize), dtype)
    assert np.isnan(got[0])


@given(st.floats(allow_nan=False, width=64))
def test_half_rounds_once(value: float) -> None:
    driver = FakeDriver()
    entry_for(driver, ["f16"])(1, 1, 1, 0, value)
    with np.errstate(over="ignore"):
        assert low_bytes(driver.launched().slots[0], 2) == np.float16(value).tobytes()


def test_what_is_no_float_goes_to_python(driver: FakeDriver) -> None:
    recording = RecordingHandlers(converted={0: 0x4048_0000})
    entry = entry_for(driver, ["f32"], recording)
    entry(1, 1, 1, 0, "3.125")
    assert driver.launched().slots == [0x4048_0000]
    assert recording.seen == [("convert", 0, "3.125")]


def test_numpy_numbers_are_numbers(driver: FakeDriver) -> None:
    entry = entry_for(driver, ["i32", "i64", "f32", "u8"])
    entry(1, 1, 1, 0, np.int64(-5), np.uint32(7), np.float32(0.5), np.int8(9))
    slots = driver.launched().slots
    assert slots[1:] == [7, 0x3F00_0000, 9]
    assert low_bytes(slots[0], 4) == struct.pack("<i", -5)


def test_many_arguments_keep_their_places(driver: FakeDriver) -> None:
    kinds = ["ptr", "i32", "constexpr", "f64", "i8", "ptr", "constexpr", "u64", "i1", "f16"]
    entry_for(driver, kinds)(
        1, 2, 3, 0, ADDRESS, -2, object(), 1.5, -3, None, "ignored", 2**64 - 5, True, 2.0
    )
    slots = driver.launched().slots
    assert slots[0] == ADDRESS
    assert low_bytes(slots[1], 4) == struct.pack("<i", -2)
    assert slots[2] == struct.unpack("<Q", struct.pack("<d", 1.5))[0]
    assert low_bytes(slots[3], 1) == struct.pack("<b", -3)
    assert slots[4:] == [0, 2**64 - 5, 1, 0x4000]


# --- pointers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("argument", [ADDRESS + 16, Array(ADDRESS + 16)])
def test_pointer_by_number_or_array(driver: FakeDriver, argument: object) -> None:
    entry_for(driver, ["ptr"])(1, 1, 1, 0, argument)
    assert driver.launched().slots == [ADDRESS + 16]


@pytest.mark.parametrize("argument", [None, 0, Array(0)])
def test_null_is_passed_unchecked(driver: FakeDriver, argument: object) -> None:
    entry_for(driver, ["ptr"])(1, 1, 1, 0, argument)
    assert driver.launched().slots == [0]
    assert driver.queries == 0


def test_address_of_the_host_is_refused_and_nothing_runs(driver: FakeDriver) -> None:
    recording = RecordingHandlers()
    entry = entry_for(driver, ["ptr", "ptr"], recording)
    with pytest.raises(Refused):
        entry(1, 1, 1, 0, ADDRESS, 0x7FFF_0000)
    assert recording.seen == [("refuse", 1, 0x7FFF_0000)]
    assert driver.calls == 0


def test_address_of_another_device_is_refused(driver: FakeDriver) -> None:
    with pytest.raises(Refused):
        entry_for(driver, ["ptr"])(1, 1, 1, 0, FOREIGN_ADDRESS)
    assert driver.calls == 0


def test_python_may_let_an_address_pass_each_time(driver: FakeDriver) -> None:
    recording = RecordingHandlers(allowed={FOREIGN_ADDRESS})
    entry = entry_for(driver, ["ptr"], recording)
    entry(1, 1, 1, 0, FOREIGN_ADDRESS)
    entry(1, 1, 1, 0, FOREIGN_ADDRESS)
    assert driver.launched().slots == [FOREIGN_ADDRESS]
    assert recording.seen == [("refuse", 0, FOREIGN_ADDRESS)] * 2


def test_pages_are_confirmed_once(driver: FakeDriver) -> None:
    pages = PageTable()
    entry = entry_for(driver, ["ptr", "ptr"], pages=pages)
    for _ in range(3):
        entry(1, 1, 1, 0, ADDRESS, ADDRESS + 4095)
    assert driver.queries == 1
    entry(1, 1, 1, 0, ADDRESS, ADDRESS + 4096)
    assert driver.queries == 2
    other = entry_for(driver, ["ptr"], pages=pages)
    other(1, 1, 1, 0, ADDRESS + 8)
    assert driver.queries == 2
    pages.forget()
    other(1, 1, 1, 0, ADDRESS)
    assert driver.queries == 3


def test_pages_that_share_an_entry_are_not_confused(driver: FakeDriver) -> None:
    recording = RecordingHandlers()
    pages = PageTable()
    entry = entry_for(driver, ["ptr"], recording, pages=pages)
    same_entry = next(
        page << 12
        for page in range(1 << 15, 1 << 16)
        if (page ^ page >> 9) & 0x7FFF == (ADDRESS >> 12 ^ ADDRESS >> 21) & 0x7FFF
    )
    entry(1, 1, 1, 0, ADDRESS)
    with pytest.raises(Refused):
        entry(1, 1, 1, 0, same_entry)


@pytest.mark.parametrize("address", [1, 4095])
def test_first_page_is_not_taken_for_known(driver: FakeDriver, address: int) -> None:
    with pytest.raises(Refused):
        entry_for(driver, ["ptr"])(1, 1, 1, 0, address)


@pytest.mark.parametrize("argument", [-1, -5, 2**64, "text", 1.5, Array("text"), object(), [1]])
def test_what_is_no_address_goes_to_python(driver: FakeDriver, argument: object) -> None:
    recording = RecordingHandlers(converted={0: 4242})
    entry_for(driver, ["ptr"], recording)(1, 1, 1, 0, argument)
    assert recording.seen == [("convert", 0, argument)]
    assert driver.launched().slots == [4242]


def test_error_of_an_array_is_replaced_by_that_of_the_handler(driver: FakeDriver) -> None:
    class Broken:
        def data_ptr(self) -> int:
            raise RuntimeError("released")

    with pytest.raises(Refused, match="argument 0"):
        entry_for(driver, ["ptr"])(1, 1, 1, 0, Broken())
    assert driver.calls == 0


# --- grid, count, stream --------------------------------------------------------------------------


@pytest.mark.parametrize("grid", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 0, 0)])
def test_empty_grid_launches_nothing(driver: FakeDriver, grid: tuple[int, int, int]) -> None:
    assert entry_for(driver, ["i32"])(*grid, 0, 1) is None
    assert driver.calls == 0


@pytest.mark.parametrize(
    "grid", [(-1, 1, 1), (1, MAX_GRID + 1, 1), (1, 1, "3"), (2.0, 1, 1), (2**80, 1, 1), (0, -1, 1)]
)
def test_no_grid(driver: FakeDriver, grid: tuple[object, object, object]) -> None:
    recording = RecordingHandlers()
    with pytest.raises(Refused, match="grid"):
        entry_for(driver, [], recording)(*grid, 0)
    assert recording.seen == [("regrid", *grid)]
    assert driver.calls == 0


def test_largest_grid(driver: FakeDriver) -> None:
    entry_for(driver, [])(MAX_GRID, MAX_GRID, MAX_GRID, 0)
    assert driver.launched().grid == (MAX_GRID,) * 3


@pytest.mark.parametrize("arguments", [(), (1,), (1, 2, 3)])
def test_wrong_number_of_arguments(driver: FakeDriver, arguments: tuple[int, ...]) -> None:
    with pytest.raises(TypeError, match="number of launch arguments"):
        entry_for(driver, ["i32", "i32"])(1, 1, 1, 0, *arguments)
    assert driver.calls == 0


def test_stream_must_be_a_number(driver: FakeDriver) -> None:
    with pytest.raises(TypeError):
        entry_for(driver, [])(1, 1, 1, "stream")
    assert driver.calls == 0


# --- results of the driver ------------------------------------------------------------------------


def test_failed_launch_raises(driver: FakeDriver) -> None:
    recording = RecordingHandlers()
    entry = entry_for(driver, [], recording)
    driver.answer(700)
    with pytest.raises(Refused, match="status 700"):
        entry(4, 5, 6, 77)
    assert recording.seen == [("failed", 700, 0, 4, 5, 6, 77)]


def test_launch_is_tried_again_when_the_handler_returns(driver: FakeDriver) -> None:
    recording = RecordingHandlers(retries=5)
    entry = entry_for(driver, ["i32"], recording)
    driver.answer_once(201)
    entry(1, 1, 1, 0, 42)
    assert driver.calls == 2
    assert driver.launched().slots == [42]
    assert recording.seen == [("failed", 201, 0, 1, 1, 1, 0)]


def test_handler_learns_that_a_launch_was_tried_again(driver: FakeDriver) -> None:
    recording = RecordingHandlers(retries=1)
    entry = entry_for(driver, [], recording)
    driver.answer(201)
    with pytest.raises(Refused):
        entry(1, 1, 1, 0)
    assert [seen[2] for seen in recording.seen] == [0, 1]


def test_call_after_each_launch(driver: FakeDriver) -> None:
    recording = RecordingHandlers()
    entry = entry_for(driver, [], recording, blocking=True)
    entry(1, 2, 3, 99)
    entry(0, 2, 3, 99)
    assert recording.seen == [("after", 1, 2, 3, 99)]


def test_log_names_the_latest_launches(driver: FakeDriver) -> None:
    log = LaunchLog()
    first = entry_for(driver, [], log=log)
    second = entry_for(driver, [], log=log, function=0xBEEF)
    first(1, 1, 1, 0)
    mark = log.count
    for x in range(2, 100):
        second(x, 1, 1, 5)
    assert log.count == 99
    latest = log.latest()
    assert len(latest) == 64
    assert [launch.grid[0] for launch in latest[:3]] == [99, 98, 97]
    assert {(launch.function, launch.stream) for launch in latest} == {(0xBEEF, 5)}
    assert len(log.latest(mark + 96)) == 2


def test_refused_launch_is_taken_out_of_the_log(driver: FakeDriver) -> None:
    log = LaunchLog()
    entry = entry_for(driver, [], log=log)
    for x in (1, 2, 1, 3):
        entry(x, 1, 1, 5)
    log.drop(FUNCTION, (1, 1, 1), 5)
    log.drop(FUNCTION, (9, 1, 1), 5)
    assert [launch.grid[0] for launch in log.latest()] == [3, 2, 1]


# --- life -----------------------------------------------------------------------------------------


def test_entry_keeps_what_it_needs(driver: FakeDriver) -> None:
    recording = RecordingHandlers(converted={0: 1})
    entry = entry_for(driver, ["ptr"], recording)
    kept = weakref.ref(recording)
    del recording
    gc.collect()
    assert kept() is not None
    entry(1, 1, 1, 0, "text")
    del entry
    gc.collect()
    assert kept() is None


def test_references_are_balanced(driver: FakeDriver) -> None:
    recording = RecordingHandlers(converted={1: 5}, allowed={4097}, retries=1)
    kinds = ["ptr", "ptr", "i32", "ptr"]
    entry = entry_for(driver, kinds, recording, blocking=True)
    array, odd, number = Array(ADDRESS), object(), 123_456_789
    unseen = 987_654_321_000

    def once() -> None:
        driver.answer_once(201)
        entry(1, 1, 1, 0, array, odd, number, 4097)
        for bad in ((-unseen, 1, 1, 0), (1, 1, 1, 0)):
            with pytest.raises((Refused, TypeError)):
                entry(*bad, array, odd, unseen, None)
        recording.seen.clear()

    once()
    watched = (array, odd, number, None, entry, unseen)
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(100):
        once()
    after = [sys.getrefcount(item) for item in watched]
    assert all(abs(a - b) < 20 for a, b in zip(after, before, strict=True))


def test_other_threads_run_while_the_driver_waits() -> None:
    """A queue that is full makes the driver wait; a host callback may need Python meanwhile."""
    reached, released = threading.Event(), threading.Event()

    @ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)
    def waiting(config: int, function: int, params: int, extra: int) -> int:
        reached.set()
        return 0 if released.wait(20) else 999

    driver = FakeDriver()
    driver.launch = ctypes.cast(waiting, ctypes.c_void_p).value or 0
    entry = entry_for(driver, [])
    thread = threading.Thread(target=lambda: entry(1, 1, 1, 0))
    thread.start()
    assert reached.wait(20)
    released.set()
    thread.join(20)
    assert not thread.is_alive()
