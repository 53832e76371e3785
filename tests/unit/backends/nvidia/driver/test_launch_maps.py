"""Tensor maps in the machine code of launches: made once for the same numbers, and never torn."""

import ctypes
import random
import threading

import pytest

from tests.unit.backends.nvidia.fake_launch import (
    FIRST_DEVICE_ADDRESS,
    FakeDriver,
    RecordingHandlers,
    Refused,
    encoded,
    entry_for,
)
from tilewright.backends.nvidia.driver.launch_structures import MAP_ENTRIES, MAP_PROBES

KINDS = ["ptr", "i32", "f32", "i64"]
MAPS = [(0, 1, 3), (3,)]
ADDRESS = FIRST_DEVICE_ADDRESS


def asked(recording: RecordingHandlers) -> list[tuple[object, ...]]:
    found = [call[1:] for call in recording.seen if call[0] == "encode"]
    recording.seen.clear()
    return found


def test_maps_stand_behind_the_arguments() -> None:
    driver = FakeDriver()
    entry_for(driver, KINDS, maps=MAPS)(1, 1, 1, 0, ADDRESS, 7, 1.5, 9)
    got = driver.launched()
    assert (got.slots[0], got.slots[3]) == (ADDRESS, 9)
    assert got.maps == [encoded(0, (ADDRESS, 7, 9)), encoded(1, (9,))]


def test_maps_are_made_once_for_the_same_numbers() -> None:
    driver, recording = FakeDriver(), RecordingHandlers()
    entry = entry_for(driver, KINDS, recording, maps=MAPS)
    for scale in (1.0, 2.0, 3.0):
        entry(1, 1, 1, 0, ADDRESS, 7, scale, 9)
    assert asked(recording) == [(0, (ADDRESS, 7, 9)), (1, (9,))]
    entry(1, 1, 1, 0, ADDRESS, 8, 1.0, 9)
    assert asked(recording) == [(0, (ADDRESS, 8, 9))]
    assert driver.launched().maps == [encoded(0, (ADDRESS, 8, 9)), encoded(1, (9,))]


def test_zeros_are_not_taken_for_known() -> None:
    driver, recording = FakeDriver(), RecordingHandlers()
    entry_for(driver, KINDS, recording, maps=MAPS)(1, 1, 1, 0, None, 0, 0.0, 0)
    assert driver.launched().maps == [encoded(0, (0, 0, 0)), encoded(1, (0,))]


def test_memory_that_is_used_again_with_other_shapes() -> None:
    """More maps than are kept, in any order: each launch gets its own."""
    driver, recording = FakeDriver(), RecordingHandlers()
    entry = entry_for(driver, KINDS, recording, maps=MAPS)
    draw, kept = random.Random(0), MAP_ENTRIES + MAP_PROBES
    for _ in range(8 * kept):
        address, rows, stride = ADDRESS + 256 * draw.randrange(4), draw.randrange(kept), 16
        entry(1, 1, 1, 0, address, rows, 0.0, stride)
        assert driver.launched().maps[0] == encoded(0, (address, rows, stride))
    assert len(asked(recording)) > 4 * kept  # four times as many as are kept


def test_some_maps_of_which_each_is_used_again_are_all_kept() -> None:
    driver, recording = FakeDriver(), RecordingHandlers()
    entry = entry_for(driver, KINDS, recording, maps=MAPS)
    for _ in range(2):
        for number in range(MAP_ENTRIES // 4):
            entry(1, 1, 1, 0, ADDRESS + 4096 * number, 64, 0.0, 64)
    assert len(asked(recording)) == MAP_ENTRIES // 4 + 1


def test_entries_of_devices_keep_their_own() -> None:
    recordings = [RecordingHandlers(), RecordingHandlers()]
    for recording in recordings:
        entry_for(FakeDriver(), KINDS, recording, maps=MAPS)(1, 1, 1, 0, ADDRESS, 7, 1.5, 9)
    assert [len(asked(recording)) for recording in recordings] == [2, 2]


def test_a_map_that_cannot_be_made_launches_nothing_and_is_not_kept() -> None:
    driver = FakeDriver()
    recording = RecordingHandlers(unencodable={(ADDRESS, 7, 9)})
    entry = entry_for(driver, KINDS, recording, maps=MAPS)
    for _ in range(2):
        with pytest.raises(Refused, match="map 0"):
            entry(1, 1, 1, 0, ADDRESS, 7, 1.5, 9)
    assert driver.calls == 0
    entry(1, 1, 1, 0, ADDRESS, 6, 1.5, 9)
    assert driver.calls == 1


def test_maps_that_the_driver_still_reads_are_not_replaced() -> None:
    """A launch waits in the driver while other threads fill the table with other maps."""
    driver, reached, released = FakeDriver(), threading.Event(), threading.Event()
    seen: list[bytes] = []

    @ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)
    def launch(config: int, function: int, params: int, extra: int) -> int:
        if threading.current_thread() is waiting:
            reached.set()
            assert released.wait(20)
            place = ctypes.c_uint64.from_address(params + 8 * len(KINDS)).value
            seen.append(ctypes.string_at(place, 128))
        return 0

    driver.launch = ctypes.cast(launch, ctypes.c_void_p).value or 0
    entry = entry_for(driver, KINDS, maps=MAPS)
    waiting = threading.Thread(target=lambda: entry(1, 1, 1, 0, ADDRESS, 7, 1.5, 9))
    waiting.start()
    assert reached.wait(20)
    for number in range(8 * MAP_ENTRIES):
        entry(1, 1, 1, 0, ADDRESS, 100 + number, 1.5, 9)
    released.set()
    waiting.join(20)
    assert seen == [encoded(0, (ADDRESS, 7, 9))]
