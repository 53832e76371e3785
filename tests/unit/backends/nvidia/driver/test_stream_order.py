"""Launches on arrays of several streams, and whose memory an address is, by a fake driver."""

from __future__ import annotations

import pytest

from tests.unit.backends.nvidia.fake_cuda import DEVICE_BASE, HOST_PINNED, MANAGED, FakeCuda
from tests.unit.backends.nvidia.fake_launch import DEVICE
from tilewright.backends import Streamed
from tilewright.backends.nvidia.driver import gpu_launcher, stream_order
from tilewright.backends.nvidia.driver.cuda_errors import LaunchRefused
from tilewright.backends.nvidia.driver.gpu_launcher import NvidiaLauncher

CURRENT, FIRST, SECOND = 0x57, 0x61, 0x62
METADATA = {"name": "add", "num_warps": 4, "shared": 0, "num_ctas": 1}


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    cuda = FakeCuda((90,) * (DEVICE + 2))
    monkeypatch.setattr(gpu_launcher, "device_and_stream", lambda: (DEVICE, CURRENT))
    return cuda


def launch(cuda: FakeCuda, *values: object) -> int:
    """Launch a kernel with arrays and an integer; the stream that it went to."""
    parameters = ["ptr<f32>"] * len(values)
    cuda.machine.expect(len(values) + 1)
    kernel = NvidiaLauncher(b"\x7fELF", dict(METADATA), [*parameters, "i32"], cuda.driver())
    kernel.launch((2, 1, 1), (*values, 7))
    got = cuda.machine.launched()
    assert got.slots[:-1] == [0 if value is None else value for value in values]
    assert cuda.machine.calls == 1
    return got.stream


def at(stream: int, offset: int = 0, device: int = DEVICE) -> Streamed:
    return Streamed(DEVICE_BASE + offset, device, stream)


def test_arrays_of_one_stream_are_worked_on_there(cuda: FakeCuda) -> None:
    assert launch(cuda, at(FIRST), at(FIRST, 64), None) == FIRST
    assert cuda.order == []


def test_arrays_of_several_streams_are_waited_for_and_wait(cuda: FakeCuda) -> None:
    assert launch(cuda, at(SECOND), at(FIRST, 64), at(SECOND, 128)) == CURRENT
    assert cuda.order == [
        (FIRST, CURRENT, 0), (SECOND, CURRENT, 0), (CURRENT, FIRST, 1), (CURRENT, SECOND, 1),
    ]  # fmt: skip
    assert cuda.calls.count("cuEventCreate") == cuda.calls.count("cuEventDestroy") == 4
    assert len(cuda.untimed) == 4


def test_an_array_without_a_stream_is_of_the_current_one(cuda: FakeCuda) -> None:
    assert launch(cuda, DEVICE_BASE, at(FIRST, 64)) == CURRENT
    assert cuda.order == [(FIRST, CURRENT, 0), (CURRENT, FIRST, 1)]


def test_the_device_of_the_arrays_is_used(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_launcher, "device_and_stream", lambda: (1, CURRENT))
    assert launch(cuda, at(FIRST), at(FIRST, 64)) == FIRST
    assert [device for device, _ in cuda.images] == [1, DEVICE]
    assert cuda.stack == []


def test_a_stream_that_is_captured_is_left_alone(cuda: FakeCuda) -> None:
    cuda.capturing.add(CURRENT)
    assert launch(cuda, at(FIRST), at(FIRST, 64)) == CURRENT
    assert cuda.order == []


def test_a_refused_launch_raises(cuda: FakeCuda) -> None:
    cuda.machine.answer(701)
    with pytest.raises(LaunchRefused, match="refused to launch add"):
        launch(cuda, at(FIRST), at(SECOND, 64))
    assert cuda.stack == []


@pytest.mark.parametrize(
    ("address", "device", "usable"),
    [
        (DEVICE_BASE, f"cuda:{DEVICE}", True),
        (DEVICE_BASE << 1, "cuda:1", True),
        (HOST_PINNED, None, True),
        (MANAGED, "cuda:0", True),
        (4096, None, False),
        (0, None, False),
    ],
)
def test_whose_memory_an_address_is(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch, address: int, device: str | None, usable: bool
) -> None:
    api = cuda.driver()
    monkeypatch.setattr(stream_order, "driver", lambda: api)
    assert stream_order.MEMORY.device_of(address) == device
    assert stream_order.MEMORY.usable(address) == usable


@pytest.mark.parametrize("fails", [{}, {"cuStreamGetCtx": 201}], ids=["stream", "address"])
def test_the_device_of_a_stream_or_else_of_an_address_is_entered(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch, fails: dict[str, int]
) -> None:
    api = cuda.driver()
    monkeypatch.setattr(stream_order, "driver", lambda: api)
    cuda.device_of_stream[FIRST] = DEVICE
    cuda.fails = fails
    entered = stream_order.MEMORY.entered
    assert entered is not None
    with entered(FIRST, DEVICE_BASE << 1) as device:
        assert device == (1 if fails else DEVICE) and cuda.stack == [0xC000 + device]
    assert cuda.stack == []
